//! A delivery: events queued for one subscription that share one attempt count.

use bytes::Bytes;

use crate::decide::{DeadLetterReason, Outcome};
use crate::name::{SubscriptionName, TopicName};
use crate::outcome::OutcomeName;
use crate::schema::Schema;
use crate::time::Timestamp;

/// Events of one subscription that wait for, or are in, the same attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The topic they were published to.
    pub topic: TopicName,
    /// The subscription they go to.
    pub subscription: SubscriptionName,
    /// The schema they were accepted in.
    pub schema: Schema,
    /// When they were accepted.
    pub published_at: Timestamp,
    /// The earliest time of the next attempt.
    pub not_before: Timestamp,
    /// How many attempts were made; 0 before the first.
    pub attempts: u16,
    /// How the last attempt ended; `None` before the first.
    pub last: Option<LastAttempt>,
    /// The events, at least one.
    pub events: Vec<Entry>,
}

/// How an attempt ended that did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastAttempt {
    /// Its name in a dead letter.
    pub outcome: OutcomeName,
    /// The status, where there was one.
    pub status: Option<u16>,
    /// When it ended.
    pub at: Timestamp,
    /// Whether an authority said that the host name does not exist.
    pub name_was_unknown: bool,
}

/// One event of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What identifies this event towards this subscription over all retries; `webhook-id` is made from it.
    pub key: String,
    /// When it expires. Fixed when it was accepted.
    pub expires_at: Timestamp,
    /// The event's W3C trace context, where it has one.
    pub traceparent: Option<String>,
    /// The event itself.
    pub payload: Payload,
}

/// Where an event's JSON text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// Here, exactly as it was accepted.
    Inline(Bytes),
    /// In the state bucket, under this key.
    Stored {
        /// The object's key.
        key: String,
        /// Its size in bytes, for packing.
        bytes: usize,
    },
}

/// A delivery that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Why.
    pub reason: DeadLetterReason,
    /// What, as it stood after its last attempt.
    pub delivery: Delivery,
    /// Since when the dead-letter bucket has refused it, and how often; `None` until it first does.
    pub storage: Option<StorageTrouble>,
}

/// How long a dead letter has been trying to reach its bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageTrouble {
    /// The first failure.
    pub since: Timestamp,
    /// How many there were.
    pub failures: u32,
}

impl Payload {
    /// The size of the event's JSON, in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Inline(json) => json.len(),
            Self::Stored { bytes, .. } => *bytes,
        }
    }

    /// Whether there is nothing. No accepted event is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes it takes in a message.
    pub fn message_bytes(&self) -> usize {
        match self {
            Self::Inline(json) => json.len(),
            Self::Stored { key, .. } => key.len(),
        }
    }
}

impl LastAttempt {
    /// Whether two attempts ended alike, whenever that was.
    pub fn is_alike(self, other: Self) -> bool {
        Self { at: other.at, ..self } == other
    }

    /// Notes an outcome that was not a success; `None` for a success.
    pub fn of(outcome: Outcome, at: Timestamp) -> Option<Self> {
        outcome.name().map(|name| Self {
            outcome: name,
            status: outcome.status(),
            at,
            name_was_unknown: outcome.is_unknown_name(),
        })
    }
}

impl Delivery {
    /// The same delivery with other events: what is left of it, or a part of it.
    pub fn with_events(&self, events: Vec<Entry>) -> Self {
        Self {
            topic: self.topic.clone(),
            subscription: self.subscription.clone(),
            schema: self.schema,
            published_at: self.published_at,
            not_before: self.not_before,
            attempts: self.attempts,
            last: self.last,
            events,
        }
    }

    /// The `MessageGroupId`: SQS fair queues keep a noisy subscription from starving the others.
    pub fn group(&self) -> String {
        group(&self.topic, &self.subscription)
    }
}

/// The `MessageGroupId` of a subscription's messages: at most 129 characters would be one too many for SQS, so
/// the names' limit of 64 bytes each is what keeps this within 128 but for two names of full length, whose last
/// character is cut; groups need not be unique.
pub fn group(topic: &TopicName, subscription: &SubscriptionName) -> String {
    let mut group = format!("{}.{}", topic.folded(), subscription.folded());
    group.truncate(crate::limits::SQS_GROUP_ID_CHARS_MAX);
    group
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_id_never_breaks_the_limit_of_sqs() {
        let long = "x".repeat(64);
        let group = group(&TopicName::parse(&long).unwrap(), &SubscriptionName::parse(&long).unwrap());
        assert_eq!(group.len(), 128);
    }
}
