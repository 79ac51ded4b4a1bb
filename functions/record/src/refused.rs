//! Messages whose records the store of the log refused. They come back, and after some receives a
//! fresh message takes the place of each, so that an outage of any length uses up no receives.

use std::collections::HashSet;
use std::error::Error;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use posthaste_core::model::{SQS_DELAY_MAX, Timestamp};
use posthaste_ports::{
    MessageId, OutgoingMessage, Ports, QueueName, QueueReceiver, ReceivedMessage, Successor,
};

use crate::error::LogFilesError;
use crate::record::LogRecorder;

/// Receives after which a refused message is put off: about an hour, and far fewer than the 50
/// after which the queue gives it up.
const RECEIVES_MAX: u32 = 10;

/// Messages that are put off at once.
const PUT_OFF_AT_ONCE: usize = 32;

/// What was refused of a batch.
#[derive(Debug, Default)]
pub(crate) struct RefusedMessages {
    /// Messages of the batch that were received often.
    tired: Vec<ReceivedMessage>,
    messages: Vec<MessageId>,
    /// The time of the oldest record.
    pub(crate) oldest: Option<Timestamp>,
}

/// The messages of an hour that was not written.
#[derive(Debug)]
pub(crate) struct UnwrittenHour {
    pub(crate) messages: Vec<MessageId>,
    /// Whether the store or the time failed, and not the records.
    pub(crate) may_be_written: bool,
}

impl RefusedMessages {
    /// Nothing of the batch was refused yet.
    pub(crate) fn new(batch: &[ReceivedMessage]) -> Self {
        let tired = batch
            .iter()
            .filter(|message| message.receive_count >= RECEIVES_MAX)
            .cloned()
            .collect();
        Self {
            tired,
            ..Self::default()
        }
    }

    /// The messages that have records which were not written.
    pub(crate) fn messages(&self) -> &[MessageId] {
        &self.messages
    }

    /// Whether messages of the batch are put off if they are refused.
    pub(crate) fn may_put_off(&self) -> bool {
        !self.tired.is_empty()
    }

    /// Adds the messages of an hour that was not written. Those that no store can help are not put
    /// off, so that their receives end.
    pub(crate) fn add_hour(&mut self, unwritten: UnwrittenHour, oldest: Option<Timestamp>) {
        let UnwrittenHour {
            messages,
            may_be_written,
        } = unwritten;
        if !may_be_written {
            self.tired.retain(|message| !messages.contains(&message.id));
        }
        self.oldest = self.oldest.into_iter().chain(oldest).min();
        self.messages.extend(messages);
    }
}

impl<P: Ports> LogRecorder<P> {
    /// Puts off what was refused often. Answers the rest of what was refused, and what could not be
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
    pub(crate) async fn send_back(
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
            self.ports
                .records
                .replace(&message.receipt, successors)
                .await
                .map_err(LogFilesError::Store)
        };
        self.in_time(deadline, replace).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::message;

    #[test]
    fn unwritable_records_are_not_put_off_and_receives_end() {
        let tired = |id| ReceivedMessage {
            receive_count: RECEIVES_MAX,
            ..message(id, "")
        };
        let mut refused = RefusedMessages::new(&[tired("a"), tired("b"), message("young", "")]);
        for (id, may_be_written) in [("a", true), ("b", false)] {
            refused.add_hour(
                UnwrittenHour {
                    messages: vec![MessageId(id.into())],
                    may_be_written,
                },
                None,
            );
        }
        let ids = |messages: &[ReceivedMessage]| {
            messages
                .iter()
                .map(|it| it.id.0.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (ids(&refused.tired), refused.messages.len()),
            (vec!["a".into()], 2)
        );
    }
}
