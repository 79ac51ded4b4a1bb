//! Receiving: long polls that wait for a send, a due delay, a freed slot or the end of a visibility
//! timeout.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::Timestamp;
use posthaste_ports::{
    Clock, ErrorKind, PortError, QueueName, ReceiveRequest, ReceivedMessage, validate,
};

use super::{LocalQueue, message_id, receipt};
use crate::embedded::bodies::Content;
use crate::embedded::damage;
use crate::embedded::engine::Found;
use crate::embedded::inbox::Work;
use crate::embedded::index::{Now, QueueIndex, Received, Taken};
use crate::embedded::store::answer;

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
            let mut changed = pin!(self.queue().changed.notified());
            // Registered before looking, so that what changes afterwards wakes this call.
            changed.as_mut().enable();
            let now = self.now();
            let received = self.try_receive(now, ask).await?;
            let left = end.saturating_sub(self.clock.monotonic());
            if !received.is_empty() || left.is_zero() {
                return Ok(received);
            }
            let until_next = self
                .queue()
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
        now: Now,
        ask: ReceiveRequest,
    ) -> Result<Vec<ReceivedMessage>, PortError> {
        loop {
            let take = |index: &mut QueueIndex| index.take(now, ask.max, ask.visibility);
            let Taken { given, worn_out } = self.queue().update(now, take);
            if worn_out.is_empty() {
                return self.read(given).await;
            }
            let work = Work::Redrive {
                from: self.name,
                messages: worn_out,
            };
            // The work takes no new room, and must not wait: no other task knows of the messages.
            let moved = answer(DOING, self.shared().inbox.push(work, None).await);
            if !given.is_empty() {
                // Messages that could not be moved are back in the queue.
                return self.read(given).await;
            }
            moved?;
        }
    }

    /// Adds the bodies to the taken messages.
    async fn read(&self, given: Vec<Received>) -> Result<Vec<ReceivedMessage>, PortError> {
        if given.is_empty() {
            return Ok(Vec::new());
        }
        let mut contents: Vec<Option<Found>> = {
            let mut bodies = self.shared().bodies.lock();
            given
                .iter()
                .map(|received| bodies.take(self.name, received.sequence).map(Found::Whole))
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
                self.message(received, content.unwrap_or(Found::Missing))
            })
            .collect())
    }

    async fn read_engine(
        &self,
        given: &[Received],
        missing: Vec<u64>,
    ) -> Result<Vec<Found>, PortError> {
        let shared = self.handle.shared.clone();
        // On a blocking thread, because it may read the disk.
        let read = tokio::task::spawn_blocking(move || shared.engine.contents(&missing)).await;
        let error = match read {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(error)) => PortError::with_cause(DOING, ErrorKind::Other, error),
            Err(error) => PortError::with_cause(DOING, ErrorKind::Other, error),
        };
        self.queue().update(self.now(), |index| {
            for received in given {
                index.undo(*received);
            }
        });
        Err(error)
    }

    fn message(&self, received: Received, content: Found) -> Option<ReceivedMessage> {
        let Content { sent_at, body } = match content {
            Found::Whole(content) => content,
            Found::Missing => {
                // Impossible, because the index follows the engine. The visibility timeout keeps
                // the message out of the way.
                tracing::error!(
                    sequence = received.sequence,
                    "a message of the index is not in the store"
                );
                return None;
            }
            Found::Damaged(record) => return self.damaged(received, record.as_deref()),
        };
        Some(self.received(received, sent_at, body))
    }

    /// A damaged message moves to the redrive queue, whose messages are kept byte for byte. A
    /// message that cannot even be read stays there, out of the way of others, and is tried
    /// again after each visibility timeout.
    fn damaged(&self, received: Received, record: Option<&[u8]>) -> Option<ReceivedMessage> {
        let now = self.now();
        if self.name != QueueName::Redrive {
            self.queue().settle(received);
            damage::set_aside(&self.shared().queues, received.sequence, now.wall);
            return None;
        }
        record.map(|record| self.received(received, now.wall, damage::kept(record)))
    }

    fn received(&self, received: Received, sent_at: Timestamp, body: Bytes) -> ReceivedMessage {
        ReceivedMessage {
            id: message_id(self.shared().folder_id, received.sequence),
            receipt: receipt(self.shared().opening, received),
            body,
            receive_count: received.count,
            sent_at,
        }
    }
}
