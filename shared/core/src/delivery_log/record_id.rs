//! The id of a record: the same for the same fact, however often it is sent, so that readers count
//! it once.

use sha2::{Digest, Sha256};

use super::RecordKind;
use crate::model::{Timestamp, hex};

/// Bytes of a digest that make an id. Among 10^12 records, two have the same one with a chance of
/// 10^-15.
const ID_BYTES: usize = 16;

/// The id of what one receive of a message did to one event of it: 32 hexadecimal digits. A second
/// receive of the message is another fact, since it sends the event again. The time tells the two
/// apart where the queue counts receives anew: the embedded one does when it is opened.
pub fn record_id(
    message_id: &str,
    receive_count: u32,
    event_key: &str,
    attempt: u16,
    kind: RecordKind,
    time: Timestamp,
) -> String {
    let mut digest = Sha256::new();
    let numbers = [
        u64::from(receive_count),
        u64::from(attempt),
        time.as_millis(),
    ]
    .map(|it| it.to_string());
    let [receive_count, attempt, time] = &numbers;
    for part in [
        message_id,
        receive_count,
        event_key,
        attempt,
        kind.as_str(),
        time,
    ] {
        digest.update(part.as_bytes());
        digest.update(b"\n");
    }
    hex::encode(&digest.finalize()[..ID_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    #[test]
    fn an_id_is_stable() {
        let id = record_id(
            "9a0c6a5e-0d33-4a5d-8f43-7a7b7a3f2d11",
            1,
            "0b0e-0",
            1,
            RecordKind::Attempt,
            AT,
        );
        assert_eq!(id, "6dd55bebb886571b38364addb78598ff");
    }

    #[test]
    fn every_part_makes_another_id() {
        let ids = [
            record_id("m", 1, "k", 1, RecordKind::Attempt, AT),
            record_id("n", 1, "k", 1, RecordKind::Attempt, AT),
            record_id("m", 2, "k", 1, RecordKind::Attempt, AT),
            record_id("m", 1, "l", 1, RecordKind::Attempt, AT),
            record_id("m", 1, "k", 2, RecordKind::Attempt, AT),
            record_id("m", 1, "k", 1, RecordKind::Expired, AT),
            record_id("m1", 1, "k", 1, RecordKind::Attempt, AT),
            record_id("m", 1, "k", 1, RecordKind::Attempt, Timestamp::EPOCH),
        ];
        let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
    }
}
