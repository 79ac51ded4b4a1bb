//! Recovery by itself: the policy of a subscription, and what an event carries that is sent again.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::zero::is_zero;
use crate::model::{RECOVERY_RATE_DEFAULT, RECOVERY_WITHIN_DEFAULT, Timestamp};

/// Whether dead letters of an outage are sent again by themselves, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryPolicy {
    /// Whether they are.
    pub enabled: bool,
    /// The time after an event's first acceptance in which it is sent again.
    pub within: Duration,
    /// Most events a second.
    pub rate_per_second: u32,
}

/// The earlier life of an event that is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EarlierLife {
    /// The time of its first acceptance, from a producer.
    pub accepted_at: Timestamp,
    /// The number of times that recovery has sent it, this one included.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub recoveries: u8,
}

impl RecoveryPolicy {
    /// The policy of a subscription that does not recover.
    pub const OFF: Self = Self {
        enabled: false,
        within: RECOVERY_WITHIN_DEFAULT,
        rate_per_second: RECOVERY_RATE_DEFAULT,
    };
}
