//! monitor: samples the queues for a minute and writes the pressure, started by a schedule once a minute.

use std::process::ExitCode;

use posthaste_aws::lambda::run_scheduled;
use posthaste_lambda::{launch, wiring};
use posthaste_system::SystemClock;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    launch(async |environment, clients, state| {
        run_scheduled(wiring::monitor(&environment, &clients, state)?, SystemClock).await
    })
    .await
}
