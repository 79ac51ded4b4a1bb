//! An event that is sent again: what it is in the delivery queue.

use std::time::Duration;

use bytes::Bytes;

use crate::attempt::decide::expires_at;
use crate::delivery_log::names_to_keep;
use crate::events::Event;
use crate::model::{
    Delivery, DeliveryEntry, EventMarks, EventPayload, EventSchema, Hops, PayloadDigest,
    Subscription, Timestamp, fits_into_a_message,
};
use crate::stored::layout;

/// The subscription that receives events again. No other does, whatever its filter says.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResentEventReceiver<'a> {
    /// The subscription.
    pub(super) subscription: &'a Subscription,
    /// Default and cap of the topic's time to live.
    pub(super) default_time_to_live: Option<Duration>,
}

impl ResentEventReceiver<'_> {
    /// A new delivery of these events, due at this time.
    pub(super) fn new_delivery(
        self,
        schema: EventSchema,
        events: Vec<DeliveryEntry>,
        due: Timestamp,
        now: Timestamp,
    ) -> Delivery {
        Delivery {
            topic: self.subscription.topic.clone(),
            subscription: self.subscription.name.clone(),
            schema,
            // Not the event's first time: deliver looks for the subscription as it is since then.
            published_at: now,
            not_before: due,
            attempts: 0,
            last: None,
            timed_out: false,
            identity: self.subscription.created.identity(),
            // A loop goes on only if its events are sent again every time.
            hops: Hops::default(),
            events,
        }
    }

    /// The event under a new key, with a new time to live.
    pub(super) fn new_entry(
        self,
        event: &Event,
        key: String,
        marks: EventMarks,
        now: Timestamp,
    ) -> DeliveryEntry {
        DeliveryEntry {
            payload: new_payload(event, &key, now),
            key,
            expires_at: expires_at(
                now,
                // To send again is to make an attempt: a time of the event's own that is over does
                // not count.
                event.expirytime().filter(|expiry| *expiry > now),
                self.subscription.retry.time_to_live,
                self.default_time_to_live,
            ),
            traceparent: event.traceparent().map(str::to_owned),
            marks,
            envelope: event.envelope().cloned(),
        }
    }
}

/// The key and text of the payload that must be stored before its message is sent, if there is one.
pub(super) fn stored_payload(entry: &DeliveryEntry, event: &Event) -> Option<(String, Bytes)> {
    match &entry.payload {
        EventPayload::Stored { key, .. } => Some((key.clone(), event.json().clone())),
        EventPayload::Inline(_) => None,
    }
}

/// An event's text in its message or, where a message cannot hold it as it is, in an object beside
/// it.
fn new_payload(event: &Event, key: &str, now: Timestamp) -> EventPayload {
    let json = event.json();
    if fits_into_a_message(json) {
        return EventPayload::Inline(json.clone());
    }
    EventPayload::Stored {
        key: layout::payload_key(now, key),
        bytes: json.len(),
        digest: Some(PayloadDigest::for_json(json)),
        names: names_to_keep(event.schema(), json),
    }
}
