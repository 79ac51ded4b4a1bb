//! One resource in the pressure state.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::table::{Measure, Thresholds};
use super::{Level, Resource, Tier};
use crate::model::Timestamp;

/// The unit of a share of messages in flight.
const IN_FLIGHT_UNIT: &str = "percent of the messages that may be in flight";

/// One resource after one poll.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that do not follow from one another, as they are written"
)]
pub struct ResourceState {
    /// Which.
    pub resource: Resource,
    /// Its level.
    pub level: Level,
    /// Since when it is at that level.
    pub since: Timestamp,
    /// The last reading, in the resource's own unit.
    pub reading: u64,
    /// When that reading was taken; before [`PressureState::at`] if it could not be read since.
    pub read_at: Timestamp,
    /// The thresholds it was held against.
    pub thresholds: Thresholds,
    /// Whether its level has consequences for producers. In the profile `scaled` that of the submission queue
    /// has none while it drains fast; a row that turns nobody away never has any.
    pub acts: bool,
    /// Whether the row turns nobody away in its profile: its level is logged, told and alarmed about, and no
    /// more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub watched_only: bool,
    /// Whether acknowledgements wait on its account.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tarpits: bool,
    /// How many polls in a row it has acted at a level that was not Normal.
    pub polls: u32,
    /// After how many of them producers are refused; `None` where that is at once, or never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_depth: Option<u32>,
    /// Whether the reading is a share of the messages that a queue can have in flight, in the place of a
    /// disk.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_flight: bool,
    /// The most privileged tier that is refused on its account, and with it every less privileged one.
    pub refused_from: Option<Tier>,
    /// What else is done on its account.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub measures: BTreeSet<Measure>,
}

impl ResourceState {
    /// The unit of reading and thresholds, in words.
    pub const fn unit(&self) -> &'static str {
        if self.in_flight { IN_FLIGHT_UNIT } else { self.resource.unit() }
    }

    /// The level as far as it has consequences for producers: Normal while the row does not act.
    pub fn effective_level(&self) -> Level {
        if self.acts { self.level } else { Level::Normal }
    }

    /// The level that operators are told, in log, notices and gauges: also that of a row which is only
    /// watched.
    pub fn told_level(&self) -> Level {
        if self.watched_only { self.level } else { self.effective_level() }
    }

    /// Whether the history after which producers are refused has passed; `None` where there is none.
    pub fn history_passed(&self) -> Option<bool> {
        self.history_depth.map(|depth| self.polls >= depth)
    }

    /// Whether producers of this tier are refused on its account.
    pub fn refuses(&self, tier: Tier) -> bool {
        self.refused_from.is_some_and(|from| tier >= from)
    }
}
