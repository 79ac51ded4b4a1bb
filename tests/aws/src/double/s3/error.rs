//! Errors as S3 writes them: XML with a code.

use http::StatusCode;

use super::super::answer::Answer;
use super::super::script::Refusal;
use super::xml::{CONTENT_TYPE, Xml};

/// Longest key, in bytes.
pub(super) const KEY_BYTES_MAX: usize = 1024;

/// An error. Not modified (304) is one too: it has no body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Error {
    status: StatusCode,
    code: &'static str,
    message: &'static str,
    /// A member beside code and message: its name and text.
    detail: Option<(&'static str, String)>,
    etag: Option<String>,
}

impl Error {
    fn new(status: StatusCode, code: &'static str, message: &'static str) -> Self {
        Self {
            status,
            code,
            message,
            detail: None,
            etag: None,
        }
    }

    fn with(self, name: &'static str, text: impl Into<String>) -> Self {
        Self {
            detail: Some((name, text.into())),
            ..self
        }
    }

    pub(crate) fn denied() -> Self {
        Self::new(StatusCode::FORBIDDEN, "AccessDenied", "Access Denied")
    }

    pub(super) fn no_such_bucket(name: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NoSuchBucket",
            "The specified bucket does not exist",
        )
        .with("BucketName", name)
    }

    pub(super) fn no_such_key(key: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NoSuchKey",
            "The specified key does not exist.",
        )
        .with("Key", key)
    }

    pub(super) fn not_modified(etag: &str) -> Self {
        let error = Self::new(StatusCode::NOT_MODIFIED, "NotModified", "Not Modified");
        Self {
            etag: Some(etag.to_owned()),
            ..error
        }
    }

    pub(super) fn precondition_failed(condition: &'static str) -> Self {
        let message = "At least one of the pre-conditions you specified did not hold";
        Self::new(
            StatusCode::PRECONDITION_FAILED,
            "PreconditionFailed",
            message,
        )
        .with("Condition", condition)
    }

    pub(super) fn invalid_range(length: usize) -> Self {
        let message = "The requested range is not satisfiable";
        Self::new(StatusCode::RANGE_NOT_SATISFIABLE, "InvalidRange", message)
            .with("ActualObjectSize", length.to_string())
    }

    pub(super) fn not_implemented(what: &str) -> Self {
        let message = "A header you provided implies functionality that is not implemented";
        Self::new(StatusCode::NOT_IMPLEMENTED, "NotImplemented", message).with("Header", what)
    }

    pub(super) fn invalid_argument(name: &str) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "InvalidArgument",
            "Invalid Argument",
        )
        .with("ArgumentName", name)
    }

    pub(super) fn key_too_long() -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "KeyTooLongError",
            "Your key is too long",
        )
    }

    pub(super) fn bad_digest() -> Self {
        let message =
            "The provided 'x-amz-content-sha256' header does not match what was computed.";
        Self::new(
            StatusCode::BAD_REQUEST,
            "XAmzContentSHA256Mismatch",
            message,
        )
    }

    pub(super) fn no_length() -> Self {
        let message = "You must provide the Content-Length HTTP header.";
        Self::new(StatusCode::LENGTH_REQUIRED, "MissingContentLength", message)
    }

    /// An error of the script.
    pub(crate) fn scripted(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Throttled => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "SlowDown",
                "Please reduce your request rate.",
            ),
            Refusal::Denied => Self::denied(),
            Refusal::Unavailable => {
                let message = "Service is unable to handle request.";
                Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "ServiceUnavailable",
                    message,
                )
            }
            Refusal::Broken => {
                let message = "We encountered an internal error. Please try again.";
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
            }
            Refusal::Conflict => {
                let message = "The conditional request cannot succeed due to a conflicting operation against \
                               this resource.";
                Self::new(StatusCode::CONFLICT, "ConditionalRequestConflict", message)
            }
            Refusal::BadHandle => {
                panic!("S3 knows no receipt handles: the script means another service")
            }
        }
    }

    pub(crate) fn answer(&self) -> Answer {
        let answer = Answer::new(self.status);
        if let Some(etag) = &self.etag {
            return answer.header("etag", etag.as_str());
        }
        let mut xml = Xml::begin("Error", "");
        xml.text("Code", self.code);
        xml.text("Message", self.message);
        if let Some((name, text)) = &self.detail {
            xml.text(name, text);
        }
        xml.text("RequestId", "DOUBLE0000000000");
        xml.text("HostId", "double");
        answer.body(CONTENT_TYPE, xml.end("Error"))
    }
}
