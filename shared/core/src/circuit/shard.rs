//! A part of what is known of all targets: an object that every worker reads and, on a transition,
//! writes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::circuit::{
    CircuitDecision, DeliveryTarget, HealthSettings, Observation, ProbeLease, ProbedTargets,
    TargetCondition, TargetPhase, condition_after, decide_for_subscription, is_over,
};
use crate::model::{Link, PAUSE_MAX, Timestamp};

/// The number of parts. A link is in the same part as its subscriptions, so that one write changes
/// both.
pub const LINK_SHARDS: usize = 16;

/// Most targets of one part. Any beyond are treated as if they were well.
pub const TARGETS_PER_SHARD_MAX: usize = 2000;

/// The most by which two workers' clocks may differ. A time further ahead than this and the longest
/// hold was written by a clock that was wrong, or was set back since.
pub(crate) const CLOCKS_APART_MAX: Duration = Duration::from_mins(1);

/// The targets of one part that are not well.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkShard {
    targets: BTreeMap<String, TargetCondition>,
}

/// The number of the part that a link is in: less than [`LINK_SHARDS`].
pub fn shard_index(link: &Link) -> usize {
    usize::from(Sha256::digest(link.to_string())[0]) % LINK_SHARDS
}

impl LinkShard {
    /// The condition of a target; `None` if it is well.
    pub fn condition(&self, target: &DeliveryTarget) -> Option<&TargetCondition> {
        self.targets.get(&target.to_string())
    }

    /// All targets that are not well, links before their subscriptions. A text that is no target's
    /// is passed over.
    pub fn conditions(&self) -> impl Iterator<Item = (DeliveryTarget, &TargetCondition)> {
        self.targets
            .iter()
            .filter_map(|(text, condition)| Some((DeliveryTarget::parse(text)?, condition)))
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Decides whether a delivery may go to a target.
    pub fn decide_for_target(
        &self,
        target: &DeliveryTarget,
        now: Timestamp,
        settings: &HealthSettings,
    ) -> CircuitDecision {
        if self.targets.is_empty() {
            return CircuitDecision::Open;
        }
        let link = DeliveryTarget::Link(target.link().clone());
        let of_link = self.usable_condition(&link, now, settings);
        let of_itself = if *target == link {
            None
        } else {
            self.usable_condition(target, now, settings)
        };
        decide_for_subscription(of_link, of_itself, now, settings)
    }

    fn usable_condition(
        &self,
        target: &DeliveryTarget,
        now: Timestamp,
        settings: &HealthSettings,
    ) -> Option<&TargetCondition> {
        self.condition(target)
            .filter(|it| !is_of_a_wrong_clock(it, now, settings))
    }

    /// Applies an observation; whether it changed anything.
    pub fn apply_observation(
        &mut self,
        target: &DeliveryTarget,
        observation: &Observation,
        now: Timestamp,
        settings: &HealthSettings,
    ) -> bool {
        let key = target.to_string();
        let before = self
            .targets
            .get(&key)
            .filter(|it| !is_of_a_wrong_clock(it, now, settings) && !is_over(it, now, settings));
        let Some(after) = condition_after(before, observation, now, settings) else {
            return false;
        };
        self.put_condition(key, after, now, settings)
    }

    /// Takes the lease of a probe of a target and its link, as far as they are due. Answers which
    /// of them the probe asks; `None` if there is no probe to make.
    pub fn claim_probe(
        &mut self,
        target: &DeliveryTarget,
        by: &str,
        now: Timestamp,
        settings: &HealthSettings,
    ) -> Option<ProbedTargets> {
        let CircuitDecision::Probe(probed) = self.decide_for_target(target, now, settings) else {
            return None;
        };
        let lease = ProbeLease {
            by: by.to_owned(),
            until: now + settings.probe_lease,
        };
        let link = DeliveryTarget::Link(target.link().clone());
        for (is_probed, target) in [(probed.link, &link), (probed.subscription, target)] {
            if is_probed && let Some(condition) = self.targets.get_mut(&target.to_string()) {
                condition.probe = Some(lease.clone());
            }
        }
        Some(probed)
    }

    /// Replaces what is known of a target, if anything still is and `change` wants it; whether
    /// anything changed.
    pub fn change_condition(
        &mut self,
        target: &DeliveryTarget,
        change: impl FnOnce(&TargetCondition) -> Option<TargetCondition>,
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
    pub fn forget_targets<'a>(
        &mut self,
        targets: impl IntoIterator<Item = &'a DeliveryTarget>,
    ) -> bool {
        let before = self.targets.len();
        for target in targets {
            self.targets.remove(&target.to_string());
        }
        self.targets.len() < before
    }

    /// Forgets what has not to be known any more; whether there was any.
    pub fn forget_outdated(&mut self, now: Timestamp, settings: &HealthSettings) -> bool {
        let before = self.targets.len();
        self.targets
            .retain(|_, it| !is_over(it, now, settings) && !is_of_a_wrong_clock(it, now, settings));
        self.targets.len() < before
    }

    fn put_condition(
        &mut self,
        key: String,
        condition: TargetCondition,
        now: Timestamp,
        settings: &HealthSettings,
    ) -> bool {
        self.forget_outdated(now, settings);
        if self.targets.len() >= TARGETS_PER_SHARD_MAX && !self.targets.contains_key(&key) {
            return false;
        }
        self.targets.insert(key, condition);
        true
    }
}

/// Whether a condition's times are impossible. Such a condition is ignored, so that it holds no
/// delivery for as long as a clock jumped.
fn is_of_a_wrong_clock(
    condition: &TargetCondition,
    now: Timestamp,
    settings: &HealthSettings,
) -> bool {
    let hold_max = match condition.phase {
        TargetPhase::Glitch => settings.glitch_hold.max(PAUSE_MAX),
        TargetPhase::Retry => settings.first_hold.max(settings.later_hold).max(PAUSE_MAX),
        TargetPhase::Recovering => Duration::ZERO,
    };
    condition.since > now + CLOCKS_APART_MAX || condition.until > now + hold_max + CLOCKS_APART_MAX
}
