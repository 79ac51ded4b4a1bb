//! Dead letters in lists, and those that a request resolves or deletes, as users ask for them and
//! see them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    DeadLetterPlace, IsoTimestamp, LeftOutCounts, RecoveryView, ReplayFailure, ReplayRequest,
};
use crate::model::{DeadLetterReason, Timestamp, WrittenTime};

/// A dead letter in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterView {
    /// The key of its object, for `GET /dead-letters/{key}`.
    #[schema(example = "ORDERS/BILLING/2026/11/21/10/0b8b9c5e-6a0c-4a57-9d0c-3c2a7d1f6f1e.json")]
    pub object: String,
    /// Its place in the object, from 0.
    pub index: usize,
    /// The topic, as it was created; as in the key where it is gone.
    pub topic: String,
    /// The subscription, likewise.
    pub subscription: String,
    /// The event's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The event's type.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// The reason why it was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The number of attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u16>,
    /// The HTTP status of the last attempt, if there was an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The time at which the object was written; of a copied object, the hour in its key.
    pub written_at: IsoTimestamp,
    /// Whether it is resolved. Such letters are left out unless asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resolved: bool,
    /// Whether its subscription, or the topic, was deleted: then it cannot be sent again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub owner_deleted: bool,
}

/// One page of dead letters, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterPage {
    /// The dead letters.
    pub dead_letters: Vec<DeadLetterView>,
    /// Objects that cannot be read as dead letters, with the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<ReplayFailure>,
    /// Dead letters that are sent again by themselves, of at most 20 subscriptions. Only on the
    /// first page.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recoveries: Vec<RecoveryView>,
    /// What else is to be known of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The beginning of the next page: send it as `cursor`. Left out on the last page. A page may
    /// be empty and still have one, where a filter passed over many objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// The time back to which was searched. Left out on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searched_back_to: Option<IsoTimestamp>,
}

/// The dead letters of a subscription that are resolved or deleted. A member that is left out
/// restricts nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ResolveRequest {
    /// Only objects written at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<IsoTimestamp>)]
    pub from: Option<WrittenTime>,
    /// Only objects written before this time.
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
    /// own. At most 1000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Only these letters, by the keys of their objects and their places in them, as a list shows
    /// them. They must be the subscription's own. At most 1000, and not beside `keys`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub letters: Vec<DeadLetterPlace>,
    /// Whether to include events that were accepted for an earlier subscription of this name, or
    /// on an earlier topic of its name, that was deleted and created again. False when left
    /// out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub include_former: bool,
    /// Only count: nothing is written or deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The place to go on: the `cursor` of the answer before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl ResolveRequest {
    /// The request with the times that its own are `now`. It means the same whenever it is read
    /// again.
    pub fn with_fixed_times(self, now: Timestamp) -> Self {
        let (from, to) = WrittenTime::fixed_period(self.from, self.to, now);
        Self { from, to, ..self }
    }

    /// The replay that would send the same dead letters.
    pub fn into_replay_request(self, include_resolved: bool) -> ReplayRequest {
        ReplayRequest {
            from: self.from,
            to: self.to,
            reason: self.reason,
            types: self.types,
            keys: self.keys,
            letters: self.letters,
            include_former: self.include_former,
            include_resolved,
            ..ReplayRequest::default()
        }
    }
}

/// The dead letters that one request resolved or deleted, or would with `dryRun`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ResolveAnswer)]
pub struct ResolveResponse {
    /// The id of the work, which all who ask for the same while it goes on get. Left out of a dry
    /// run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Whether an earlier request for the same is still being worked on: this one did nothing, and
    /// its numbers are zero.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_progress: bool,
    /// The number of selected events.
    pub events: u64,
    /// The number of objects that have them.
    pub objects: u64,
    /// The number of those objects that are deleted. The selected events of the others are
    /// resolved, as an object is only deleted as a whole.
    pub deleted_objects: u64,
    /// The number of events that were left out because they are resolved already.
    #[serde(default)]
    pub resolved: u64,
    /// The numbers of events, and of whole objects, that were left out, by the reason: events of an
    /// earlier subscription of the name (`former`), given up for another reason (`otherReason`), or
    /// of another type (`otherType`); objects written at another time (`otherTime`), or whose keys
    /// tell no time (`noTime`). Left out where there are none.
    #[serde(default, skip_serializing_if = "LeftOutCounts::is_empty")]
    #[schema(value_type = BTreeMap<String, u64>, example = json!({ "former": 3 }))]
    pub left_out: LeftOutCounts,
    /// The number of events, or whole objects, that could not be read. They stay as they are.
    pub failed: u64,
    /// The first of those events or objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<ReplayFailure>,
    /// The place at which the next request goes on: send it as `cursor`. Left out at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl ResolveResponse {
    /// Counts an event, or a whole object, that could not be read, and shows it while there is
    /// room.
    pub fn add_failure(&mut self, failure: ReplayFailure) {
        self.failed += 1;
        failure.show_in(&mut self.failures);
    }
}

/// Dead letters of another installation that are put in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ImportAnswer)]
pub struct ImportResponse {
    /// The number of objects that were written.
    pub objects: u64,
    /// The number of dead letters in them.
    pub dead_letters: u64,
    /// The number of those that are resolved.
    pub resolved: u64,
    /// The number of objects that were there already. They, and what is resolved in them, stay as
    /// they are.
    pub left_objects: u64,
    /// The number of dead letters of the request in those.
    pub left_dead_letters: u64,
}

/// A dead-letter object of another installation.
#[derive(ToSchema)]
#[schema(as = ImportedObject)]
#[expect(dead_code, reason = "described here, read as it is stored")]
pub struct ImportedObjectView {
    /// The key, which it keeps.
    #[schema(example = "ORDERS/BILLING/2026/11/21/10/0b8b9c5e-6a0c-4a57-9d0c-3c2a7d1f6f1e.json")]
    object: String,
    /// Its dead letters as they are stored, in order.
    letters: Vec<serde_json::Value>,
    /// The list of those that are resolved, as it is stored. Left out where none is.
    resolved: Option<serde_json::Value>,
}

/// Dead-letter objects of another installation, at most 100.
#[derive(ToSchema)]
#[schema(as = ImportRequest)]
#[expect(dead_code, reason = "described here, read as it is stored")]
pub struct ImportRequestView {
    /// The objects.
    objects: Vec<ImportedObjectView>,
}
