//! The events that were found by what a user has of them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::events::{DeliveryView, LogGapView};
use super::{DeadLetterView, IsoTimestamp};
use crate::delivery_log::DeliveryState;

/// The events that an id, a `webhook-id` or the key of a dead letter leads to, in any topic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundEvents {
    /// The text that was looked for.
    #[schema(example = "msg_018bcfe568007abc8def0123456789ab-0")]
    pub id: String,
    /// The events, the last accepted first. Empty if nothing was found.
    pub events: Vec<FoundEvent>,
    /// The dead letters in the object of this key, by their places in it. Left out where the text
    /// is no such key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dead_letters: Vec<DeadLetterView>,
    /// The time back to which the delivery log was searched. Left out where it has nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searched_from: Option<IsoTimestamp>,
    /// Whether the search of the log came to its time before its end. Then `searchedFrom` says how far
    /// back all was searched. False when left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut_short: bool,
    /// The time up to which the log is complete: records of what happened later may be missing.
    pub complete_until: IsoTimestamp,
    /// Earlier times of which the log may lack records, the oldest first. Left out where there are
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<LogGapView>,
    /// What this answer may lack, and why. Left out where there is nothing to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// An event of a topic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundEvent {
    /// The topic, as it was created; in lower case where it is gone.
    #[schema(example = "orders")]
    pub topic: String,
    /// The event's id.
    #[schema(example = "order-1001")]
    pub id: String,
    /// Where the event is: the least of the states of its deliveries. `unmatched` where it matched
    /// no subscription.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<DeliveryState>,
    /// The deliveries of the event, the last accepted first.
    pub deliveries: Vec<DeliveryView>,
}
