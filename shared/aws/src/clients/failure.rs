//! The SDK's errors as errors of the ports.

use std::error::Error;
use std::time::Duration;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use posthaste_ports::{ErrorKind, PortError};

/// Turns the SDK's error into a port's error.
pub(crate) fn to_port_error<E>(doing: &'static str, error: SdkError<E, HttpResponse>) -> PortError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    PortError::with_cause(doing, error_kind(&error), error)
}

pub(crate) fn error_kind<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> ErrorKind {
    match error {
        SdkError::TimeoutError(_) => ErrorKind::TimedOut,
        SdkError::DispatchFailure(failure) if failure.is_timeout() => ErrorKind::TimedOut,
        SdkError::ServiceError(answer) => {
            let by_code = answer
                .err()
                .code()
                .and_then(|code| kind_of_code(code, answer.err().message()));
            let kind = by_code.unwrap_or_else(|| kind_of_status(answer.raw().status().as_u16()));
            with_wait(kind, answer.raw())
        }
        // The request could not be built, the connection failed, or the response is unreadable: a
        // retry may help.
        _ => ErrorKind::Other,
    }
}

/// The meaning of a service's error code, where it says more than the status. SQS and S3 share one
/// table because no code means two things.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html>
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>
pub(crate) fn kind_of_code(code: &str, message: Option<&str>) -> Option<ErrorKind> {
    if let Some(kms) = code
        .strip_prefix("KMS.")
        .or_else(|| code.strip_prefix("Kms"))
    {
        return Some(kind_of_key_trouble(kms));
    }
    // The query protocol's codes carry a namespace in front, the JSON protocol's an "Exception" at
    // the end.
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
        | "OverLimit" => ErrorKind::Throttled { retry_after: None },
        "AccessDenied"
        | "AllAccessDisabled"
        | "AccountProblem"
        | "ExpiredToken"
        | "InvalidAccessKeyId"
        | "InvalidClientTokenId"
        | "InvalidSecurity"
        | "InvalidToken"
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
        // The code for the receipt handle of a deleted message. SQS gives it for other parameters
        // too.
        "InvalidParameterValue"
            if message.is_some_and(|text| text.contains("parameter ReceiptHandle")) =>
        {
            ErrorKind::NotFound
        }
        "PreconditionFailed" => ErrorKind::PreconditionFailed,
        // A race of two conditional puts without a winner yet.
        "ConditionalRequestConflict" | "OperationAborted" => ErrorKind::Other,
        _ => return None,
    })
}

/// Trouble with the key that encrypts a queue or bucket: throttled, disabled, deleted or not ours.
/// SQS responds with 400, but the message is in order.
fn kind_of_key_trouble(code: &str) -> ErrorKind {
    if code.starts_with("Throttl") {
        ErrorKind::Throttled { retry_after: None }
    } else {
        ErrorKind::Denied
    }
}

fn kind_of_status(status: u16) -> ErrorKind {
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
            let secs = answer
                .headers()
                .get("retry-after")
                .and_then(|text| text.parse().ok());
            ErrorKind::Throttled {
                retry_after: secs.map(Duration::from_secs),
            }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchError;
    use aws_smithy_runtime_api::client::result::ConnectorError;
    use aws_smithy_types::body::SdkBody;
    use aws_smithy_types::error::ErrorMetadata;

    use super::*;

    type Failure = SdkError<SendMessageBatchError, HttpResponse>;

    const THROTTLED: ErrorKind = ErrorKind::Throttled { retry_after: None };

    fn answered(status: u16, code: &str, message: &str) -> Failure {
        let metadata = ErrorMetadata::builder().code(code).message(message).build();
        let answer = HttpResponse::new(status.try_into().unwrap(), SdkBody::empty());
        SdkError::service_error(SendMessageBatchError::generic(metadata), answer)
    }

    #[test]
    fn an_answer_has_the_kind_of_its_code_and_else_of_its_status() {
        let check = |status, code: &str, expected| {
            assert_eq!(
                error_kind(&answered(status, code, "")),
                expected,
                "{status} {code}"
            );
        };
        for code in [
            "Throttling",
            "ThrottlingException",
            "RequestThrottled",
            "RequestThrottledException",
            "AWS.SimpleQueueService.RequestThrottled",
            "TooManyRequestsException",
            "KMS.ThrottlingException",
            "KmsThrottled",
            "OverLimit",
        ] {
            check(400, code, THROTTLED);
        }
        check(503, "SlowDown", THROTTLED);
        check(429, "", THROTTLED);
        for code in [
            "AccessDenied",
            "AccessDeniedException",
            "InvalidClientTokenId",
            "KMS.AccessDeniedException",
        ] {
            check(400, code, ErrorKind::Denied);
        }
        for code in [
            "KmsDisabled",
            "KMS.NotFoundException",
            "ExpiredToken",
            "UnrecognizedClientException",
        ] {
            check(400, code, ErrorKind::Denied);
        }
        check(403, "SomethingNew", ErrorKind::Denied);
        check(
            400,
            "AWS.SimpleQueueService.NonExistentQueue",
            ErrorKind::NotFound,
        );
        check(
            400,
            "com.amazonaws.sqs#QueueDoesNotExist",
            ErrorKind::NotFound,
        );
        check(404, "NoSuchBucket", ErrorKind::NotFound);
        check(400, "ReceiptHandleIsInvalid", ErrorKind::NotFound);
        check(
            400,
            "AWS.SimpleQueueService.MessageNotInflight",
            ErrorKind::NotFound,
        );
        check(412, "PreconditionFailed", ErrorKind::PreconditionFailed);
        check(412, "", ErrorKind::PreconditionFailed);
        check(409, "ConditionalRequestConflict", ErrorKind::Other);
        check(400, "RequestTimeout", ErrorKind::TimedOut);
        check(504, "", ErrorKind::TimedOut);
        check(
            400,
            "AWS.SimpleQueueService.BatchRequestTooLong",
            ErrorKind::Invalid,
        );
        check(400, "InvalidMessageContents", ErrorKind::Invalid);
        check(500, "InternalError", ErrorKind::Other);
        check(503, "ServiceUnavailable", ErrorKind::Other);
    }

    #[test]
    fn a_deleted_message_is_told_apart_from_a_refused_parameter() {
        let check = |message, expected| {
            assert_eq!(
                error_kind(&answered(400, "InvalidParameterValue", message)),
                expected,
                "{message}"
            );
        };
        check(
            "Value AQEB for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not \
             available for visibility timeout change.",
            ErrorKind::NotFound,
        );
        check(
            "Value 43201 for parameter VisibilityTimeout is invalid. Reason: Must be between 0 and 43200.",
            ErrorKind::Invalid,
        );
    }

    #[test]
    fn a_service_that_says_when_to_come_back_is_believed() {
        let metadata = ErrorMetadata::builder().code("SlowDown").build();
        let mut answer = HttpResponse::new(503.try_into().unwrap(), SdkBody::empty());
        answer.headers_mut().insert("retry-after", "7");
        let error: Failure =
            SdkError::service_error(SendMessageBatchError::generic(metadata), answer);
        assert_eq!(
            error_kind(&error),
            ErrorKind::Throttled {
                retry_after: Some(Duration::from_secs(7))
            }
        );
    }

    #[test]
    fn without_an_answer_only_a_timeout_has_a_kind_of_its_own() {
        assert_eq!(
            error_kind(&Failure::timeout_error("late")),
            ErrorKind::TimedOut
        );
        let check = |error: ConnectorError, expected| {
            assert_eq!(error_kind(&Failure::dispatch_failure(error)), expected);
        };
        check(ConnectorError::timeout("late".into()), ErrorKind::TimedOut);
        check(ConnectorError::io("reset".into()), ErrorKind::Other);
        assert_eq!(
            error_kind(&Failure::construction_failure("no credentials")),
            ErrorKind::Other
        );
        let answer = HttpResponse::new(200.try_into().unwrap(), SdkBody::empty());
        assert_eq!(
            error_kind(&Failure::response_error("no JSON", answer)),
            ErrorKind::Other
        );
    }

    #[test]
    fn the_error_tells_what_the_service_said() {
        let error = to_port_error("send", answered(400, "AccessDenied", "no sqs:SendMessage"));
        let chain = std::iter::successors(Some(&error as &dyn Error), |&error| error.source());
        let chain: Vec<_> = chain.map(ToString::to_string).collect();
        assert_eq!(chain[0], "failed to send: Denied");
        assert!(
            chain.iter().any(|text| text.contains("no sqs:SendMessage")),
            "{chain:?}"
        );
    }
}
