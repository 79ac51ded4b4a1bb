//! What becomes of a target's condition after an observation: the table of [`super`].
//!
//! An observation may come late, twice, or after another worker's: whatever is read, it is applied to what stands there by
//! then. One that no longer fits changes nothing.

use super::condition::{Condition, Failure, Phase};
use super::settings::HealthSettings;
use crate::time::Timestamp;

/// What was seen of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observation {
    /// A streak of failures.
    Failing {
        /// How many.
        failures: u32,
        /// The last of them.
        last: Failure,
        /// When that one's request was begun: what a target has done since is news that it does not change.
        began: Timestamp,
    },
    /// The probe of this lease failed.
    ProbeFailed {
        /// Whose it was.
        by: String,
        /// How.
        last: Failure,
    },
    /// The probe of this lease succeeded.
    ProbeSucceeded {
        /// Whose it was.
        by: String,
    },
    /// The probe of this lease was not made, or says nothing.
    ProbeGivenUp {
        /// Whose it was.
        by: String,
    },
    /// The probe of this lease found that the host name does not exist: waiting cannot help, so what waits is let
    /// through, each delivery to its own verdict.
    ProbeFoundNoName {
        /// The lease's name.
        by: String,
    },
    /// A request that was no probe succeeded.
    Succeeded,
    /// An operator wants it asked now.
    Forced,
}

/// The condition after an observation; `None` where nothing changes.
pub fn observe(
    before: Option<&Condition>,
    observation: &Observation,
    now: Timestamp,
    settings: &HealthSettings,
) -> Option<Condition> {
    match (before, observation) {
        (None, Observation::Failing { failures, last, .. }) => Some(first(*failures, *last, now, settings)),
        (Some(it), Observation::Failing { failures, last, began }) => match it.phase {
            Phase::Recovering => {
                let told_down = it.told_down;
                let again = || Condition { told_down, ..first(*failures, *last, now, settings) };
                (*began >= it.since).then(again)
            }
            // Requests that were under way fail for a while. What was begun after the hold, by one who did not know of it,
            // is as good as a probe.
            Phase::Glitch | Phase::Retry => {
                let is_answer = it.is_due(now) && *began >= it.until;
                is_answer.then(|| next(it, *failures, *last, now, settings))
            }
        },
        (Some(it), Observation::ProbeFailed { by, last }) => {
            let is_its_probe = it.probe.as_ref().is_some_and(|probe| probe.by == *by);
            is_its_probe.then(|| next(it, 1, *last, now, settings))
        }
        (Some(it), Observation::ProbeGivenUp { by }) => {
            let is_its_probe = it.probe.as_ref().is_some_and(|probe| probe.by == *by);
            is_its_probe.then(|| Condition { probe: None, ..it.clone() })
        }
        (Some(it), Observation::ProbeFoundNoName { by }) => {
            let is_its_probe = it.probe.as_ref().is_some_and(|probe| probe.by == *by);
            is_its_probe.then(|| released(it, now))
        }
        (Some(it), Observation::ProbeSucceeded { .. } | Observation::Succeeded) => match it.phase {
            Phase::Recovering => it.forced.then(|| Condition { forced: false, until: now, ..it.clone() }),
            Phase::Glitch | Phase::Retry => Some(recovering(it, now)),
        },
        (Some(it), Observation::Forced) => (it.phase != Phase::Recovering).then(|| released(it, now)),
        (None, _) => None,
    }
}

fn first(failures: u32, last: Failure, now: Timestamp, settings: &HealthSettings) -> Condition {
    Condition {
        phase: Phase::Glitch,
        since: now,
        failing_since: now,
        hold: 1,
        until: now + settings.glitch_hold,
        failures,
        last,
        probe: None,
        told_down: false,
        forced: false,
    }
}

/// The next hold.
fn next(
    before: &Condition,
    failures: u32,
    last: Failure,
    now: Timestamp,
    settings: &HealthSettings,
) -> Condition {
    let failures = before.failures.saturating_add(failures);
    let same = Condition { failures, last, probe: None, ..before.clone() };
    match before.phase {
        Phase::Glitch if before.hold < settings.glitches => {
            Condition { hold: before.hold + 1, until: now + settings.glitch_hold, ..same }
        }
        Phase::Glitch | Phase::Recovering => {
            Condition { phase: Phase::Retry, since: now, hold: 1, until: now + settings.hold(1), ..same }
        }
        Phase::Retry => {
            let hold = before.hold.saturating_add(1);
            Condition { hold, until: now + settings.hold(hold), ..same }
        }
    }
}

/// Let through without a success: nothing says that it is up again until a request succeeds.
fn released(before: &Condition, now: Timestamp) -> Condition {
    Condition { forced: true, ..recovering(before, now) }
}

fn recovering(before: &Condition, now: Timestamp) -> Condition {
    Condition { phase: Phase::Recovering, since: now, hold: 1, until: now, probe: None, ..before.clone() }
}
