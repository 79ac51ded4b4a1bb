//! Replays of dead letters as users ask for them and see them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

use super::{DeadLetterPlace, IsoTimestamp, LeftOutCounts};
use crate::delivery_log::{DeliveryHistory, DeliveryState};
use crate::model::word::display_the_word;
use crate::model::zero::is_zero;
use crate::model::{
    DeadLetterReason, REPLAY_FAILURES_SHOWN_MAX, SubscriptionName, Timestamp, TopicName,
    WrittenTime,
};

/// The place where a replay finds the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum ReplaySource {
    /// The dead letters.
    #[default]
    DeadLetters,
    /// The delivery log: also events that were delivered.
    Log,
}

/// How the delivery of an event ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayResult {
    /// The endpoint took it.
    Delivered,
    /// It was given up: `dead-lettered` or `dropped`.
    Failed,
    /// It was given up and is a dead letter.
    DeadLettered,
    /// It was given up, and its subscription keeps no such dead letters.
    Dropped,
}

impl ReplaySource {
    /// Whether the dead letters are meant, as where nothing is said.
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the shape that serde asks for"
    )]
    fn is_default(&self) -> bool {
        *self == Self::DeadLetters
    }
}

/// The events of a subscription that are delivered again, and how fast. A member that is left out
/// restricts nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a member of its own")]
pub struct ReplayRequest {
    /// Where the events are found: `deadLetters` when left out.
    #[serde(default, skip_serializing_if = "ReplaySource::is_default")]
    #[schema(inline)]
    pub source: ReplaySource,
    /// Only events whose delivery ended like this. Only with the source `log`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    pub result: Option<ReplayResult>,
    /// Only events whose last attempt was answered with this status, such as `503`, or with one of
    /// a class, such as `5xx`. Only with the source `log`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Only objects written at this time or later. With the source `log`: only events whose
    /// delivery ended at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<IsoTimestamp>)]
    pub from: Option<WrittenTime>,
    /// Only objects written before this time, or events whose delivery ended before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<IsoTimestamp>)]
    pub to: Option<WrittenTime>,
    /// Only events that were given up for this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    pub reason: Option<DeadLetterReason>,
    /// Only events of these types, compared exactly. At most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// Only these objects, by their keys as a list shows them. They must be the subscription's
    /// own. At most 1000. Only with the source `deadLetters`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Only these letters, by the keys of their objects and their places in them, as a list shows
    /// them. They must be the subscription's own. At most 1000, and not beside `keys`. Only with the
    /// source `deadLetters`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub letters: Vec<DeadLetterPlace>,
    /// Whether to include events that were accepted for an earlier subscription of this name, or
    /// on an earlier topic of its name, that was deleted and created again. False when left
    /// out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub include_former: bool,
    /// Whether to include dead letters that are resolved: delivered again, failed again and
    /// written anew, or resolved by hand. False when left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub include_resolved: bool,
    /// Whether events get a new `webhook-id`, for a receiver that would drop what it has seen. False
    /// when left out: they keep their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new_id: bool,
    /// Only count: nothing is written, and the answer is a preview.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The number of events that are delivered per second, 1 to 1000. 100 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub rate_per_second: Option<u32>,
}

impl ReplayRequest {
    /// The request with the times that its own are `now`. It means the same whenever it is read
    /// again.
    pub fn with_fixed_times(self, now: Timestamp) -> Self {
        let (from, to) = WrittenTime::fixed_period(self.from, self.to, now);
        Self { from, to, ..self }
    }
}

/// The state of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum ReplayState {
    /// Events are being sent, or will be within a minute.
    Running,
    /// The replay goes on by itself once its `reason` is over.
    Waiting,
    /// Every event that was asked for is queued, or counted as failed. `outcomes` says what became
    /// of them.
    Done,
    /// It has ended, and no event got through: none could be queued, or, where `outcomes` says what
    /// became of them, each one failed again.
    Failed,
    /// The replay ended early.
    Cancelled,
    /// A state that only a newer posthaste knows. It is only read.
    #[serde(other)]
    Unknown,
}

/// The reason for which a replay waits or was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum ReplayReason {
    /// Back pressure: a replay is the first to be held back.
    Pressure,
    /// The subscription is pending, paused, failed or disabled.
    SubscriptionNotActive,
    /// The dead letters could not be read, or the queue did not take the events.
    Unavailable,
    /// An operator cancelled the replay.
    Requested,
    /// The subscription, or its topic, was deleted.
    SubscriptionDeleted,
    /// The endpoint is not well, or has not been for long enough: recovery waits.
    Outage,
    /// Recovery of the subscription was turned off.
    RecoveryOff,
}

display_the_word!(ReplayState, ReplayReason);

/// An event or an object that could not be queued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayFailure {
    /// The key of the object.
    pub key: String,
    /// The place of the event in the object, from 0. Left out where it is the whole object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// The reason.
    pub detail: String,
}

impl ReplayFailure {
    /// The failure of a whole object.
    pub fn of_object(key: &str, detail: String) -> Self {
        Self {
            key: key.to_owned(),
            index: None,
            detail,
        }
    }

    /// The failure of the event at this place of an object, from 0.
    pub fn of_letter(key: &str, index: usize, detail: String) -> Self {
        Self {
            index: Some(index),
            ..Self::of_object(key, detail)
        }
    }

    /// Adds the failure to those that are shown, while there is room.
    pub fn show_in(self, shown: &mut Vec<Self>) {
        if shown.len() < REPLAY_FAILURES_SHOWN_MAX {
            shown.push(self);
        }
    }
}

/// A replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayView {
    /// The id of the replay: `GET /replays/{id}` shows the replay, `DELETE` cancels it.
    #[schema(example = "20261121T101500Z-0b8b9c5e")]
    pub id: String,
    /// The topic.
    #[schema(value_type = String)]
    pub topic: TopicName,
    /// The subscription.
    #[schema(value_type = String)]
    pub subscription: SubscriptionName,
    /// The state of the replay.
    pub state: ReplayState,
    /// The reason for which the replay waits or was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ReplayReason>,
    /// The number of objects that were read to their end.
    pub objects: u64,
    /// The number of events in them that were asked for.
    pub found: u64,
    /// The number of those events that were queued to be delivered again. One that the endpoint
    /// refuses again is a new dead letter, written after `createdAt`.
    #[serde(alias = "replayed")]
    pub queued: u64,
    /// The number of events that were left out because they are resolved.
    #[serde(default)]
    pub resolved: u64,
    /// The numbers of events, and of whole objects, that were left out, by the reason: events of an
    /// earlier subscription of the name (`former`), given up for another reason (`otherReason`), or
    /// of another type (`otherType`); objects written at another time (`otherTime`), or whose keys
    /// tell no time (`noTime`); of the delivery log, deliveries that had not ended (`notEnded`),
    /// that a replay or a resend made (`sentAgain`), that ended in another way (`otherResult`), or
    /// with another status (`otherStatus`). Left out where there are none.
    #[serde(default, skip_serializing_if = "LeftOutCounts::is_empty")]
    #[schema(value_type = BTreeMap<String, u64>, example = json!({ "former": 3 }))]
    pub left_out: LeftOutCounts,
    /// The number of events, or whole objects, that could not be queued. Refusals of the endpoint
    /// are not counted.
    pub failed: u64,
    /// The first of those events or objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<ReplayFailure>,
    /// What became of the queued events. Left out of lists that are not asked for it, and where the
    /// delivery log is off or cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcomes: Option<ReplayOutcomes>,
    /// The time of the request for the replay.
    pub created_at: IsoTimestamp,
    /// The time of the last progress.
    pub updated_at: IsoTimestamp,
    /// The number of `letters` that the request named. They are left out of `request`, so that a
    /// list stays short, and commands of an older release can read it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub letters_named: usize,
    /// The outage whose dead letters it recovers, if nobody asked for it: posthaste began it by
    /// itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoveredOutage>,
    /// The request for the replay.
    pub request: ReplayRequest,
}

/// The outage whose dead letters a replay recovers by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecoveredOutage {
    /// The time since which the endpoint was not well.
    pub outage_since: IsoTimestamp,
}

/// What became of the queued events of a replay, as the delivery log says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayOutcomes {
    /// The number of events that the endpoint took.
    pub delivered: u64,
    /// The number of events that were given up again: new dead letters, or dropped.
    pub failed_again: u64,
    /// The number of events that are still tried, or held. An event without a record is one of
    /// them.
    pub waiting: u64,
    /// The time up to which every record is in the log.
    pub complete_until: IsoTimestamp,
    /// Whether the log has more of this replay than was read, or may lack records of its time. Then
    /// more events may have ended than these numbers say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
}

impl ReplayView {
    /// The same with what became of the queued events, as far as it is known. A replay of which
    /// each event failed again has failed.
    #[must_use]
    pub fn with_outcomes(self, outcomes: Option<ReplayOutcomes>) -> Self {
        let has_failed = outcomes.as_ref().is_some_and(ReplayOutcomes::are_failures);
        let state = match self.state {
            ReplayState::Done if has_failed => ReplayState::Failed,
            state => state,
        };
        Self {
            state,
            outcomes,
            ..self
        }
    }
}

impl ReplayOutcomes {
    /// Whether each event was given up again.
    fn are_failures(&self) -> bool {
        self.failed_again > 0 && self.delivered == 0 && self.waiting == 0
    }

    /// Counts the deliveries of a replay that queued this many events.
    pub fn count_deliveries(
        queued: u64,
        deliveries: &[DeliveryHistory],
        complete_until: Timestamp,
    ) -> Self {
        let mut delivered = 0;
        let mut failed_again = 0;
        for delivery in deliveries {
            match delivery.state {
                DeliveryState::Delivered => delivered += 1,
                DeliveryState::DeadLettered | DeliveryState::Dropped => failed_again += 1,
                DeliveryState::Pending
                | DeliveryState::Unmatched
                | DeliveryState::Waiting
                | DeliveryState::Held
                | DeliveryState::Unknown => {}
            }
        }
        let waiting = queued.saturating_sub(delivered + failed_again);
        let complete_until = IsoTimestamp(complete_until);
        Self {
            delivered,
            failed_again,
            waiting,
            complete_until,
            is_partial: false,
        }
    }
}

/// One page of replays, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReplayPage {
    /// The replays.
    pub replays: Vec<ReplayView>,
    /// The beginning of the next page: send it as `cursor`. Left out on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// The work of a replay, as a dry run finds it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayPreview {
    /// Whether every object was read, and the log lacks nothing of that time. If not, there is at least as much as this.
    pub is_complete: bool,
    /// The number of objects with events that were asked for.
    pub objects: u64,
    /// The number of those events.
    pub events: u64,
    /// The same by the reason for which they were given up.
    pub by_reason: BTreeMap<String, u64>,
    /// The number of events that are left out because they are resolved.
    #[serde(default)]
    pub resolved: u64,
    /// The numbers of events, and of whole objects, that were left out, by the reason: events of an
    /// earlier subscription of the name (`former`), given up for another reason (`otherReason`), or
    /// of another type (`otherType`); objects written at another time (`otherTime`), or whose keys
    /// tell no time (`noTime`); of the delivery log, deliveries that have not ended (`notEnded`), that a
    /// replay or a resend made (`sentAgain`), that ended in another way (`otherResult`), or with
    /// another status (`otherStatus`). Left out where there are none.
    #[serde(default, skip_serializing_if = "LeftOutCounts::is_empty")]
    #[schema(value_type = BTreeMap<String, u64>, example = json!({ "former": 3 }))]
    pub left_out: LeftOutCounts,
    /// The number of events, or whole objects, that could not be sent again.
    pub failed: u64,
    /// The first of those events or objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<ReplayFailure>,
    /// The ids of the first events.
    pub ids: Vec<String>,
}

impl ReplayPreview {
    /// Counts something that could not be sent again, and shows it while there is room.
    pub fn add_failure(&mut self, failure: ReplayFailure) {
        self.failed += 1;
        failure.show_in(&mut self.failures);
    }
}
