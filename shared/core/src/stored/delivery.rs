//! The message of a delivery, in the queue and in parked and held objects.
//!
//! Versions 1 to 3. They differ in what may be in them: custom events are in version 2 and later,
//! an identity and hops in version 3. Written by publish, deliver, wake and whatever publishes
//! notices; read by deliver, wake and, from the redrive queue, by deadletter. Messages live for up
//! to 14 days in queues, parked and held ones until they expire. Fixtures: `delivery-v1.json`,
//! `delivery-v1-digest.json`, `delivery-v1-marks.json`, `delivery-v1-again.json`,
//! `delivery-v1-letter.json`, `delivery-v1-matched.json`, `delivery-v1-number.json`,
//! `delivery-v1-counted.json`, `delivery-v1-names.json`, `delivery-v2-custom.json`,
//! `delivery-v3.json`; they are never edited.
//!
//! A newer version goes back to the queue for a newer program; what is not ours at all is kept byte
//! for byte under `MALFORMED/`.

#[cfg(test)]
pub(super) mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::attempt::EventSize;
use crate::model::{
    CarriedEvents, Delivery, DeliveryEntry, EarlierLife, EventEnvelope, EventMarks, EventNames,
    EventPayload, EventSchema, FormatError, Hops, Identity, LastAttempt, LetterPlace,
    PayloadDigest, PublishSchedule, StoredFormat, SubscriptionName, Timestamp, TopicName,
};

/// The newest version this program reads.
pub const WIRE_VERSION: u32 = 3;

/// The version of everything that the first program read. Members that it passes over are no reason
/// for a newer one.
const VERSION_1: u32 = 1;

/// The version of messages with custom events, which the first program does not know: it gives them
/// back for a newer reader, where it would put away what it cannot read under a version of its own.
const VERSION_2: u32 = 2;

/// The version of messages with an identity or with hops. An older program would pass both over and
/// drop them with the first retry: it could then deliver to another creation of the subscription,
/// or go round in a loop. So it gives such messages back until a newer one is there. What is around
/// messages (parked objects, dead letters) need not change.
const VERSION_3: u32 = 3;

const FORMAT: StoredFormat = StoredFormat {
    name: "a delivery message",
    newest: WIRE_VERSION,
};

/// Room for all of a message but its events.
const HEAD_BYTES: usize = 512;

/// A message. Its events are written by [`put_events`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeliveryWire<'a> {
    v: u32,
    /// The number of events, so that [`carried_by_message`] need not read them. Later than version
    /// 3: an older program passes it over.
    #[serde(skip_deserializing)]
    n: usize,
    topic: TopicName,
    subscription: SubscriptionName,
    schema: EventSchema,
    published_at: Timestamp,
    /// The beginning of the events' age, for [`carried_by_message`], where it is not
    /// `published_at`. An older program passes it over.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    begins_at: Option<Timestamp>,
    not_before: Timestamp,
    attempts: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<LastAttempt>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    timed_out: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<Identity>,
    #[serde(default, skip_serializing_if = "Hops::is_none")]
    hops: Hops,
    #[serde(borrow, skip_serializing)]
    events: Vec<EntryWire<'a>>,
}

/// One event of a message. Either `event` or `payload` is there.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryWire<'a> {
    key: Cow<'a, str>,
    expires_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<PayloadWire>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    notice: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
    /// Later than version 3, as are the next four: an older program passes them over, and still
    /// sees `replayed`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    resent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    webhook_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    letter: Option<Cow<'a, LetterPlace>>,
    /// An older program passes it over, and drops it with a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    earlier: Option<EarlierLife>,
    /// The same of this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outage_since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redirect: Option<Cow<'a, str>>,
    /// Only where it differs from that of the event before: the events of a message are mostly
    /// meant for the same subscriptions. Empty for none. An older program passes it over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    matched: Option<Cow<'a, str>>,
    /// Only where the number of attempts does not say it. An older program passes it over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counted: Option<bool>,
    /// An older program passes it over, and drops it with the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scheduled: Option<Cow<'a, PublishSchedule>>,
    /// Around every event of the schema `Custom`, and no other. [`put_entry`] writes it by
    /// [`EventEnvelope::to_json`], because its texts may hold characters that SQS refuses raw.
    #[serde(skip_serializing)]
    envelope: Option<EventEnvelope>,
    /// Of an event that is stored, but a custom one. [`put_entry`] writes them by
    /// [`EventNames::to_json`], for the same reason. An older program passes them over, and drops
    /// them with a retry.
    #[serde(default, skip_serializing)]
    names: Option<Box<EventNames<'static>>>,
    #[serde(borrow, skip_serializing)]
    event: Option<&'a RawValue>,
}

/// The part of a message that [`carried_by_message`] needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CountedWire {
    published_at: Timestamp,
    events: Vec<IgnoredAny>,
}

#[derive(Serialize, Deserialize)]
struct PayloadWire {
    key: String,
    bytes: usize,
    /// Later than version 1 itself: older messages do not have it, and older programs pass it
    /// over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

/// Renders a delivery as the body of a message.
pub fn render_delivery(delivery: &Delivery) -> Bytes {
    let payloads: usize = delivery
        .events
        .iter()
        .map(|e| EventSize::measure(&e.payload, e.envelope.as_deref()).message)
        .sum();
    let mut body = Vec::with_capacity(payloads + HEAD_BYTES);
    put_open_object(&mut body, &DeliveryWire::head_of(delivery));
    put_events(&mut body, delivery);
    body.push(b'}');
    body.into()
}

/// Reads a delivery message. The events are slices of `body`.
pub fn parse_delivery(body: &Bytes) -> Result<Delivery, FormatError> {
    let delivery = FORMAT
        .parse(body, |wire: &DeliveryWire<'_>| wire.v)?
        .into_delivery(body)?;
    if delivery.events.is_empty() {
        return Err(FORMAT.malformed_error("expected one event or more"));
    }
    let is_custom = delivery.schema == EventSchema::Custom;
    if delivery
        .events
        .iter()
        .any(|entry| entry.envelope.is_some() != is_custom)
    {
        return Err(
            FORMAT.malformed_error("expected an envelope around each custom event and no other")
        );
    }
    Ok(delivery)
}

/// The number of events of a message, and the time at which their age begins, from the message's
/// beginning. Messages of 0.1.0 do not begin by the number, and are read whole. `None` if it is no
/// delivery message.
pub fn carried_by_message(body: &[u8]) -> Option<CarriedEvents> {
    carried_by_head(body).or_else(|| {
        let wire: CountedWire = serde_json::from_slice(body).ok()?;
        (!wire.events.is_empty())
            .then(|| CarriedEvents::new(wire.events.len() as u64, wire.published_at))
    })
}

/// The same from the members in front, as [`render_delivery`] writes them: `v`, `n`, two names and
/// a word, none of which has a quote in it, and the times.
fn carried_by_head(body: &[u8]) -> Option<CarriedEvents> {
    let (_, rest) = leading_number(body.strip_prefix(b"{\"v\":")?)?;
    let (events, rest) = leading_number(rest.strip_prefix(b",\"n\":")?)?;
    let rest = skip_text(rest.strip_prefix(b",\"topic\":\"")?)?;
    let rest = skip_text(rest.strip_prefix(b",\"subscription\":\"")?)?;
    let rest = skip_text(rest.strip_prefix(b",\"schema\":\"")?)?;
    let (published_ms, rest) = leading_number(rest.strip_prefix(b",\"publishedAt\":")?)?;
    let begin_ms = match rest.strip_prefix(b",\"beginsAt\":") {
        Some(rest) => leading_number(rest)?.0,
        None => published_ms,
    };
    (events > 0).then(|| CarriedEvents::new(events, Timestamp::from_millis(begin_ms)))
}

/// The number that a text begins with, and the rest.
fn leading_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit())?;
    let (digits, rest) = text.split_at(end);
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((number, rest))
}

/// The rest behind the quote that ends a text.
fn skip_text(text: &[u8]) -> Option<&[u8]> {
    text.get(memchr::memchr(b'"', text)? + 1..)
}

/// The oldest version that says all of a delivery.
fn oldest_version(delivery: &Delivery) -> u32 {
    if delivery.identity.is_some() || !delivery.hops.is_none() {
        VERSION_3
    } else if delivery.schema == EventSchema::Custom {
        VERSION_2
    } else {
        VERSION_1
    }
}

impl DeliveryWire<'_> {
    /// All of a message but its events.
    fn head_of(delivery: &Delivery) -> Self {
        Self {
            v: oldest_version(delivery),
            n: delivery.events.len(),
            topic: delivery.topic.clone(),
            subscription: delivery.subscription.clone(),
            schema: delivery.schema,
            published_at: delivery.published_at,
            begins_at: Some(delivery.begins_at()).filter(|from| *from != delivery.published_at),
            not_before: delivery.not_before,
            attempts: delivery.attempts,
            last: delivery.last,
            timed_out: delivery.timed_out,
            identity: delivery.identity,
            hops: delivery.hops,
            events: Vec::new(),
        }
    }

    fn into_delivery(self, body: &Bytes) -> Result<Delivery, FormatError> {
        let mut matched: Option<Arc<str>> = None;
        let events = self.events.into_iter().map(|entry| {
            if let Some(names) = &entry.matched {
                matched = (!names.is_empty()).then(|| Arc::from(&**names));
            }
            entry.into_entry(body, matched.clone())
        });
        Ok(Delivery {
            topic: self.topic,
            subscription: self.subscription,
            schema: self.schema,
            published_at: self.published_at,
            not_before: self.not_before,
            attempts: self.attempts,
            last: self.last,
            timed_out: self.timed_out,
            identity: self.identity,
            hops: self.hops,
            events: events.collect::<Result<_, _>>()?,
        })
    }
}

impl EntryWire<'_> {
    /// The event. `matched` is its own member, or that of the event before.
    fn into_entry(
        self,
        body: &Bytes,
        matched: Option<Arc<str>>,
    ) -> Result<DeliveryEntry, FormatError> {
        let payload = match (self.event, self.payload) {
            (Some(raw), None) => EventPayload::Inline(body.slice_ref(raw.get().as_bytes())),
            (None, Some(stored)) => stored.into_payload(self.names)?,
            _ => return Err(FORMAT.malformed_error("expected one of event, payload")),
        };
        Ok(DeliveryEntry {
            key: self.key.into_owned(),
            expires_at: self.expires_at,
            traceparent: self.traceparent.map(Cow::into_owned),
            marks: EventMarks {
                notice: self.notice,
                replayed: self.replayed,
                resent: self.resent,
                run: self.run.map(Cow::into_owned),
                webhook_id: self.webhook_id.map(Cow::into_owned),
                letter: self.letter.map(Cow::into_owned),
                earlier: self.earlier,
                outage_since: self.outage_since,
                redirect: self.redirect.map(Cow::into_owned),
                matched,
                counted: self.counted,
                scheduled: self
                    .scheduled
                    .map(|scheduled| Box::new(scheduled.into_owned())),
            },
            envelope: self.envelope.map(Arc::new),
            payload,
        })
    }
}

impl PayloadWire {
    fn into_payload(
        self,
        names: Option<Box<EventNames<'static>>>,
    ) -> Result<EventPayload, FormatError> {
        let digest = self.sha256.as_deref().map(parse_digest).transpose()?;
        Ok(EventPayload::Stored {
            key: self.key,
            bytes: self.bytes,
            digest,
            names,
        })
    }
}

fn parse_digest(text: &str) -> Result<PayloadDigest, FormatError> {
    PayloadDigest::parse(text)
        .ok_or_else(|| FORMAT.malformed_error("sha256: expected 64 hexadecimal digits"))
}

/// Writes an object without its closing brace, so that a member with raw JSON can follow.
pub(super) fn put_open_object(body: &mut Vec<u8>, object: &impl Serialize) {
    let start = body.len();
    match serde_json::to_writer(&mut *body, object) {
        Ok(()) => body.truncate(body.len() - 1),
        Err(_) => body.truncate(start),
    }
}

/// Writes `,"events":[…]`. The events go in as they are; nothing parses them again. After an
/// attempt a record has the names of the matched subscriptions, and no message needs them.
fn put_events(body: &mut Vec<u8>, delivery: &Delivery) {
    body.extend_from_slice(b",\"events\":[");
    let mut before: Option<&str> = None;
    for (index, entry) in delivery.events.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        let matched = entry.marks.matched.as_deref();
        let matched = matched.filter(|_| delivery.attempts == 0);
        let written = (matched != before).then_some(matched.unwrap_or_default());
        before = matched;
        put_entry(body, entry, written);
    }
    body.push(b']');
}

fn put_entry(body: &mut Vec<u8>, entry: &DeliveryEntry, matched: Option<&str>) {
    let (payload, names, inline) = match &entry.payload {
        EventPayload::Inline(json) => (None, None, Some(json)),
        EventPayload::Stored {
            key,
            bytes,
            digest,
            names,
        } => {
            let sha256 = digest.map(|digest| digest.to_string());
            (
                Some(PayloadWire {
                    key: key.clone(),
                    bytes: *bytes,
                    sha256,
                }),
                names.as_ref(),
                None,
            )
        }
    };
    let EventMarks {
        notice,
        replayed,
        resent,
        run,
        webhook_id,
        letter,
        earlier,
        outage_since,
        redirect,
        matched: _,
        counted,
        scheduled,
    } = &entry.marks;
    let head = EntryWire {
        key: Cow::Borrowed(&entry.key),
        expires_at: entry.expires_at,
        traceparent: entry.traceparent.as_deref().map(Cow::Borrowed),
        payload,
        notice: *notice,
        replayed: *replayed,
        resent: *resent,
        run: run.as_deref().map(Cow::Borrowed),
        webhook_id: webhook_id.as_deref().map(Cow::Borrowed),
        letter: letter.as_ref().map(Cow::Borrowed),
        earlier: *earlier,
        outage_since: *outage_since,
        redirect: redirect.as_deref().map(Cow::Borrowed),
        matched: matched.map(Cow::Borrowed),
        counted: *counted,
        scheduled: scheduled.as_deref().map(Cow::Borrowed),
        envelope: None,
        names: None,
        event: None,
    };
    put_open_object(body, &head);
    if let Some(envelope) = &entry.envelope {
        body.extend_from_slice(b",\"envelope\":");
        body.extend_from_slice(&envelope.to_json());
    }
    if let Some(names) = names {
        body.extend_from_slice(b",\"names\":");
        body.extend_from_slice(&names.to_json());
    }
    if let Some(json) = inline {
        body.extend_from_slice(b",\"event\":");
        body.extend_from_slice(json);
    }
    body.push(b'}');
}
