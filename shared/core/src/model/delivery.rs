//! A delivery: events queued for one subscription that share one attempt count.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::{
    AttemptOutcome, DeadLetterReason, DeliveryLogMode, EarlierLife, EventEnvelope, EventPayload,
    EventSchema, Hops, Identity, OutcomeName, SendFailure, Subscription, SubscriptionName,
    Timestamp, TopicName, refuses_content, webhook_id_of,
};

/// Events of one subscription that wait for, or are in, the same attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The topic they were published to.
    pub topic: TopicName,
    /// The subscription they go to.
    pub subscription: SubscriptionName,
    /// The schema of their texts: the one they are sent in.
    pub schema: EventSchema,
    /// The time at which the events were accepted.
    pub published_at: Timestamp,
    /// The earliest time of the next attempt.
    pub not_before: Timestamp,
    /// The number of attempts; 0 before the first.
    pub attempts: u16,
    /// The last attempt; `None` before the first.
    pub last: Option<LastAttempt>,
    /// Whether any attempt had no response in time, so that one may have come late.
    pub timed_out: bool,
    /// The creation of the subscription, and of its topic, that they were accepted for; `None`
    /// where an older program accepted them.
    pub identity: Option<Identity>,
    /// The number of deliveries of posthaste that they came through before they were accepted.
    pub hops: Hops,
    /// The events, at least one.
    pub events: Vec<DeliveryEntry>,
}

/// An attempt that did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a member of its own, which an older program drops"
)]
pub struct LastAttempt {
    /// The outcome's name in a dead letter.
    pub outcome: OutcomeName,
    /// The status, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The time at which it ended.
    pub at: Timestamp,
    /// Whether an authority said that the host name does not exist.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub name_was_unknown: bool,
    /// Whether no connection came about in time, so that nothing was sent. An older program drops
    /// this member and takes the failure for an ordinary timeout.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_unconnected: bool,
    /// Whether a connection ended after the request was sent on it. An older program drops this
    /// member and takes the failure for one of the link.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_connected: bool,
    /// Whether a connection that had been kept was silent, so that the request may not have reached
    /// the endpoint. An older program drops this member and takes the failure for an ordinary
    /// timeout.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_kept: bool,
}

/// One event of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryEntry {
    /// The key of this event towards this subscription, the same over all retries. The
    /// [`webhook_id`](Self::webhook_id) of its first delivery is made of it.
    pub key: String,
    /// The time at which it expires. Fixed when it was accepted.
    pub expires_at: Timestamp,
    /// The event's W3C trace context, where it has one.
    pub traceparent: Option<String>,
    /// The event's marks, if it is not an ordinary one.
    pub marks: EventMarks,
    /// The envelope of a custom event. Every event of [`EventSchema::Custom`] has one, and no other.
    pub envelope: Option<Arc<EventEnvelope>>,
    /// The event itself.
    pub payload: EventPayload,
}

/// Marks of an event that is not an ordinary one. An older program knows `notice` and `replayed`
/// only, and drops the others with the next retry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventMarks {
    /// A failure notice: if it cannot be delivered, there is no notice about it.
    pub notice: bool,
    /// An event that is sent again, by a replay or by its id.
    pub replayed: bool,
    /// An event that is sent again by its id. It is `replayed` too.
    pub resent: bool,
    /// The id of the replay that sends it again; `None` where an older program replayed it.
    pub run: Option<String>,
    /// The `webhook-id` that the event had before it was sent again, and keeps; `None` where its
    /// key makes one.
    pub webhook_id: Option<String>,
    /// The dead letter that it was made of; `None` where it was made of the delivery log.
    pub letter: Option<LetterPlace>,
    /// The earlier life of an event that was made of a dead letter. `None` where an older program
    /// made it.
    pub earlier: Option<EarlierLife>,
    /// The time since which its endpoint had been unhealthy when the last attempt failed; `None` if
    /// it was healthy, or an older program made that attempt. The first event of a message says it
    /// for all: a message has room for its own state alone.
    pub outage_since: Option<Timestamp>,
    /// The place to which the last attempt was redirected, where the event was given up after it.
    pub redirect: Option<String>,
    /// All subscriptions that the event is meant for ([`matched_names`]), until its first attempt.
    /// `None` where that is this one alone, or the delivery log has it from publish.
    pub matched: Option<Arc<str>>,
    /// Whether a record of the delivery log has counted it as waiting. `None` where the number of
    /// attempts says it: after an attempt it has.
    pub counted: Option<bool>,
    /// The schedule of an event that was published for later. An older program delivers it as any
    /// other.
    pub scheduled: Option<Box<PublishSchedule>>,
}

/// The schedule of an event that was published for later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishSchedule {
    /// The time before which it is not sent, and after its release the time of that: its life
    /// begins then.
    pub at: Timestamp,
    /// The digest of its id ([`event_id_digest`](crate::stored::event_id_digest)), by which it is taken back.
    pub id: String,
    /// Whether it was released: what waits for something else afterwards began to live then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
    /// Whether it was taken back before its release. Then it is not sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
}

impl EventMarks {
    /// The life of the event where that did not begin with its acceptance: it was sent again, or
    /// published for later.
    pub fn earlier_life(&self) -> Option<EarlierLife> {
        let released = self.scheduled.as_ref().map(|scheduled| EarlierLife {
            accepted_at: scheduled.at,
            recoveries: 0,
        });
        self.earlier.or(released)
    }

    /// Whether the event was published for later and taken back.
    pub fn is_cancelled(&self) -> bool {
        self.scheduled
            .as_ref()
            .is_some_and(|scheduled| scheduled.cancelled)
    }

    /// Whether a record of the delivery log has counted the event as waiting, after this many
    /// attempts. A program of release 0.1 drops the mark with a retry. Then the event may be counted
    /// twice, or be taken off without having been counted. The record of that retry does not say what
    /// it changes, so that the number is a lower bound until everything was at rest.
    pub fn is_counted(&self, attempts: u16) -> bool {
        self.counted.unwrap_or(attempts > 0)
    }

    /// Notes whether a record has counted the event, which has had this many attempts.
    pub fn set_counted(&mut self, attempts: u16, is_counted: bool) {
        self.counted = (is_counted != (attempts > 0)).then_some(is_counted);
    }
}

impl DeliveryEntry {
    /// The `webhook-id` of the event when it travels alone, the same on every path.
    pub fn webhook_id(&self) -> Cow<'_, str> {
        match &self.marks.webhook_id {
            Some(kept) => kept.into(),
            None => webhook_id_of(&self.key).into(),
        }
    }
}

/// Names of subscriptions as messages and the delivery log have them: in lower case, with commas
/// in between, which no name has.
pub fn matched_names<'a>(names: impl Iterator<Item = &'a SubscriptionName>) -> String {
    let mut text = String::new();
    for name in names {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&name.folded_text());
    }
    text
}

/// The place of a dead letter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LetterPlace {
    /// The key of its object.
    pub object: String,
    /// The place of the event in the object, from 0.
    pub index: usize,
}

/// A delivery that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The reason why it was given up.
    pub reason: DeadLetterReason,
    /// The delivery, as it stood after its last attempt.
    pub delivery: Delivery,
    /// The trouble with the dead-letter bucket; `None` until it first refuses the dead letter. If
    /// only the notices are missing, the trouble with those.
    pub storage: Option<StorageTrouble>,
    /// The object that it lies in already, where only the notice about it is missing.
    pub object: Option<String>,
    /// Whether it was dropped, as its subscription asks, and only the notice about it is missing.
    /// It is not written to the bucket.
    pub dropped: bool,
    /// The time since which its link or its subscription was unhealthy when it was given up; `None`
    /// if both were healthy, or it was given up for a reason that no outage explains.
    pub outage_since: Option<Timestamp>,
}

/// The trouble of a dead letter that cannot reach its bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageTrouble {
    /// The first failure.
    pub since: Timestamp,
    /// The number of failures.
    pub failures: u32,
}

impl StorageTrouble {
    /// The trouble with one failure more.
    pub fn once_more(before: Option<Self>, now: Timestamp) -> Self {
        let before = before.unwrap_or(Self {
            since: now,
            failures: 0,
        });
        Self {
            failures: before.failures.saturating_add(1),
            ..before
        }
    }
}

impl DeadLetter {
    /// A dead letter as it is given up: nothing has become of it yet.
    pub fn new(reason: DeadLetterReason, delivery: Delivery) -> Self {
        Self {
            reason,
            delivery,
            storage: None,
            object: None,
            dropped: false,
            outage_since: None,
        }
    }

    /// The outcome of the last attempt. Without a finished attempt, an event that expired was held
    /// until then, and one that a function failed on again and again was cut short each time.
    pub fn last_outcome(&self) -> Option<OutcomeName> {
        let unfinished = match self.reason {
            DeadLetterReason::TimeToLiveExceeded => Some(OutcomeName::Probation),
            DeadLetterReason::HandlerFailed => Some(OutcomeName::Aborted),
            _ => None,
        };
        self.delivery.last.map(|last| last.outcome).or(unfinished)
    }

    /// Whether nothing but the notices about it is missing.
    pub fn asks_for_notices_only(&self) -> bool {
        self.dropped || self.object.is_some()
    }
}

impl LastAttempt {
    /// The end of the attempt without its time: the same for attempts that ended alike.
    pub fn without_time(self) -> Self {
        Self {
            at: Timestamp::EPOCH,
            ..self
        }
    }

    /// Whether the endpoint did not answer in time, so that it may answer late: a 408 is an answer,
    /// and what was not sent gets none.
    pub fn had_no_answer_in_time(self) -> bool {
        self.outcome == OutcomeName::TimedOut && self.status.is_none() && !self.was_unconnected
    }

    /// Whether the endpoint refused the content.
    pub fn was_refused(self) -> bool {
        self.status.is_some_and(refuses_content)
    }

    /// Notes an outcome that was not a success; `None` for a success.
    pub fn from_outcome(outcome: AttemptOutcome, at: Timestamp) -> Option<Self> {
        outcome.name().map(|name| Self {
            outcome: name,
            status: outcome.status(),
            at,
            name_was_unknown: outcome.is_unknown_name(),
            was_unconnected: outcome == AttemptOutcome::Failed(SendFailure::ConnectTimedOut),
            was_connected: outcome == AttemptOutcome::Failed(SendFailure::Closed),
            was_kept: outcome == AttemptOutcome::Failed(SendFailure::KeptTimedOut),
        })
    }
}

impl Delivery {
    /// The same delivery with other events: the rest of it, or a part of it.
    pub fn with_events(&self, events: Vec<DeliveryEntry>) -> Self {
        Self {
            topic: self.topic.clone(),
            subscription: self.subscription.clone(),
            schema: self.schema,
            published_at: self.published_at,
            not_before: self.not_before,
            attempts: self.attempts,
            last: self.last,
            timed_out: self.timed_out,
            identity: self.identity,
            hops: self.hops,
            events,
        }
    }

    /// The amount that the delivery log keeps of the delivery, where `default` is for a topic
    /// without a setting. If its subscription is gone, so is the setting of its topic: then an
    /// event that a record has counted as waiting gets the record of its end, without its payload.
    pub fn log_mode(
        &self,
        subscription: Option<&Subscription>,
        default: DeliveryLogMode,
    ) -> DeliveryLogMode {
        if let Some(subscription) = subscription {
            return subscription.delivery_log.unwrap_or(default);
        }
        let is_counted = self
            .events
            .iter()
            .any(|entry| entry.marks.is_counted(self.attempts));
        if default == DeliveryLogMode::Off && is_counted {
            DeliveryLogMode::Attempts
        } else {
            default
        }
    }

    /// Whether its events were accepted for this creation of their subscription.
    pub fn is_for(&self, subscription: &Subscription) -> bool {
        subscription
            .created
            .has_accepted(self.identity, self.published_at)
    }

    /// Whether its events were accepted for this creation of their subscription, according to a
    /// record that may be old: only equal identities are sure. Events without an identity are
    /// judged by their time.
    pub fn is_surely_for(&self, subscription: &Subscription) -> bool {
        match self.identity {
            Some(_) => subscription.created.identity() == self.identity,
            None => self.is_for(subscription),
        }
    }

    /// The time from which its events are to be delivered: that of their acceptance, or that of
    /// their release if they were published for later.
    pub fn begins_at(&self) -> Timestamp {
        let scheduled = self
            .events
            .iter()
            .filter_map(|entry| entry.marks.scheduled.as_ref());
        let latest = scheduled.map(|scheduled| scheduled.at).max();
        latest.map_or(self.published_at, |at| at.max(self.published_at))
    }

    /// Whether it was tried before, or waited for something: its endpoint may be unhealthy, even if
    /// the worker that has it now does not know.
    pub fn has_waited(&self) -> bool {
        self.attempts > 0 || self.not_before > self.begins_at()
    }

    /// The time at which the first of its events expires.
    pub fn expires_first(&self) -> Timestamp {
        self.events
            .iter()
            .map(|entry| entry.expires_at)
            .min()
            .unwrap_or(self.published_at)
    }

    /// Whether one of its events has expired.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        is_expired(self.expires_first(), now)
    }

    /// The `MessageGroupId`: SQS fair queues keep a noisy subscription from starving the others.
    pub fn message_group_id(&self) -> String {
        message_group_id(&self.topic, &self.subscription)
    }
}

/// The `MessageGroupId` of a subscription's messages: at most 129 characters would be one too many
/// for SQS, so the names' limit of 64 bytes each is what keeps this within 128 but for two names of
/// full length, whose last character is cut; groups need not be unique.
pub fn message_group_id(topic: &TopicName, subscription: &SubscriptionName) -> String {
    let mut group = format!("{}.{}", topic.folded_text(), subscription.folded_text());
    group.truncate(crate::model::limits::SQS_GROUP_ID_CHARS_MAX);
    group
}

/// Whether an event has expired. It is checked when its next attempt is due and right before its
/// request begins, never during an attempt.
pub fn is_expired(expires_at: Timestamp, now: Timestamp) -> bool {
    now >= expires_at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_id_never_breaks_the_limit_of_sqs() {
        let long = "x".repeat(64);
        let group = message_group_id(
            &TopicName::parse(&long).unwrap(),
            &SubscriptionName::parse(&long).unwrap(),
        );
        assert_eq!(group.len(), 128);
    }
}
