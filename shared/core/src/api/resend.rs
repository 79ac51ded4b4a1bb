//! One event that is sent again, as users ask for it and see it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::IsoTimestamp;

/// The event that is sent again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ResendRequest {
    /// The key of the delivery, as `GET /topics/{topic}/events/{id}` shows it. Needed where a
    /// producer gave the id to several events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The dead letter that is sent, as a list of dead letters names it; not beside `key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    pub dead_letter: Option<DeadLetterPlace>,
    /// Whether the event gets a new `webhook-id`, for a receiver that would drop what it has seen.
    /// False when left out: it keeps its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new_id: bool,
}

/// The place of a dead letter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeadLetterPlace {
    /// The key of its object.
    pub object: String,
    /// Its place in the object, from 0.
    pub index: usize,
}

/// A scheduled event that was taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelledEventView {
    /// The event's id.
    pub id: String,
    /// The time until which what was published with this id is taken back.
    pub cancelled_at: IsoTimestamp,
    /// What that means.
    pub note: String,
}

/// The new delivery of an event that is sent again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResendView {
    /// The event's id.
    pub id: String,
    /// The key of the new delivery.
    pub key: String,
    /// The event's `webhook-id`, the one that it had before unless a new one was asked for. A batch
    /// that it travels in has one of its own.
    pub webhook_id: String,
    /// Whether an earlier delivery of the event still waits: that copy may arrive too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub earlier_waits: bool,
    /// The time back to which the delivery log was searched, where that is not all of it: earlier
    /// deliveries are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searched_from: Option<IsoTimestamp>,
    /// What else may arrive, and what another request would do.
    pub note: String,
}
