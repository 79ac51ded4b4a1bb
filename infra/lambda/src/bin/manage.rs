//! manage: topics, subscriptions, dead letters over HTTP, behind a Function URL of its own.

use std::process::ExitCode;

use posthaste_aws::lambda::run_http;
use posthaste_lambda::{launch, wiring};
use posthaste_system::SystemClock;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    launch(async |environment, clients, state| {
        run_http(wiring::manage(&environment, &clients, state), SystemClock).await
    })
    .await
}
