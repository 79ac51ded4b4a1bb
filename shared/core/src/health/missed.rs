//! Dead letters of what disabled subscriptions miss: how many there are, and the end of them, of
//! which an operator is told before.

use serde::{Deserialize, Serialize};

use crate::model::{KeepingMissed, Subscription, SubscriptionStatus, Timestamp};

/// Dead letters of a disabled subscription with the reason `SubscriptionDisabled`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MissedEvents {
    /// The number of events.
    pub events: u64,
    /// Bytes of their dead letters.
    pub bytes: u64,
    /// Whether those of all subscriptions have nearly all the room that there is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_little_room: bool,
    /// Whether something of this one was skipped for want of room.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_skipped: bool,
    /// The end of which an operator is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<MissedEnd>,
}

/// An end of keeping what a subscription misses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MissedEnd {
    /// The time at which the subscription was disabled.
    pub disabled_at: Timestamp,
    /// The time at which it was found to be near.
    pub found_at: Timestamp,
    /// The time from which on events are skipped. `None`: only when there is no more room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Whether it was found because there is little room, before the time was near.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_room: bool,
    /// Whether the notice was sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
}

/// The state of a subscription that misses events, as its record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissedFacts {
    /// It is disabled since then, and keeps what it misses for so long.
    Disabled(Timestamp, KeepingMissed),
    /// It is not disabled, or it does not exist any more.
    Other,
}

impl MissedFacts {
    /// The facts of a subscription; `None` is one that does not exist.
    pub fn for_subscription(subscription: Option<&Subscription>, now: Timestamp) -> Self {
        let disabled = subscription.filter(|it| it.status_at(now) == SubscriptionStatus::Disabled);
        disabled.map_or(Self::Other, |it| {
            let disabled_at = it.status_since.unwrap_or(Timestamp::EPOCH);
            Self::Disabled(disabled_at, it.keeping_missed())
        })
    }
}
