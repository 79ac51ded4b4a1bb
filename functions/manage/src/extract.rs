//! Extractors of paths, queries and bodies. Each refuses what it cannot read with a problem that
//! names the member at fault. The paths that several routes share are here too.

use std::borrow::Cow;

use axum::body::HttpBody;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{
    InputNotation, JsonFault, SubscriptionSettings, WrittenValue, read_json, read_written,
};
use posthaste_core::model::{MANAGE_REQUEST_BYTES_MAX, SubscriptionName, TopicName};
use posthaste_core::stored::TopicRecord;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::form_urlencoded;

use crate::answer::ApiError;

/// The path of a topic.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct TopicPath {
    /// The topic's name, in any case.
    #[param(value_type = String)]
    pub(crate) topic: TopicName,
}

/// The path of a subscription.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct SubscriptionPath {
    /// The topic's name, in any case.
    #[param(value_type = String)]
    pub(crate) topic: TopicName,
    /// The subscription's name, in any case.
    #[param(value_type = String)]
    pub(crate) name: SubscriptionName,
}

impl SubscriptionPath {
    /// The subscription in the record of its topic, with the name under which it is stored.
    pub(crate) fn find_in<'a>(
        &self,
        record: &'a TopicRecord,
    ) -> Result<(&'a SubscriptionName, &'a SubscriptionSettings), ApiProblem> {
        record
            .settings
            .find_subscription(&self.name)
            .ok_or_else(|| self.unknown_problem())
    }

    /// The problem of a subscription that does not exist.
    pub(crate) fn unknown_problem(&self) -> ApiProblem {
        let detail = format!("the topic {} has no subscription {}", self.topic, self.name);
        ApiProblem::new(ProblemKind::UnknownSubscription).detail(detail)
    }
}

/// The parts of the path.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = RawPathParams::from_request_parts(parts, state).await;
        let path = path.map_err(|rejection| bad_request(&rejection.body_text()))?;
        let parts = path.iter().map(|(name, text)| (name.into(), text.into()));
        Ok(Self(read_parts(parts)?))
    }
}

/// The query. Unknown members are refused.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let pairs = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        Ok(Self(read_parts(pairs)?))
    }
}

fn bad_request(detail: &str) -> ApiProblem {
    ApiProblem::new(ProblemKind::BadRequest).detail(detail)
}

/// Reads the parts of a path or query, which have a name and a text each.
fn read_parts<'a, T: DeserializeOwned>(
    parts: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
) -> Result<T, ApiProblem> {
    let parts = parts.map(|(name, text)| (name.into_owned(), WrittenValue::from_text(text)));
    let written = WrittenValue::Object(parts.collect());
    read_written(written, InputNotation::Query, |_| Ok(()))
        .map_err(|mistakes| ApiProblem::new(ProblemKind::BadRequest).mistakes(mistakes))
}

/// Settings as JSON in the body.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        require_json(request.headers())?;
        let bytes = read_body(request).await?;
        Ok(Self(parse_settings(&bytes)?))
    }
}

/// Settings as JSON in a body that may be left out: an empty one means the defaults.
pub(crate) struct OptionalJsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for OptionalJsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let headers = request.headers().clone();
        let bytes = read_body(request).await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        require_json(&headers)?;
        Ok(Self(parse_settings(&bytes)?))
    }
}

/// Refuses a body that says to be something else than JSON.
pub(crate) fn require_json(headers: &HeaderMap) -> Result<(), ApiProblem> {
    let Some(written) = headers.get(CONTENT_TYPE) else {
        return Ok(());
    };
    let essence = written
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(ApiProblem::new(ProblemKind::UnsupportedMediaType)
        .detail("expected content-type: application/json"))
}

/// Reads a body of any content type.
pub(crate) async fn read_body(request: Request) -> Result<Bytes, ApiProblem> {
    read_body_of(request, MANAGE_REQUEST_BYTES_MAX).await
}

/// The same of at most so many bytes.
pub(crate) async fn read_body_of(request: Request, bytes_max: usize) -> Result<Bytes, ApiProblem> {
    // A body that is too large according to its headers is refused at once.
    if request.body().size_hint().lower() > bytes_max as u64 {
        return Err(too_large(bytes_max));
    }
    match Limited::new(request.into_body(), bytes_max).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large(bytes_max)),
        Err(_) => Err(ApiProblem::new(ProblemKind::BadRequest).detail("the body ended early")),
    }
}

fn too_large(bytes_max: usize) -> ApiProblem {
    let detail = format!("expected at most {bytes_max} bytes");
    ApiProblem::new(ProblemKind::TooLarge).detail(detail)
}

/// Reads settings. A body that is not JSON is a bad request. For wrong settings the problem names
/// every member at fault.
pub(crate) fn parse_settings<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiProblem> {
    read_json(bytes, |_| Ok(())).map_err(|fault| match fault {
        JsonFault::Syntax { member, text } if member.is_empty() => bad_request(&text),
        JsonFault::Syntax { member, text } => bad_request(&text).member(member),
        JsonFault::Mistakes(found) => ApiProblem::new(ProblemKind::BadSettings).mistakes(found),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_that_names_its_member_says_no_line() {
        let check = |text: &str, member: Option<&str>, detail: &str| {
            let problem = parse_settings::<std::collections::BTreeMap<String, u8>>(text.as_bytes())
                .unwrap_err();
            assert_eq!(
                (problem.member.as_deref(), problem.detail.as_deref()),
                (member, Some(detail)),
                "{text}"
            );
        };
        check(
            r#"{"a": "b"}"#,
            Some("a"),
            "expected a whole number, found a text",
        );
        check("[1]", None, "expected an object, found a list");
        check(
            r#"{"a": 1"#,
            None,
            "EOF while parsing an object at line 1 column 7",
        );
    }
}
