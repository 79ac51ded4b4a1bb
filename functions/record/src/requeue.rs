//! Messages that go back to the queue of records as fresh ones: those whose records the store of the
//! log refused for long, and those of a newer version of the program.

use std::collections::HashSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use posthaste_core::model::SQS_DELAY_MAX;
use posthaste_ports::{
    MessageId, OutgoingMessage, Ports, QueueName, QueueReceiver, ReceivedMessage, Successor,
};

use crate::deadlines::in_time;
use crate::error::LogFilesError;
use crate::refused::RefusedMessages;

/// Messages that are put off at once.
const PUT_OFF_AT_ONCE: usize = 32;

/// Sends messages back to their queue.
pub(crate) struct MessageRequeuer<P: Ports> {
    /// The queue of records.
    pub(crate) queue: Arc<P::Queue>,
    pub(crate) clock: P::Clock,
}

impl<P: Ports> MessageRequeuer<P> {
    /// Puts off what was refused often. Returns the rest of what was refused, and what could not be
    /// put off.
    pub(crate) async fn put_off(
        &self,
        refused: RefusedMessages,
        deadline: Duration,
    ) -> Vec<MessageId> {
        let RefusedMessages {
            tired,
            mut messages,
            ..
        } = refused;
        let failed: HashSet<_> = messages.iter().cloned().collect();
        let tired = tired
            .into_iter()
            .filter(|message| failed.contains(&message.id));
        let calls: Vec<_> = tired
            .map(|message| self.put_one_off(message, deadline))
            .collect();
        let fresh: Vec<_> = stream::iter(calls)
            .buffer_unordered(PUT_OFF_AT_ONCE)
            .collect()
            .await;
        let fresh: HashSet<MessageId> = fresh.into_iter().flatten().collect();
        if !fresh.is_empty() {
            tracing::warn!(
                messages = fresh.len(),
                "records that the store refuses wait in fresh messages"
            );
        }
        messages.retain(|message| !fresh.contains(message));
        messages
    }

    async fn put_one_off(&self, message: ReceivedMessage, deadline: Duration) -> Option<MessageId> {
        let message_id = message.id.clone();
        let Err(error) = self.send_back(message, deadline).await else {
            return Some(message_id);
        };
        tracing::warn!(
            message_id = %message_id.0, error = &error as &dyn Error,
            "records that the store refuses left to their visibility timeout"
        );
        None
    }

    /// Sends a message back to its queue, as a fresh one with the longest delay.
    async fn send_back(
        &self,
        message: ReceivedMessage,
        deadline: Duration,
    ) -> Result<(), LogFilesError> {
        let again = OutgoingMessage {
            body: message.body,
            group: None,
            delay: SQS_DELAY_MAX,
        };
        let successors = vec![Successor {
            to: QueueName::Records,
            message: again,
        }];
        let replace = async {
            let replaced = self.queue.replace(&message.receipt, successors).await;
            replaced.map_err(LogFilesError::Store)
        };
        in_time(&self.clock, deadline, replace).await
    }

    /// Sends a message of a newer version back to its queue, for a newer program. Returns it if
    /// that failed.
    pub(crate) async fn wait_for_newer(
        &self,
        message: ReceivedMessage,
        version: u32,
        deadline: Duration,
    ) -> Option<MessageId> {
        let message_id = message.id.clone();
        tracing::warn!(message_id = %message_id.0, version, "records of a newer version handed back");
        let error = self.send_back(message, deadline).await.err()?;
        tracing::error!(
            message_id = %message_id.0, error = &error as &dyn Error,
            "records of a newer version left to their visibility timeout"
        );
        Some(message_id)
    }
}
