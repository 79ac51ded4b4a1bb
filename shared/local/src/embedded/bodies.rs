//! A bounded memory of recently sent bodies, oldest out first, so that the healthy path does not read the
//! engine.

use std::collections::BTreeMap;

use bytes::Bytes;
use posthaste_core::model::Timestamp;
use posthaste_ports::Evicted;

/// Approximate bytes of an entry without its body.
const ENTRY_OVERHEAD_BYTES: usize = 80;

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

    pub(super) fn insert(&mut self, sequence: u64, content: Content) {
        self.bytes += content.body.len() + ENTRY_OVERHEAD_BYTES;
        if let Some(old) = self.entries.insert(sequence, content) {
            self.bytes -= old.body.len() + ENTRY_OVERHEAD_BYTES;
        }
        while self.bytes > self.bytes_max
            && let Some((_, oldest)) = self.entries.pop_first()
        {
            self.bytes -= oldest.body.len() + ENTRY_OVERHEAD_BYTES;
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

    #[test]
    fn the_oldest_bodies_leave_when_the_bytes_are_used_up() {
        let content = |bytes: usize| Content { sent_at: Timestamp::EPOCH, body: vec![b'x'; bytes].into() };
        let mut bodies = Bodies::new(2 * (ENTRY_OVERHEAD_BYTES + 100));
        for sequence in 1..=3 {
            bodies.insert(sequence, content(100));
        }
        assert_eq!(bodies.take(1), None);
        assert_eq!(bodies.take(2), Some(content(100)));
        assert_eq!(bodies.take(2), None);
        bodies.insert(4, content(101));
        assert_eq!((bodies.take(3), bodies.take(4)), (None, Some(content(101))));
        bodies.insert(5, content(10_000));
        assert_eq!((bodies.take(5), bodies.bytes), (None, 0));
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
