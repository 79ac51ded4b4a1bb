//! wake: sends the parked deliveries whose minute has come, started by a schedule once a minute.

use std::process::ExitCode;
use std::time::Duration;

use lambda_runtime::Error;
use posthaste_aws::lambda::{Scheduled, run_scheduled};
use posthaste_lambda::{launch, wiring};
use posthaste_system::SystemClock;

struct Minute(wiring::AwsWake);

impl Scheduled for Minute {
    async fn run(&self, deadline: Duration) -> Result<(), Error> {
        Box::pin(self.0.run_until(deadline)).await?;
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    launch(async |environment, clients, state| {
        run_scheduled(Minute(wiring::wake(&environment, &clients, state)), SystemClock).await
    })
    .await
}
