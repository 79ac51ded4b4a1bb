//! Dead letters by subscription and reason, as users see them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{IsoTimestamp, RecoveryView, ReplayFailure};
use crate::model::DeadLetterReason;
use crate::model::zero::is_zero;

/// The dead letters of a subscription that were given up for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LetterGroupView {
    /// The topic, as it was created; as in the keys where it is gone.
    pub topic: String,
    /// The subscription, likewise.
    pub subscription: String,
    /// The reason why they were given up. Left out where they name none that posthaste knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    pub reason: Option<DeadLetterReason>,
    /// The number of dead letters.
    pub letters: u64,
    /// The number of those that are resolved. Zero unless they are asked for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resolved: u64,
    /// The time at which the newest was written.
    pub newest_at: IsoTimestamp,
    /// The time at which the oldest was written, of those that were counted.
    pub oldest_at: IsoTimestamp,
    /// The HTTP statuses of their last attempts, the most frequent first. At most five.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<LetterStatusCount>,
    /// Whether the subscription, or the topic, was deleted: then they cannot be sent again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub owner_deleted: bool,
}

/// The number of dead letters whose last attempt had one HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LetterStatusCount {
    /// The status.
    pub status: u16,
    /// The number of dead letters.
    pub letters: u64,
}

/// Dead letters by subscription and reason, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LetterGroupPage {
    /// The groups, the one with the newest dead letter first. At most 1000.
    pub groups: Vec<LetterGroupView>,
    /// Objects that cannot be read as dead letters, with the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<ReplayFailure>,
    /// Dead letters that are sent again by themselves, of at most 20 subscriptions. Only where no
    /// `cursor` was sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recoveries: Vec<RecoveryView>,
    /// What else is to be known of the groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The time back to which all dead letters are counted, where older ones were not: then there
    /// are at least as many as the groups say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_back_to: Option<IsoTimestamp>,
    /// The place to count on: send it as `cursor`, and the groups are those of older dead letters.
    /// Left out where all are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}
