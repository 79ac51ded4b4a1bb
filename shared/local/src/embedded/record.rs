//! The record of a message in the engine: a small header with a digest, then the body byte for
//! byte.

use posthaste_core::model::{CarriedEvents, Timestamp};
use posthaste_core::stored::delivery;
use posthaste_ports::QueueName;

/// All queues, in the order of their numbers on disk.
pub(super) const QUEUES: [QueueName; 4] = [
    QueueName::Deliveries,
    QueueName::DeadLetters,
    QueueName::Redrive,
    QueueName::Records,
];

/// The layout this code writes.
const VERSION: u8 = 2;

/// The previous layout, without a digest. It is still read.
const VERSION_WITHOUT_DIGEST: u8 = 1;

/// version, queue, length of the group id, sent, due.
const FIXED_BYTES: usize = 3 + 8 + 8;

/// Bytes of the CRC-32 of all other bytes of the record. It finds damage by a disk, not a forgery:
/// a forger could write a whole record.
const DIGEST_BYTES: usize = 4;

/// A message's header. An empty group means that there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordHeader<'a> {
    pub(super) queue: QueueName,
    pub(super) group: &'a str,
    pub(super) sent_at: Timestamp,
    pub(super) due: Timestamp,
}

impl<'a> RecordHeader<'a> {
    /// The size of a record with this header.
    pub(super) fn record_bytes(&self, body_bytes: usize) -> usize {
        FIXED_BYTES + DIGEST_BYTES + self.group.len() + body_bytes
    }

    /// Fills a record of exactly `record_bytes`.
    pub(super) fn write(&self, body: &[u8], record: &mut [u8]) {
        let (head, rest) = record.split_at_mut(FIXED_BYTES);
        // A group id has at most 128 bytes.
        let group_bytes = u8::try_from(self.group.len()).unwrap_or(u8::MAX);
        head[..3].copy_from_slice(&[VERSION, number_of(self.queue), group_bytes]);
        head[3..11].copy_from_slice(&self.sent_at.as_millis().to_le_bytes());
        head[11..].copy_from_slice(&self.due.as_millis().to_le_bytes());
        let (digest, rest) = rest.split_at_mut(DIGEST_BYTES);
        let (group, text) = rest.split_at_mut(self.group.len());
        group.copy_from_slice(self.group.as_bytes());
        text.copy_from_slice(body);
        digest.copy_from_slice(&crc(&[head, rest]).to_le_bytes());
    }

    /// Reads a record; `None` if the bytes are not a record, or not those that were written.
    pub(super) fn read(record: &'a [u8]) -> Option<(Self, &'a [u8])> {
        has_its_digest(record)
            .then(|| Self::read_unverified(record))
            .flatten()
    }

    /// Reads a record without a check of its digest, so that a look at the header does not read the
    /// body.
    pub(super) fn read_unverified(record: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (head, rest) = record.split_at_checked(FIXED_BYTES)?;
        let rest = match head[0] {
            VERSION => rest.get(DIGEST_BYTES..)?,
            VERSION_WITHOUT_DIGEST => rest,
            _ => return None,
        };
        let queue = *QUEUES.get(usize::from(head[1]))?;
        let (group, body) = rest.split_at_checked(usize::from(head[2]))?;
        let sent_at = Timestamp::from_millis(u64::from_le_bytes(head[3..11].try_into().ok()?));
        let due = Timestamp::from_millis(u64::from_le_bytes(head[11..].try_into().ok()?));
        let group = std::str::from_utf8(group).ok()?;
        Some((
            Self {
                queue,
                group,
                sent_at,
                due,
            },
            body,
        ))
    }
}

/// True if the record has the digest of its bytes, or is of a version without one.
fn has_its_digest(record: &[u8]) -> bool {
    let Some((head, rest)) = record.split_at_checked(FIXED_BYTES) else {
        return false;
    };
    if head[0] == VERSION_WITHOUT_DIGEST {
        return true;
    }
    let digest = rest.split_at_checked(DIGEST_BYTES);
    digest.is_some_and(|(digest, rest)| *digest == crc(&[head, rest]).to_le_bytes())
}

/// True if a record carries a digest that can be checked.
pub(super) fn is_verifiable(record: &[u8]) -> bool {
    record.first() != Some(&VERSION_WITHOUT_DIGEST)
}

/// The queue of a record, without a check of its digest.
pub(super) fn queue_of(record: &[u8]) -> Option<QueueName> {
    QUEUES.get(usize::from(*record.get(1)?)).copied()
}

/// The digest of consecutive parts.
pub(super) fn crc(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize()
}

/// The events that a message carries: none outside of the queue of deliveries. One that is not
/// understood counts as one event, accepted when it was sent.
pub(super) fn carried_events(queue: QueueName, body: &[u8], sent_at: Timestamp) -> CarriedEvents {
    match queue {
        QueueName::Deliveries | QueueName::SlowDeliveries => {
            delivery::carried_by_message(body).unwrap_or_else(|| CarriedEvents::one_event(sent_at))
        }
        QueueName::DeadLetters | QueueName::Redrive | QueueName::Records => {
            CarriedEvents::default()
        }
    }
}

/// The place of a queue in `QUEUES`, which is also its number on disk.
pub(super) const fn number_of(queue: QueueName) -> u8 {
    match queue {
        // There is one queue of deliveries here.
        QueueName::Deliveries | QueueName::SlowDeliveries => 0,
        QueueName::DeadLetters => 1,
        QueueName::Redrive => 2,
        QueueName::Records => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(header: &RecordHeader<'_>, body: &[u8]) -> Vec<u8> {
        let mut record = vec![0; header.record_bytes(body.len())];
        header.write(body, &mut record);
        record
    }

    #[test]
    fn a_record_of_the_version_before_is_read_without_a_digest() {
        let sent_at = Timestamp::from_millis(1);
        let due = Timestamp::from_millis(2);
        let mut record = vec![1, 1, 1];
        record.extend(1_u64.to_le_bytes());
        record.extend(2_u64.to_le_bytes());
        record.extend(b"gbody");
        let header = RecordHeader {
            queue: QueueName::DeadLetters,
            group: "g",
            sent_at,
            due,
        };
        assert_eq!(RecordHeader::read(&record), Some((header, &b"body"[..])));
        assert!(!is_verifiable(&record) && is_verifiable(&written(&header, b"body")));
    }

    #[test]
    fn the_numbers_of_queues_on_disk_never_change() {
        let number = |queue| {
            let header = RecordHeader {
                queue,
                group: "",
                sent_at: Timestamp::EPOCH,
                due: Timestamp::EPOCH,
            };
            written(&header, b"")[1]
        };
        assert_eq!(QUEUES.map(number), [0, 1, 2, 3]);
        assert_eq!(
            QUEUES.map(|queue| queue.to_string()),
            ["deliveries", "deadletters", "redrive", "records"]
        );
    }

    proptest! {
        #[test]
        fn every_record_survives_writing_and_reading(
            queue in 0..QUEUES.len(),
            group in "[!-~]{0,128}",
            sent in any::<u64>(),
            due in any::<u64>(),
            body in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let (sent_at, due) = (Timestamp::from_millis(sent), Timestamp::from_millis(due));
            let header = RecordHeader { queue: QUEUES[queue], group: &group, sent_at, due };
            let record = written(&header, &body);
            prop_assert_eq!(RecordHeader::read(&record), Some((header, &body[..])));
        }

        #[test]
        fn a_record_with_a_byte_that_was_altered_is_not_read(
            body in prop::collection::vec(any::<u8>(), 0..200),
            at in any::<prop::sample::Index>(),
            change in 1_u8..=255,
        ) {
            let (sent_at, due) = (Timestamp::EPOCH, Timestamp::from_millis(7));
            let header = RecordHeader { queue: QueueName::Deliveries, group: "a.b", sent_at, due };
            let mut record = written(&header, &body);
            let at = at.index(record.len());
            // The one byte that says that there is no digest.
            prop_assume!(at != 0 || record[0] ^ change != VERSION_WITHOUT_DIGEST);
            record[at] ^= change;
            prop_assert_eq!(RecordHeader::read(&record), None);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(record in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(RecordHeader::read(&record).is_none() || record[0] == VERSION_WITHOUT_DIGEST);
            let _ = RecordHeader::read_unverified(&record);
        }
    }
}
