//! Gathering of letters of one subscription into objects. It is done before their payloads are
//! loaded, so that an object's bytes are held only while it is written. A message is never split.

use posthaste_core::model::{DEAD_LETTER_OBJECT_BYTES_PREFERRED, DeadLetter, DeliveryEntry};

use crate::letter::ReceivedLetter;

/// Most bytes of a record beside its event and its envelope: twelve members with the longest names
/// and values, and a comma. An event's own members of these names lie in a member more and are
/// not counted: as a text they take up to twice their bytes, so that an object of such events may
/// grow larger than preferred.
const RECORD_EXTRA_BYTES_MAX: usize = 600;

/// The letters of one subscription, by object. An object is larger than preferred only if it holds
/// a single letter that is; that letter is not larger than one publish request, because its events
/// came in one.
pub(crate) fn group_by_object(letters: Vec<ReceivedLetter>) -> Vec<Vec<ReceivedLetter>> {
    let mut objects = Vec::new();
    let mut inside = Vec::new();
    let mut bytes = 0;
    for letter in letters {
        let more = object_bytes(&letter.dead);
        if !inside.is_empty() && bytes + more > DEAD_LETTER_OBJECT_BYTES_PREFERRED {
            objects.push(std::mem::take(&mut inside));
            bytes = 0;
        }
        bytes += more;
        inside.push(letter);
    }
    if !inside.is_empty() {
        objects.push(inside);
    }
    objects
}

/// The bytes that a letter takes in an object, at most.
fn object_bytes(letter: &DeadLetter) -> usize {
    letter.delivery.events.iter().map(event_bytes).sum()
}

fn event_bytes(event: &DeliveryEntry) -> usize {
    let envelope = event
        .envelope
        .as_ref()
        .map_or(0, |envelope| envelope.byte_len());
    event.payload.len() + envelope + RECORD_EXTRA_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{letter, stored};
    use bytes::Bytes;
    use posthaste_core::model::{
        DeadLetterReason, EarlierLife, EventSchema, Identity, LastAttempt, OutcomeName,
    };
    use posthaste_core::stored::dead_letter::{LETTER_WEBHOOK_ID_BYTES_MAX, dead_letter_record};

    fn check(event_bytes: &[usize], expected: &[usize]) {
        let letters = event_bytes
            .iter()
            .map(|bytes| letter("a", vec![stored("payloads/x", *bytes)]));
        let counts: Vec<_> = group_by_object(letters.collect())
            .iter()
            .map(Vec::len)
            .collect();
        assert_eq!(counts, expected, "{event_bytes:?}");
    }

    #[test]
    fn an_object_is_closed_before_it_grows_too_large() {
        let half = DEAD_LETTER_OBJECT_BYTES_PREFERRED / 2 - RECORD_EXTRA_BYTES_MAX;
        check(&[], &[]);
        check(&[1, 1, 1], &[3]);
        check(&[half, half, 1], &[2, 1]);
        check(&[half, half + 1, 1], &[1, 2]);
        check(&[1, 3 * half, 1], &[1, 1, 1]);
    }

    #[test]
    fn records_are_never_larger_than_their_estimate() {
        for schema in [EventSchema::EventGrid, EventSchema::CloudEvents] {
            let mut dead = letter("a", Vec::new()).dead;
            dead.reason = DeadLetterReason::UndeliverableDueToClientError;
            dead.delivery.schema = schema;
            dead.delivery.attempts = u16::MAX;
            dead.delivery.identity = Identity::parse("a1b2c3d4e5f60102030405ff");
            assert!(dead.delivery.identity.is_some());
            let at = dead.delivery.published_at;
            let name_was_unknown = false;
            let was_unconnected = false;
            let outcome = OutcomeName::ResolutionError;
            let status = Some(u16::MAX);
            dead.delivery.last = Some(LastAttempt {
                outcome,
                status,
                at,
                name_was_unknown,
                was_unconnected,
                was_connected: false,
                was_kept: false,
            });
            let mut entry = letter("a", vec![stored("payloads/x", 2)])
                .dead
                .delivery
                .events
                .remove(0);
            entry.key = format!("{}-999", "0".repeat(32));
            entry.marks.webhook_id = Some("i".repeat(LETTER_WEBHOOK_ID_BYTES_MAX));
            dead.outage_since = Some(at);
            entry.marks.earlier = Some(EarlierLife {
                accepted_at: at,
                recoveries: u8::MAX,
            });
            let bytes = dead_letter_record(&dead, &entry, &Bytes::from_static(b"{}")).len();
            assert!(bytes < "{}".len() + RECORD_EXTRA_BYTES_MAX, "{bytes}");
            assert!(
                bytes > RECORD_EXTRA_BYTES_MAX * 2 / 3,
                "the bound is far from what it bounds: {bytes}"
            );
        }
    }
}
