//! Errors as SQS writes them: a JSON body with `__type`, and the older protocol's code in a header.

use http::StatusCode;
use posthaste_core::model::{
    SQS_BATCH_ENTRIES_MAX, SQS_MESSAGE_BYTES_MAX, SQS_VISIBILITY_SECS_MAX,
};
use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::script::Refusal;

/// The content type of AWS JSON 1.0.
const CONTENT_TYPE: &str = "application/x-amz-json-1.0";

/// The namespace of the errors that the service's model names.
const MODELED: &str = "com.amazonaws.sqs";

/// The namespace of errors that any service may answer.
const COMMON: &str = "com.amazon.coral.service";

/// An error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Error {
    status: StatusCode,
    namespace: &'static str,
    name: &'static str,
    /// The name in the query protocol; SDKs prefer it to the other.
    pub(super) code: String,
    pub(super) message: String,
}

impl Error {
    fn modeled(name: &'static str, message: impl Into<String>) -> Self {
        let status = StatusCode::BAD_REQUEST;
        let code = name.to_owned();
        Self {
            status,
            namespace: MODELED,
            name,
            code,
            message: message.into(),
        }
    }

    fn common(name: &'static str, code: &str, message: impl Into<String>) -> Self {
        let status = StatusCode::BAD_REQUEST;
        let code = code.to_owned();
        Self {
            status,
            namespace: COMMON,
            name,
            code,
            message: message.into(),
        }
    }

    fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    fn prefixed(name: &'static str, message: impl Into<String>) -> Self {
        let code = format!("AWS.SimpleQueueService.{name}");
        Self {
            code,
            ..Self::modeled(name, message)
        }
    }

    pub(super) fn no_such_queue() -> Self {
        let code = "AWS.SimpleQueueService.NonExistentQueue".to_owned();
        Self {
            code,
            ..Self::modeled("QueueDoesNotExist", "The specified queue does not exist.")
        }
    }

    pub(super) fn invalid(parameter: &str, value: impl std::fmt::Display, reason: &str) -> Self {
        let message =
            format!("Value {value} for parameter {parameter} is invalid. Reason: {reason}");
        Self::common(
            "InvalidParameterValueException",
            "InvalidParameterValue",
            message,
        )
    }

    pub(super) fn missing(parameter: &str) -> Self {
        let message = format!("The request must contain the parameter {parameter}.");
        Self::common(
            "MissingRequiredParameterException",
            "MissingParameter",
            message,
        )
    }

    pub(super) fn too_long_message() -> Self {
        let reason = format!("Message must be shorter than {SQS_MESSAGE_BYTES_MAX} bytes.");
        let message = format!("One or more parameters are invalid. Reason: {reason}");
        Self::common(
            "InvalidParameterValueException",
            "InvalidParameterValue",
            message,
        )
    }

    pub(super) fn refused_characters() -> Self {
        Self::modeled(
            "InvalidMessageContents",
            "Invalid characters found in the message body.",
        )
    }

    /// A handle that was never given out. The only error of its kind with status 404.
    pub(super) fn bad_handle(handle: &str) -> Self {
        let message =
            format!("The input receipt handle \"{handle}\" is not a valid receipt handle.");
        Self::modeled("ReceiptHandleIsInvalid", message).with_status(StatusCode::NOT_FOUND)
    }

    /// A handle that was given out and is no longer valid.
    pub(super) fn stale_handle(handle: &str) -> Self {
        let reason = "Message does not exist or is not available for visibility timeout change.";
        Self::invalid("ReceiptHandle", handle, reason)
    }

    /// The handle's visibility timeout has passed, and the message was not received since.
    pub(super) fn not_in_flight(handle: &str) -> Self {
        Self::prefixed(
            "MessageNotInflight",
            format!("The message of {handle} is not in flight."),
        )
    }

    /// The limit of messages in flight is reached.
    pub(super) fn over_limit() -> Self {
        Self::modeled("OverLimit", "Too many messages are in flight.")
    }

    pub(super) fn too_long_hidden(visibility: i64) -> Self {
        let reason = format!(
            "Total VisibilityTimeout for the message is beyond the limit [{SQS_VISIBILITY_SECS_MAX} seconds]."
        );
        Self::invalid("VisibilityTimeout", visibility, &reason)
    }

    pub(super) fn unknown_attribute(name: &str) -> Self {
        Self::modeled("InvalidAttributeName", format!("Unknown Attribute {name}."))
    }

    pub(super) fn empty_batch() -> Self {
        Self::prefixed(
            "EmptyBatchRequest",
            "There should be at least one entry in the request.",
        )
    }

    pub(super) fn too_many_entries(entries: usize) -> Self {
        let message = format!(
            "Maximum number of entries per request are {SQS_BATCH_ENTRIES_MAX}. You have sent {entries}."
        );
        Self::prefixed("TooManyEntriesInBatchRequest", message)
    }

    pub(super) fn bad_entry_id() -> Self {
        let message = "A batch entry id can only contain alphanumeric characters, hyphens and underscores. \
                       It can be at most 80 letters long.";
        Self::prefixed("InvalidBatchEntryId", message)
    }

    pub(super) fn repeated_entry_id(id: &str) -> Self {
        Self::prefixed("BatchEntryIdsNotDistinct", format!("Id {id} repeated."))
    }

    pub(super) fn too_long_batch(bytes: usize) -> Self {
        let message = format!(
            "Batch requests cannot be longer than {SQS_MESSAGE_BYTES_MAX} bytes. You have sent {bytes} bytes."
        );
        Self::prefixed("BatchRequestTooLong", message)
    }

    /// A body that is no JSON, or has members that the double does not know.
    pub(super) fn malformed(message: impl Into<String>) -> Self {
        Self::common("SerializationException", "MalformedInput", message)
    }

    pub(super) fn unknown_operation(target: &str) -> Self {
        Self::common(
            "UnknownOperationException",
            "InvalidAction",
            format!("unknown operation {target}"),
        )
    }

    pub(crate) fn unsigned() -> Self {
        let message = "Access to the resource is denied.";
        Self::common("AccessDeniedException", "AccessDenied", message)
            .with_status(StatusCode::FORBIDDEN)
    }

    /// An error of the script.
    pub(crate) fn scripted(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Throttled => Self::modeled(
                "RequestThrottled",
                "The request was denied due to throttling.",
            ),
            Refusal::Denied => Self::unsigned(),
            Refusal::Unavailable => Self::common(
                "ServiceUnavailableException",
                "ServiceUnavailable",
                "Service is unavailable.",
            )
            .with_status(StatusCode::SERVICE_UNAVAILABLE),
            Refusal::Broken => Self::common(
                "InternalFailure",
                "InternalError",
                "An internal error occurred.",
            )
            .with_status(StatusCode::INTERNAL_SERVER_ERROR),
            Refusal::BadHandle => Self::bad_handle("scripted"),
            Refusal::Conflict => panic!("SQS knows no conflict: the script means another service"),
        }
    }

    pub(super) fn is_senders_fault(&self) -> bool {
        !self.status.is_server_error()
    }

    pub(crate) fn answer(&self) -> Answer {
        let body = json!({ "__type": format!("{}#{}", self.namespace, self.name), "message": self.message });
        let side = if self.is_senders_fault() {
            "Sender"
        } else {
            "Receiver"
        };
        Answer::new(self.status)
            .header("x-amzn-query-error", format!("{};{side}", self.code))
            .body(CONTENT_TYPE, body.to_string())
    }
}

/// The HTTP answer of a result.
pub(super) fn to_answer(result: Result<Value, Error>) -> Answer {
    match result {
        Ok(Value::Null) => Answer::new(StatusCode::OK).body(CONTENT_TYPE, ""),
        Ok(body) => Answer::new(StatusCode::OK).body(CONTENT_TYPE, body.to_string()),
        Err(error) => error.answer(),
    }
}
