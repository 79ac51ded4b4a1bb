//! Replaces a message in the delivery queue: its successors are durable before it is deleted.

use posthaste_ports::{ErrorKind, PortError, QueueReceiver, Successor};

use crate::invocation::{Invocation, MessageHandle};

/// Replaces a message by its successors, and answers whether it is settled. Without successors it
/// is deleted at once: its deliveries are durable elsewhere.
pub(crate) async fn replace_message(
    queue: &impl QueueReceiver,
    invocation: &Invocation,
    message: &MessageHandle,
    successors: Vec<Successor>,
) -> bool {
    match queue.replace(&message.receipt, successors).await {
        Ok(()) => {}
        Err(error) if error.kind == ErrorKind::NotFound => {
            tracing::warn!(
                message_id = %message.id.0, "message settled by another worker, its visibility ran out"
            );
        }
        Err(error) => {
            report_handed_back(message, &error);
            return false;
        }
    }
    invocation.note_settled(&message.id);
    true
}

/// The same after a try that failed. Such a try may keep the message for as long as the store is
/// away, and let it go in the end: a receipt that seems stale does not say that the message is
/// settled.
pub(crate) async fn replace_after_failure(
    queue: &impl QueueReceiver,
    invocation: &Invocation,
    message: &MessageHandle,
    successors: Vec<Successor>,
) -> bool {
    if let Err(error) = queue.replace(&message.receipt, successors).await {
        report_handed_back(message, &error);
        return false;
    }
    invocation.note_settled(&message.id);
    true
}

fn report_handed_back(message: &MessageHandle, error: &PortError) {
    tracing::error!(
        message_id = %message.id.0, error = error as &dyn std::error::Error,
        "message handed back, its successors were not written"
    );
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use std::time::Duration;

    use posthaste_ports::{OutgoingMessage, QueueName, ReceiptHandle};
    use posthaste_testkit::{CallFault, FaultPlan};

    use super::*;
    use crate::testing::World;

    fn successor(to: QueueName) -> Successor {
        let body = Bytes::from_static(b"{}");
        Successor {
            to,
            message: OutgoingMessage {
                body,
                group: None,
                delay: Duration::ZERO,
            },
        }
    }

    /// Replaces a received message. Answers whether it is settled, and whether it is reported as
    /// failed.
    async fn replaced(world: &World, successors: Vec<Successor>, is_stale: bool) -> (bool, bool) {
        let message = world.received().await;
        let invocation = world.invocation_of(std::slice::from_ref(&message));
        let receipt = if is_stale {
            ReceiptHandle("stale".into())
        } else {
            message.receipt.clone()
        };
        let handle = MessageHandle {
            receipt,
            ..MessageHandle::from_message(&message)
        };
        let is_settled = replace_message(&*world.queue, &invocation, &handle, successors).await;
        (is_settled, !invocation.into_response().failures.is_empty())
    }

    #[tokio::test]
    async fn successors_take_the_place_of_a_message() {
        let world = World::new();
        let successors = [QueueName::DeadLetters, QueueName::Deliveries].map(successor);
        assert_eq!(
            replaced(&world, successors.to_vec(), false).await,
            (true, false)
        );
        assert_eq!(world.sent(QueueName::DeadLetters).await.len(), 1);
        assert_eq!(world.sent(QueueName::Deliveries).await.len(), 1);
    }

    #[tokio::test]
    async fn a_message_whose_successors_are_not_written_is_handed_back() {
        let world = World::with(
            &FaultPlan::none(),
            &FaultPlan::nth(0, CallFault::Before(ErrorKind::Other)),
        );
        assert_eq!(
            replaced(&world, vec![successor(QueueName::DeadLetters)], false).await,
            (false, true)
        );
        assert_eq!(world.sent(QueueName::DeadLetters).await.len(), 0);
    }

    #[tokio::test]
    async fn a_message_that_another_worker_has_is_done_with() {
        let world = World::new();
        assert_eq!(
            replaced(&world, vec![successor(QueueName::DeadLetters)], true).await,
            (true, false)
        );
    }
}
