//! How a message lies in the engine: a small header, then the body byte for byte.

use posthaste_core::time::Timestamp;
use posthaste_ports::QueueName;

use super::QUEUES;

/// The layout this code writes.
const VERSION: u8 = 1;

/// version, queue, length of the group id, sent, due.
const FIXED_BYTES: usize = 3 + 8 + 8;

/// A message's header; an empty group is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header<'a> {
    pub(super) queue: QueueName,
    pub(super) group: &'a str,
    pub(super) sent_at: Timestamp,
    pub(super) due: Timestamp,
}

impl<'a> Header<'a> {
    /// The size of a record with this header.
    pub(super) fn record_bytes(&self, body_bytes: usize) -> usize {
        FIXED_BYTES + self.group.len() + body_bytes
    }

    /// Fills a record of exactly `record_bytes`.
    pub(super) fn write(&self, body: &[u8], record: &mut [u8]) {
        let (head, rest) = record.split_at_mut(FIXED_BYTES);
        // A group id has at most 128 bytes.
        let group_bytes = u8::try_from(self.group.len()).unwrap_or(u8::MAX);
        head[..3].copy_from_slice(&[VERSION, number_of(self.queue), group_bytes]);
        head[3..11].copy_from_slice(&self.sent_at.as_millis().to_le_bytes());
        head[11..].copy_from_slice(&self.due.as_millis().to_le_bytes());
        let (group, rest) = rest.split_at_mut(self.group.len());
        group.copy_from_slice(self.group.as_bytes());
        rest.copy_from_slice(body);
    }

    /// Reads a record; `None` if it is none that this version wrote.
    pub(super) fn read(record: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (head, rest) = record.split_at_checked(FIXED_BYTES)?;
        let queue = *QUEUES.get(usize::from(head[1]))?;
        let (group, body) = rest.split_at_checked(usize::from(head[2]))?;
        let sent_at = Timestamp::from_millis(u64::from_le_bytes(head[3..11].try_into().ok()?));
        let due = Timestamp::from_millis(u64::from_le_bytes(head[11..].try_into().ok()?));
        let group = std::str::from_utf8(group).ok()?;
        (head[0] == VERSION).then_some((Self { queue, group, sent_at, due }, body))
    }
}

/// The place of a queue in `QUEUES`, which is also its number on disk.
pub(super) const fn number_of(queue: QueueName) -> u8 {
    match queue {
        QueueName::Deliveries => 0,
        QueueName::DeadLetters => 1,
        QueueName::Redrive => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_record_survives_writing_and_reading(
            queue in 0_usize..3,
            group in "[!-~]{0,128}",
            sent in any::<u64>(),
            due in any::<u64>(),
            body in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let (sent_at, due) = (Timestamp::from_millis(sent), Timestamp::from_millis(due));
            let header = Header { queue: QUEUES[queue], group: &group, sent_at, due };
            let mut record = vec![0; header.record_bytes(body.len())];
            header.write(&body, &mut record);
            prop_assert_eq!(Header::read(&record), Some((header, &body[..])));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(record in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Some((header, body)) = Header::read(&record) {
                prop_assert_eq!(header.record_bytes(body.len()), record.len());
            }
        }
    }
}
