//! A rest for messages that are handed back, the same as embedded. Lambda's mapping leaves a
//! message that a function reports as failed to the queue's visibility timeout, which is six times
//! the function's own: a read that was throttled for a moment would hold healthy events for twelve
//! minutes.
//!
//! An invocation of deliver, backwards from the 120 s after which Lambda ends it:
//!
//! | | what | where |
//! |---|---|---|
//! | 5 s | metrics, and the response's way to Lambda | `posthaste_aws::lambda::ANSWER_MARGIN` |
//! | 3 s | messages that are handed back get their rest | [`BACKOFF_TIME`] |
//! | 1 s | the drain rate of this process is reported | `posthaste_services::drain::DRAIN_POST_TIMEOUT` |
//! | 25 s | messages are settled | `posthaste_deliver::SETTLING_TIME` |
//! | 60 s | the longest attempt | `posthaste_core::model::ATTEMPT_TIMEOUT_MAX` |
//! | 15 s | messages are looked up, at the beginning | `posthaste_deliver::RECEIVING_TIME` |
//! | 11 s | waiting for a link's lane, and for stored payloads | the rest |

use std::collections::HashSet;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use posthaste_aws::lambda::{ANSWER_MARGIN, BatchHandler, SqsBatch};
use posthaste_core::attempt::redelivery_backoff::redelivery_backoff;
use posthaste_core::model::ATTEMPT_TIMEOUT_MAX;
use posthaste_deliver::{RECEIVING_TIME, SETTLING_TIME};
use posthaste_ports::{BatchResponse, Clock, ErrorKind, QueueReceiver, ReceiptHandle};
use posthaste_services::DRAIN_POST_TIMEOUT;

use crate::both_queues::queue_name_of;

/// Longest time for requests that let messages rest. Messages without one wait for the visibility
/// timeout.
pub const BACKOFF_TIME: Duration = Duration::from_secs(3);

/// deliver's timeout, as template.yaml has it.
const DELIVER_TIMEOUT: Duration = Duration::from_mins(2);

/// Messages whose rest is asked for at once.
const TOLD_AT_ONCE_MAX: usize = 32;

/// The least time that the parts of an invocation leave for waiting.
const WAITING_TIME_MIN: Duration = Duration::from_secs(10);

const _: () = assert!(
    ANSWER_MARGIN.as_secs()
        + BACKOFF_TIME.as_secs()
        + DRAIN_POST_TIMEOUT.as_secs()
        + SETTLING_TIME.as_secs()
        + ATTEMPT_TIMEOUT_MAX.as_secs()
        + RECEIVING_TIME.as_secs()
        + WAITING_TIME_MIN.as_secs()
        <= DELIVER_TIMEOUT.as_secs()
);

/// A handler of messages whose failures rest.
#[derive(Debug)]
pub struct RedeliveryBackoff<H, Q, C> {
    handler: H,
    queues: Vec<SourceQueue<Q>>,
    clock: C,
}

/// A queue that feeds the function.
#[derive(Debug)]
pub struct SourceQueue<Q> {
    name: String,
    queue: Q,
    visibility: Duration,
}

impl<Q> SourceQueue<Q> {
    /// The queue at `url`, whose messages are hidden for `visibility` when they are received.
    pub fn new(url: &str, queue: Q, visibility: Duration) -> Self {
        Self {
            name: queue_name_of(url).to_owned(),
            queue,
            visibility,
        }
    }
}

impl<H, Q, C> RedeliveryBackoff<H, Q, C>
where
    Q: QueueReceiver,
    C: Clock,
{
    /// A handler, and the queues that feed it.
    pub fn new(handler: H, queues: Vec<SourceQueue<Q>>, clock: C) -> Self {
        Self {
            handler,
            queues,
            clock,
        }
    }

    async fn delay_redelivery(
        &self,
        source: &SourceQueue<Q>,
        failed: Vec<(ReceiptHandle, u32)>,
        deadline: Duration,
    ) {
        let left = deadline
            .saturating_sub(self.clock.monotonic())
            .min(BACKOFF_TIME);
        let delays = stream::iter(failed).for_each_concurrent(
            TOLD_AT_ONCE_MAX,
            |(receipt, receive_count)| async move {
                source.delay_message(&receipt, receive_count).await;
            },
        );
        tokio::select! {
            biased;
            () = delays => {}
            () = self.clock.sleep(left) => {
                tracing::warn!(
                    queue = source.name, "messages handed back are left to their visibility timeout"
                );
            }
        }
    }
}

impl<Q: QueueReceiver> SourceQueue<Q> {
    async fn delay_message(&self, receipt: &ReceiptHandle, receive_count: u32) {
        let rest = redelivery_backoff(receive_count, self.visibility);
        if rest >= self.visibility {
            return;
        }
        match self.queue.change_visibility(receipt, rest).await {
            Ok(()) => {}
            // The message is gone and its successors are durable; the handler ended before it could
            // know.
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    queue = self.name,
                    error,
                    "message left to its visibility timeout"
                );
            }
        }
    }
}

impl<H, Q, C> BatchHandler for RedeliveryBackoff<H, Q, C>
where
    H: BatchHandler,
    Q: QueueReceiver + 'static,
    C: Clock,
{
    async fn handle(&self, batch: SqsBatch, deadline: Duration) -> BatchResponse {
        let source = self.queues.iter().find(|source| source.name == batch.queue);
        let received: Vec<_> = batch
            .messages
            .iter()
            .map(|m| (m.id.clone(), m.receipt.clone(), m.receive_count))
            .collect();
        // The SDK's futures lie so deep in one another that the compiler refuses one more layer; a
        // box ends the depth.
        let response = Box::pin(
            self.handler
                .handle(batch, deadline.saturating_sub(BACKOFF_TIME)),
        )
        .await;
        let named: HashSet<_> = response.failures.iter().collect();
        let failed = received.into_iter().filter(|(id, ..)| named.contains(id));
        let failed: Vec<_> = failed
            .map(|(_, receipt, receive_count)| (receipt, receive_count))
            .collect();
        if let Some(source) = source.filter(|_| !failed.is_empty()) {
            Box::pin(self.delay_redelivery(source, failed, deadline)).await;
        }
        response
    }
}

#[cfg(test)]
mod tests;
