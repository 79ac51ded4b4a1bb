//! record: writes records into the delivery log, fed by the records queue, and merges the log's files,
//! started by a schedule.

// The SDK's futures lie so deep in one another that the compiler's usual limit of 128 refuses this program.
#![recursion_limit = "256"]

use std::process::ExitCode;

use posthaste_aws::lambda::run_batches_and_schedule;
use posthaste_lambda::{launch, wiring};
use posthaste_system::SystemClock;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    launch(async |environment, clients, state| {
        let (files, merges) = wiring::record(&environment, &clients, state);
        run_batches_and_schedule(files, merges, SystemClock).await
    })
    .await
}
