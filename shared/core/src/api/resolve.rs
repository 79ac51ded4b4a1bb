//! Dead letters that are resolved or deleted by a request, as users ask for it and see it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{IsoTimestamp, ReplayFailure, ReplayRequest};
use crate::attempt::DeadLetterReason;

/// The dead letters of a subscription that are resolved or deleted. A member that is left out restricts
/// nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ResolveRequest {
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
    /// Only these objects, by their keys as a list shows them. They must be the subscription's own. At most
    /// 1000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Whether to include events that were accepted for an earlier subscription of this name, or on an
    /// earlier topic of its name, that was deleted and created again. False when left out.
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
    /// The replay that would send the same dead letters.
    pub fn selection(self, include_resolved: bool) -> ReplayRequest {
        let Self { from, to, reason, types, keys, include_former, .. } = self;
        ReplayRequest {
            from,
            to,
            reason,
            types,
            keys,
            include_former,
            include_resolved,
            ..ReplayRequest::default()
        }
    }
}

/// The dead letters that one request resolved or deleted, or would with `dryRun`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolveAnswer {
    /// The number of selected events.
    pub events: u64,
    /// The number of objects that have them.
    pub objects: u64,
    /// The number of those objects that are deleted. The selected events of the others are resolved, as an
    /// object is only deleted as a whole.
    pub deleted_objects: u64,
    /// The number of events, or whole objects, that could not be read. They stay as they are.
    pub failed: u64,
    /// The first of those events or objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<ReplayFailure>,
    /// The place at which the next request goes on: send it as `cursor`. Left out at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}
