//! Receiving: long polls that wait for a send, a due delay, a freed slot or the end of a visibility
//! timeout.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::Timestamp;
use posthaste_ports::{
    Clock, ErrorKind, PortError, QueueName, ReceiveRequest, ReceivedMessage, validate,
};

use super::{LocalQueue, format_receipt, message_id};
use crate::embedded::bodies::MessageContent;
use crate::embedded::damage;
use crate::embedded::engine::MessageLookup;
use crate::embedded::inbox::CommitWork;
use crate::embedded::index::{MessageReceive, StoreTime, TakenMessages};
use crate::embedded::store::commit_result;

const DOING: &str = "receive messages";

/// Sleeps are no shorter: the wall clock counts whole milliseconds, and waking up within one would
/// only spin.
const SLEEP_MIN: Duration = Duration::from_millis(1);

impl<C: Clock> LocalQueue<C> {
    /// Receives messages, and waits for them as long as the request says.
    pub(super) async fn long_poll(
        &self,
        ask: ReceiveRequest,
    ) -> Result<Vec<ReceivedMessage>, PortError> {
        validate::receive_request(&ask).map_err(|refusal| refusal.into_port_error(DOING))?;
        let end = self.clock.monotonic().saturating_add(ask.wait);
        loop {
            let mut changed = pin!(self.queue_state().changed.notified());
            // Registered before looking, so that what changes afterwards wakes this call.
            changed.as_mut().enable();
            let now = self.now();
            let received = self.try_receive(now, ask).await?;
            let left = end.saturating_sub(self.clock.monotonic());
            if !received.is_empty() || left.is_zero() {
                return Ok(received);
            }
            let until_next = self
                .queue_state()
                .index
                .lock()
                .until_next(now)
                .unwrap_or(Duration::MAX);
            tokio::select! {
                () = changed => {}
                () = self.clock.sleep(until_next.max(SLEEP_MIN).min(left)) => {}
            }
        }
    }

    /// Takes messages that are visible now; worn-out ones are moved until others come or none is
    /// left.
    async fn try_receive(
        &self,
        now: StoreTime,
        ask: ReceiveRequest,
    ) -> Result<Vec<ReceivedMessage>, PortError> {
        loop {
            let TakenMessages { given, worn_out } = self.queue_state().update_index(now, |index| {
                index.take_visible(now, ask.max, ask.visibility)
            });
            if worn_out.is_empty() {
                return self.read_bodies(given).await;
            }
            let work = CommitWork::Redrive {
                from: self.name,
                messages: worn_out,
            };
            // The work takes no new room, and must not wait: no other task knows of the messages.
            let moved = commit_result(DOING, self.shared().inbox.push(work, None).await);
            if !given.is_empty() {
                // Messages that could not be moved are back in the queue.
                return self.read_bodies(given).await;
            }
            moved?;
        }
    }

    /// Adds the bodies to the taken messages.
    async fn read_bodies(
        &self,
        given: Vec<MessageReceive>,
    ) -> Result<Vec<ReceivedMessage>, PortError> {
        if given.is_empty() {
            return Ok(Vec::new());
        }
        let mut contents: Vec<Option<MessageLookup>> = {
            let mut bodies = self.shared().bodies.lock();
            given
                .iter()
                .map(|received| {
                    bodies
                        .take_body(self.name, received.sequence)
                        .map(MessageLookup::Whole)
                })
                .collect()
        };
        let missing = given
            .iter()
            .zip(&contents)
            .filter(|(_, content)| content.is_none());
        let missing: Vec<u64> = missing.map(|(received, _)| received.sequence).collect();
        if !missing.is_empty() {
            let mut found = self.read_engine(&given, missing).await?.into_iter();
            contents
                .iter_mut()
                .filter(|content| content.is_none())
                .for_each(|content| *content = found.next());
        }
        Ok(given
            .into_iter()
            .zip(contents)
            .filter_map(|(received, content)| {
                self.message_from_lookup(received, content.unwrap_or(MessageLookup::Missing))
            })
            .collect())
    }

    async fn read_engine(
        &self,
        given: &[MessageReceive],
        missing: Vec<u64>,
    ) -> Result<Vec<MessageLookup>, PortError> {
        let shared = self.handle.shared.clone();
        // On a blocking thread, because it may read the disk.
        let read = tokio::task::spawn_blocking(move || shared.engine.read_contents(&missing)).await;
        let error = match read {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(error)) => PortError::with_cause(DOING, ErrorKind::Other, error),
            Err(error) => PortError::with_cause(DOING, ErrorKind::Other, error),
        };
        self.queue_state().update_index(self.now(), |index| {
            for received in given {
                index.undo_receive(*received);
            }
        });
        Err(error)
    }

    fn message_from_lookup(
        &self,
        received: MessageReceive,
        content: MessageLookup,
    ) -> Option<ReceivedMessage> {
        let MessageContent { sent_at, body } = match content {
            MessageLookup::Whole(content) => content,
            MessageLookup::Missing => {
                // Impossible, because the index follows the engine. The visibility timeout hides
                // the message.
                tracing::error!(
                    sequence = received.sequence,
                    "a message of the index is not in the store"
                );
                return None;
            }
            MessageLookup::Damaged(record) => {
                return self.set_damaged_aside(received, record.as_deref());
            }
        };
        Some(self.received_message(received, sent_at, body))
    }

    /// Moves a damaged message to the redrive queue, whose messages are kept byte for byte. A
    /// message that cannot even be read stays there, out of the way of others, and is tried again
    /// after each visibility timeout.
    fn set_damaged_aside(
        &self,
        received: MessageReceive,
        record: Option<&[u8]>,
    ) -> Option<ReceivedMessage> {
        let now = self.now();
        if self.name != QueueName::Redrive {
            self.queue_state().settle(received);
            damage::set_aside(&self.shared().queues, received.sequence, now.wall);
            return None;
        }
        record
            .map(|record| self.received_message(received, now.wall, damage::body_with_note(record)))
    }

    fn received_message(
        &self,
        received: MessageReceive,
        sent_at: Timestamp,
        body: Bytes,
    ) -> ReceivedMessage {
        ReceivedMessage {
            id: message_id(self.shared().folder_id, received.sequence),
            receipt: format_receipt(self.shared().opening, received),
            body,
            receive_count: received.count,
            sent_at,
        }
    }
}
