//! What the SDK's errors mean in the words of the ports.

use std::error::Error;
use std::time::Duration;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use posthaste_ports::{ErrorKind, PortError};

/// Turns what the SDK says into a port's error.
pub(crate) fn failure<E>(doing: &'static str, error: SdkError<E, HttpResponse>) -> PortError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    PortError::caused(doing, kind(&error), error)
}

/// The kind of an error.
pub(crate) fn kind<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> ErrorKind {
    match error {
        SdkError::TimeoutError(_) => ErrorKind::TimedOut,
        SdkError::DispatchFailure(failure) if failure.is_timeout() => ErrorKind::TimedOut,
        SdkError::ServiceError(answer) => {
            let by_code = answer.err().code().and_then(|code| of_code(code, answer.err().message()));
            let kind = by_code.unwrap_or_else(|| of_status(answer.raw().status().as_u16()));
            with_wait(kind, answer.raw())
        }
        // Nothing was sent for want of something, the connection failed, or the answer is none: a retry may help.
        _ => ErrorKind::Other,
    }
}

/// What a service's error code means, where it means more than its status. SQS and S3 share one table because no code
/// means two things.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html>
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>
pub(crate) fn of_code(code: &str, message: Option<&str>) -> Option<ErrorKind> {
    // The query protocol's codes carry a namespace in front, the JSON protocol's an "Exception" at the end.
    let name = code.rsplit(['.', '#']).next().unwrap_or(code);
    Some(match name.strip_suffix("Exception").unwrap_or(name) {
        "Throttling"
        | "Throttled"
        | "ThrottledRequest"
        | "RequestThrottled"
        | "RequestThrottling"
        | "RequestLimitExceeded"
        | "TooManyRequests"
        | "SlowDown"
        | "BandwidthLimitExceeded"
        | "OverLimit"
        | "KmsThrottled" => ErrorKind::Throttled { retry_after: None },
        "AccessDenied"
        | "AllAccessDisabled"
        | "AccountProblem"
        | "ExpiredToken"
        | "InvalidAccessKeyId"
        | "InvalidClientTokenId"
        | "InvalidSecurity"
        | "InvalidToken"
        | "KmsAccessDenied"
        | "MissingAuthenticationToken"
        | "NotSignedUp"
        | "OptInRequired"
        | "RequestTimeTooSkewed"
        | "SignatureDoesNotMatch"
        | "UnauthorizedAccess"
        | "UnauthorizedOperation"
        | "UnrecognizedClient" => ErrorKind::Denied,
        "RequestTimeout" => ErrorKind::TimedOut,
        "QueueDoesNotExist"
        | "NonExistentQueue"
        | "NoSuchBucket"
        | "NoSuchKey"
        | "ReceiptHandleIsInvalid"
        | "MessageNotInflight" => ErrorKind::NotFound,
        // SQS says so of a receipt handle whose message is deleted, and says it of other parameters too.
        "InvalidParameterValue" if message.is_some_and(|text| text.contains("parameter ReceiptHandle")) => {
            ErrorKind::NotFound
        }
        "PreconditionFailed" => ErrorKind::PreconditionFailed,
        // A race of two conditional puts, which nobody has won yet.
        "ConditionalRequestConflict" | "OperationAborted" => ErrorKind::Other,
        _ => return None,
    })
}

fn of_status(status: u16) -> ErrorKind {
    match status {
        400 | 405 | 411 | 413 | 414 | 416 => ErrorKind::Invalid,
        401 | 403 => ErrorKind::Denied,
        404 => ErrorKind::NotFound,
        408 | 504 => ErrorKind::TimedOut,
        412 => ErrorKind::PreconditionFailed,
        429 => ErrorKind::Throttled { retry_after: None },
        _ => ErrorKind::Other,
    }
}

/// Adds how long to wait, where the service says it.
fn with_wait(kind: ErrorKind, answer: &HttpResponse) -> ErrorKind {
    match kind {
        ErrorKind::Throttled { .. } => {
            let secs = answer.headers().get("retry-after").and_then(|text| text.parse().ok());
            ErrorKind::Throttled { retry_after: secs.map(Duration::from_secs) }
        }
        other => other,
    }
}
