//! deadletter: writes dead letters into their bucket, fed by the dead-letter queue and by the redrive queue.

use std::process::ExitCode;

use posthaste_aws::lambda::run_batches;
use posthaste_lambda::{launch, wiring};
use posthaste_system::SystemClock;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    launch(async |environment, clients, state| {
        run_batches(wiring::dead_letters(&environment, &clients, &state), SystemClock).await
    })
    .await
}
