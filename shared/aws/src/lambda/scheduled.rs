//! Invocations by a schedule.

use std::future::Future;
use std::time::Duration;

use lambda_runtime::{Context, Error};
use posthaste_ports::Clock;
use serde::de::IgnoredAny;

use super::deadline;
use super::invocations::{InvocationFailure, answer_each, contain_panic};

/// A function that a schedule starts.
pub trait ScheduledFunction: Send + Sync + 'static {
    /// Works once, until `deadline`, a time of the clock's `monotonic`. An error fails the
    /// invocation, so that Lambda's own error metric shows it.
    fn run(&self, deadline: Duration) -> impl Future<Output = Result<(), Error>> + Send;
}

/// Responds to invocations by a schedule, whatever their payload, one after the other, until the
/// Runtime API is gone.
pub async fn run_scheduled<S: ScheduledFunction, C: Clock>(
    scheduled: S,
    clock: C,
) -> Result<(), Error> {
    answer_each(clock.clone(), async |_: IgnoredAny, context: &Context| {
        run_once(&scheduled, &clock, context).await
    })
    .await
}

/// Responds to one invocation by the schedule.
pub(super) async fn run_once<S: ScheduledFunction, C: Clock>(
    scheduled: &S,
    clock: &C,
    context: &Context,
) -> Result<(), InvocationFailure> {
    let deadline = deadline::from_context(context, clock);
    let run = contain_panic(async { scheduled.run(deadline).await }).await;
    run.map_err(InvocationFailure::Panicked)?
        .map_err(InvocationFailure::Run)
}
