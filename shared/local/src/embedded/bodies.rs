//! A bounded memory of recently sent bodies, so that the healthy path does not read the engine.
//!
//! Queues give their oldest messages out first. So while more wait than fit, a new body finds no room, and
//! the old ones stay: each of them saves a read soon. If the oldest left instead, each would leave just
//! before it is asked for, and none would save anything.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::Timestamp;
use posthaste_ports::Evicted;

/// Approximate bytes of an entry without its body.
const ENTRY_OVERHEAD_BYTES: usize = 80;

/// Time after which a body makes room for new ones: its message waits for its own endpoint and not for its
/// turn.
const KEPT_MIN: Duration = Duration::from_secs(30);

/// The content of a message, without ids and counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) sent_at: Timestamp,
    pub(super) body: Bytes,
}

/// The cache. Sequence numbers grow, so the first entry is the oldest.
#[derive(Debug)]
pub(super) struct Bodies {
    entries: BTreeMap<u64, Content>,
    bytes: usize,
    bytes_max: usize,
}

impl Bodies {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { entries: BTreeMap::new(), bytes: 0, bytes_max }
    }

    /// Keeps a body if there is room for it, or if old ones can make room.
    pub(super) fn insert(&mut self, sequence: u64, content: Content) {
        let bytes = content.body.len() + ENTRY_OVERHEAD_BYTES;
        while self.bytes + bytes > self.bytes_max {
            let Some(oldest) = self.entries.first_entry() else { return };
            if content.sent_at < oldest.get().sent_at + KEPT_MIN {
                return;
            }
            self.bytes -= oldest.remove().body.len() + ENTRY_OVERHEAD_BYTES;
        }
        self.bytes += bytes;
        if let Some(old) = self.entries.insert(sequence, content) {
            self.bytes -= old.body.len() + ENTRY_OVERHEAD_BYTES;
        }
    }

    /// Takes a body out for the receiver of the message.
    pub(super) fn take(&mut self, sequence: u64) -> Option<Content> {
        let content = self.entries.remove(&sequence)?;
        self.bytes -= content.body.len() + ENTRY_OVERHEAD_BYTES;
        Some(content)
    }

    /// Takes everything out. What is received from now on is read from the engine.
    pub(super) fn take_all(&mut self) -> Self {
        std::mem::replace(self, Self::new(self.bytes_max))
    }

    /// The entries held, with the bodies' own bytes.
    pub(super) fn held(&self) -> Evicted {
        let entries = self.entries.len();
        Evicted { entries, bytes: self.bytes - entries * ENTRY_OVERHEAD_BYTES }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(secs: u64, bytes: usize) -> Content {
        let sent_at = Timestamp::EPOCH + Duration::from_secs(secs);
        Content { sent_at, body: vec![b'x'; bytes].into() }
    }

    #[test]
    fn a_new_body_finds_no_room_while_those_before_it_wait_for_their_turn() {
        let mut bodies = Bodies::new(2 * (ENTRY_OVERHEAD_BYTES + 100));
        for sequence in 1..=3 {
            bodies.insert(sequence, content(29, 100));
        }
        assert_eq!(bodies.take(3), None);
        assert_eq!(bodies.take(1), Some(content(29, 100)));
        bodies.insert(4, content(29, 101));
        bodies.insert(5, content(29, 99));
        assert_eq!((bodies.take(4), bodies.take(5)), (None, Some(content(29, 99))));
        bodies.insert(6, content(29, 10_000));
        assert_eq!((bodies.take(6), bodies.held().entries), (None, 1));
    }

    #[test]
    fn a_body_that_waits_for_its_endpoint_makes_room() {
        let mut bodies = Bodies::new(2 * (ENTRY_OVERHEAD_BYTES + 100));
        bodies.insert(1, content(0, 100));
        bodies.insert(2, content(1, 100));
        bodies.insert(3, content(30, 100));
        assert_eq!((bodies.take(1), bodies.take(3)), (None, Some(content(30, 100))));
        bodies.insert(4, content(31, 200));
        assert_eq!((bodies.take(2), bodies.take(4)), (None, Some(content(31, 200))));
        assert_eq!((bodies.held(), bodies.bytes), (Evicted::default(), 0));
    }

    #[test]
    fn what_is_taken_out_at_once_is_counted_to_the_byte() {
        let mut bodies = Bodies::new(10_000);
        for (sequence, bytes) in [(1, 100), (2, 0), (3, 7)] {
            let body = vec![b'x'; bytes].into();
            bodies.insert(sequence, Content { sent_at: Timestamp::EPOCH, body });
        }
        assert_eq!(bodies.take_all().held(), Evicted { entries: 3, bytes: 107 });
        assert_eq!((bodies.held(), bodies.bytes, bodies.bytes_max), (Evicted::default(), 0, 10_000));
    }
}
