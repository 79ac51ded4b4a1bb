//! Dead-letter objects: arrays of events in their schemas, each with members that say what became
//! of it.
//!
//! Key `{TOPIC}/{SUBSCRIPTION}/{year}/{month}/{day}/{hour}/{uuid}.json` in the dead-letter bucket,
//! names in upper case, date and time in UTC and unpadded, as Event Grid writes them. Without a
//! version: members are only added. Written by deadletter; read by wake for replays, shown by
//! manage, and read by users' programs. Objects stay as long as the bucket keeps them.

use bytes::{BufMut, Bytes, BytesMut};

use self::members::{MemberNames, ORIGINAL_ATTRIBUTES, letter_members};
use crate::events::{set_aside, with_members};
use crate::model::{DeadLetter, DeliveryEntry};

mod key;
mod members;
mod moved;
mod period;
mod restore;
mod shown;

pub use self::key::{
    WrittenIn, dead_letter_hour, dead_letter_key, dead_letter_owner, dead_letters_of,
    dead_letters_of_topic, is_dead_letter_key, written_at,
};
pub use self::moved::{LetterLine, MovedObject, MovedObjectError};
pub use self::period::KeyPeriod;
pub use self::restore::{
    LETTER_WEBHOOK_ID_BYTES_MAX, NotDeadLetters, RestoreError, RestoredLetter, restore_all,
    restore_letter, restore_logged,
};
pub use self::shown::{ShownLetter, shown_letters};

/// The dead letter of `entry`, whose text is `event`. A custom event lies in its envelope, under
/// `data`. An event that was never tried has no time of a last attempt, and no outcome unless it
/// expired. Members of the event's own that have a name of the dead letter's are kept in one member
/// beside them.
pub fn dead_letter_record(letter: &DeadLetter, entry: &DeliveryEntry, event: &Bytes) -> Bytes {
    let mut members = letter_members(letter, entry);
    if let Some(envelope) = &entry.envelope {
        return envelope.wrap_event(event, &members);
    }
    let Some(own) = set_aside(
        event,
        &MemberNames::for_schema(letter.delivery.schema).reserved_names(),
    ) else {
        return with_members(event, &members);
    };
    members.push((
        ORIGINAL_ATTRIBUTES,
        serde_json::Value::from(own.members).to_string(),
    ));
    with_members(&own.event, &members)
}

/// Gathers records into one object: a JSON array.
#[derive(Debug, Default)]
pub struct DeadLetterArray {
    array: BytesMut,
    count: usize,
}

impl DeadLetterArray {
    /// Adds a record.
    pub fn push(&mut self, record: &Bytes) {
        self.array.put_u8(if self.count == 0 { b'[' } else { b',' });
        self.array.put_slice(record);
        self.count += 1;
    }

    /// The number of bytes by now.
    pub fn bytes(&self) -> usize {
        self.array.len()
    }

    /// The number of records by now.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The object.
    pub fn into_object(mut self) -> Bytes {
        if self.count == 0 {
            self.array.put_u8(b'[');
        }
        self.array.put_u8(b']');
        self.array.freeze()
    }
}

#[cfg(test)]
mod documents;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{
        DeadLetterReason, Delivery, EventEnvelope, EventMarks, EventPayload, EventSchema, Hops,
        LastAttempt, OutcomeName, SubscriptionName, Timestamp, TopicName,
    };

    pub(super) fn letter(schema: EventSchema, status: Option<u16>) -> DeadLetter {
        let delivery = Delivery {
            topic: TopicName::parse("orders").unwrap(),
            subscription: SubscriptionName::parse("billing").unwrap(),
            schema,
            published_at: Timestamp::parse("2020-08-13T17:18:14.026Z").unwrap(),
            not_before: Timestamp::EPOCH,
            attempts: 1,
            last: Some(LastAttempt {
                outcome: OutcomeName::NotFound,
                status,
                at: Timestamp::parse("2020-08-13T17:18:14.046Z").unwrap(),
                name_was_unknown: false,
                was_unconnected: false,
                was_kept: false,
                was_connected: false,
            }),
            timed_out: false,
            identity: None,
            hops: Hops::default(),
            events: vec![],
        };
        DeadLetter::new(DeadLetterReason::MaxDeliveryAttemptsExceeded, delivery)
    }

    pub(super) fn entry(envelope: Option<EventEnvelope>) -> DeliveryEntry {
        DeliveryEntry {
            key: "k".to_owned(),
            expires_at: Timestamp::EPOCH,
            traceparent: None,
            marks: EventMarks::default(),
            envelope: envelope.map(Arc::new),
            payload: EventPayload::Inline(Bytes::new()),
        }
    }

    fn check(letter: &DeadLetter, event: &'static str, expected: &str) {
        assert_eq!(
            dead_letter_record(letter, &entry(None), &Bytes::from_static(event.as_bytes())),
            expected
        );
    }

    #[test]
    fn dead_letter_says_where_it_was_redirected() {
        let mut entry = entry(None);
        entry.marks.redirect = Some("https://a.example/\"hook\"".to_owned());
        let check = |schema, event: &'static str, member: &str| {
            let record = dead_letter_record(
                &letter(schema, Some(308)),
                &entry,
                &Bytes::from_static(event.as_bytes()),
            );
            let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
            assert_eq!(record[member], "https://a.example/\"hook\"");
        };
        check(
            EventSchema::EventGrid,
            r#"{"id":"1"}"#,
            "lastRedirectLocation",
        );
        check(
            EventSchema::CloudEvents,
            r#"{"id":"1"}"#,
            "lastredirectlocation",
        );
        let own = r#"{"id":"1","lastredirectlocation":"mine"}"#;
        check(EventSchema::CloudEvents, own, "lastredirectlocation");
    }

    #[test]
    fn event_grid_s_members_have_event_grid_s_names() {
        check(
            &letter(EventSchema::EventGrid, Some(404)),
            r#"{"id":"1", "n": 1.0}"#,
            r#"{"id":"1", "n": 1.0,"deadLetterReason":"MaxDeliveryAttemptsExceeded","deliveryAttempts":1,"lastDeliveryOutcome":"NotFound","lastHttpStatusCode":404,"publishTime":"2020-08-13T17:18:14.0260000Z","lastDeliveryAttemptTime":"2020-08-13T17:18:14.0460000Z","deliveryKey":"k","webhookId":"msg_k"}"#,
        );
    }

    #[test]
    fn cloud_events_members_are_lower_case() {
        check(
            &letter(EventSchema::CloudEvents, None),
            "{}",
            r#"{"deadletterreason":"MaxDeliveryAttemptsExceeded","deliveryattempts":1,"lastdeliveryoutcome":"NotFound","publishtime":"2020-08-13T17:18:14.0260000Z","lastdeliveryattempttime":"2020-08-13T17:18:14.0460000Z","deliverykey":"k","webhookid":"msg_k"}"#,
        );
    }

    #[test]
    fn the_event_s_own_members_of_these_names_are_kept_in_one() {
        check(
            &letter(EventSchema::CloudEvents, None),
            r#"{"id":"1", "deadletterreason": "mine","lasthttpstatuscode":7 ,"x":1}"#,
            r#"{"id":"1","x":1,"deadletterreason":"MaxDeliveryAttemptsExceeded","deliveryattempts":1,"lastdeliveryoutcome":"NotFound","publishtime":"2020-08-13T17:18:14.0260000Z","lastdeliveryattempttime":"2020-08-13T17:18:14.0460000Z","deliverykey":"k","webhookid":"msg_k","originalattributes":"{ \"deadletterreason\": \"mine\",\"lasthttpstatuscode\":7 ,\"places\":[1,2]}"}"#,
        );
    }

    #[test]
    fn an_event_that_was_never_tried_has_no_outcome() {
        let mut letter = letter(EventSchema::EventGrid, None);
        letter.delivery.attempts = 0;
        letter.delivery.last = None;
        letter.reason = DeadLetterReason::SubscriptionDeleted;
        check(
            &letter,
            "{}",
            r#"{"deadLetterReason":"SubscriptionDeleted","deliveryAttempts":0,"publishTime":"2020-08-13T17:18:14.0260000Z","deliveryKey":"k","webhookId":"msg_k"}"#,
        );
    }

    #[test]
    fn an_event_that_expired_without_an_attempt_was_held() {
        let mut letter = letter(EventSchema::CloudEvents, None);
        letter.delivery.attempts = 0;
        letter.delivery.last = None;
        letter.reason = DeadLetterReason::TimeToLiveExceeded;
        check(
            &letter,
            "{}",
            r#"{"deadletterreason":"TimeToLiveExceeded","deliveryattempts":0,"lastdeliveryoutcome":"Probation","publishtime":"2020-08-13T17:18:14.0260000Z","deliverykey":"k","webhookid":"msg_k"}"#,
        );
    }

    /// An event that a function failed on without finishing an attempt was cut short.
    #[test]
    fn event_with_a_failed_handler_and_no_attempt_was_aborted() {
        let mut letter = letter(EventSchema::CloudEvents, None);
        letter.delivery.attempts = 0;
        letter.delivery.last = None;
        letter.reason = DeadLetterReason::HandlerFailed;
        check(
            &letter,
            "{}",
            r#"{"deadletterreason":"HandlerFailed","deliveryattempts":0,"lastdeliveryoutcome":"Aborted","publishtime":"2020-08-13T17:18:14.0260000Z","deliverykey":"k","webhookid":"msg_k"}"#,
        );
    }

    #[test]
    fn records_are_gathered_into_an_array() {
        let mut gathered = DeadLetterArray::default();
        gathered.push(&Bytes::from_static(b"{}"));
        gathered.push(&Bytes::from_static(b"{ }"));
        assert_eq!((gathered.bytes(), gathered.count()), (7, 2));
        assert_eq!(gathered.into_object(), "[{},{ }]");
        assert_eq!(DeadLetterArray::default().into_object(), "[]");
    }
}
