//! The state of back pressure as it is shown: what the monitor saw last, and what producers really get because of it.

mod freshness;
mod resource;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{IsoDuration, IsoTimestamp};
use crate::model::Timestamp;
use crate::pressure::{Admission, Level, PressureState, Tier, admit};

pub use freshness::PressureFreshness;
pub use resource::{PressureResource, PressureThresholds};

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

impl PressureView {
    /// A state as producers get it at this time; without one, nothing is known yet and nothing is under pressure.
    pub fn new(state: Option<&PressureState>, now: Timestamp) -> Self {
        let Some(state) = state else { return Self::unknown(PressureFreshness::Missing) };
        let freshness = freshness(state, now);
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

    /// What is shown where the state's object cannot be understood.
    pub fn unreadable() -> Self {
        Self::unknown(PressureFreshness::Unreadable)
    }

    /// Nothing is known, so nobody is slowed.
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

    /// The same with what each tier of producers gets to hear, by the decision that publish asks.
    fn waiting(self, state: &PressureState, now: Timestamp) -> Self {
        let mut shown = self;
        for tier in Tier::ALL {
            match admit(Some(state), tier, now, &state.staleness()) {
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

fn freshness(state: &PressureState, now: Timestamp) -> PressureFreshness {
    let staleness = state.staleness();
    if staleness.is_forgotten(state, now) {
        PressureFreshness::Forgotten
    } else if staleness.is_stale(state, now) {
        PressureFreshness::Stale
    } else {
        PressureFreshness::Current
    }
}

#[cfg(test)]
mod tests;
