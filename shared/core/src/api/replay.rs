//! Replays of dead letters as users ask for them and see them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

use super::IsoTimestamp;
use crate::attempt::DeadLetterReason;
use crate::model::{SubscriptionName, TopicName};

/// Which dead letters of a subscription are delivered again, and how fast. What is left out restricts nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ReplayRequest {
    /// Only objects written at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<IsoTimestamp>,
    /// Only objects written before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<IsoTimestamp>,
    /// Only events that were given up for this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    pub reason: Option<DeadLetterReason>,
    /// Only events of these types, compared exactly. At most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// Only these objects, by their keys as a list shows them. They must be the subscription's own. At most 1000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Also what was accepted for an earlier subscription of this name, or on an earlier topic of its name, that was
    /// deleted and created again. False when left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub include_former: bool,
    /// Only count: nothing is written, and the answer is a preview.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// How many events are delivered per second, 1..=1000. 100 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub rate_per_second: Option<u32>,
}

/// Where a replay stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum ReplayState {
    /// Events are being sent, or will be within a minute.
    Running,
    /// It goes on by itself once its `reason` is over.
    Waiting,
    /// Everything that was asked for was looked at, and is queued or counted as failed. What endpoints answered is not known
    /// here.
    Done,
    /// It ended before.
    Cancelled,
}

/// Why a replay waits, or why it was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum ReplayReason {
    /// Back pressure: a replay is the first to be held back.
    Pressure,
    /// The subscription is pending, paused, failed or disabled.
    SubscriptionNotActive,
    /// The dead letters could not be read, or the queue did not take the events.
    Unavailable,
    /// Somebody cancelled it.
    Requested,
    /// The subscription, or its topic, was deleted.
    SubscriptionDeleted,
}

/// What could not be queued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayFailure {
    /// The object it lies in.
    pub key: String,
    /// Its place in the object, from 0. Left out where it is the whole object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// Why.
    pub detail: String,
}

/// A replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayView {
    /// Its id: `GET /replays/{id}` shows it, `DELETE` cancels it.
    #[schema(example = "20261121T101500Z-0b8b9c5e")]
    pub id: String,
    /// The topic.
    #[schema(value_type = String)]
    pub topic: TopicName,
    /// The subscription.
    #[schema(value_type = String)]
    pub subscription: SubscriptionName,
    /// Where it stands.
    pub state: ReplayState,
    /// Why it waits, or was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ReplayReason>,
    /// How many objects were looked at to their end.
    pub objects: u64,
    /// How many events in them were asked for.
    pub found: u64,
    /// How many of those were queued to be delivered again. One that the endpoint refuses again is a new dead letter, written
    /// after `createdAt`.
    #[serde(alias = "replayed")]
    pub queued: u64,
    /// How many events, or whole objects, could not be queued. It does not count what the endpoint refuses.
    pub failed: u64,
    /// The first of those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<ReplayFailure>,
    /// When it was asked for.
    pub created_at: IsoTimestamp,
    /// When it last made progress.
    pub updated_at: IsoTimestamp,
    /// What was asked for.
    pub request: ReplayRequest,
}

/// One page of replays, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReplayPage {
    /// The replays.
    pub replays: Vec<ReplayView>,
    /// Where the next page begins: to be given back as `cursor`. Left out on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// What a replay would do: the answer to a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayPreview {
    /// Whether everything was looked at. If not, there is at least as much as this.
    pub is_complete: bool,
    /// How many objects hold events that were asked for.
    pub objects: u64,
    /// How many events those are.
    pub events: u64,
    /// The same by the reason for which they were given up.
    pub by_reason: BTreeMap<String, u64>,
    /// How many events, or whole objects, could not be sent again.
    pub failed: u64,
    /// The first of those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<ReplayFailure>,
    /// The ids of the first events.
    pub ids: Vec<String>,
}
