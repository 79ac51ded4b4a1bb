//! A bounded memory of recently sent bodies, so that the healthy path does not read the engine.
//!
//! Queues give their oldest messages out first. So while more wait than fit, a new body finds no
//! room, and the old ones stay: each of them saves a read soon. If the oldest left instead, each
//! would leave just before it is asked for, and none would save anything.

use std::collections::BTreeMap;

use bytes::Bytes;
use posthaste_core::model::Timestamp;
use posthaste_ports::{EvictedAmount, QueueName};

use super::record::{QUEUES, number_of};

/// Approximate bytes of an entry without its body.
const ENTRY_OVERHEAD_BYTES: usize = 80;

/// Messages that have overtaken one whose body makes room. Fewer do so while subscriptions take
/// turns.
const OVERTAKEN_BY: u64 = 10_000;

/// The content of a message, without ids and counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MessageContent {
    pub(super) sent_at: Timestamp,
    pub(super) body: Bytes,
}

/// The cache. Sequence numbers grow, so the first entry is the oldest.
#[derive(Debug)]
pub(super) struct BodyCache {
    entries: BTreeMap<u64, (QueueName, MessageContent)>,
    bytes: usize,
    bytes_max: usize,
    /// The newest message of each queue that was received.
    received: [u64; QUEUES.len()],
}

impl BodyCache {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            bytes: 0,
            bytes_max,
            received: [0; QUEUES.len()],
        }
    }

    /// Keeps the body of a new message of a queue if there is room for it. Bodies whose messages
    /// were overtaken by many others make room: those wait for their own endpoints, and not for
    /// their turn.
    pub(super) fn insert(&mut self, queue: QueueName, sequence: u64, content: MessageContent) {
        let bytes = content.body.len() + ENTRY_OVERHEAD_BYTES;
        if bytes > self.bytes_max {
            return;
        }
        while self.bytes + bytes > self.bytes_max {
            let Some(oldest) = self.entries.first_entry() else {
                return;
            };
            let received = self.received[usize::from(number_of(oldest.get().0))];
            if received < *oldest.key() + OVERTAKEN_BY {
                return;
            }
            self.bytes -= oldest.remove().1.body.len() + ENTRY_OVERHEAD_BYTES;
        }
        self.bytes += bytes;
        if let Some((_, old)) = self.entries.insert(sequence, (queue, content)) {
            self.bytes -= old.body.len() + ENTRY_OVERHEAD_BYTES;
        }
    }

    /// Takes a body out for the receiver of the message.
    pub(super) fn take_body(&mut self, queue: QueueName, sequence: u64) -> Option<MessageContent> {
        let newest = &mut self.received[usize::from(number_of(queue))];
        *newest = sequence.max(*newest);
        let (_, content) = self.entries.remove(&sequence)?;
        self.bytes -= content.body.len() + ENTRY_OVERHEAD_BYTES;
        Some(content)
    }

    /// Takes everything out. What is received from now on is read from the engine.
    pub(super) fn take_all(&mut self) -> Self {
        let emptied = Self {
            received: self.received,
            ..Self::new(self.bytes_max)
        };
        std::mem::replace(self, emptied)
    }

    /// The entries held, with the bodies' own bytes.
    pub(super) fn held_totals(&self) -> EvictedAmount {
        let entries = self.entries.len();
        EvictedAmount {
            entries,
            bytes: self.bytes - entries * ENTRY_OVERHEAD_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: QueueName = QueueName::Deliveries;

    fn content(bytes: usize) -> MessageContent {
        MessageContent {
            sent_at: Timestamp::EPOCH,
            body: vec![b'x'; bytes].into(),
        }
    }

    /// A new body finds no room while those before it wait for their turn.
    #[test]
    fn new_body_is_refused_while_older_bodies_wait_their_turn() {
        let mut bodies = BodyCache::new(2 * (ENTRY_OVERHEAD_BYTES + 100));
        for sequence in 1..=3 {
            bodies.insert(QUEUE, sequence, content(100));
        }
        assert_eq!(bodies.take_body(QUEUE, 1), Some(content(100)));
        bodies.insert(QUEUE, 4, content(101));
        bodies.insert(QUEUE, 5, content(99));
        assert_eq!(
            (bodies.take_body(QUEUE, 4), bodies.take_body(QUEUE, 5)),
            (None, Some(content(99)))
        );
        bodies.insert(QUEUE, 6, content(10_000));
        assert_eq!(
            (bodies.take_body(QUEUE, 6), bodies.held_totals().entries),
            (None, 1)
        );
    }

    #[test]
    fn bodies_that_were_overtaken_make_room() {
        let mut bodies = BodyCache::new(2 * (ENTRY_OVERHEAD_BYTES + 100));
        bodies.insert(QUEUE, 1, content(100));
        bodies.insert(QUEUE, 2, content(100));
        // A message of another queue overtakes none of this one.
        assert_eq!(bodies.take_body(QueueName::Records, 90_000), None);
        assert_eq!(bodies.take_body(QUEUE, 10_000), None);
        bodies.insert(QUEUE, 10_001, content(100));
        assert_eq!(
            (
                bodies.take_body(QUEUE, 10_001),
                bodies.held_totals().entries
            ),
            (None, 2)
        );
        bodies.insert(QUEUE, 10_002, content(100));
        assert_eq!(
            (bodies.take_body(QUEUE, 1), bodies.take_body(QUEUE, 10_002)),
            (None, Some(content(100)))
        );
        assert_eq!(bodies.take_body(QUEUE, 2), Some(content(100)));
        assert_eq!(
            (bodies.held_totals(), bodies.bytes),
            (EvictedAmount::default(), 0)
        );
    }

    #[test]
    fn taking_all_bodies_counts_them_to_the_byte() {
        let mut bodies = BodyCache::new(10_000);
        for (sequence, bytes) in [(1, 100), (2, 0), (3, 7)] {
            let body = vec![b'x'; bytes].into();
            bodies.insert(
                QUEUE,
                sequence,
                MessageContent {
                    sent_at: Timestamp::EPOCH,
                    body,
                },
            );
        }
        assert_eq!(
            bodies.take_all().held_totals(),
            EvictedAmount {
                entries: 3,
                bytes: 107
            }
        );
        assert_eq!(
            (bodies.held_totals(), bodies.bytes, bodies.bytes_max),
            (EvictedAmount::default(), 0, 10_000)
        );
    }
}
