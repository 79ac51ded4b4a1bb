//! Version 1 of a dead-letter message: a reason, perhaps trouble with the bucket, and the delivery's own message.

use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::delivery::put_open_object;
use super::{VERSION_1, WIRE_VERSION, WireError, parse_delivery, render_delivery, unreadable};
use crate::attempt::decide::DeadLetterReason;
use crate::model::delivery::{DeadLetter, StorageTrouble};
use crate::model::time::Timestamp;

#[derive(Serialize, Deserialize)]
struct Head {
    v: u32,
    reason: DeadLetterReason,
    #[serde(skip_serializing_if = "Option::is_none")]
    storage: Option<StorageWire>,
    /// Later than version 1 itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<String>,
    /// As late.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dropped: bool,
}

#[derive(Serialize, Deserialize)]
struct StorageWire {
    since: Timestamp,
    failures: u32,
}

#[derive(Deserialize)]
struct DeadLetterWire<'a> {
    v: u32,
    reason: DeadLetterReason,
    storage: Option<StorageWire>,
    object: Option<String>,
    #[serde(default)]
    dropped: bool,
    #[serde(borrow)]
    delivery: &'a RawValue,
}

/// Renders a dead letter as the body of a message.
pub fn render_dead_letter(letter: &DeadLetter) -> Bytes {
    let delivery = render_delivery(&letter.delivery);
    let storage =
        letter.storage.map(|trouble| StorageWire { since: trouble.since, failures: trouble.failures });
    let mut body = BytesMut::with_capacity(delivery.len() + 256);
    let object = letter.object.clone();
    let head = Head { v: VERSION_1, reason: letter.reason, storage, object, dropped: letter.dropped };
    put_open_object(&mut body, &head);
    body.put_slice(b",\"delivery\":");
    body.put_slice(&delivery);
    body.put_u8(b'}');
    body.freeze()
}

/// Reads a dead-letter message. The events are slices of `body`.
pub fn parse_dead_letter(body: &Bytes) -> Result<DeadLetter, WireError> {
    let wire: DeadLetterWire<'_> = serde_json::from_slice(body).map_err(|error| unreadable(body, error))?;
    if wire.v > WIRE_VERSION {
        return Err(WireError::Newer(wire.v));
    }
    Ok(DeadLetter {
        reason: wire.reason,
        delivery: parse_delivery(&body.slice_ref(wire.delivery.get().as_bytes()))?,
        storage: wire
            .storage
            .map(|trouble| StorageTrouble { since: trouble.since, failures: trouble.failures }),
        object: wire.object,
        dropped: wire.dropped,
    })
}
