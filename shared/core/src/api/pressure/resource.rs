//! One resource as it is shown.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::freshness::PressureFreshness;
use crate::api::IsoTimestamp;
use crate::pressure::{Level, Measure, Resource, ResourceState, Thresholds, Tier};

/// One resource after the monitor's last poll.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PressureResource {
    /// Which one.
    #[schema(value_type = String, example = "submission-queue")]
    pub resource: Resource,
    /// Its level: `normal`, `medium` or `high`.
    #[schema(value_type = String, example = "normal")]
    pub level: Level,
    /// Since when it is at that level.
    pub since: IsoTimestamp,
    /// The last reading.
    pub reading: u64,
    /// The unit of the reading and of the thresholds. On AWS there is no disk; `database-disk` is a share of the messages
    /// that a queue can have in flight there.
    #[serde(default)]
    #[schema(example = "messages")]
    pub unit: String,
    /// When it was read.
    pub read_at: IsoTimestamp,
    /// What it was held against.
    pub thresholds: PressureThresholds,
    /// Whether its level has consequences.
    pub acts: bool,
    /// How many polls in a row it was not `normal`, and had consequences.
    #[serde(default)]
    pub polls: u32,
    /// After how many of them producers are refused on its account. Left out where that is at once, or never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_depth: Option<u32>,
    /// Whether there were so many. Left out with `historyDepth`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_passed: Option<bool>,
    /// The most privileged tier that is refused on its account, and with it every less privileged one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub refused_from: Option<Tier>,
    /// What else is done on its account.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub measures: Vec<Measure>,
}

/// The three thresholds of a resource, in its own unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PressureThresholds {
    /// Below it the level goes back to `normal`.
    pub normal: u64,
    /// From here on the level is `medium`.
    pub medium: u64,
    /// From here on the level is `high`.
    pub high: u64,
}

impl PressureResource {
    /// A resource as it was read. What it does to producers is left out as far as the state is not taken at its word.
    pub(super) fn new(state: &ResourceState, freshness: PressureFreshness) -> Self {
        let (is_current, is_forgotten) =
            (freshness == PressureFreshness::Current, freshness == PressureFreshness::Forgotten);
        Self {
            resource: state.resource,
            level: state.level,
            since: IsoTimestamp(state.since),
            reading: state.reading,
            unit: state.unit().to_owned(),
            read_at: IsoTimestamp(state.read_at),
            thresholds: state.thresholds.into(),
            acts: state.acts && !is_forgotten,
            polls: state.polls,
            history_depth: state.history_depth,
            history_passed: state.history_passed(),
            refused_from: state.refused_from.filter(|_| is_current),
            measures: state.measures.iter().copied().filter(|_| !is_forgotten).collect(),
        }
    }
}

impl From<Thresholds> for PressureThresholds {
    fn from(Thresholds { normal, medium, high }: Thresholds) -> Self {
        Self { normal, medium, high }
    }
}
