//! Invocations by the event source mapping of a queue.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use posthaste_ports::Clock;
use posthaste_ports::queue::BatchResponse;

use super::event::{SqsBatchResponse, SqsEvent};
use super::{BatchHandler, deadline};
use crate::telemetry;

/// Answers invocations by an SQS event source mapping, one after the other, until the Runtime API is gone.
///
/// The mapping must have `ReportBatchItemFailures`. A panic of the handler reports every message of its batch.
pub async fn run_batches<H: BatchHandler, C: Clock>(handler: H, clock: C) -> Result<(), Error> {
    let (handler, clock) = (&handler, &clock);
    lambda_runtime::run(service_fn(async |event: LambdaEvent<SqsEvent>| {
        let answer = answer(handler, clock, event).await;
        telemetry::flush(clock.now());
        answer
    }))
    .await
}

async fn answer<H: BatchHandler, C: Clock>(
    handler: &H,
    clock: &C,
    event: LambdaEvent<SqsEvent>,
) -> Result<SqsBatchResponse, Error> {
    let deadline = deadline::of(&event.context, clock);
    let intake = event.payload.intake()?;
    let understood: HashSet<_> = intake.batch.messages.iter().map(|message| message.id.clone()).collect();
    let handled = AssertUnwindSafe(handler.handle(intake.batch, deadline)).catch_unwind().await;
    let response = handled.unwrap_or_else(|_| BatchResponse { failures: intake.ids.clone() });
    Ok(SqsBatchResponse::new(&intake.ids, &understood, &response))
}
