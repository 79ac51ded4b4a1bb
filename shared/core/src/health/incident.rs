//! Incidents: what fails, since when, and whether an operator was told.
//!
//! An incident is written before its notice is sent, and marked afterwards. So whoever finds one
//! that is not marked sends the notice, with the same id.

use serde::{Deserialize, Serialize};

use super::missed::MissedEnd;
use crate::model::Timestamp;

/// A subscription that is failing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionIncident {
    /// The time of its first failure.
    pub since: Timestamp,
    /// The link that is its cause. Then the notices are the link's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Whether the notice was sent that it is failing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
    /// The time at which it was found to be over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered_at: Option<Timestamp>,
}

/// A link whose subscriptions are failing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkIncident {
    /// The time of the first failure on it.
    pub since: Timestamp,
    /// Whether the circuit held the link itself. Otherwise many of its subscriptions failed at
    /// once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_circuit: bool,
    /// Whether the notice was sent that it is failing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
    /// The time at which it was found to be over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered_at: Option<Timestamp>,
}

/// An event that has been undelivered for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DelayedEvent {
    /// The time at which the event was accepted.
    pub accepted_at: Timestamp,
    /// Whether the notice was sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
}

/// A notice that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DueNotice {
    /// A subscription is failing.
    Failing {
        /// The key of the subscription in the book.
        key: String,
        /// The incident.
        incident: SubscriptionIncident,
    },
    /// A subscription is healthy again.
    Recovered {
        /// The key of the subscription in the book.
        key: String,
        /// The incident.
        incident: SubscriptionIncident,
    },
    /// An event of a subscription is undelivered for too long.
    Delayed {
        /// The key of the subscription in the book.
        key: String,
        /// The event.
        delayed: DelayedEvent,
    },
    /// Events that a disabled subscription misses will not be kept any more.
    MissedEnds {
        /// The key of the subscription in the book.
        key: String,
        /// The end.
        end: MissedEnd,
    },
    /// A link is failing.
    LinkFailing {
        /// The link.
        link: String,
        /// The incident.
        incident: LinkIncident,
    },
    /// A link is well again.
    LinkRecovered {
        /// The link.
        link: String,
        /// The incident.
        incident: LinkIncident,
    },
}
