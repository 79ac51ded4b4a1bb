//! A part of what is known of all targets: an object that every worker reads and, on a transition,
//! writes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::circuit::{
    CircuitDecision, Condition, HealthSettings, Observation, Phase, ProbeLease, Probed, Target,
    decide, is_over, observe,
};
use crate::model::{Link, PAUSE_MAX, Timestamp};

/// The number of parts. A link is in the same part as its subscriptions, so that one write changes
/// both.
pub const LINK_SHARDS: usize = 16;

/// Most targets of one part. Any beyond are treated as if they were well.
pub const TARGETS_PER_SHARD_MAX: usize = 2000;

/// The most by which two workers' clocks may differ. A time further ahead than this and the longest
/// hold was written by a clock that was wrong, or was set back since.
const CLOCKS_APART_MAX: Duration = Duration::from_mins(1);

/// The targets of one part that are not well.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    targets: BTreeMap<String, Condition>,
}

/// The number of the part that a link is in: less than [`LINK_SHARDS`].
pub fn shard_index(link: &Link) -> usize {
    usize::from(Sha256::digest(link.to_string())[0]) % LINK_SHARDS
}

impl Shard {
    /// The condition of a target; `None` if it is well.
    pub fn condition(&self, target: &Target) -> Option<&Condition> {
        self.targets.get(&target.to_string())
    }

    /// All targets that are not well, links before their subscriptions. A text that is no target's
    /// is passed over.
    pub fn conditions(&self) -> impl Iterator<Item = (Target, &Condition)> {
        self.targets
            .iter()
            .filter_map(|(text, condition)| Some((Target::parse(text)?, condition)))
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Decides whether a delivery may go to a target.
    pub fn decide(
        &self,
        target: &Target,
        now: Timestamp,
        settings: &HealthSettings,
    ) -> CircuitDecision {
        if self.targets.is_empty() {
            return CircuitDecision::Open;
        }
        let usable = |target: &Target| {
            self.condition(target)
                .filter(|it| !is_of_a_wrong_clock(it, now, settings))
        };
        let link = Target::Link(target.link().clone());
        let of_itself = if *target == link {
            None
        } else {
            usable(target)
        };
        decide(usable(&link), of_itself, now, settings)
    }

    /// Applies an observation; whether it changed anything.
    pub fn observe(
        &mut self,
        target: &Target,
        observation: &Observation,
        now: Timestamp,
        settings: &HealthSettings,
    ) -> bool {
        let key = target.to_string();
        let is_usable = |it: &&Condition| {
            !is_of_a_wrong_clock(it, now, settings) && !is_over(it, now, settings)
        };
        let before = self.targets.get(&key).filter(is_usable);
        let Some(after) = observe(before, observation, now, settings) else {
            return false;
        };
        self.put(key, after, now, settings)
    }

    /// Takes the lease of a probe of a target and its link, as far as they are due. Answers which
    /// of them the probe asks; `None` if there is no probe to make.
    pub fn claim(
        &mut self,
        target: &Target,
        by: &str,
        now: Timestamp,
        settings: &HealthSettings,
    ) -> Option<Probed> {
        let CircuitDecision::Probe(probed) = self.decide(target, now, settings) else {
            return None;
        };
        let lease = ProbeLease {
            by: by.to_owned(),
            until: now + settings.probe_lease,
        };
        let link = Target::Link(target.link().clone());
        for (is_probed, target) in [(probed.link, &link), (probed.subscription, target)] {
            if is_probed && let Some(condition) = self.targets.get_mut(&target.to_string()) {
                condition.probe = Some(lease.clone());
            }
        }
        Some(probed)
    }

    /// Replaces what is known of a target, if anything still is and `change` wants it; whether
    /// anything changed.
    pub fn change(
        &mut self,
        target: &Target,
        change: impl FnOnce(&Condition) -> Option<Condition>,
    ) -> bool {
        let Some(condition) = self.targets.get_mut(&target.to_string()) else {
            return false;
        };
        let Some(after) = change(condition) else {
            return false;
        };
        let is_changed = after != *condition;
        *condition = after;
        is_changed
    }

    /// Forgets targets; whether anything was known of one.
    pub fn forget<'a>(&mut self, targets: impl IntoIterator<Item = &'a Target>) -> bool {
        let before = self.targets.len();
        for target in targets {
            self.targets.remove(&target.to_string());
        }
        self.targets.len() < before
    }

    /// Forgets what has not to be known any more; whether there was any.
    pub fn tidy(&mut self, now: Timestamp, settings: &HealthSettings) -> bool {
        let before = self.targets.len();
        self.targets
            .retain(|_, it| !is_over(it, now, settings) && !is_of_a_wrong_clock(it, now, settings));
        self.targets.len() < before
    }

    fn put(
        &mut self,
        key: String,
        condition: Condition,
        now: Timestamp,
        settings: &HealthSettings,
    ) -> bool {
        self.tidy(now, settings);
        if self.targets.len() >= TARGETS_PER_SHARD_MAX && !self.targets.contains_key(&key) {
            return false;
        }
        self.targets.insert(key, condition);
        true
    }
}

/// Whether a condition's times are impossible. Such a condition is ignored, so that it holds no
/// delivery for as long as a clock jumped.
fn is_of_a_wrong_clock(condition: &Condition, now: Timestamp, settings: &HealthSettings) -> bool {
    let hold_max = match condition.phase {
        Phase::Glitch => settings.glitch_hold.max(PAUSE_MAX),
        Phase::Retry => settings.first_hold.max(settings.later_hold).max(PAUSE_MAX),
        Phase::Recovering => Duration::ZERO,
    };
    condition.since > now + CLOCKS_APART_MAX || condition.until > now + hold_max + CLOCKS_APART_MAX
}
