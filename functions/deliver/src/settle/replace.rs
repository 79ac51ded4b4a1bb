//! Ending messages in the queue: their successors are durable before they are deleted.

use std::sync::Arc;

use posthaste_ports::{ErrorKind, Ports, QueueReceiver, Successor};

use crate::invocation::{Invocation, MessageHandle};

/// Ends messages in the delivery queue.
pub(crate) struct Messages<P: Ports> {
    queue: Arc<P::Queue>,
}

/// How a message ends.
#[derive(Debug)]
pub(crate) enum End {
    /// It is acknowledged: all of its events arrived. If the queue does not take that, it is delivered again:
    /// at least once.
    Delivered,
    /// Successors take its place. Without any it is deleted at once: what follows it is durable elsewhere.
    ReplacedBy(Vec<Successor>),
}

impl<P: Ports> Messages<P> {
    pub(crate) fn new(queue: Arc<P::Queue>) -> Self {
        Self { queue }
    }

    /// Ends a message, and answers whether it is done with.
    pub(crate) async fn end(&self, invocation: &Invocation, message: &MessageHandle, end: End) -> bool {
        match end {
            End::Delivered => self.acknowledge(invocation, message).await,
            End::ReplacedBy(successors) => self.replace(invocation, message, successors).await,
        }
    }

    async fn replace(
        &self,
        invocation: &Invocation,
        MessageHandle { id, receipt }: &MessageHandle,
        successors: Vec<Successor>,
    ) -> bool {
        match self.queue.replace(receipt, successors).await {
            Ok(()) => invocation.settled(id),
            Err(error) if error.kind == ErrorKind::NotFound => {
                invocation.settled(id);
                tracing::warn!(
                    message_id = %id.0, "message settled by another worker, its visibility ran out"
                );
            }
            Err(error) => {
                tracing::error!(
                    message_id = %id.0, error = &error as &dyn std::error::Error,
                    "message handed back, its successors were not written"
                );
                return false;
            }
        }
        true
    }

    async fn acknowledge(
        &self,
        invocation: &Invocation,
        MessageHandle { id, receipt }: &MessageHandle,
    ) -> bool {
        invocation.settled(id);
        let acknowledged = self.queue.acknowledge(receipt).await;
        if let Err(error) = &acknowledged {
            let error = error as &dyn std::error::Error;
            tracing::error!(error, "delivered message not acknowledged");
        }
        acknowledged.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use posthaste_ports::{OutgoingMessage, QueueName, Receipt};
    use posthaste_testkit::{Fault, Operation, Plan};

    use super::*;
    use crate::testing::{TestPorts, World};

    fn successor(to: QueueName) -> Successor {
        let body = Bytes::from_static(b"{}");
        Successor { to, message: OutgoingMessage { body, group: None, delay_secs: 0 } }
    }

    /// Ends a received message. Answers whether it is done with, and whether it is reported as failed.
    async fn ended(world: &World, end: End, is_stale: bool) -> (bool, bool) {
        let message = world.received().await;
        let invocation = world.invocation_of(std::slice::from_ref(&message));
        let receipt = if is_stale { Receipt("stale".to_owned()) } else { message.receipt };
        let messages: Messages<TestPorts> = Messages::new(Arc::clone(&world.queue));
        let handle = MessageHandle { id: message.id, receipt };
        let is_done = messages.end(&invocation, &handle, end).await;
        (is_done, !invocation.response().failures.is_empty())
    }

    #[tokio::test]
    async fn a_delivered_message_is_acknowledged() {
        let world = World::new();
        assert_eq!(ended(&world, End::Delivered, false).await, (true, false));
        assert_eq!(world.calls.count(Operation::Acknowledge), 1);
    }

    #[tokio::test]
    async fn a_delivered_message_is_settled_though_the_queue_does_not_take_it() {
        let world = World::with(&Plan::none(), &Plan::nth(0, Fault::Before(ErrorKind::Other)));
        assert_eq!(ended(&world, End::Delivered, false).await, (false, false));
    }

    #[tokio::test]
    async fn successors_take_the_place_of_a_message() {
        let world = World::new();
        let end = End::ReplacedBy(vec![successor(QueueName::DeadLetters), successor(QueueName::Deliveries)]);
        assert_eq!(ended(&world, end, false).await, (true, false));
        assert_eq!(world.sent(QueueName::DeadLetters).await.len(), 1);
        assert_eq!(world.sent(QueueName::Deliveries).await.len(), 1);
    }

    #[tokio::test]
    async fn a_message_whose_successors_are_not_written_is_handed_back() {
        let world = World::with(&Plan::none(), &Plan::nth(0, Fault::Before(ErrorKind::Other)));
        let end = End::ReplacedBy(vec![successor(QueueName::DeadLetters)]);
        assert_eq!(ended(&world, end, false).await, (false, true));
        assert_eq!(world.sent(QueueName::DeadLetters).await.len(), 0);
    }

    #[tokio::test]
    async fn a_message_that_another_worker_has_is_done_with() {
        let world = World::new();
        let end = End::ReplacedBy(vec![successor(QueueName::DeadLetters)]);
        assert_eq!(ended(&world, end, true).await, (true, false));
    }
}
