//! Conditional requests: versions, `If-Match` and `If-None-Match` (RFC 9110 §13).
//!
//! A version is a digest of the stored settings, not the store's own version of the object: a
//! subscription is a part of its topic's object, and must not seem changed when another part
//! changes.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::{HeaderName, IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use posthaste_core::api::SubscriptionSettings;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::model::hex;
use posthaste_core::stored::TopicRecord;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::answer::ApiError;

/// Bytes of the digest that make a version: enough that no two versions of one thing ever share it.
const VERSION_BYTES: usize = 16;

/// The version of a topic with its subscriptions, quoted.
pub(crate) fn topic_etag(record: &TopicRecord) -> String {
    digest_etag(&(record.created_at, &record.settings))
}

/// The version of a subscription, quoted.
pub(crate) fn subscription_etag(record: &TopicRecord, settings: &SubscriptionSettings) -> String {
    digest_etag(&(record.created_at, settings))
}

fn digest_etag(stored: &impl Serialize) -> String {
    // A record is plain data with text keys: serialising it cannot fail.
    let digest = Sha256::digest(serde_json::to_vec(stored).unwrap_or_default());
    format!("\"{}\"", hex::encode(&digest[..VERSION_BYTES]))
}

/// The conditions of a write.
#[derive(Default)]
pub(crate) struct WriteConditions {
    if_match: Option<EtagCondition>,
    if_none_match: Option<EtagCondition>,
}

enum EtagCondition {
    Any,
    These(Vec<String>),
}

impl EtagCondition {
    /// Whether the present version is one of these. Something that is not there has none.
    fn includes(&self, present: Option<&str>) -> bool {
        match (self, present) {
            (_, None) => false,
            (Self::Any, Some(_)) => true,
            (Self::These(these), Some(etag)) => these.iter().any(|one| one == etag),
        }
    }
}

fn failed_condition(header: &HeaderName) -> ApiProblem {
    ApiProblem::new(ProblemKind::PreconditionFailed).detail(format!("{header} does not hold"))
}

impl WriteConditions {
    /// Checks the conditions against the present version; `None` if there is nothing.
    pub(crate) fn check(&self, present: Option<&str>) -> Result<(), ApiProblem> {
        if let Some(wanted) = &self.if_match
            && !wanted.includes(present)
        {
            return Err(failed_condition(&IF_MATCH));
        }
        if let Some(unwanted) = &self.if_none_match
            && unwanted.includes(present)
        {
            return Err(failed_condition(&IF_NONE_MATCH));
        }
        Ok(())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for WriteConditions {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let if_match = parse_etag_condition(&parts.headers, &IF_MATCH);
        Ok(Self {
            if_match,
            if_none_match: parse_etag_condition(&parts.headers, &IF_NONE_MATCH),
        })
    }
}

/// The versions of a header. A weak or broken one is kept, and matches nothing.
fn parse_etag_condition(headers: &HeaderMap, name: &HeaderName) -> Option<EtagCondition> {
    let mut these = Vec::new();
    for value in headers.get_all(name) {
        these.extend(
            value
                .to_str()
                .unwrap_or_default()
                .split(',')
                .map(|one| one.trim().to_owned()),
        );
    }
    match these.as_slice() {
        [] => None,
        [any] if any == "*" => Some(EtagCondition::Any),
        _ => Some(EtagCondition::These(these)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(header: &HeaderName, value: &str, present: Option<&str>, holds: bool) {
        let headers = HeaderMap::from_iter([(header.clone(), value.parse().unwrap())]);
        let conditions = WriteConditions {
            if_match: parse_etag_condition(&headers, &IF_MATCH),
            if_none_match: parse_etag_condition(&headers, &IF_NONE_MATCH),
        };
        assert_eq!(
            conditions.check(present).is_ok(),
            holds,
            "{header}: {value} with {present:?}"
        );
    }

    #[test]
    fn if_match_holds_for_one_of_its_versions() {
        check(&IF_MATCH, "\"a\"", Some("\"a\""), true);
        check(&IF_MATCH, "\"b\", \"a\"", Some("\"a\""), true);
        check(&IF_MATCH, "*", Some("\"a\""), true);
        check(&IF_MATCH, "\"b\"", Some("\"a\""), false);
        check(&IF_MATCH, "W/\"a\"", Some("\"a\""), false);
        check(&IF_MATCH, "a", Some("\"a\""), false);
        check(&IF_MATCH, "", Some("\"a\""), false);
        check(&IF_MATCH, "*", None, false);
        check(&IF_MATCH, "\"a\"", None, false);
    }

    #[test]
    fn if_none_match_holds_where_nothing_is() {
        check(&IF_NONE_MATCH, "*", None, true);
        check(&IF_NONE_MATCH, "*", Some("\"a\""), false);
        check(&IF_NONE_MATCH, "\"a\"", Some("\"a\""), false);
        check(&IF_NONE_MATCH, "\"b\"", Some("\"a\""), true);
    }
}
