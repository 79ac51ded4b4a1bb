//! The state of back pressure as it is shown: what the monitor saw last, and what producers are told because of it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{IsoDuration, IsoTimestamp};
use crate::pressure::{Level, Measure, PressureState, Resource, ResourceState, Tier};

/// The pressure after the monitor's last poll.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PressureView {
    /// The highest level of a resource that has consequences: `normal`, `medium` or `high`.
    #[schema(value_type = String, example = "normal")]
    pub level: Level,
    /// Since when. Left out at `normal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<IsoTimestamp>,
    /// When the poll was. Left out before the first one. One that is long past says that the monitor stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polled_at: Option<IsoTimestamp>,
    /// Whether resources are watched at all.
    pub monitored: bool,
    /// How long acknowledgements wait.
    pub tarpit: IsoDuration,
    /// The tiers of producers that are refused, the most privileged first: `internal`, `standard`, `bulk`.
    #[schema(value_type = Vec<String>)]
    pub refused_tiers: Vec<Tier>,
    /// The resources that could be read.
    pub resources: Vec<PressureResource>,
}

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
    /// The last reading, in the resource's own unit.
    pub reading: u64,
    /// When it was read.
    pub read_at: IsoTimestamp,
    /// What it was held against.
    pub thresholds: PressureThresholds,
    /// Whether its level has consequences.
    pub acts: bool,
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

impl PressureView {
    /// A state as it is shown; without one, nothing is known yet and nothing is under pressure.
    pub fn new(state: Option<&PressureState>) -> Self {
        let tarpit = state.map(PressureState::tarpit).unwrap_or_default();
        Self {
            level: state.map(PressureState::level).unwrap_or_default(),
            since: state.and_then(PressureState::since).map(IsoTimestamp),
            polled_at: state.map(|state| IsoTimestamp(state.at)),
            monitored: state.is_none_or(|state| state.monitored),
            tarpit: IsoDuration(tarpit),
            refused_tiers: state.map(PressureState::refused_tiers).unwrap_or_default(),
            resources: state.iter().flat_map(|state| &state.resources).map(resource).collect(),
        }
    }
}

fn resource(state: &ResourceState) -> PressureResource {
    let thresholds = state.thresholds;
    PressureResource {
        resource: state.resource,
        level: state.level,
        since: IsoTimestamp(state.since),
        reading: state.reading,
        read_at: IsoTimestamp(state.read_at),
        thresholds: PressureThresholds {
            normal: thresholds.normal,
            medium: thresholds.medium,
            high: thresholds.high,
        },
        acts: state.acts,
        refused_from: state.refused_from,
        measures: state.measures.iter().copied().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;
    use serde_json::{Value, json};

    fn check(state: Option<&PressureState>, expected: &Value) {
        assert_eq!(&serde_json::to_value(PressureView::new(state)).unwrap(), expected);
    }

    #[test]
    fn before_the_first_poll_nothing_is_under_pressure() {
        let expected = json!({
            "level": "normal", "monitored": true, "tarpit": "PT0S", "refusedTiers": [], "resources": [],
        });
        check(None, &expected);
    }

    #[test]
    fn a_state_is_shown_with_times_people_read() {
        let resource = json!({
            "resource": "drain-time", "level": "medium", "since": 30_000, "reading": 70, "readAt": 60_000,
            "thresholds": { "normal": 30, "medium": 60, "high": 300 }, "acts": true, "polls": 15,
            "refusedFrom": "standard", "measures": ["alarm"],
        });
        let mut state = PressureState::normal(Timestamp::from_millis(60_000));
        state.tarpit_ms = 15_000;
        state.resources = vec![serde_json::from_value(resource).unwrap()];
        let expected = json!({
            "level": "medium", "since": "1970-01-01T00:00:30.000Z", "polledAt": "1970-01-01T00:01:00.000Z",
            "monitored": true, "tarpit": "PT15S", "refusedTiers": ["standard", "bulk"],
            "resources": [{
                "resource": "drain-time", "level": "medium", "since": "1970-01-01T00:00:30.000Z", "reading": 70,
                "readAt": "1970-01-01T00:01:00.000Z",
                "thresholds": { "normal": 30, "medium": 60, "high": 300 }, "acts": true,
                "refusedFrom": "standard", "measures": ["alarm"],
            }],
        });
        check(Some(&state), &expected);
    }
}
