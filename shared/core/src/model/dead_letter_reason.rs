//! The reasons for which events are given up.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::word::display_the_word;

/// The reason for which an event was given up: a closed list, explained in
/// docs/src/dead-letters.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum DeadLetterReason {
    /// The retry policy's attempts are used up.
    MaxDeliveryAttemptsExceeded,
    /// The event expired.
    TimeToLiveExceeded,
    /// The endpoint's answer says that a retry cannot help, or its host name does not exist.
    UndeliverableDueToClientError,
    /// The subscription, or its topic, was deleted while the event waited.
    SubscriptionDeleted,
    /// The endpoint answered 410.
    EndpointGone,
    /// The event was published while its subscription was disabled.
    SubscriptionDisabled,
    /// A message that is not ours.
    MalformedMessage,
    /// A message that a function failed on again and again.
    HandlerFailed,
}

display_the_word!(DeadLetterReason);

impl DeadLetterReason {
    /// Every reason.
    pub const ALL: [Self; 8] = [
        Self::MaxDeliveryAttemptsExceeded,
        Self::TimeToLiveExceeded,
        Self::UndeliverableDueToClientError,
        Self::SubscriptionDeleted,
        Self::EndpointGone,
        Self::SubscriptionDisabled,
        Self::MalformedMessage,
        Self::HandlerFailed,
    ];

    /// The reason's word, as dead letters have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MaxDeliveryAttemptsExceeded => "MaxDeliveryAttemptsExceeded",
            Self::TimeToLiveExceeded => "TimeToLiveExceeded",
            Self::UndeliverableDueToClientError => "UndeliverableDueToClientError",
            Self::SubscriptionDeleted => "SubscriptionDeleted",
            Self::EndpointGone => "EndpointGone",
            Self::SubscriptionDisabled => "SubscriptionDisabled",
            Self::MalformedMessage => "MalformedMessage",
            Self::HandlerFailed => "HandlerFailed",
        }
    }
}
