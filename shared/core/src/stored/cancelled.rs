//! The note that a scheduled event was taken back before its release.
//!
//! Key `cancelled/{topic}/{digest of the event's id}`. Version 1; written by manage; looked for by
//! wake when it releases scheduled deliveries; deleted by wake after
//! [`CANCELLATION_KEPT`](crate::model::CANCELLATION_KEPT). Fixture: `cancellation-v1.json`.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::format::versioned_object;
use crate::model::{Delivery, DeliveryEntry, Timestamp, TopicName, hex};

/// The prefix of the notes of events that were taken back.
pub const CANCELLED: &str = "cancelled/";

/// Bytes of an id's digest. So many tell any number of ids apart, and keep messages short.
const ID_DIGEST_BYTES: usize = 16;

/// The key of the note that events of this id were taken back. `digest` is an [`event_id_digest`].
pub fn cancelled_key(topic: &TopicName, digest: &str) -> String {
    format!("{CANCELLED}{}/{digest}", topic.folded())
}

/// The digest of an event's id: 32 hexadecimal digits, whatever the id has in it.
pub fn event_id_digest(id: &str) -> String {
    hex::encode(&Sha256::digest(id)[..ID_DIGEST_BYTES])
}

versioned_object!(
    EventCancellation,
    1,
    "a note of an event that was taken back"
);

/// Events of one id that were taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCancellation {
    /// The time of the request. It takes back what was accepted until then.
    pub at: Timestamp,
}

impl EventCancellation {
    /// Whether it takes back the events of its id that this delivery has.
    pub fn takes_back(&self, delivery: &Delivery) -> bool {
        delivery.published_at <= self.at
    }
}

/// The digest of the id by which an event can be taken back; `None` if it was not published for
/// later, or was taken back already.
pub fn cancellable_id_digest(entry: &DeliveryEntry) -> Option<&str> {
    let scheduled = entry.marks.scheduled.as_ref()?;
    (!scheduled.cancelled).then_some(&scheduled.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXTURE: &str = include_str!("fixtures/cancellation-v1.json");

    #[test]
    fn a_note_is_written_as_it_always_was_and_read_back() {
        let note = EventCancellation::parse(FIXTURE.as_bytes()).unwrap();
        assert_eq!(note.render(), FIXTURE.trim_end());
        assert_eq!(note.at, Timestamp::from_millis(1_700_000_000_000));
    }

    #[test]
    fn key_has_the_topic_and_no_character_of_the_id() {
        let topic = TopicName::parse("Orders").unwrap();
        let key = cancelled_key(&topic, &event_id_digest("a/b?ü"));
        let digest = key.strip_prefix("cancelled/orders/").unwrap();
        assert_eq!(digest.len(), 32);
        assert!(digest.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_ne!(event_id_digest("a"), event_id_digest("A"));
    }
}
