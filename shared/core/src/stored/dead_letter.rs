//! A dead letter as it lies in the bucket: the event in its schema, with members that say what became of it.

use bytes::{BufMut, Bytes, BytesMut};

use crate::events::{set_aside, with_members};
use crate::model::delivery::{DeadLetter, Entry};
use crate::model::schema::Schema;
use crate::model::time::Timestamp;

mod restore;
mod written;

pub use written::WrittenIn;

pub use restore::{NotDeadLetters, RestoreError, Restored, restore, restore_all};

/// The names of the members, in the order they are written.
struct Names {
    reason: &'static str,
    attempts: &'static str,
    outcome: &'static str,
    status: &'static str,
    published: &'static str,
    last_attempt: &'static str,
    identity: &'static str,
}

/// Event Grid's names.
const EVENT_GRID: Names = Names {
    reason: "deadLetterReason",
    attempts: "deliveryAttempts",
    outcome: "lastDeliveryOutcome",
    status: "lastHttpStatusCode",
    published: "publishTime",
    last_attempt: "lastDeliveryAttemptTime",
    identity: "subscriptionIdentity",
};

/// CloudEvents allows only lower case in attribute names.
const CLOUD_EVENTS: Names = Names {
    reason: "deadletterreason",
    attempts: "deliveryattempts",
    outcome: "lastdeliveryoutcome",
    status: "lasthttpstatuscode",
    published: "publishtime",
    last_attempt: "lastdeliveryattempttime",
    identity: "subscriptionidentity",
};

/// The member that keeps the event's own members of the names above, whole: a text of JSON. It has the same
/// name in every schema (SPEC §4).
const ORIGINAL_ATTRIBUTES: &str = "originalattributes";

impl Names {
    /// The names, and the one that keeps the event's own members of these names.
    fn reserved(&self) -> [&'static str; 8] {
        let Self { reason, attempts, outcome, status, published, last_attempt, identity } = self;
        [reason, attempts, outcome, status, published, last_attempt, identity, ORIGINAL_ATTRIBUTES]
    }

    fn of(schema: Schema) -> Self {
        match schema {
            Schema::EventGrid | Schema::Custom => EVENT_GRID,
            Schema::CloudEvents => CLOUD_EVENTS,
        }
    }
}

/// The dead letter of `entry`, whose text is `event`. A custom event lies in its envelope, under `data`. An
/// event that was never tried has no time of a last attempt, and no outcome unless it expired. Members of the
/// event's own that have a name of the dead letter's are kept in one member beside them.
pub fn record(letter: &DeadLetter, entry: &Entry, event: &Bytes) -> Bytes {
    let mut members = members(letter);
    if let Some(envelope) = &entry.envelope {
        return envelope.around(event, &members);
    }
    let Some(own) = set_aside(event, &Names::of(letter.delivery.schema).reserved()) else {
        return with_members(event, &members);
    };
    members.push((ORIGINAL_ATTRIBUTES, serde_json::Value::from(own.members).to_string()));
    with_members(&own.event, &members)
}

fn members(letter: &DeadLetter) -> Vec<(&'static str, String)> {
    let names = Names::of(letter.delivery.schema);
    let time = |at: Timestamp| format!("\"{}\"", at.to_event_grid());
    let delivery = &letter.delivery;
    let mut members = vec![
        (names.reason, format!("\"{:?}\"", letter.reason)),
        (names.attempts, delivery.attempts.to_string()),
    ];
    members.extend(letter.last_outcome().map(|outcome| (names.outcome, format!("\"{outcome:?}\""))));
    members
        .extend(delivery.last.and_then(|last| last.status).map(|status| (names.status, status.to_string())));
    members.push((names.published, time(delivery.published_at)));
    members.extend(delivery.last.map(|last| (names.last_attempt, time(last.at))));
    members.extend(delivery.identity.map(|identity| (names.identity, format!("\"{identity}\""))));
    members
}

/// Gathers records into one object: a JSON array.
#[derive(Debug, Default)]
pub struct Gathered {
    array: BytesMut,
    count: usize,
}

impl Gathered {
    /// Adds a record.
    pub fn push(&mut self, record: &Bytes) {
        self.array.put_u8(if self.count == 0 { b'[' } else { b',' });
        self.array.put_slice(record);
        self.count += 1;
    }

    /// How many bytes it has by now.
    pub fn bytes(&self) -> usize {
        self.array.len()
    }

    /// How many records it has by now.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The object.
    pub fn finish(mut self) -> Bytes {
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
    use crate::attempt::decide::DeadLetterReason;
    use crate::attempt::outcome::OutcomeName;
    use crate::events::Envelope;
    use crate::model::delivery::{Delivery, LastAttempt, Marks, Payload};
    use crate::model::hops::Hops;
    use crate::model::name::{SubscriptionName, TopicName};
    use crate::model::time::Timestamp;

    pub(super) fn letter(schema: Schema, status: Option<u16>) -> DeadLetter {
        DeadLetter {
            reason: DeadLetterReason::MaxDeliveryAttemptsExceeded,
            storage: None,
            object: None,
            dropped: false,
            delivery: Delivery {
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
                }),
                timed_out: false,
                identity: None,
                hops: Hops::default(),
                events: vec![],
            },
        }
    }

    pub(super) fn entry(envelope: Option<Envelope>) -> Entry {
        Entry {
            key: "k".to_owned(),
            expires_at: Timestamp::EPOCH,
            traceparent: None,
            marks: Marks::default(),
            envelope: envelope.map(Arc::new),
            payload: Payload::Inline(Bytes::new()),
        }
    }

    fn check(letter: &DeadLetter, event: &'static str, expected: &str) {
        assert_eq!(record(letter, &entry(None), &Bytes::from_static(event.as_bytes())), expected);
    }

    #[test]
    fn event_grid_s_members_have_event_grid_s_names() {
        check(
            &letter(Schema::EventGrid, Some(404)),
            r#"{"id":"1", "n": 1.0}"#,
            r#"{"id":"1", "n": 1.0,"deadLetterReason":"MaxDeliveryAttemptsExceeded","deliveryAttempts":1,"lastDeliveryOutcome":"NotFound","lastHttpStatusCode":404,"publishTime":"2020-08-13T17:18:14.0260000Z","lastDeliveryAttemptTime":"2020-08-13T17:18:14.0460000Z"}"#,
        );
    }

    #[test]
    fn cloud_events_members_are_lower_case() {
        check(
            &letter(Schema::CloudEvents, None),
            "{}",
            r#"{"deadletterreason":"MaxDeliveryAttemptsExceeded","deliveryattempts":1,"lastdeliveryoutcome":"NotFound","publishtime":"2020-08-13T17:18:14.0260000Z","lastdeliveryattempttime":"2020-08-13T17:18:14.0460000Z"}"#,
        );
    }

    #[test]
    fn the_event_s_own_members_of_these_names_are_kept_in_one() {
        check(
            &letter(Schema::CloudEvents, None),
            r#"{"id":"1", "deadletterreason": "mine","lasthttpstatuscode":7 ,"x":1}"#,
            r#"{"id":"1","x":1,"deadletterreason":"MaxDeliveryAttemptsExceeded","deliveryattempts":1,"lastdeliveryoutcome":"NotFound","publishtime":"2020-08-13T17:18:14.0260000Z","lastdeliveryattempttime":"2020-08-13T17:18:14.0460000Z","originalattributes":"{ \"deadletterreason\": \"mine\",\"lasthttpstatuscode\":7 ,\"places\":[1,2]}"}"#,
        );
    }

    #[test]
    fn an_event_that_was_never_tried_has_no_outcome() {
        let mut letter = letter(Schema::EventGrid, None);
        letter.delivery.attempts = 0;
        letter.delivery.last = None;
        letter.reason = DeadLetterReason::SubscriptionDeleted;
        check(
            &letter,
            "{}",
            r#"{"deadLetterReason":"SubscriptionDeleted","deliveryAttempts":0,"publishTime":"2020-08-13T17:18:14.0260000Z"}"#,
        );
    }

    #[test]
    fn an_event_that_expired_without_an_attempt_was_held() {
        let mut letter = letter(Schema::CloudEvents, None);
        letter.delivery.attempts = 0;
        letter.delivery.last = None;
        letter.reason = DeadLetterReason::TimeToLiveExceeded;
        check(
            &letter,
            "{}",
            r#"{"deadletterreason":"TimeToLiveExceeded","deliveryattempts":0,"lastdeliveryoutcome":"Probation","publishtime":"2020-08-13T17:18:14.0260000Z"}"#,
        );
    }

    #[test]
    fn an_event_that_a_function_failed_on_without_finishing_an_attempt_was_cut_short() {
        let mut letter = letter(Schema::CloudEvents, None);
        letter.delivery.attempts = 0;
        letter.delivery.last = None;
        letter.reason = DeadLetterReason::HandlerFailed;
        check(
            &letter,
            "{}",
            r#"{"deadletterreason":"HandlerFailed","deliveryattempts":0,"lastdeliveryoutcome":"Aborted","publishtime":"2020-08-13T17:18:14.0260000Z"}"#,
        );
    }

    #[test]
    fn records_are_gathered_into_an_array() {
        let mut gathered = Gathered::default();
        gathered.push(&Bytes::from_static(b"{}"));
        gathered.push(&Bytes::from_static(b"{ }"));
        assert_eq!((gathered.bytes(), gathered.count()), (7, 2));
        assert_eq!(gathered.finish(), "[{},{ }]");
        assert_eq!(Gathered::default().finish(), "[]");
    }
}
