//! The double is as strict as it claims: a request that breaks a rule of AWS is refused with AWS's
//! own code. If an emulator of other makers keeps the rule too, both are tested, so that the double
//! does not rest on our own reading alone.

mod objects;
mod queues;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

/// The result of a request: the status and the code of the refusal, or [`accepted`].
type Outcome = (u16, String);

fn outcome<T, E: ProvideErrorMetadata>(result: Result<T, SdkError<E, HttpResponse>>) -> Outcome {
    let Err(error) = result else {
        return accepted();
    };
    let status = error
        .raw_response()
        .map_or(0, |answer| answer.status().as_u16());
    let code = error.code().unwrap_or_default();
    // The JSON protocol has the same codes without this in front.
    refused(status, code.trim_start_matches("AWS.SimpleQueueService."))
}

fn accepted() -> Outcome {
    refused(200, "")
}

fn refused(status: u16, code: &str) -> Outcome {
    (status, code.to_owned())
}
