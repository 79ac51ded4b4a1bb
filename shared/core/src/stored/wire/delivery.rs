//! Versions 1 to 3 of a delivery message. They differ in what may be in them: custom events are in version 2 and later,
//! an identity and hops in version 3.

use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::envelope::EnvelopeWire;
use super::{VERSION_1, VERSION_2, VERSION_3, WIRE_VERSION, WireError, unreadable};
use crate::attempt::batch::EventSize;
use crate::attempt::outcome::OutcomeName;
use crate::model::delivery::{Delivery, Entry, LastAttempt, Marks, Payload, PayloadDigest};
use crate::model::hops::Hops;
use crate::model::identity::Identity;
use crate::model::name::{SubscriptionName, TopicName};
use crate::model::schema::Schema;
use crate::model::time::Timestamp;

/// All of a delivery but its events.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Head {
    v: u32,
    topic: TopicName,
    subscription: SubscriptionName,
    schema: Schema,
    published_at: Timestamp,
    not_before: Timestamp,
    attempts: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<LastWire>,
    /// Later than version 1 itself, as are the marks of an entry.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    timed_out: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<Identity>,
    #[serde(default, skip_serializing_if = "Hops::is_none")]
    hops: Hops,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LastWire {
    outcome: OutcomeName,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    at: Timestamp,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    name_was_unknown: bool,
    /// Later than version 3. A program that passes it over takes the failure for an ordinary timeout.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    was_unconnected: bool,
}

#[derive(Deserialize)]
struct DeliveryWire<'a> {
    #[serde(flatten)]
    head: Head,
    #[serde(borrow)]
    events: Vec<EntryWire<'a>>,
}

/// One event of a message. Either `event` or `payload` is there.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryWire<'a> {
    key: String,
    expires_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<PayloadWire>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    notice: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
    /// Around every event of the schema `Custom`, and no other. [`put_entry`] writes it.
    #[serde(skip_serializing)]
    envelope: Option<EnvelopeWire>,
    #[serde(borrow, skip_serializing)]
    event: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
struct PayloadWire {
    key: String,
    bytes: usize,
    /// Later than version 1 itself: older messages do not have it, and older programs pass it over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

/// Renders a delivery as the body of a message.
pub fn render_delivery(delivery: &Delivery) -> Bytes {
    let payloads: usize =
        delivery.events.iter().map(|e| EventSize::of(&e.payload, e.envelope.as_deref()).message).sum();
    let mut body = BytesMut::with_capacity(payloads + 512);
    put_open_object(&mut body, &Head::of(delivery));
    put_events(&mut body, &delivery.events);
    body.put_u8(b'}');
    body.freeze()
}

/// Reads a delivery message. The events are slices of `body`.
pub fn parse_delivery(body: &Bytes) -> Result<Delivery, WireError> {
    let wire: DeliveryWire<'_> = serde_json::from_slice(body).map_err(|error| unreadable(body, error))?;
    wire.head.into_delivery(entries(body, wire.events)?)
}

impl Head {
    pub(super) fn of(delivery: &Delivery) -> Self {
        Self {
            v: version(delivery),
            topic: delivery.topic.clone(),
            subscription: delivery.subscription.clone(),
            schema: delivery.schema,
            published_at: delivery.published_at,
            not_before: delivery.not_before,
            attempts: delivery.attempts,
            last: delivery.last.map(|last| LastWire {
                outcome: last.outcome,
                status: last.status,
                at: last.at,
                name_was_unknown: last.name_was_unknown,
                was_unconnected: last.was_unconnected,
            }),
            timed_out: delivery.timed_out,
            identity: delivery.identity,
            hops: delivery.hops,
        }
    }

    fn into_delivery(self, events: Vec<Entry>) -> Result<Delivery, WireError> {
        if self.v > WIRE_VERSION {
            return Err(WireError::Newer(self.v));
        }
        if events.is_empty() {
            return Err(WireError::Empty);
        }
        if events.iter().any(|entry| entry.envelope.is_some() != (self.schema == Schema::Custom)) {
            return Err(malformed("expected an envelope around each custom event and no other"));
        }
        Ok(Delivery {
            topic: self.topic,
            subscription: self.subscription,
            schema: self.schema,
            published_at: self.published_at,
            not_before: self.not_before,
            attempts: self.attempts,
            last: self.last.map(|last| LastAttempt {
                outcome: last.outcome,
                status: last.status,
                at: last.at,
                name_was_unknown: last.name_was_unknown,
                was_unconnected: last.was_unconnected,
            }),
            timed_out: self.timed_out,
            identity: self.identity,
            hops: self.hops,
            events,
        })
    }
}

/// The oldest version that says all of a delivery.
fn version(delivery: &Delivery) -> u32 {
    if delivery.identity.is_some() || !delivery.hops.is_none() {
        VERSION_3
    } else if delivery.schema == Schema::Custom {
        VERSION_2
    } else {
        VERSION_1
    }
}

fn entries(body: &Bytes, wire: Vec<EntryWire<'_>>) -> Result<Vec<Entry>, WireError> {
    wire.into_iter().map(|entry| entry.into_entry(body)).collect()
}

impl EntryWire<'_> {
    fn into_entry(self, body: &Bytes) -> Result<Entry, WireError> {
        let payload = match (self.event, self.payload) {
            (Some(raw), None) => Payload::Inline(body.slice_ref(raw.get().as_bytes())),
            (None, Some(stored)) => stored.into_payload()?,
            _ => return Err(malformed("expected one of event, payload")),
        };
        Ok(Entry {
            key: self.key,
            expires_at: self.expires_at,
            traceparent: self.traceparent,
            marks: Marks { notice: self.notice, replayed: self.replayed },
            envelope: self.envelope.map(EnvelopeWire::into_envelope),
            payload,
        })
    }
}

impl PayloadWire {
    fn into_payload(self) -> Result<Payload, WireError> {
        let parse = |text: String| {
            PayloadDigest::parse(&text).ok_or_else(|| malformed("sha256: expected 64 hexadecimal digits"))
        };
        let digest = self.sha256.map(parse).transpose()?;
        Ok(Payload::Stored { key: self.key, bytes: self.bytes, digest })
    }
}

fn malformed(why: &str) -> WireError {
    WireError::Malformed(serde::de::Error::custom(why))
}

/// Writes an object without its closing brace, so that a member with raw JSON can follow.
pub(super) fn put_open_object(body: &mut BytesMut, object: &impl Serialize) {
    let text = serde_json::to_vec(object).unwrap_or_default();
    body.put_slice(text.strip_suffix(b"}").unwrap_or(&text));
}

/// Writes `,"events":[…]`. The events go in as they are; nothing parses them again.
fn put_events(body: &mut BytesMut, events: &[Entry]) {
    body.put_slice(b",\"events\":[");
    for (index, entry) in events.iter().enumerate() {
        if index > 0 {
            body.put_u8(b',');
        }
        put_entry(body, entry);
    }
    body.put_u8(b']');
}

fn put_entry(body: &mut BytesMut, entry: &Entry) {
    let (payload, inline) = match &entry.payload {
        Payload::Inline(json) => (None, Some(json)),
        Payload::Stored { key, bytes, digest } => {
            let sha256 = digest.map(|digest| digest.to_string());
            (Some(PayloadWire { key: key.clone(), bytes: *bytes, sha256 }), None)
        }
    };
    let head = EntryWire {
        key: entry.key.clone(),
        expires_at: entry.expires_at,
        traceparent: entry.traceparent.clone(),
        payload,
        notice: entry.marks.notice,
        replayed: entry.marks.replayed,
        envelope: None,
        event: None,
    };
    put_open_object(body, &head);
    if let Some(envelope) = &entry.envelope {
        body.put_slice(b",\"envelope\":");
        body.put_slice(&envelope.json());
    }
    if let Some(json) = inline {
        body.put_slice(b",\"event\":");
        body.put_slice(json);
    }
    body.put_u8(b'}');
}
