//! Invocations of one function by the event source mapping of a queue and by a schedule.

use lambda_runtime::{Context, Error};
use posthaste_ports::Clock;
use serde::Serialize;

use super::batch::{self, BatchHandler, SqsBatchResponse};
use super::invocations::answer_each;
use super::scheduled::{ScheduledFunction, run_once};
use super::sqs_event::QueueOrSchedule;

/// The response in the form that its invoker expects. A schedule expects none.
#[derive(Serialize)]
#[serde(untagged)]
enum QueueOrScheduleResponse {
    Batch(SqsBatchResponse),
    Run(()),
}

/// Responds to invocations of `function` by an SQS event source mapping as
/// [`run_batches`](super::run_batches) does, and all others as
/// [`run_scheduled`](super::run_scheduled) does, one after the other, until the Runtime API is
/// gone.
pub async fn run_batches_and_schedule<H, S, C>(
    function: &'static str,
    handler: H,
    scheduled: S,
    clock: C,
) -> Result<(), Error>
where
    H: BatchHandler,
    S: ScheduledFunction,
    C: Clock,
{
    answer_each(
        clock.clone(),
        async |event: QueueOrSchedule, context: &Context| match event.into_queue_event() {
            Some(event) => batch::answer_invocation(function, &handler, &clock, event, context)
                .await
                .map(QueueOrScheduleResponse::Batch),
            None => run_once(&scheduled, &clock, context)
                .await
                .map(QueueOrScheduleResponse::Run),
        },
    )
    .await
}
