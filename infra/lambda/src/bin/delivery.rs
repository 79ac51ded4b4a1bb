//! The functions that every delivery needs: publish, deliver, deadletter and monitor. They have no
//! Parquet.

// The SDK's futures lie so deep in one another that the compiler's usual limit of 128 refuses this
// program.
#![recursion_limit = "256"]

use std::process::ExitCode;

use posthaste_lambda::{functions, handler_name, refuse_handler};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match handler_name().as_str() {
        "publish" => Box::pin(functions::run_publish()).await,
        "deliver" => Box::pin(functions::run_deliver()).await,
        "deadletter" => Box::pin(functions::run_deadletter()).await,
        "monitor" => Box::pin(functions::run_monitor()).await,
        unknown => refuse_handler(unknown, &["publish", "deliver", "deadletter", "monitor"]),
    }
}
