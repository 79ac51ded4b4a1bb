//! A target's condition after an observation: the table of [`super`].
//!
//! An observation may come late, twice, or after another worker's. It is applied to the condition
//! that stands by then, and changes nothing if it no longer fits.

use crate::circuit::{HealthSettings, RequestFailure, TargetCondition, TargetPhase};
use crate::model::Timestamp;

/// A pause that an endpoint asked for, by `Retry-After`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedPause {
    /// The end of the pause.
    pub until: Timestamp,
    /// The request that was answered so.
    pub last: RequestFailure,
    /// The beginning of that request.
    pub began: Timestamp,
    /// The lease of the probe that it was, if it was one.
    pub probe: Option<String>,
}

/// An observation of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observation {
    /// A streak of failures.
    Failing {
        /// The number of failures.
        failures: u32,
        /// The last of them.
        last: RequestFailure,
        /// The beginning of the last failed request. It says nothing about what the target has
        /// done since.
        began: Timestamp,
    },
    /// A streak of refusals of different events.
    Refused {
        /// The number of refusals.
        refusals: u32,
        /// The last of them.
        last: RequestFailure,
        /// The beginning of the last refused request.
        began: Timestamp,
    },
    /// The endpoint asked for a pause.
    Asked(RequestedPause),
    /// The probe of this lease failed.
    ProbeFailed {
        /// The holder of the lease.
        by: String,
        /// The last failure.
        last: RequestFailure,
    },
    /// The probe of this lease was refused: the endpoint answers, but it may refuse everything.
    ProbeRefused {
        /// The holder of the lease.
        by: String,
        /// The last failure.
        last: RequestFailure,
    },
    /// The probe of this lease succeeded.
    ProbeSucceeded {
        /// The holder of the lease.
        by: String,
    },
    /// The probe of this lease was not made, or says nothing.
    ProbeGivenUp {
        /// The holder of the lease.
        by: String,
    },
    /// The probe of this lease found that the host name does not exist: waiting cannot help, so
    /// what waits is let through, each delivery to its own verdict.
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
pub fn condition_after(
    before: Option<&TargetCondition>,
    observation: &Observation,
    now: Timestamp,
    settings: &HealthSettings,
) -> Option<TargetCondition> {
    match (before, observation) {
        (None, Observation::Failing { failures, last, .. }) => {
            Some(first_hold(*failures, *last, now, settings))
        }
        (
            Some(it),
            Observation::Failing {
                failures,
                last,
                began,
            },
        ) => match it.phase {
            TargetPhase::Recovering => {
                let is_since = *began >= it.since;
                is_since
                    .then(|| hold_after_recovery(it, first_hold(*failures, *last, now, settings)))
            }
            // Requests that were under way fail for a while.
            TargetPhase::Glitch | TargetPhase::Retry => is_as_good_as_a_probe(it, *began, now)
                .then(|| next(it, *failures, *last, now, settings)),
        },
        (_, Observation::Asked(asked)) => after_pause(before, asked, now, settings),
        (
            _,
            Observation::Refused {
                refusals,
                last,
                began,
            },
        ) => after_refusals(before, *refusals, *last, *began, now, settings),
        (Some(it), Observation::ProbeRefused { by, last }) if it.refused => it
            .is_probed_by(by)
            .then(|| next(it, 1, *last, now, settings)),
        (Some(it), Observation::ProbeFailed { by, last }) => it
            .is_probed_by(by)
            .then(|| next(it, 1, *last, now, settings)),
        (Some(it), Observation::ProbeGivenUp { by }) => {
            it.is_probed_by(by).then(|| TargetCondition {
                probe: None,
                ..it.clone()
            })
        }
        (Some(it), Observation::ProbeFoundNoName { by }) => {
            it.is_probed_by(by).then(|| forced_recovery(it, now))
        }
        // Meanwhile its endpoint asked for a pause.
        (Some(it), Observation::ProbeSucceeded { by } | Observation::ProbeRefused { by, .. })
            if it.is_asked(now) =>
        {
            it.is_probed_by(by).then(|| TargetCondition {
                probe: None,
                ..it.clone()
            })
        }
        (Some(it), Observation::Succeeded) if it.is_asked(now) => None,
        (
            Some(it),
            Observation::ProbeSucceeded { .. }
            | Observation::ProbeRefused { .. }
            | Observation::Succeeded,
        ) => match it.phase {
            TargetPhase::Recovering => it.forced.then(|| TargetCondition {
                forced: false,
                until: now,
                ..it.clone()
            }),
            TargetPhase::Glitch | TargetPhase::Retry => Some(recovering_condition(it, now)),
        },
        (Some(it), Observation::Forced) => {
            (it.phase != TargetPhase::Recovering).then(|| forced_recovery(it, now))
        }
        (None, _) => None,
    }
}

/// The condition of a target that refused different events in a row. To one that is held for
/// another reason an answer is a good sign.
fn after_refusals(
    before: Option<&TargetCondition>,
    refusals: u32,
    last: RequestFailure,
    began: Timestamp,
    now: Timestamp,
    settings: &HealthSettings,
) -> Option<TargetCondition> {
    if let Some(it) = before.filter(|it| it.phase != TargetPhase::Recovering) {
        return (it.refused && is_as_good_as_a_probe(it, began, now))
            .then(|| next(it, refusals, last, now, settings));
    }
    let hold = TargetCondition {
        refused: true,
        ..first_hold(refusals, last, now, settings)
    };
    match before {
        None => Some(hold),
        Some(it) => (began >= it.since).then(|| hold_after_recovery(it, hold)),
    }
}

/// A request that was begun after the hold, by a worker that did not know of it, is as good as a
/// probe.
fn is_as_good_as_a_probe(condition: &TargetCondition, began: Timestamp, now: Timestamp) -> bool {
    condition.is_due(now) && began >= condition.until
}

/// The condition of a target whose endpoint asked for a pause. The latest end wins. Pauses one
/// after the other become a Glitch only after `failures_in_a_row` requests have failed.
fn after_pause(
    before: Option<&TargetCondition>,
    asked: &RequestedPause,
    now: Timestamp,
    settings: &HealthSettings,
) -> Option<TargetCondition> {
    let RequestedPause {
        until, last, began, ..
    } = *asked;
    let Some(it) = before.filter(|it| it.phase != TargetPhase::Recovering) else {
        let told_down = before.is_some_and(|it| it.told_down);
        let is_since = before.is_none_or(|it| began >= it.since);
        return is_since.then(|| TargetCondition {
            until,
            hold: 0,
            asked: true,
            told_down,
            ..first_hold(1, last, now, settings)
        });
    };
    let is_probe = asked.probe.as_deref().is_some_and(|by| it.is_probed_by(by));
    if !is_probe && !is_as_good_as_a_probe(it, began, now) {
        return (until > it.until).then(|| TargetCondition {
            last,
            ..not_before(until, it.clone())
        });
    }
    let failures = it.failures.saturating_add(1);
    if it.is_pause() && failures < settings.failures_in_a_row {
        return Some(not_before(
            until,
            TargetCondition {
                failures,
                last,
                probe: None,
                ..it.clone()
            },
        ));
    }
    Some(not_before(until, next(it, 1, last, now, settings)))
}

/// The same hold, but no shorter than its endpoint asks for.
fn not_before(asked: Timestamp, hold: TargetCondition) -> TargetCondition {
    if asked > hold.until {
        TargetCondition {
            until: asked,
            asked: true,
            ..hold
        }
    } else {
        hold
    }
}

fn first_hold(
    failures: u32,
    last: RequestFailure,
    now: Timestamp,
    settings: &HealthSettings,
) -> TargetCondition {
    TargetCondition {
        phase: TargetPhase::Glitch,
        since: now,
        failing_since: now,
        hold: 1,
        until: now + settings.glitch_hold,
        failures,
        last,
        probe: None,
        told_down: false,
        asked: false,
        forced: false,
        refused: false,
    }
}

/// The first hold of a target that was recovering. Where nothing succeeded in between, because an
/// operator ended the last hold, it is the same spell of failures.
fn hold_after_recovery(before: &TargetCondition, hold: TargetCondition) -> TargetCondition {
    let failing_since = if before.forced {
        before.failing_since
    } else {
        hold.failing_since
    };
    TargetCondition {
        failing_since,
        told_down: before.told_down,
        ..hold
    }
}

/// The next hold.
fn next(
    before: &TargetCondition,
    failures: u32,
    last: RequestFailure,
    now: Timestamp,
    settings: &HealthSettings,
) -> TargetCondition {
    let failures = before.failures.saturating_add(failures);
    let same = TargetCondition {
        failures,
        last,
        probe: None,
        asked: false,
        ..before.clone()
    };
    let next = match before.phase {
        TargetPhase::Glitch if before.hold < settings.glitches => TargetCondition {
            hold: before.hold + 1,
            until: now + settings.glitch_hold,
            ..same
        },
        TargetPhase::Glitch | TargetPhase::Recovering => TargetCondition {
            phase: TargetPhase::Retry,
            since: now,
            hold: 1,
            until: now + settings.hold_length(1),
            ..same
        },
        TargetPhase::Retry => {
            let hold = before.hold.saturating_add(1);
            TargetCondition {
                hold,
                until: now + settings.hold_length(hold),
                ..same
            }
        }
    };
    if before.is_asked(now) {
        not_before(before.until, next)
    } else {
        next
    }
}

/// Let through without a success: nothing says that it is up again until a request succeeds.
fn forced_recovery(before: &TargetCondition, now: Timestamp) -> TargetCondition {
    TargetCondition {
        forced: true,
        ..recovering_condition(before, now)
    }
}

fn recovering_condition(before: &TargetCondition, now: Timestamp) -> TargetCondition {
    let phase = TargetPhase::Recovering;
    TargetCondition {
        phase,
        since: now,
        hold: 1,
        until: now,
        probe: None,
        asked: false,
        refused: false,
        ..before.clone()
    }
}
