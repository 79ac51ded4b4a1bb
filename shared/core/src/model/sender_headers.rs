//! The headers of requests that identify the sender: which ones are sent, and by which names.

use std::ops::Deref;
use std::sync::Arc;

use http::header::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::hops::{HOPS_HEADER, NEUTRAL_HOPS_HEADER};
use crate::model::limits::HEADER_PREFIX_BYTES_MAX;

const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("posthaste/", env!("CARGO_PKG_VERSION")));

/// Prefixes whose names would be those of HTTP, of CloudEvents or of AWS.
const RESERVED: [&str; 6] = ["content", "proxy", "ce", "sec", "x-amz", "x-amzn"];

/// Headers that can be left out together.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum SenderHeader {
    /// `aeg-event-type` and `aeg-delivery-count`, as Event Grid has them.
    EventGrid,
    /// `aeg-subscription-name`.
    SubscriptionName,
    /// `webhook-request-origin` and `origin`. `OPTIONS` with which an endpoint is asked always has
    /// the first.
    Origin,
    /// `user-agent`.
    UserAgent,
    /// `posthaste-attempt` and `posthaste-replayed`.
    Attempt,
}

/// Why a prefix is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected 1 to {HEADER_PREFIX_BYTES_MAX} lower-case letters, digits and single hyphens between them, \
     such as acme or x-acme, and none of content, proxy, ce, sec, x-amz and x-amzn"
)]
pub struct PrefixError;

/// The headers that identify the sender of a request, without those of the signature. Clones share
/// names that differ from the documented ones.
#[derive(Debug, Clone, Default)]
pub struct SenderHeaders(Option<Arc<SenderHeaderNames>>);

/// The headers that are sent, and their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderHeaderNames {
    /// The header with the type of a request, as Event Grid has it.
    pub event_type: Option<HeaderName>,
    /// The header with the attempts before a request, as Event Grid has it.
    pub delivery_count: Option<HeaderName>,
    /// The header with the name of the subscription.
    pub subscription_name: Option<HeaderName>,
    /// The header with the number of the attempt.
    pub attempt: Option<HeaderName>,
    /// The header of what is sent again.
    pub replayed: Option<HeaderName>,
    /// The header with the deliveries that the events came through. It is always sent: without it
    /// endpoints that form a loop would not end it.
    pub hops: HeaderName,
    /// The value of `user-agent`.
    pub agent: Option<HeaderValue>,
    /// Whether the origin is sent.
    pub has_origin: bool,
}

/// All headers, by the names that the documents have.
static DOCUMENTED: SenderHeaderNames = SenderHeaderNames {
    event_type: Some(HeaderName::from_static("aeg-event-type")),
    delivery_count: Some(HeaderName::from_static("aeg-delivery-count")),
    subscription_name: Some(HeaderName::from_static("aeg-subscription-name")),
    attempt: Some(HeaderName::from_static("posthaste-attempt")),
    replayed: Some(HeaderName::from_static("posthaste-replayed")),
    hops: HeaderName::from_static(HOPS_HEADER),
    agent: Some(AGENT),
    has_origin: true,
};

impl Deref for SenderHeaders {
    type Target = SenderHeaderNames;

    fn deref(&self) -> &SenderHeaderNames {
        self.0.as_deref().unwrap_or(&DOCUMENTED)
    }
}

impl PartialEq for SenderHeaders {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SenderHeaders {}

impl SenderHeaders {
    /// All headers, by the names that the documents have.
    pub const DEFAULT: Self = Self(None);

    /// Headers whose names begin with `prefix` in place of `aeg` and `posthaste`, without those of
    /// `omitted`. With a prefix the agent is the prefix, and the header of hops names no program.
    pub fn new(prefix: Option<&str>, omitted: &[SenderHeader]) -> Result<Self, PrefixError> {
        let mut headers = match prefix {
            Some(prefix) => SenderHeaderNames::from_prefix(prefix)?,
            None => DOCUMENTED.clone(),
        };
        for header in omitted {
            match header {
                SenderHeader::EventGrid => {
                    headers.event_type = None;
                    headers.delivery_count = None;
                }
                SenderHeader::SubscriptionName => headers.subscription_name = None,
                SenderHeader::Origin => headers.has_origin = false,
                SenderHeader::UserAgent => headers.agent = None,
                SenderHeader::Attempt => (headers.attempt, headers.replayed) = (None, None),
            }
        }
        Ok(Self(Some(Arc::new(headers))))
    }
}

impl SenderHeaderNames {
    fn from_prefix(prefix: &str) -> Result<Self, PrefixError> {
        let is_short = prefix.len() <= HEADER_PREFIX_BYTES_MAX;
        if !is_short || !prefix.split('-').all(is_prefix_word) || RESERVED.contains(&prefix) {
            return Err(PrefixError);
        }
        Ok(Self {
            event_type: Some(header_behind(prefix, "event-type")?),
            delivery_count: Some(header_behind(prefix, "delivery-count")?),
            subscription_name: Some(header_behind(prefix, "subscription-name")?),
            attempt: Some(header_behind(prefix, "attempt")?),
            replayed: Some(header_behind(prefix, "replayed")?),
            hops: HeaderName::from_static(NEUTRAL_HOPS_HEADER),
            agent: Some(HeaderValue::from_str(prefix).map_err(|_| PrefixError)?),
            has_origin: true,
        })
    }

    /// The names of those that posthaste made up or has from Event Grid, which a prefix changes.
    pub fn own_names(&self) -> impl Iterator<Item = &HeaderName> {
        let names = [
            &self.event_type,
            &self.delivery_count,
            &self.subscription_name,
            &self.attempt,
            &self.replayed,
        ];
        names.into_iter().flatten()
    }
}

fn is_prefix_word(text: &str) -> bool {
    let mut bytes = text.bytes();
    !text.is_empty() && bytes.all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
}

fn header_behind(prefix: &str, rest: &str) -> Result<HeaderName, PrefixError> {
    HeaderName::try_from(format!("{prefix}-{rest}")).map_err(|_| PrefixError)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(headers: &SenderHeaders) -> Vec<&str> {
        headers.own_names().map(HeaderName::as_str).collect()
    }

    #[test]
    fn a_prefix_takes_the_place_of_other_names() {
        let headers = SenderHeaders::new(Some("x-acme"), &[]).unwrap();
        assert_eq!(
            texts(&headers),
            [
                "x-acme-event-type",
                "x-acme-delivery-count",
                "x-acme-subscription-name",
                "x-acme-attempt",
                "x-acme-replayed"
            ]
        );
        assert_eq!(
            (headers.hops.as_str(), headers.agent.clone()),
            ("webhook-hops", Some("x-acme".parse().unwrap()))
        );
    }

    #[test]
    fn only_omitted_headers_are_left_out() {
        let without = |header| SenderHeaders::new(None, &[header]).unwrap();
        assert_eq!(
            texts(&without(SenderHeader::EventGrid)),
            [
                "aeg-subscription-name",
                "posthaste-attempt",
                "posthaste-replayed"
            ]
        );
        assert_eq!(
            texts(&without(SenderHeader::SubscriptionName)),
            [
                "aeg-event-type",
                "aeg-delivery-count",
                "posthaste-attempt",
                "posthaste-replayed"
            ]
        );
        assert_eq!(
            texts(&without(SenderHeader::Attempt)),
            [
                "aeg-event-type",
                "aeg-delivery-count",
                "aeg-subscription-name"
            ]
        );
        assert_eq!(without(SenderHeader::UserAgent).agent, None);
        assert!(!without(SenderHeader::Origin).has_origin);
        assert_eq!(without(SenderHeader::Attempt).hops, HOPS_HEADER);
        assert_eq!(SenderHeaders::new(None, &[]), Ok(SenderHeaders::default()));
    }

    #[test]
    fn a_prefix_is_one_of_header_names_that_nobody_else_has() {
        for good in ["a", "acme", "x-acme-2", "webhook", "posthaste"] {
            assert!(SenderHeaders::new(Some(good), &[]).is_ok(), "{good}");
        }
        let long = "a".repeat(HEADER_PREFIX_BYTES_MAX + 1);
        for bad in [
            "", "-", "acme-", "-acme", "a--b", "Acme", "a b", "a_b", "ce", "content", &long,
        ] {
            assert_eq!(
                SenderHeaders::new(Some(bad), &[]),
                Err(PrefixError),
                "{bad}"
            );
        }
    }
}
