//! Extractors of paths, queries and bodies. Each refuses what it cannot read with a problem that
//! names the member at fault. The paths that several routes share are here too.

use axum::body::HttpBody;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::api::{Notation, SubscriptionSettings, mistakes};
use posthaste_core::model::{MANAGE_REQUEST_BYTES_MAX, SubscriptionName, TopicName};
use posthaste_core::stored::TopicRecord;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_json::{Map, Value};
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
    pub(crate) fn find<'a>(
        &self,
        record: &'a TopicRecord,
    ) -> Result<(&'a SubscriptionName, &'a SubscriptionSettings), Problem> {
        record
            .settings
            .subscription(&self.name)
            .ok_or_else(|| self.unknown())
    }

    /// The problem of a subscription that does not exist.
    pub(crate) fn unknown(&self) -> Problem {
        let detail = format!("the topic {} has no subscription {}", self.topic, self.name);
        Problem::new(ProblemKind::UnknownSubscription).detail(detail)
    }
}

/// The parts of the path.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = RawPathParams::from_request_parts(parts, state).await;
        let path = path.map_err(|rejection| unreadable(&rejection.body_text()))?;
        let path: Map<_, _> = path
            .iter()
            .map(|(name, text)| (name.to_owned(), text.into()))
            .collect();
        Ok(Self(
            serde_path_to_error::deserialize(Value::Object(path))
                .map_err(|error| bad_part(&error))?,
        ))
    }
}

/// The query. Unknown members are refused.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let pairs = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        let query = serde_urlencoded::Deserializer::new(pairs);
        Ok(Self(
            serde_path_to_error::deserialize(query).map_err(|error| bad_part(&error))?,
        ))
    }
}

fn unreadable(detail: &str) -> Problem {
    Problem::new(ProblemKind::BadRequest).detail(detail)
}

fn bad_part(error: &serde_path_to_error::Error<impl std::error::Error>) -> Problem {
    unreadable(&error.inner().to_string()).member(error.path().to_string())
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

fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
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
    Err(Problem::new(ProblemKind::UnsupportedMediaType)
        .detail("expected content-type: application/json"))
}

/// Reads a body of any content type.
pub(crate) async fn read_body(request: Request) -> Result<Bytes, Problem> {
    // A body that is too large according to its headers is refused at once.
    if request.body().size_hint().lower() > MANAGE_REQUEST_BYTES_MAX as u64 {
        return Err(too_large());
    }
    match Limited::new(request.into_body(), MANAGE_REQUEST_BYTES_MAX)
        .collect()
        .await
    {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err(Problem::new(ProblemKind::BadRequest).detail("the body ended early")),
    }
}

fn too_large() -> Problem {
    let detail = format!("expected at most {MANAGE_REQUEST_BYTES_MAX} bytes");
    Problem::new(ProblemKind::TooLarge).detail(detail)
}

/// Reads settings. A body that is not JSON is a bad request. For wrong settings the problem names
/// every member at fault.
fn parse_settings<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // Serde accepts an array as an object: it takes the items as the members, in their order.
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(
            Problem::new(ProblemKind::BadSettings).detail("expected an object, not an array")
        );
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let parsed = serde_path_to_error::deserialize(&mut json);
    let value = parsed.map_err(|error| match error.inner().classify() {
        Category::Syntax | Category::Eof | Category::Io => unreadable(&error.inner().to_string()),
        Category::Data => bad_settings::<T>(bytes, &error),
    })?;
    json.end()
        .map_err(|error| Problem::new(ProblemKind::BadRequest).detail(error.to_string()))?;
    Ok(value)
}

/// The problem of settings that are JSON: every mistake in them, or else what serde says.
fn bad_settings<T: DeserializeOwned>(
    bytes: &[u8],
    error: &serde_path_to_error::Error<serde_json::Error>,
) -> Problem {
    let problem = Problem::new(ProblemKind::BadSettings);
    let written: Value = match serde_json::from_slice(bytes) {
        Ok(written) => written,
        Err(error) => return unreadable(&error.to_string()),
    };
    let found = mistakes(&written, Notation::Json, |_: &T| Ok(()));
    if !found.is_empty() {
        return problem.mistakes(found);
    }
    // A member that is written twice: of a value, only one of them is left.
    let (member, cause) = (error.path().to_string(), error.inner());
    let text = without_value(&cause.to_string());
    if member == "." {
        problem.detail(text)
    } else {
        problem.detail(without_place(text, cause)).member(member)
    }
}

/// A message without the line and column at its end. The member says where, also to a client that
/// did not write the text itself.
fn without_place(message: String, error: &serde_json::Error) -> String {
    let place = format!(" at line {} column {}", error.line(), error.column());
    message
        .strip_suffix(&place)
        .map(str::to_owned)
        .unwrap_or(message)
}

/// The first words of the messages of serde that repeat the value they found.
const REPEATING: [&str; 3] = ["invalid type: ", "invalid value: ", "unknown variant "];

/// A message of serde without the value that was found, which may be a secret in the wrong place.
fn without_value(message: &str) -> String {
    if !REPEATING.iter().any(|start| message.starts_with(start)) {
        return message.to_owned();
    }
    // The last `expected` is serde's own: only the value before it may contain the word too.
    let (found, expected) = message.rsplit_once(", expected ").unwrap_or((message, ""));
    let found = found
        .split(['"', '`'])
        .next()
        .unwrap_or_default()
        .trim_end();
    if expected.is_empty() {
        found.to_owned()
    } else {
        format!("{found}, expected {expected}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(message: &str, expected: &str) {
        assert_eq!(without_value(message), expected);
    }

    #[test]
    fn a_message_that_names_its_member_says_no_line() {
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
        check(
            r#"{"a": 1"#,
            None,
            "EOF while parsing an object at line 1 column 7",
        );
    }

    #[test]
    fn a_message_does_not_repeat_what_was_found() {
        check(
            r#"invalid type: string "whsec_a, expected \"b", expected a sequence at line 1 column 9"#,
            "invalid type: string, expected a sequence at line 1 column 9",
        );
        check(
            "invalid type: integer `5`, expected a string",
            "invalid type: integer, expected a string",
        );
        check(
            "invalid type: map, expected a string",
            "invalid type: map, expected a string",
        );
        check(
            "unknown variant `whsk_a`, expected `v1` or `v1a`",
            "unknown variant, expected `v1` or `v1a`",
        );
        check(
            "unknown variant `whsk_a`, there are no variants",
            "unknown variant",
        );
        check(
            "unknown field `x`, expected `a`",
            "unknown field `x`, expected `a`",
        );
        check("missing field `url`", "missing field `url`");
    }
}
