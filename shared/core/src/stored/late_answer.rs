//! The note that an endpoint acknowledged an event after the attempt had timed out, so that the event is not
//! sent again.
//!
//! Key `late/{topic}.{subscription}/{event}`; empty, without a version. Written by deliver, listed by deliver
//! and deadletter. deliver deletes it when the message is settled, and wake when it is older than
//! [`LATE_NOTE_KEPT`].
//!
//! [`LATE_NOTE_KEPT`]: crate::model::LATE_NOTE_KEPT

use super::keys::folder;
use crate::model::{SubscriptionName, TopicName};

/// The prefix of the notes that an endpoint answered late.
pub const LATE: &str = "late/";

/// That an endpoint answered the event of this key late.
pub fn late(topic: &TopicName, subscription: &SubscriptionName, event_key: &str) -> String {
    format!("{}{event_key}", late_of(topic, subscription))
}

/// The prefix of the notes that the endpoint of a subscription answered late.
pub fn late_of(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("{LATE}{}/", folder(topic, subscription))
}
