//! Messages whose records the store of the log refused. They come back, and after some receives a
//! fresh message takes the place of each, so that an outage of any length uses up no receives.

use posthaste_core::model::Timestamp;
use posthaste_ports::{MessageId, ReceivedMessage};

/// Receives after which a refused message is put off: about an hour, and far fewer than the 50
/// after which the queue gives it up.
const RECEIVES_MAX: u32 = 10;

/// The part of a batch that was refused.
#[derive(Debug, Default)]
pub(crate) struct RefusedMessages {
    /// Messages of the batch that were received often.
    pub(crate) tired: Vec<ReceivedMessage>,
    /// The messages that have records which were not written.
    pub(crate) messages: Vec<MessageId>,
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
