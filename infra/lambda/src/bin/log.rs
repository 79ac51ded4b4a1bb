//! The functions that write or read the files of the delivery log: record, manage and wake.

// The SDK's futures lie so deep in one another that the compiler's usual limit of 128 refuses this
// program.
#![recursion_limit = "256"]

use std::process::ExitCode;

use posthaste_lambda::{functions, handler_name, refuse_handler};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match handler_name().as_str() {
        "record" => Box::pin(functions::run_record()).await,
        "manage" => Box::pin(functions::run_manage()).await,
        "wake" => Box::pin(functions::run_wake()).await,
        unknown => refuse_handler(unknown, &["record", "manage", "wake"]),
    }
}
