//! The state the monitor writes and producers' side reads: `pressure.json`, versioned. What it means is
//! decided in `evaluate` and `admit`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::change::PressureChange;
use super::resource_state::ResourceState;
use super::settings::PressureSettings;
use super::staleness::{STATE_FORGOTTEN_AFTER, STATE_STALE_AFTER_AWS, Staleness};
use super::table::Measure;
use super::{Level, Resource, Tier};
use crate::model::Timestamp;

/// The pressure after one poll.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PressureState {
    /// When the poll was.
    pub at: Timestamp,
    /// Whether resources are watched at all (`EnableResourceMonitoring`).
    pub monitored: bool,
    /// How long acknowledgements wait, in milliseconds.
    pub tarpit_ms: u64,
    /// How much of that every acknowledgement waits, also at Normal, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub base_ms: u64,
    /// How long they wait while the state is stale: the tarpit's first step, in milliseconds.
    pub first_step_ms: u64,
    /// At what age the state is stale, in milliseconds: its writer knows when its successor should be there.
    pub stale_after_ms: u64,
    /// How long acknowledgements would wait after the next poll if it found the same, in milliseconds. An
    /// older program does not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_tarpit_ms: Option<u64>,
    /// The resources that could be read, in the order of the table.
    pub resources: Vec<ResourceState>,
    /// Changes that a notice is to tell of and that were not told when this was written, the oldest first; at
    /// most [`UNTOLD_MAX`](super::UNTOLD_MAX). An older program reads the state without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<PressureChange>,
}

impl PressureState {
    /// Nothing is known and nothing is under pressure.
    pub fn normal(at: Timestamp) -> Self {
        Self {
            at,
            monitored: true,
            tarpit_ms: 0,
            base_ms: 0,
            first_step_ms: 0,
            stale_after_ms: millis(STATE_STALE_AFTER_AWS),
            next_tarpit_ms: None,
            resources: Vec::new(),
            untold: Vec::new(),
        }
    }

    /// The state after a poll.
    pub(super) fn new(
        at: Timestamp,
        tarpit: Duration,
        settings: &PressureSettings,
        resources: Vec<ResourceState>,
    ) -> Self {
        Self {
            tarpit_ms: millis(tarpit),
            base_ms: millis(settings.tarpit.base),
            first_step_ms: millis(settings.tarpit.start),
            stale_after_ms: millis(settings.staleness().stale_after),
            resources,
            ..Self::normal(at)
        }
    }

    /// Resources are not watched.
    pub fn unmonitored(at: Timestamp) -> Self {
        Self { monitored: false, ..Self::normal(at) }
    }

    /// The highest level that has consequences for producers.
    pub fn level(&self) -> Level {
        self.resources.iter().map(ResourceState::effective_level).max().unwrap_or_default()
    }

    /// Since when the highest level lasts: since the first of its resources reached it. `None` at Normal.
    pub fn since(&self) -> Option<Timestamp> {
        let level = self.level();
        let pressing =
            self.resources.iter().filter(|r| level > Level::Normal && r.effective_level() == level);
        pressing.map(|r| r.since).min()
    }

    /// The resource under the highest pressure; the first of the table where there are several. `None` at
    /// Normal.
    pub fn worst(&self) -> Option<&ResourceState> {
        let level = self.level();
        self.resources.iter().find(|r| level > Level::Normal && r.effective_level() == level)
    }

    /// On whose account acknowledgements wait: of those, the resource under the highest pressure. `None`
    /// where the wait only runs out.
    pub fn tarpitting(&self) -> Option<&ResourceState> {
        worst_of(self.resources.iter().filter(|r| r.tarpits))
    }

    /// One resource, if it could be read.
    pub fn resource(&self, resource: Resource) -> Option<&ResourceState> {
        self.resources.iter().find(|r| r.resource == resource)
    }

    /// Who refuses a tier: the resource under the highest pressure that does.
    pub fn refusing(&self, tier: Tier) -> Option<&ResourceState> {
        worst_of(self.resources.iter().filter(|r| r.refuses(tier)))
    }

    /// The tiers that are refused, the most privileged first.
    pub fn refused_tiers(&self) -> Vec<Tier> {
        Tier::ALL.into_iter().filter(|tier| self.refusing(*tier).is_some()).collect()
    }

    /// From when on this state is not taken at its word.
    pub fn staleness(&self) -> Staleness {
        let stale_after = Duration::from_millis(self.stale_after_ms).min(STATE_FORGOTTEN_AFTER);
        Staleness { stale_after, forgotten_after: STATE_FORGOTTEN_AFTER }
    }

    /// How long acknowledgements wait.
    pub fn tarpit(&self) -> Duration {
        Duration::from_millis(self.tarpit_ms)
    }

    /// How long they would wait after the next poll if it found the same; `None` where its writer did not say
    /// so.
    pub fn next_tarpit(&self) -> Option<Duration> {
        self.next_tarpit_ms.map(Duration::from_millis)
    }

    /// How much of that every acknowledgement waits, also at Normal.
    pub fn base(&self) -> Duration {
        Duration::from_millis(self.base_ms)
    }

    /// Whether something is to be done besides slowing and refusing producers.
    pub fn asks_for(&self, measure: Measure) -> bool {
        self.resources.iter().any(|r| r.measures.contains(&measure))
    }

    /// Whether new payloads go to the object store.
    pub fn dehydrate(&self) -> bool {
        self.asks_for(Measure::Dehydrate)
    }
}

/// Of several, the one under the highest pressure; the first of them where there are more.
fn worst_of<'a>(resources: impl Iterator<Item = &'a ResourceState>) -> Option<&'a ResourceState> {
    resources.reduce(|worst, r| if r.effective_level() > worst.effective_level() { r } else { worst })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(ms: &u64) -> bool {
    *ms == 0
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}
