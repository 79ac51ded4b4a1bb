//! Invocations by the event source mapping of a queue.

use lambda_runtime::{Context, Error};
use posthaste_ports::Clock;
use posthaste_ports::queue::BatchResponse;

use super::invocations::{Failure, answer_each, contained};
use super::{BatchHandler, deadline};

mod answer;
mod event;

use answer::SqsBatchResponse;
pub(super) use event::EventError;
use event::{Intake, SqsEvent};

/// Answers invocations by an SQS event source mapping, one after the other, until the Runtime API is gone.
///
/// The mapping must have `ReportBatchItemFailures`. If the handler panics, every message of its batch is reported.
pub async fn run_batches<H: BatchHandler, C: Clock>(handler: H, clock: C) -> Result<(), Error> {
    let work = async |event, context: &Context| answer(&handler, &clock, event, context).await;
    answer_each(clock.clone(), work).await
}

async fn answer<H: BatchHandler, C: Clock>(
    handler: &H,
    clock: &C,
    event: SqsEvent,
    context: &Context,
) -> Result<SqsBatchResponse, Failure> {
    let deadline = deadline::of(context, clock);
    let Intake { batch, ids } = event.intake()?;
    if batch.messages.is_empty() {
        return Ok(SqsBatchResponse::new(&ids, &BatchResponse::default()));
    }
    let response = contained(async { handler.handle(batch, deadline).await }).await;
    // What the handler had replaced before it panicked is deleted; reporting it as well does nothing.
    let response = response.unwrap_or_else(|_| BatchResponse { failures: ids.all.clone() });
    Ok(SqsBatchResponse::new(&ids, &response))
}
