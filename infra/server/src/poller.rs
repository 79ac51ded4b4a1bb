//! Pollers take messages from a queue and give them to a function, by the rules of Lambda's event
//! source mapping: a batch, a deadline, batch item failures, and the visibility timeout for
//! everything that failed.
//!
//! A poller does not wait for the function before it receives again. The queue itself bounds the
//! messages in flight: `receive` waits while the bound is reached.

mod invocations;

use std::future::Future;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::attempt::redelivery_backoff::redelivery_backoff;
use posthaste_core::model::SQS_BATCH_ENTRIES_MAX;
use posthaste_ports::{
    BatchResponse, Clock, QueueName, QueueReceiver, ReceiveRequest, ReceivedMessage,
};
use posthaste_services::catch_panic::catch_panic;
use tokio::task::{JoinSet, yield_now};
use tokio_util::sync::CancellationToken;

use invocations::LoopInvocations;

/// Invocations of one loop that begin without a pause. Once they are under way, the loop lets other
/// tasks run between one receive and the next. So an endpoint that answers at once has few requests
/// open, and they take little memory. A slow endpoint has as many open as ever.
const UNDER_WAY_AT_ONCE: usize = 2;

/// The visibility timeout as a multiple of the function's, as AWS asks for with an event source
/// mapping. <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html>
const VISIBILITY_PER_TIMEOUT: u32 = 6;

/// Longest wait of one receive for a message. A stop is noticed between receives, so it is short.
const RECEIVE_WAIT: Duration = Duration::from_secs(1);

/// Rest of a poller after the queue failed.
const REST_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Largest batch an event source mapping gives to a function, in bytes.
/// <https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventsourcemapping.html>, "Batching behavior".
const BATCH_BYTES_MAX: usize = 6 << 20;

/// A function behind a queue.
pub trait QueueHandler: Send + Sync + 'static {
    /// Works on a batch until `deadline`, a time of the clock's `monotonic`, and returns the
    /// messages for which nothing durable was done.
    fn handle(
        &self,
        batch: Vec<ReceivedMessage>,
        deadline: Duration,
    ) -> impl Future<Output = BatchResponse> + Send;
}

/// Settings of a poller.
#[derive(Debug, Clone, Copy)]
pub struct PollSettings {
    /// The queue's name, for the log.
    pub queue: QueueName,
    /// Most messages in one batch.
    pub batch_max: usize,
    /// Longest wait for a fuller batch. Zero: no wait.
    pub window: Duration,
    /// The function's timeout.
    pub timeout: Duration,
    /// Number of loops that receive.
    pub loops: usize,
    /// Most invocations of one loop at once; the loop waits for one to end before it receives on.
    pub invocations_max: usize,
}

/// Polls until `stop` is cancelled, then waits for every invocation. Dropping the future drops the
/// invocations. Panics when a loop does. Otherwise a queue with fewer loops, or none, would show
/// only by its length.
pub async fn poll<Q, H, C>(
    queue: Q,
    handler: Arc<H>,
    clock: C,
    settings: PollSettings,
    stop: CancellationToken,
) where
    Q: QueueReceiver + Clone + 'static,
    H: QueueHandler,
    C: Clock,
{
    let mut loops = JoinSet::new();
    for _ in 0..settings.loops {
        let source = PollLoop {
            queue: queue.clone(),
            clock: clock.clone(),
            settings,
        };
        loops.spawn(source.run(Arc::clone(&handler), stop.clone()));
    }
    while let Some(ended) = loops.join_next().await {
        if let Some(panic) = ended.err().and_then(|error| error.try_into_panic().ok()) {
            resume_unwind(panic);
        }
    }
}

#[derive(Debug, Clone)]
struct PollLoop<Q, C> {
    queue: Q,
    clock: C,
    settings: PollSettings,
}

impl<Q, C> PollLoop<Q, C>
where
    Q: QueueReceiver + Clone + 'static,
    C: Clock,
{
    async fn run<H: QueueHandler>(self, handler: Arc<H>, stop: CancellationToken) {
        let mut under_way = LoopInvocations::default();
        while !stop.is_cancelled() {
            under_way
                .wait_for_fewer_than(self.settings.invocations_max)
                .await;
            if under_way.len() >= UNDER_WAY_AT_ONCE {
                // Answers that are here are taken first.
                under_way.drive_beside(yield_now()).await;
            }
            let batch = under_way.drive_beside(self.gather_batch(&stop)).await;
            if !batch.is_empty() {
                let deadline = self.clock.monotonic() + self.settings.timeout;
                let source = self.clone();
                let handler = Arc::clone(&handler);
                under_way
                    .begin(async move { source.invoke_handler(&*handler, batch, deadline).await });
            }
        }
        under_way.wait_for_fewer_than(1).await;
    }

    /// Receives until the batch is full or its window is over.
    async fn gather_batch(&self, stop: &CancellationToken) -> Vec<ReceivedMessage> {
        let mut batch = self.receive(self.settings.batch_max, RECEIVE_WAIT).await;
        let over = self.clock.monotonic() + self.settings.window;
        while !batch.is_empty()
            && batch.len() < self.settings.batch_max
            && sum_body_bytes(&batch) < BATCH_BYTES_MAX
            && !stop.is_cancelled()
        {
            let left = over.saturating_sub(self.clock.monotonic());
            if left.is_zero() {
                break;
            }
            batch.extend(
                self.receive(self.settings.batch_max - batch.len(), left)
                    .await,
            );
        }
        batch
    }

    async fn receive(&self, max: usize, wait: Duration) -> Vec<ReceivedMessage> {
        let request = ReceiveRequest {
            max: max.min(SQS_BATCH_ENTRIES_MAX),
            visibility: self.settings.timeout * VISIBILITY_PER_TIMEOUT,
            wait,
        };
        match self.queue.receive(request).await {
            Ok(messages) => messages,
            Err(error) => {
                let queue = self.settings.queue;
                tracing::error!(%queue, error = &error as &dyn std::error::Error, "messages not received");
                self.clock.sleep(REST_AFTER_FAILURE).await;
                Vec::new()
            }
        }
    }

    /// A panic loses its batch: the messages come back after their visibility timeout.
    async fn invoke_handler<H: QueueHandler>(
        &self,
        handler: &H,
        batch: Vec<ReceivedMessage>,
        deadline: Duration,
    ) {
        let received: Vec<_> = batch
            .iter()
            .map(|it| (it.id.clone(), it.receipt.clone(), it.receive_count))
            .collect();
        let failures = match catch_panic(handler.handle(batch, deadline)).await {
            Ok(BatchResponse { failures }) => failures,
            Err(error) => {
                tracing::error!(
                    queue = %self.settings.queue, %error, "an invocation failed, its messages come back"
                );
                return;
            }
        };
        for (id, receipt, receive_count) in received {
            // The receipt of a message that the function has settled itself is stale, which is no
            // error.
            let settled = if failures.contains(&id) {
                let rest = redelivery_backoff(
                    receive_count,
                    self.settings.timeout * VISIBILITY_PER_TIMEOUT,
                );
                self.queue.change_visibility(&receipt, rest).await
            } else {
                self.queue.acknowledge(&receipt).await
            };
            if let Err(error) = settled {
                let error = &error as &dyn std::error::Error;
                tracing::error!(
                    queue = %self.settings.queue, message_id = %id.0, error,
                    "message left to its visibility timeout"
                );
            }
        }
    }
}

fn sum_body_bytes(messages: &[ReceivedMessage]) -> usize {
    messages.iter().map(|message| message.body.len()).sum()
}

#[cfg(test)]
mod tests;
