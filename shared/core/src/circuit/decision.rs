//! The decision whether a delivery may go to a target now.

use std::time::Duration;

use crate::circuit::{HealthSettings, TargetCondition, TargetPhase};
use crate::model::Timestamp;

/// The time after which a delivery in the queue looks again while its target is probed: most
/// answers come within a second, and the longest wait for one is a minute.
pub const PROBE_LOOK_AGAIN: Duration = Duration::from_secs(10);

/// The number of times that the ramp doubles the requests at once: 1, 2, 4, 8, 16, 32. After that
/// it sets no bound.
pub(super) const RAMP_STEPS: u32 = 6;

/// The treatment of a delivery, from the mildest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CircuitDecision {
    /// The delivery may be sent.
    Open,
    /// The delivery may be sent while fewer than `at_once` requests are under way.
    Ramp {
        /// Requests at once, in one worker.
        at_once: u32,
        /// The time at which the bound ends.
        until: Timestamp,
    },
    /// The delivery may be sent as the probe, by the worker that gets the lease for it.
    Probe(ProbedTargets),
    /// The delivery waits in the queue.
    Delay {
        /// The time to look again.
        until: Timestamp,
    },
    /// The delivery is held.
    Hold,
}

/// The targets that a probe asks: the link, the subscription or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProbedTargets {
    /// The link.
    pub link: bool,
    /// The subscription on it.
    pub subscription: bool,
}

/// Decides for a subscription on a link: the stricter of what the two ask for.
pub fn decide_for_subscription(
    link: Option<&TargetCondition>,
    subscription: Option<&TargetCondition>,
    now: Timestamp,
    settings: &HealthSettings,
) -> CircuitDecision {
    let of_link = decide_for_condition(
        link,
        now,
        settings,
        ProbedTargets {
            link: true,
            subscription: false,
        },
    );
    let of_subscription = decide_for_condition(
        subscription,
        now,
        settings,
        ProbedTargets {
            link: false,
            subscription: true,
        },
    );
    stricter_decision(of_link, of_subscription)
}

fn decide_for_condition(
    condition: Option<&TargetCondition>,
    now: Timestamp,
    settings: &HealthSettings,
    probed: ProbedTargets,
) -> CircuitDecision {
    let Some(condition) = condition else {
        return CircuitDecision::Open;
    };
    match condition.phase {
        TargetPhase::Recovering => ramp_decision(condition, now, settings),
        TargetPhase::Glitch | TargetPhase::Retry if condition.is_due(now) => {
            CircuitDecision::Probe(probed)
        }
        TargetPhase::Glitch if now < condition.until => CircuitDecision::Delay {
            until: condition.until,
        },
        TargetPhase::Glitch => CircuitDecision::Delay {
            until: now + PROBE_LOOK_AGAIN,
        },
        TargetPhase::Retry => CircuitDecision::Hold,
    }
}

fn ramp_decision(
    condition: &TargetCondition,
    now: Timestamp,
    settings: &HealthSettings,
) -> CircuitDecision {
    let steps = now.since(condition.since).as_millis() / settings.ramp_step.as_millis().max(1);
    match u32::try_from(steps) {
        Ok(steps) if steps < RAMP_STEPS => CircuitDecision::Ramp {
            at_once: 1 << steps,
            until: condition.since + settings.ramp_step * RAMP_STEPS,
        },
        _ => CircuitDecision::Open,
    }
}

/// The stricter of two answers, or what both ask for where they are of one kind.
pub fn stricter_decision(one: CircuitDecision, other: CircuitDecision) -> CircuitDecision {
    match (one, other) {
        (CircuitDecision::Probe(one), CircuitDecision::Probe(other)) => {
            CircuitDecision::Probe(ProbedTargets {
                link: one.link || other.link,
                subscription: one.subscription || other.subscription,
            })
        }
        (
            CircuitDecision::Ramp { at_once, until },
            CircuitDecision::Ramp {
                at_once: other,
                until: other_end,
            },
        ) => CircuitDecision::Ramp {
            at_once: at_once.min(other),
            until: until.max(other_end),
        },
        (one, other) => one.max(other),
    }
}
