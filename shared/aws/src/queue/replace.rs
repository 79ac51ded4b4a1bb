//! Replacement of messages by successors, with requests shared among the callers.
//!
//! Successors are sent first, then the message is deleted: a crash in between leaves both and loses
//! nothing. Once the successors are durable, a delete that fails is no failure of the replacement:
//! the message would come back beside them if its caller reported it as failed, while the event
//! source mapping deletes it once more if it does not.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use posthaste_ports::{
    Clock, ErrorKind, OutgoingMessage, PortError, QueueName, ReceiptHandle, Successor,
};

use super::calls::{BatchCalls, DELETING, SENDING};
use super::coalesce::{ItemFailure, LaneRequest, RequestLane};

/// Most sends of one successor whose responses do not confirm it.
pub(super) const SENDS_MAX: u32 = 3;

/// First wait before such a successor is sent again; it doubles.
pub(super) const RESEND_WAIT: Duration = Duration::from_millis(100);

const REPLACING: &str = "replace a message";

/// Replaces messages of one queue. Clones share requests.
#[derive(Debug)]
pub(super) struct MessageReplacer<B: BatchCalls, C> {
    deliveries: Arc<RequestLane<SendTo<B>, C>>,
    slow_deliveries: Arc<RequestLane<SendTo<B>, C>>,
    dead_letters: Arc<RequestLane<SendTo<B>, C>>,
    redrive: Arc<RequestLane<SendTo<B>, C>>,
    records: Arc<RequestLane<SendTo<B>, C>>,
    deletes: Arc<RequestLane<DeleteCalls<B>, C>>,
    clock: C,
}

/// The lane of messages to one queue.
#[derive(Debug)]
struct SendTo<B> {
    calls: Arc<B>,
    to: QueueName,
}

/// The lane of deletes.
#[derive(Debug)]
struct DeleteCalls<B>(Arc<B>);

impl<B: BatchCalls> SendTo<B> {
    fn lane<C: Clock>(calls: &Arc<B>, to: QueueName, clock: &C) -> Arc<RequestLane<Self, C>> {
        let calls = Arc::clone(calls);
        Arc::new(RequestLane::new(Self { calls, to }, clock.clone()))
    }
}

impl<B: BatchCalls> LaneRequest for SendTo<B> {
    type Item = OutgoingMessage;
    const DOING: &'static str = SENDING;

    fn item_bytes(message: &OutgoingMessage) -> usize {
        message.body.len()
    }

    async fn call(
        &self,
        messages: Vec<OutgoingMessage>,
    ) -> Result<Vec<Result<(), PortError>>, PortError> {
        let results = self.calls.send(self.to, messages).await?;
        Ok(results.into_iter().map(|result| result.map(drop)).collect())
    }
}

impl<B: BatchCalls> LaneRequest for DeleteCalls<B> {
    type Item = ReceiptHandle;
    const DOING: &'static str = DELETING;

    /// Only bodies are limited.
    fn item_bytes(_receipt: &ReceiptHandle) -> usize {
        0
    }

    async fn call(
        &self,
        receipts: Vec<ReceiptHandle>,
    ) -> Result<Vec<Result<(), PortError>>, PortError> {
        self.0.delete(receipts).await
    }
}

impl<B: BatchCalls, C: Clock> MessageReplacer<B, C> {
    pub(super) fn new(calls: B, clock: C) -> Self {
        let calls = Arc::new(calls);
        Self {
            deliveries: SendTo::lane(&calls, QueueName::Deliveries, &clock),
            slow_deliveries: SendTo::lane(&calls, QueueName::SlowDeliveries, &clock),
            dead_letters: SendTo::lane(&calls, QueueName::DeadLetters, &clock),
            redrive: SendTo::lane(&calls, QueueName::Redrive, &clock),
            records: SendTo::lane(&calls, QueueName::Records, &clock),
            deletes: Arc::new(RequestLane::new(
                DeleteCalls(Arc::clone(&calls)),
                clock.clone(),
            )),
            clock,
        }
    }

    /// Replaces a message. The work continues when its caller is dropped: half a replacement would
    /// leave a copy too many.
    pub(super) async fn replace(
        self: &Arc<Self>,
        receipt: ReceiptHandle,
        successors: Vec<Successor>,
    ) -> Result<(), PortError> {
        let replacer = Arc::clone(self);
        let work = tokio::spawn(async move { replacer.send_and_delete(receipt, successors).await });
        work.await
            .unwrap_or_else(|error| Err(PortError::with_cause(REPLACING, ErrorKind::Other, error)))
    }

    async fn send_and_delete(
        &self,
        receipt: ReceiptHandle,
        successors: Vec<Successor>,
    ) -> Result<(), PortError> {
        let sends = successors
            .into_iter()
            .map(|successor| self.send_successor(successor));
        let sent: Result<(), _> = join_all(sends).await.into_iter().collect();
        sent.map_err(unsent_error)?;
        match self.deletes.submit(receipt).await.map_err(PortError::from) {
            Ok(()) => Ok(()),
            Err(error) if error.kind == ErrorKind::NotFound => Err(error),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "replaced message not deleted yet"
                );
                Ok(())
            }
        }
    }

    /// Sends one successor, again if the response does not say whether it was sent.
    async fn send_successor(&self, successor: Successor) -> Result<(), PortError> {
        let lane = self.lane_to(successor.to);
        for sends in 1..SENDS_MAX {
            match lane.submit(successor.message.clone()).await {
                Err(ItemFailure::Item(error)) if is_worth_another(error.kind) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "successor sent again"
                    );
                    self.clock.sleep(RESEND_WAIT * (1 << (sends - 1))).await;
                }
                other => return other.map_err(PortError::from),
            }
        }
        lane.submit(successor.message)
            .await
            .map_err(PortError::from)
    }

    fn lane_to(&self, to: QueueName) -> &Arc<RequestLane<SendTo<B>, C>> {
        match to {
            QueueName::Deliveries => &self.deliveries,
            QueueName::SlowDeliveries => &self.slow_deliveries,
            QueueName::DeadLetters => &self.dead_letters,
            QueueName::Redrive => &self.redrive,
            QueueName::Records => &self.records,
        }
    }
}

/// A failed entry inside a response is worth another send: the SDK retries only requests that fail
/// as a whole.
fn is_worth_another(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Other | ErrorKind::TimedOut | ErrorKind::Throttled { .. }
    )
}

/// The error of a successor that was not sent. A queue that is not there does not mean that the
/// message is gone: [`ErrorKind::NotFound`] is for a receipt that is stale.
fn unsent_error(error: PortError) -> PortError {
    if error.kind == ErrorKind::NotFound {
        PortError::with_cause("send a successor", ErrorKind::Other, error)
    } else {
        error
    }
}

#[cfg(test)]
mod tests;
