//! The text of an event that is too large for a message, or that is kept out of it under pressure.
//!
//! Key `payloads/{day}/{uuid}`; the event's bytes as they are, without a version. Written by publish and by
//! wake (replays), read by deliver and deadletter through [`Payload::Stored`], deleted by wake after
//! [`PAYLOAD_KEPT`].
//!
//! [`Payload::Stored`]: crate::model::Payload::Stored
//! [`PAYLOAD_KEPT`]: crate::model::PAYLOAD_KEPT

use super::keys::day_key;
use crate::model::Timestamp;

/// The prefix of all payloads that were stored once and referenced.
pub const PAYLOADS: &str = "payloads/";

/// A payload, under the day it was stored, so that old ones are found by their prefix. `id` is a UUID.
pub fn payload(stored: Timestamp, id: &str) -> String {
    format!("{PAYLOADS}{}/{id}", day_key(stored))
}

/// The greatest key a payload stored before `day` begins can have, for listing what is old.
pub fn payloads_before(day: Timestamp) -> String {
    format!("{PAYLOADS}{}/", day_key(day))
}
