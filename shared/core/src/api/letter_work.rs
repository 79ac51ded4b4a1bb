//! Work that resolves or deletes dead letters, as users see it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{IsoTimestamp, ResolveRequest};
use crate::model::zero::is_zero;
use crate::model::{SubscriptionName, TopicName};

/// What becomes of the dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum LetterWorkAction {
    /// They are resolved.
    Resolve,
    /// They are deleted.
    Delete,
}

/// The state of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum LetterWorkState {
    /// A process works on it, or did less than a minute ago.
    Running,
    /// It is to be gone on with, within two minutes, where its process left it.
    Waiting,
    /// All is done.
    Done,
    /// An operator cancelled it. What was done by then stays done.
    Cancelled,
    /// A state that only a newer posthaste knows.
    #[serde(other)]
    Unknown,
}

/// The work of one request that resolves or deletes dead letters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LetterWork)]
pub struct LetterWorkView {
    /// The id, as the answer to the request for it said.
    pub id: String,
    /// The topic.
    #[schema(value_type = String)]
    pub topic: TopicName,
    /// The subscription.
    #[schema(value_type = String)]
    pub subscription: SubscriptionName,
    /// What becomes of the dead letters.
    #[schema(inline)]
    pub action: LetterWorkAction,
    /// The state.
    #[schema(inline)]
    pub state: LetterWorkState,
    /// The request, with its times fixed and without its `letters`.
    pub request: ResolveRequest,
    /// The number of `letters` that it named.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub letters_named: usize,
    /// The time of the request.
    pub began_at: IsoTimestamp,
    /// The time of the last progress.
    pub worked_at: IsoTimestamp,
    /// The time at which all was done, or at which it was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<IsoTimestamp>,
    /// The number of events that were resolved or deleted so far. Written down every few seconds.
    pub events: u64,
    /// The number of objects that had them.
    pub objects: u64,
    /// The number of those objects that were deleted.
    pub deleted_objects: u64,
    /// The number of events, or whole objects, that could not be read or written. They stay as they
    /// are.
    pub failed: u64,
    /// The number of objects that were looked at so far.
    pub objects_read: u64,
    /// The number of objects that are yet to be looked at. Only of one that has not ended, where it
    /// is shown by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects_left: Option<u64>,
    /// Whether there are more of those than were counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_more_left: bool,
}

/// One page of the work.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LetterWorkPage {
    /// The work, the newest of the page first.
    pub work: Vec<LetterWorkView>,
    /// The beginning of the next page: send it as `cursor`. Left out on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}
