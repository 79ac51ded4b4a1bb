//! Errors of the HTTP API as clients see them: RFC 9457 problem details. Both `publish` and
//! `manage` answer with these. Inner faults are logged where they are handled; they never stand
//! here. <https://www.rfc-editor.org/rfc/rfc9457>

mod body;

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};

pub use self::body::{ProblemBody, ProblemError};
use super::InputMistake;
use crate::pressure::{PressureLevel, Resource};

/// The media type of a problem.
pub const PROBLEM_CONTENT_TYPE: &str = "application/problem+json";

/// A kind of problem. Each kind has one type URI, one title and one usual status. Kinds that say no
/// more than their status have the type `about:blank`, as the RFC asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// An event of a publish request is not as its schema says (400).
    BadEvent,
    /// A topic or subscription has a member that cannot be accepted (400).
    BadSettings,
    /// A path, query or body that cannot be read (400).
    BadRequest,
    /// An event came back through the endpoint that it was delivered to (400).
    LoopDetected,
    /// No key, or a wrong one (401).
    Unauthorized,
    /// There is no topic of this name (404).
    UnknownTopic,
    /// There is no subscription of this name (404).
    UnknownSubscription,
    /// There is nothing at this path (404).
    NotFound,
    /// The path does not take this method (405).
    MethodNotAllowed,
    /// The body did not arrive in time (408).
    RequestTimeout,
    /// The resource was changed at the same moment, again and again (409).
    Conflict,
    /// The request does not fit existing settings that it must not change (409).
    Incompatible,
    /// The state of the subscription does not allow what was asked for (409).
    WrongState,
    /// A producer gave the id to several events, and none of their keys was named (409).
    SeveralDeliveries,
    /// A request with the same idempotency key is still being published (409).
    IdempotencyKeyInUse,
    /// The idempotency key was used for another request (422).
    IdempotencyKeyReused,
    /// The payload of an event is no longer kept (410).
    PayloadGone,
    /// `If-Match` or `If-None-Match` does not hold (412).
    PreconditionFailed,
    /// The request, or an event in it, is larger than accepted (413).
    TooLarge,
    /// The path and query are longer than accepted (414).
    UriTooLong,
    /// A content type or encoding that is not taken here (415).
    UnsupportedMediaType,
    /// The result of the request is larger than a response may be (422).
    AnswerTooLarge,
    /// A fault of the program or of what it has stored (500).
    Internal,
    /// Producers are slowed or refused before the system is overwhelmed (503).
    BackPressure,
    /// Something this depends on does not answer (503).
    Unavailable,
    /// No room left on the device; nothing was accepted (507).
    StorageFull,
}

impl ProblemKind {
    /// The URI that names this kind, or `about:blank`.
    pub fn type_uri(self) -> Cow<'static, str> {
        match self.name_and_title() {
            Some((name, _)) => format!("urn:posthaste:problem:{name}").into(),
            None => "about:blank".into(),
        }
    }

    /// The title, the same every time the problem occurs. With `about:blank` it is the status's own
    /// phrase.
    pub fn title(self) -> &'static str {
        match self.name_and_title() {
            Some((_, title)) => title,
            None => self.status().canonical_reason().unwrap_or_default(),
        }
    }

    /// The name and the title; `None` for a kind that says no more than its status.
    const fn name_and_title(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Self::BadEvent => ("bad-event", "An event is not as its schema says"),
            Self::BadSettings => ("bad-settings", "A setting cannot be accepted"),
            Self::LoopDetected => ("loop-detected", "The endpoints form a loop"),
            Self::Unauthorized => ("unauthorized", "The key is missing or wrong"),
            Self::UnknownTopic => ("unknown-topic", "There is no such topic"),
            Self::UnknownSubscription => ("unknown-subscription", "There is no such subscription"),
            Self::Conflict => ("conflict", "It was changed at the same moment"),
            Self::Incompatible => (
                "incompatible",
                "What is there already does not go with this",
            ),
            Self::WrongState => (
                "wrong-state",
                "The state of the subscription does not allow this",
            ),
            Self::SeveralDeliveries => ("several-deliveries", "Several events have this id"),
            Self::PayloadGone => ("payload-gone", "The payload of the event is no longer kept"),
            Self::IdempotencyKeyInUse => (
                "idempotency-key-in-use",
                "A request with this idempotency key is still being published",
            ),
            Self::IdempotencyKeyReused => (
                "idempotency-key-reused",
                "The idempotency key was used for another request",
            ),
            Self::PreconditionFailed => (
                "precondition-failed",
                "It is not the version that was asked for",
            ),
            Self::TooLarge => ("too-large", "The request is too large"),
            Self::AnswerTooLarge => (
                "answer-too-large",
                "What was asked for is too large to be answered here",
            ),
            Self::BackPressure => (
                "back-pressure",
                "Back pressure: events are not taken at the moment",
            ),
            Self::Unavailable => ("unavailable", "The store does not answer"),
            Self::StorageFull => ("storage-full", "No room is left on the device"),
            Self::BadRequest
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::RequestTimeout
            | Self::UriTooLong
            | Self::UnsupportedMediaType
            | Self::Internal => return None,
        })
    }

    /// The status it usually has.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::BadEvent | Self::BadSettings | Self::BadRequest | Self::LoopDetected => {
                StatusCode::BAD_REQUEST
            }
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::UnknownTopic | Self::UnknownSubscription | Self::NotFound => {
                StatusCode::NOT_FOUND
            }
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::Conflict
            | Self::Incompatible
            | Self::WrongState
            | Self::SeveralDeliveries
            | Self::IdempotencyKeyInUse => StatusCode::CONFLICT,
            Self::PayloadGone => StatusCode::GONE,
            Self::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::AnswerTooLarge | Self::IdempotencyKeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::UriTooLong => StatusCode::URI_TOO_LONG,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::BackPressure | Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
        }
    }
}

/// One problem, ready to be answered. Made with [`ApiProblem::new`] and the methods that add to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiProblem {
    /// The kind of problem.
    pub kind: ProblemKind,
    /// The status of the answer.
    pub status: StatusCode,
    /// The fault this time, for a person.
    pub detail: Option<String>,
    /// The member at fault, such as `subscriptions.billing.endpoint.url`.
    pub member: Option<Box<str>>,
    /// The place of the event at fault in its request, from 0.
    pub index: Option<usize>,
    /// The resource on whose account nothing is taken, and its level.
    pub pressing: Option<(Resource, PressureLevel)>,
    /// The time after which it is worth trying again; written as whole seconds, rounded up, into
    /// `Retry-After`.
    pub retry_after: Option<Duration>,
    /// The methods the path takes, for `Allow`.
    pub allow: Option<&'static str>,
    /// All mistakes of the body, if there are several. The first one is `member` and `detail` too.
    pub errors: Box<[ProblemError]>,
}

impl ApiProblem {
    /// A problem of this kind with its usual status and nothing more.
    pub fn new(kind: ProblemKind) -> Self {
        Self {
            kind,
            status: kind.status(),
            detail: None,
            member: None,
            index: None,
            pressing: None,
            retry_after: None,
            allow: None,
            errors: Box::default(),
        }
    }

    /// Says what went wrong this time: never a secret, never the text of an inner error.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Names the member at fault.
    pub fn member(mut self, member: impl Into<String>) -> Self {
        self.member = Some(member.into().into_boxed_str());
        self
    }

    /// Names every mistake of a body, the first one as the member at fault.
    pub fn mistakes(mut self, mistakes: Vec<InputMistake>) -> Self {
        if let Some(InputMistake { member, text, .. }) = mistakes.first() {
            self.detail = Some(text.clone());
            self.member = (!member.is_empty()).then(|| member.as_str().into());
        }
        if mistakes.len() > 1 {
            self.errors = mistakes
                .into_iter()
                .map(|mistake| ProblemError {
                    member: mistake.member,
                    detail: mistake.text,
                })
                .collect();
        }
        self
    }

    /// Names the event at fault, from 0.
    pub fn index(mut self, index: usize) -> Self {
        self.index = Some(index);
        self
    }

    /// Names the resource under pressure, and its level.
    pub fn under_pressure(mut self, resource: Resource, level: PressureLevel) -> Self {
        self.pressing = Some((resource, level));
        self
    }

    /// Says when it is worth trying again.
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Sets another status than the usual one, as back pressure does with 429 if it only advises.
    pub fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// The body as JSON.
    pub fn body(&self) -> Bytes {
        let body = ProblemBody {
            type_uri: self.kind.type_uri(),
            title: self.kind.title(),
            status: self.status.as_u16(),
            detail: self.detail.as_deref(),
            member: self.member.as_deref(),
            index: self.index,
            resource: self.pressing.map(|(resource, _)| resource),
            level: self.pressing.map(|(_, level)| level),
            errors: &self.errors,
        };
        // Plain data with fixed member names: serialising it cannot fail.
        Bytes::from(serde_json::to_vec(&body).unwrap_or_default())
    }

    /// The whole answer: status, `content-type`, what the status asks for (`www-authenticate`,
    /// `retry-after`, `allow`), and the body. Never to be cached.
    pub fn into_response(self) -> Response<Bytes> {
        let mut response = Response::new(self.body());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_CONTENT_TYPE));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(wait) = self.retry_after {
            let secs = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            headers.insert(RETRY_AFTER, HeaderValue::from(secs));
        }
        if let Some(methods) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(methods));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(problem: ApiProblem, status: u16, headers: &[(&str, &str)], body: &str) {
        let response = problem.into_response();
        assert_eq!(response.status().as_u16(), status);
        for (name, value) in headers {
            assert_eq!(response.headers()[*name], *value, "{name}");
        }
        assert_eq!(response.body(), body);
    }

    #[test]
    fn a_problem_is_written_as_the_rfc_says() {
        check(
            ApiProblem::new(ProblemKind::BadEvent)
                .detail("expected a text")
                .member("type")
                .index(2),
            400,
            &[
                ("content-type", "application/problem+json"),
                ("cache-control", "no-store"),
            ],
            r#"{"type":"urn:posthaste:problem:bad-event","title":"An event is not as its schema says","status":400,"detail":"expected a text","member":"type","index":2}"#,
        );
        check(
            ApiProblem::new(ProblemKind::BackPressure)
                .under_pressure(Resource::LogDisk, PressureLevel::High),
            503,
            &[],
            r#"{"type":"urn:posthaste:problem:back-pressure","title":"Back pressure: events are not taken at the moment","status":503,"resource":"log-disk","level":"high"}"#,
        );
        check(
            ApiProblem::new(ProblemKind::NotFound),
            404,
            &[],
            r#"{"type":"about:blank","title":"Not Found","status":404}"#,
        );
    }

    #[test]
    fn every_mistake_is_written_if_there_are_several() {
        let mistake = |member: &str, text: &str| InputMistake {
            member: member.to_owned(),
            is_at_name: false,
            text: text.to_owned(),
        };
        let problem = |mistakes| ApiProblem::new(ProblemKind::BadSettings).mistakes(mistakes);
        check(
            problem(vec![mistake("endpoint.url", "expected a text")]),
            400,
            &[],
            r#"{"type":"urn:posthaste:problem:bad-settings","title":"A setting cannot be accepted","status":400,"detail":"expected a text","member":"endpoint.url"}"#,
        );
        check(
            problem(vec![mistake("", "one"), mistake("name", "two")]),
            400,
            &[],
            r#"{"type":"urn:posthaste:problem:bad-settings","title":"A setting cannot be accepted","status":400,"detail":"one","errors":[{"member":"","detail":"one"},{"member":"name","detail":"two"}]}"#,
        );
    }

    #[test]
    fn each_status_brings_the_header_it_asks_for() {
        let unauthorized = ApiProblem::new(ProblemKind::Unauthorized).into_response();
        assert_eq!(unauthorized.headers()["www-authenticate"], "Bearer");
        let refused = ApiProblem::new(ProblemKind::BackPressure)
            .status(StatusCode::TOO_MANY_REQUESTS)
            .retry_after(Duration::from_millis(10_001))
            .into_response();
        assert_eq!(
            (refused.status().as_u16(), &refused.headers()["retry-after"]),
            (429, &HeaderValue::from(11))
        );
    }

    #[test]
    fn a_kind_without_a_type_of_its_own_has_its_status_s_phrase() {
        for kind in [
            ProblemKind::BadRequest,
            ProblemKind::NotFound,
            ProblemKind::MethodNotAllowed,
            ProblemKind::RequestTimeout,
            ProblemKind::UnsupportedMediaType,
            ProblemKind::Internal,
        ] {
            assert_eq!(kind.type_uri(), "about:blank");
            assert_eq!(Some(kind.title()), kind.status().canonical_reason());
        }
    }
}
