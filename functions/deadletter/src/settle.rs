//! Messages of letters: acknowledged once their content is durable, or replaced by messages for
//! what is still to be done.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::{LetterPlace, SQS_DELAY_MAX};
use posthaste_core::stored::resolved_message::{
    ResolvedLetter, render_failed_again, render_resolved,
};
use posthaste_ports::{
    ErrorKind, MessageId, OutgoingMessage, PortError, Ports, QueueName, QueueReceiver,
    ReceiptHandle, ReceivedMessage, Successor,
};
use posthaste_services::catch_panic::{CaughtPanic, catch_panic};

use crate::deadlines::in_time;

/// Letters of one object that are put off at once.
pub(crate) const PUT_OFF_AT_ONCE_MAX: usize = 100;

/// The time after which letters that could not be resolved are tried again.
const TRIED_AGAIN_AFTER: Duration = Duration::from_mins(1);

/// Settles the messages of the queue that is emptied.
pub(crate) struct MessageSettler<P: Ports> {
    pub(crate) queue: P::Queue,
    /// The name of that queue.
    pub(crate) source: QueueName,
    pub(crate) clock: P::Clock,
}

impl<P: Ports> MessageSettler<P> {
    pub(crate) fn new(queue: P::Queue, source: QueueName, clock: P::Clock) -> Self {
        Self {
            queue,
            source,
            clock,
        }
    }

    /// Acknowledges a message whose content is durable. A failure leaves a copy to be written
    /// again: at least once.
    pub(crate) async fn acknowledge(&self, message: &ReceivedMessage) {
        let acknowledged = catch_panic(self.queue.acknowledge(&message.receipt)).await;
        if let Err(error) = acknowledged.unwrap_or_else(acknowledge_panicked) {
            let error = &error as &dyn Error;
            tracing::error!(message_id = %message.id.0, error, "written dead letter not acknowledged");
        }
    }

    /// Lets the message of a letter go, whose events need nothing more but that others are resolved.
    /// Returns it if it comes again.
    pub(crate) async fn release_message(
        &self,
        message: &ReceivedMessage,
        unresolved: Vec<ResolvedLetter>,
    ) -> Option<MessageId> {
        let later = resolved_successors(unresolved);
        if later.is_empty() {
            self.acknowledge(message).await;
            return None;
        }
        let error = self.replace(&message.receipt, later).await.err()?;
        tracing::error!(
            message_id = %message.id.0, error = &error as &dyn Error,
            "dead letter left to its visibility timeout"
        );
        Some(message.id.clone())
    }

    /// Replaces a message by its successors, which are durable before it goes.
    pub(crate) fn replace(
        &self,
        receipt: &ReceiptHandle,
        successors: Vec<Successor>,
    ) -> impl Future<Output = Result<(), PortError>> + Send {
        self.queue.replace(receipt, successors)
    }

    /// The same, until the deadline.
    pub(crate) fn replace_in_time(
        &self,
        receipt: &ReceiptHandle,
        successors: Vec<Successor>,
        deadline: Duration,
    ) -> impl Future<Output = Result<(), PortError>> + Send {
        let replaced = self.replace(receipt, successors);
        in_time(&self.clock, deadline, replaced)
    }

    /// Sends a message of a newer version back to its own queue, for a newer program. Returns it if
    /// that failed.
    pub(crate) async fn wait_for_newer(
        &self,
        message: ReceivedMessage,
        version: u32,
        deadline: Duration,
    ) -> Option<MessageId> {
        tracing::warn!(
            message_id = %message.id.0, version, "message of a newer version handed back as it is"
        );
        let again = OutgoingMessage {
            body: message.body,
            group: None,
            delay: SQS_DELAY_MAX,
        };
        let successors = vec![Successor {
            to: self.source,
            message: again,
        }];
        let replaced = self.replace_in_time(&message.receipt, successors, deadline);
        let error = replaced.await.err()?;
        tracing::error!(
            error = &error as &dyn Error,
            "message of a newer version left to its visibility timeout"
        );
        Some(message.id)
    }
}

fn acknowledge_panicked(panicked: CaughtPanic) -> Result<(), PortError> {
    Err(PortError::with_cause(
        "acknowledge",
        ErrorKind::Other,
        panicked,
    ))
}

/// The messages that say which letters are still to be resolved: one of those that were delivered,
/// and one of those that lie in a newer object. The letters of a message have one.
pub(crate) fn resolved_successors(unresolved: Vec<ResolvedLetter>) -> Vec<Successor> {
    let mut delivered = Vec::new();
    let mut failed_again = BTreeMap::<_, Vec<_>>::new();
    for ResolvedLetter { letter, newer } in unresolved {
        match newer {
            None => delivered.push(letter),
            Some(LetterPlace { object, index }) => {
                let of_object = failed_again.entry(object).or_default();
                of_object.push((letter, index));
            }
        }
    }
    let delivered = (!delivered.is_empty()).then(|| render_resolved(delivered));
    let failed_again = failed_again.into_iter();
    let failed_again = failed_again.map(|(object, letters)| render_failed_again(letters, &object));
    let bodies = delivered.into_iter().chain(failed_again);
    bodies.map(resolved_successor).collect()
}

fn resolved_successor(body: Bytes) -> Successor {
    Successor {
        to: QueueName::DeadLetters,
        message: OutgoingMessage {
            body,
            group: None,
            delay: TRIED_AGAIN_AFTER,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{finish, queue, receive_message, settler};
    use posthaste_core::stored::resolved_message::parse_resolved;

    fn place(object: &str, index: usize) -> LetterPlace {
        LetterPlace {
            object: object.to_owned(),
            index,
        }
    }

    fn unresolved(index: usize, newer: Option<LetterPlace>) -> ResolvedLetter {
        ResolvedLetter {
            letter: place("old", index),
            newer,
        }
    }

    #[test]
    fn unresolved_letters_share_a_message_for_each_newer_object() {
        let letters = vec![
            unresolved(0, None),
            unresolved(1, Some(place("b", 0))),
            unresolved(2, Some(place("b", 1))),
            unresolved(3, Some(place("c", 0))),
            unresolved(4, None),
        ];
        let named: Vec<Vec<_>> = resolved_successors(letters)
            .iter()
            .map(|successor| {
                assert_eq!(successor.to, QueueName::DeadLetters);
                let named = parse_resolved(&successor.message.body).unwrap();
                named.iter().map(|it| it.letter.index).collect()
            })
            .collect();
        assert_eq!(named, [vec![0, 4], vec![1, 2], vec![3]]);
        assert!(resolved_successors(Vec::new()).is_empty());
    }

    #[test]
    fn released_message_without_unresolved_letters_is_deleted() {
        let queue = queue();
        let message = receive_message(&queue, b"letter");
        let released = finish(settler(&queue).release_message(&message, Vec::new()));
        assert_eq!(released, None);
        assert!(queue.messages().is_empty());
    }

    #[test]
    fn released_message_leaves_one_that_names_unresolved_letters() {
        let queue = queue();
        let message = receive_message(&queue, b"letter");
        let letters = vec![unresolved(3, None)];
        let released = finish(settler(&queue).release_message(&message, letters.clone()));
        assert_eq!(released, None);
        let [left] = queue.messages().try_into().unwrap();
        assert_eq!(left.delay, TRIED_AGAIN_AFTER);
        assert_eq!(parse_resolved(&left.body).unwrap(), letters);
    }

    /// A receipt that is stale replaces nothing.
    #[test]
    fn message_that_cannot_be_replaced_comes_again() {
        let queue = queue();
        let message = receive_message(&queue, b"letter");
        let settler = settler(&queue);
        finish(settler.acknowledge(&message));
        let released = finish(settler.release_message(&message, vec![unresolved(3, None)]));
        assert_eq!(released, Some(message.id));
        assert!(queue.messages().is_empty());
    }
}
