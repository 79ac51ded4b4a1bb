//! Invocations by a schedule.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use posthaste_ports::Clock;
use serde::de::IgnoredAny;

use super::{Scheduled, deadline};
use crate::telemetry;

/// Answers invocations by a schedule, whatever their payload, one after the other, until the Runtime API is gone.
pub async fn run_scheduled<S: Scheduled, C: Clock>(scheduled: S, clock: C) -> Result<(), Error> {
    let (scheduled, clock) = (&scheduled, &clock);
    lambda_runtime::run(service_fn(async |event: LambdaEvent<IgnoredAny>| {
        let answer = scheduled.run(deadline::of(&event.context, clock)).await;
        telemetry::flush(clock.now());
        answer
    }))
    .await
}
