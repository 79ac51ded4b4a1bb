//! The state of back pressure as it is shown: what the monitor saw last, and what producers get because of
//! it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{IsoDuration, IsoTimestamp};
use crate::model::Timestamp;
use crate::pressure::{
    Admission, Level, Measure, PressureState, Resource, ResourceState, Thresholds, Tier, admit,
};

/// The pressure as producers get it now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PressureView {
    /// The highest level of a resource that has consequences: `normal`, `medium` or `high`.
    #[schema(value_type = String, example = "normal")]
    pub level: Level,
    /// Since when. Left out at `normal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<IsoTimestamp>,
    /// When the poll was. Left out before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polled_at: Option<IsoTimestamp>,
    /// Whether the last poll is taken at its word.
    #[serde(default)]
    pub freshness: PressureFreshness,
    /// Whether resources are watched at all.
    pub monitored: bool,
    /// How long acknowledgements wait. Where producers are advised instead (429), how long they are asked to wait.
    pub tarpit: IsoDuration,
    /// How long they will after the next poll, if that finds the same. Left out where nobody waits then or now, and where
    /// it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_tarpit: Option<IsoDuration>,
    /// The tiers of producers that wait for so long.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub delayed_tiers: Vec<Tier>,
    /// The tiers of producers that are refused, the most privileged first: `internal`, `standard`, `bulk`.
    #[schema(value_type = Vec<String>)]
    pub refused_tiers: Vec<Tier>,
    /// The resources that could be read.
    pub resources: Vec<PressureResource>,
}

/// Whether what the monitor wrote last still counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PressureFreshness {
    /// It counts.
    #[default]
    Current,
    /// The monitor has missed polls: nobody is refused, and whoever was delayed or refused waits for the tarpit's first
    /// step.
    Stale,
    /// The monitor has stopped for so long (15 minutes) that producers are treated as at `normal`. The resources show what
    /// was read last.
    Forgotten,
    /// The monitor has written nothing yet. Producers are treated as at `normal`.
    Missing,
    /// What it wrote cannot be understood. Producers are treated as at `normal` until it writes anew.
    Unreadable,
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
    pub thresholds: Thresholds,
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

impl PressureView {
    /// A state as producers get it at this time. Without one, nothing is known and nothing is under pressure.
    pub fn new(state: Option<&PressureState>, now: Timestamp) -> Self {
        let Some(state) = state else { return Self::unknown(PressureFreshness::Missing) };
        let freshness = PressureFreshness::of(state, now);
        let resources = state.resources.iter().map(|r| PressureResource::new(r, freshness)).collect();
        // A forgotten state leaves what every acknowledgement waits, and no level.
        let counts = Some(state).filter(|_| freshness != PressureFreshness::Forgotten);
        let shown = Self {
            level: counts.map(PressureState::level).unwrap_or_default(),
            since: counts.and_then(PressureState::since).map(IsoTimestamp),
            polled_at: Some(IsoTimestamp(state.at)),
            monitored: state.monitored,
            resources,
            ..Self::unknown(freshness)
        };
        shown.waiting(state, now)
    }

    /// The view where the state's object cannot be understood.
    pub fn unreadable() -> Self {
        Self::unknown(PressureFreshness::Unreadable)
    }

    /// The view while nothing is known, so that no producer is slowed.
    fn unknown(freshness: PressureFreshness) -> Self {
        Self {
            level: Level::Normal,
            since: None,
            polled_at: None,
            freshness,
            monitored: true,
            tarpit: IsoDuration::default(),
            next_tarpit: None,
            delayed_tiers: Vec::new(),
            refused_tiers: Vec::new(),
            resources: Vec::new(),
        }
    }

    /// The view with the answer that each tier of producers gets, by the decision that publish asks for.
    fn waiting(self, state: &PressureState, now: Timestamp) -> Self {
        let mut shown = self;
        for tier in Tier::ALL {
            match admit(Some(state), tier, now) {
                Admission::Accept => {}
                Admission::Delay(delay) => {
                    shown.tarpit = IsoDuration(delay);
                    shown.delayed_tiers.push(tier);
                }
                Admission::Refuse { .. } => shown.refused_tiers.push(tier),
            }
        }
        if shown.freshness == PressureFreshness::Current {
            let next = state.next_tarpit().filter(|next| !next.is_zero() || state.tarpit_ms > 0);
            shown.next_tarpit = next.map(IsoDuration);
        }
        shown
    }
}

impl PressureFreshness {
    /// The freshness of this state at this time.
    fn of(state: &PressureState, now: Timestamp) -> Self {
        if state.is_forgotten(now) {
            Self::Forgotten
        } else if state.is_stale(now) {
            Self::Stale
        } else {
            Self::Current
        }
    }
}

impl PressureResource {
    /// A resource as it was read. Its effects on producers are left out where the state is stale or
    /// forgotten.
    fn new(state: &ResourceState, freshness: PressureFreshness) -> Self {
        let (is_current, is_forgotten) =
            (freshness == PressureFreshness::Current, freshness == PressureFreshness::Forgotten);
        Self {
            resource: state.resource,
            level: state.level,
            since: IsoTimestamp(state.since),
            reading: state.reading,
            unit: state.unit().to_owned(),
            read_at: IsoTimestamp(state.read_at),
            thresholds: state.thresholds,
            acts: state.acts && !is_forgotten,
            polls: state.polls,
            history_depth: state.history_depth,
            history_passed: state.history_passed(),
            refused_from: state.refused_from.filter(|_| is_current),
            measures: state.measures.iter().copied().filter(|_| !is_forgotten).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
