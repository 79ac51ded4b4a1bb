//! One record of the log: an attempt, or a change of an event without one.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{AttemptOrigin, LogResult, RecordKind, WaitTransition};
use crate::model::{EventNames, EventSchema, LOG_TEXT_CHARS_MAX, Timestamp};

/// A record. Its JSON is an item of a message in the queue of records; its columns are
/// [`COLUMNS`](super::COLUMNS), but for `wait` and `released_at`, which the log does not keep. A
/// member that is missing has its default, and one that this program does not know is passed over.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LogRecord {
    /// [`record_id`](super::record_id) of it: what two copies of a record have in common.
    pub record_id: String,
    /// The end of the attempt, or the time of the change.
    pub time: Timestamp,
    /// An attempt, or which change.
    pub kind: RecordKind,
    /// The topic, in lower case as in keys.
    pub topic: String,
    /// The subscription, in lower case as in keys. Empty in the record of an event's acceptance.
    pub subscription: String,
    /// The creation of the topic and of the subscription, 24 hexadecimal digits; `None` where an
    /// older program accepted the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The key of the event towards this subscription, the same over all retries.
    pub delivery_key: String,
    /// The event's id. Producers make them, so they may repeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// The event's source, or its topic in Event Grid's schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_source: Option<String>,
    /// The event's type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// The event's subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_subject: Option<String>,
    /// The schema that the event was sent in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The header `webhook-id` of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_id: Option<String>,
    /// The `webhook-id` that the event has when it travels alone. Only of an event that is sent
    /// again: any other has the one that its key makes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_webhook_id: Option<String>,
    /// The number of the attempt, from 1. For a change, the number of attempts before it.
    pub attempt: u16,
    /// The origin of the attempt.
    pub origin: AttemptOrigin,
    /// The replay that the event came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The state of the event after it.
    pub result: LogResult,
    /// Whether its delivery waited before, and waits after it: what record counts by. Files do not
    /// have it.
    #[serde(skip_serializing_if = "WaitTransition::is_unknown")]
    pub wait: WaitTransition,
    /// The outcome's name for a retry, the dead letter's reason for an event that was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The answer's status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The failure in words, where there was no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The time from the beginning of the request to the answer's head, or to the failure, in
    /// milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u32>,
    /// The answer's first bytes as text, without secrets ([`answer_text`](super::answer_text)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The answer's media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_type: Option<String>,
    /// The earliest next attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    /// The key of the dead-letter object that the event lies in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letter_object: Option<String>,
    /// The endpoint, without its query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The time at which the event was accepted.
    pub accepted_at: Timestamp,
    /// The time of an event's release that was published for later: its life begins then. Files do
    /// not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub released_at: Option<Timestamp>,
    /// The time at which the event expires.
    pub expires_at: Timestamp,
    /// The event's W3C trace context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The key of the stored payload, where it is too large for the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_reference: Option<String>,
    /// The subscriptions that the event is meant for
    /// ([`matched_names`](crate::model::matched_names)), with the first record of its delivery.
    /// `None` where the record's own is the only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<String>,
    /// The event itself, with the first record of its delivery. A custom event lies in its
    /// envelope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<RecordPayload>,
}

/// An event's JSON text, as its producer wrote it. Records of several deliveries may share it.
#[derive(Debug, Clone)]
pub struct RecordPayload(Arc<RawValue>);

impl RecordPayload {
    /// Takes a text over. `None` if it is not JSON.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl Serialize for RecordPayload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RecordPayload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|text| Self(text.into()))
    }
}

impl PartialEq for RecordPayload {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl LogRecord {
    /// The place of a record in a file: records of a subscription lie together, the newest first.
    pub fn sort_key(&self) -> impl Ord + '_ {
        (&self.topic, &self.subscription, self.place_within())
    }

    /// Sets the event's names from its payload, where the record has a payload and no names.
    pub(super) fn read_names(&mut self) {
        if !self.is_nameless() {
            return;
        }
        let Some(payload) = &self.payload else {
            return;
        };
        let Some(schema) = self.schema.as_deref().and_then(EventSchema::parse) else {
            return;
        };
        let EventNames {
            id,
            source,
            event_type,
            subject,
        } = EventNames::from_text(schema, payload.as_str());
        let names = [id, source, event_type, subject].map(|name| name.as_deref().map(log_text));
        [
            self.event_id,
            self.event_source,
            self.event_type,
            self.event_subject,
        ] = names;
    }

    /// Takes over the payload of another record, and the names that are in it.
    pub(super) fn take_payload_of(&mut self, other: &Self) {
        self.payload.clone_from(&other.payload);
        if self.schema != other.schema {
            self.read_names();
        } else if self.is_nameless() {
            self.event_id.clone_from(&other.event_id);
            self.event_source.clone_from(&other.event_source);
            self.event_type.clone_from(&other.event_type);
            self.event_subject.clone_from(&other.event_subject);
        }
    }

    fn is_nameless(&self) -> bool {
        let names = [
            &self.event_id,
            &self.event_source,
            &self.event_type,
            &self.event_subject,
        ];
        names.into_iter().all(Option::is_none)
    }

    /// The place of the record among those of its subscription.
    pub fn place_within(&self) -> impl Ord + '_ {
        (std::cmp::Reverse(self.time), &self.record_id)
    }
}

/// A producer's text as the log keeps it: at most [`LOG_TEXT_CHARS_MAX`] characters. A search
/// shortens the text that it looks for in the same way.
pub fn log_text(text: &str) -> String {
    cut_text(text).to_owned()
}

/// The names of an event as its records have them, for one that is stored beside its message.
/// `None` for a custom event: its envelope has them.
pub fn names_to_keep(schema: EventSchema, text: &Bytes) -> Option<Box<EventNames<'static>>> {
    if schema == EventSchema::Custom {
        return None;
    }
    let EventNames {
        id,
        source,
        event_type,
        subject,
    } = EventNames::from_event(schema, Some(text), None);
    let [id, source, event_type, subject] =
        [id, source, event_type, subject].map(|name| name.map(|name| Cow::Owned(log_text(&name))));
    Some(Box::new(EventNames {
        id,
        source,
        event_type,
        subject,
    }))
}

/// Whether the log keeps two texts as the same.
pub fn is_same_log_text(one: &str, other: &str) -> bool {
    cut_text(one) == cut_text(other)
}

/// The text as the log keeps it, as a slice.
pub(crate) fn cut_text(text: &str) -> &str {
    if text.len() <= LOG_TEXT_CHARS_MAX {
        return text;
    }
    text.char_indices()
        .nth(LOG_TEXT_CHARS_MAX)
        .map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A record with a value in every member.
    pub(in crate::delivery_log) fn full() -> LogRecord {
        let text = |text: &str| Some(text.to_owned());
        let at = |ms: u64| Timestamp::from_millis(1_700_000_000_000 + ms);
        LogRecord {
            record_id: "5b1f6f6a0c2d4e8f9a7b3c1d2e4f6a8b".to_owned(),
            time: at(500),
            kind: RecordKind::Attempt,
            topic: "orders".to_owned(),
            subscription: "billing".to_owned(),
            identity: text("a1b2c3d4e5f60102030405ff"),
            delivery_key: "0b0e-0".to_owned(),
            event_id: text("order-1"),
            event_source: text("/shop"),
            event_type: text("order.paid"),
            event_subject: text("orders/1"),
            schema: text("CloudEvents"),
            webhook_id: text("msg_0b0e-0"),
            own_webhook_id: text("msg_0a0d-0"),
            attempt: 1,
            origin: AttemptOrigin::First,
            run_id: text("run-1"),
            result: LogResult::Retry,
            wait: WaitTransition::Unknown,
            reason: text("Busy"),
            status: Some(503),
            error: text("no answer in time"),
            duration_ms: Some(87),
            answer: text("try later"),
            answer_type: text("text/plain"),
            next_attempt_at: Some(at(10_500)),
            dead_letter_object: text("ORDERS/BILLING/2023/11/14/22/x.json"),
            endpoint: text("https://example.com/hook"),
            accepted_at: at(0),
            released_at: None,
            expires_at: at(86_400_000),
            traceparent: text("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            matched: text("billing,shipping"),
            payload: RecordPayload::parse("{ \"id\":\"order-1\", \"n\": 1.00 }"),
            payload_reference: text("payloads/20231114/x"),
        }
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(log_text("short"), "short");
        assert_eq!(log_text(&"ü".repeat(2_000)), "ü".repeat(LOG_TEXT_CHARS_MAX));
    }

    #[test]
    fn a_payload_is_json_and_stays_as_it_is() {
        assert_eq!(
            RecordPayload::parse(" { \"a\": 1.0 } ").unwrap().as_str(),
            "{ \"a\": 1.0 }"
        );
        assert!(RecordPayload::parse("{").is_none() && RecordPayload::parse("").is_none());
    }

    #[test]
    fn records_of_a_subscription_lie_together_the_newest_first() {
        let at = |topic: &str, subscription: &str, ms| LogRecord {
            topic: topic.to_owned(),
            subscription: subscription.to_owned(),
            time: Timestamp::from_millis(ms),
            ..LogRecord::default()
        };
        let sorted = [
            at("a", "x", 2),
            at("a", "x", 1),
            at("a", "y", 9),
            at("b", "a", 3),
        ];
        let mut shuffled = [
            sorted[3].clone(),
            sorted[1].clone(),
            sorted[2].clone(),
            sorted[0].clone(),
        ];
        shuffled.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
        assert_eq!(shuffled, sorted);
    }
}
