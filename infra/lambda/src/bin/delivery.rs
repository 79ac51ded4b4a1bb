//! The functions that every delivery needs: publish, deliver, deadletter and monitor. They have no
//! Parquet.

// The SDK's futures lie so deep in one another that the compiler's usual limit of 128 refuses this
// program.
#![recursion_limit = "256"]

use std::process::ExitCode;

use posthaste_lambda::{functions, handler, refuse_handler};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match handler().as_str() {
        "publish" => Box::pin(functions::publish()).await,
        "deliver" => Box::pin(functions::deliver()).await,
        "deadletter" => Box::pin(functions::deadletter()).await,
        "monitor" => Box::pin(functions::monitor()).await,
        unknown => refuse_handler(unknown, &["publish", "deliver", "deadletter", "monitor"]),
    }
}
