//! The message of a delivery, in the queue and in parked and held objects.
//!
//! Versions 1 to 3. They differ in what may be in them: custom events are in version 2 and later, an identity
//! and hops in version 3. Written by publish, deliver, wake and whatever publishes notices; read by deliver,
//! wake and, from the redrive queue, by deadletter. Messages live for up to 14 days in queues, parked and
//! held ones until they expire. Fixtures: `delivery-v1.json`, `delivery-v1-digest.json`,
//! `delivery-v1-marks.json`, `delivery-v1-again.json`, `delivery-v1-letter.json`, `delivery-v2-custom.json`,
//! `delivery-v3.json`; they are never edited.
//!
//! A newer version goes back to the queue for a newer program; what is not ours at all is kept byte for byte
//! under `MALFORMED/`.

#[cfg(test)]
pub(super) mod tests;

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::format::{Format, FormatError};
use crate::attempt::EventSize;
use crate::events::Envelope;
use crate::model::{Delivery, Entry, LetterPlace, Marks, Payload, PayloadDigest, Schema, Timestamp};

/// The newest version this program reads.
pub const WIRE_VERSION: u32 = 3;

/// The version of everything that the first program read. Members that it passes over are no reason for a
/// newer one.
const VERSION_1: u32 = 1;

/// The version of messages with custom events, which the first program does not know: it gives them back for
/// a newer reader, where it would put away what it cannot read under a version of its own.
const VERSION_2: u32 = 2;

/// The version of messages with an identity or with hops. An older program would pass both over and drop them
/// with the first retry: it could then deliver to another creation of the subscription, or go round in a
/// loop. So it gives such messages back until a newer one is there. What is around messages (parked objects,
/// dead letters) need not change.
const VERSION_3: u32 = 3;

const FORMAT: Format = Format { name: "a delivery message", newest: WIRE_VERSION };

/// All of a message but its events.
#[derive(Serialize)]
struct Head<'a> {
    v: u32,
    #[serde(flatten)]
    delivery: &'a Delivery,
}

#[derive(Deserialize)]
struct DeliveryWire<'a> {
    v: u32,
    #[serde(flatten)]
    delivery: Delivery,
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
    /// Later than version 3, as are the next three: an older program passes them over, and still sees
    /// `replayed`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    resent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    webhook_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    letter: Option<LetterPlace>,
    /// Around every event of the schema `Custom`, and no other. [`put_entry`] writes it by
    /// [`Envelope::json`], because its texts may hold characters that SQS refuses raw.
    #[serde(skip_serializing)]
    envelope: Option<Envelope>,
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
    put_open_object(&mut body, &Head { v: version(delivery), delivery });
    put_events(&mut body, &delivery.events);
    body.put_u8(b'}');
    body.freeze()
}

/// Reads a delivery message. The events are slices of `body`.
pub fn parse_delivery(body: &Bytes) -> Result<Delivery, FormatError> {
    let wire = FORMAT.parse(body, |wire: &DeliveryWire<'_>| wire.v)?;
    let entries = wire.events.into_iter().map(|entry| entry.into_entry(body));
    let delivery = Delivery { events: entries.collect::<Result<_, _>>()?, ..wire.delivery };
    if delivery.events.is_empty() {
        return Err(FORMAT.malformed("expected one event or more"));
    }
    let is_custom = delivery.schema == Schema::Custom;
    if delivery.events.iter().any(|entry| entry.envelope.is_some() != is_custom) {
        return Err(FORMAT.malformed("expected an envelope around each custom event and no other"));
    }
    Ok(delivery)
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

impl EntryWire<'_> {
    fn into_entry(self, body: &Bytes) -> Result<Entry, FormatError> {
        let payload = match (self.event, self.payload) {
            (Some(raw), None) => Payload::Inline(body.slice_ref(raw.get().as_bytes())),
            (None, Some(stored)) => stored.into_payload()?,
            _ => return Err(FORMAT.malformed("expected one of event, payload")),
        };
        let Self { notice, replayed, resent, run, webhook_id, letter, .. } = self;
        Ok(Entry {
            key: self.key,
            expires_at: self.expires_at,
            traceparent: self.traceparent,
            marks: Marks { notice, replayed, resent, run, webhook_id, letter },
            envelope: self.envelope.map(Arc::new),
            payload,
        })
    }
}

impl PayloadWire {
    fn into_payload(self) -> Result<Payload, FormatError> {
        let parse = |text: String| {
            PayloadDigest::parse(&text)
                .ok_or_else(|| FORMAT.malformed("sha256: expected 64 hexadecimal digits"))
        };
        let digest = self.sha256.map(parse).transpose()?;
        Ok(Payload::Stored { key: self.key, bytes: self.bytes, digest })
    }
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
    let Marks { notice, replayed, resent, run, webhook_id, letter } = entry.marks.clone();
    let head = EntryWire {
        key: entry.key.clone(),
        expires_at: entry.expires_at,
        traceparent: entry.traceparent.clone(),
        payload,
        notice,
        replayed,
        resent,
        run,
        webhook_id,
        letter,
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
