//! A target's condition after an observation: the table of [`super`].
//!
//! An observation may come late, twice, or after another worker's. It is applied to the condition
//! that stands by then, and changes nothing if it no longer fits.

use crate::circuit::{Condition, Failure, HealthSettings, Phase};
use crate::model::Timestamp;

/// A pause that an endpoint asked for, by `Retry-After`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The end of the pause.
    pub until: Timestamp,
    /// The request that was answered so.
    pub last: Failure,
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
        last: Failure,
        /// The beginning of the last failed request. It says nothing about what the target has
        /// done since.
        began: Timestamp,
    },
    /// A streak of refusals of different events.
    Refused {
        /// The number of refusals.
        refusals: u32,
        /// The last of them.
        last: Failure,
        /// The beginning of the last refused request.
        began: Timestamp,
    },
    /// The endpoint asked for a pause.
    Asked(Asked),
    /// The probe of this lease failed.
    ProbeFailed {
        /// The holder of the lease.
        by: String,
        /// How.
        last: Failure,
    },
    /// The probe of this lease was refused: the endpoint answers, but it may refuse everything.
    ProbeRefused {
        /// The holder of the lease.
        by: String,
        /// How.
        last: Failure,
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
pub fn observe(
    before: Option<&Condition>,
    observation: &Observation,
    now: Timestamp,
    settings: &HealthSettings,
) -> Option<Condition> {
    match (before, observation) {
        (None, Observation::Failing { failures, last, .. }) => {
            Some(first(*failures, *last, now, settings))
        }
        (
            Some(it),
            Observation::Failing {
                failures,
                last,
                began,
            },
        ) => match it.phase {
            Phase::Recovering => {
                let again = || again(it, first(*failures, *last, now, settings));
                (*began >= it.since).then(again)
            }
            // Requests that were under way fail for a while.
            Phase::Glitch | Phase::Retry => is_as_good_as_a_probe(it, *began, now)
                .then(|| next(it, *failures, *last, now, settings)),
        },
        (_, Observation::Asked(asked)) => paused(before, asked, now, settings),
        (
            _,
            Observation::Refused {
                refusals,
                last,
                began,
            },
        ) => refused(before, *refusals, *last, *began, now, settings),
        (Some(it), Observation::ProbeRefused { by, last }) if it.refused => it
            .is_probed_by(by)
            .then(|| next(it, 1, *last, now, settings)),
        (Some(it), Observation::ProbeFailed { by, last }) => it
            .is_probed_by(by)
            .then(|| next(it, 1, *last, now, settings)),
        (Some(it), Observation::ProbeGivenUp { by }) => it.is_probed_by(by).then(|| Condition {
            probe: None,
            ..it.clone()
        }),
        (Some(it), Observation::ProbeFoundNoName { by }) => {
            it.is_probed_by(by).then(|| released(it, now))
        }
        // Meanwhile its endpoint asked for a pause.
        (Some(it), Observation::ProbeSucceeded { by } | Observation::ProbeRefused { by, .. })
            if it.is_asked(now) =>
        {
            it.is_probed_by(by).then(|| Condition {
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
            Phase::Recovering => it.forced.then(|| Condition {
                forced: false,
                until: now,
                ..it.clone()
            }),
            Phase::Glitch | Phase::Retry => Some(recovering(it, now)),
        },
        (Some(it), Observation::Forced) => {
            (it.phase != Phase::Recovering).then(|| released(it, now))
        }
        (None, _) => None,
    }
}

/// The condition of a target that refused different events in a row. To one that is held for
/// another reason an answer is a good sign.
fn refused(
    before: Option<&Condition>,
    refusals: u32,
    last: Failure,
    began: Timestamp,
    now: Timestamp,
    settings: &HealthSettings,
) -> Option<Condition> {
    let hold = || Condition {
        refused: true,
        ..first(refusals, last, now, settings)
    };
    match before {
        None => Some(hold()),
        Some(it) if it.phase == Phase::Recovering => (began >= it.since).then(|| again(it, hold())),
        Some(it) => (it.refused && is_as_good_as_a_probe(it, began, now))
            .then(|| next(it, refusals, last, now, settings)),
    }
}

/// A request that was begun after the hold, by a worker that did not know of it, is as good as a
/// probe.
fn is_as_good_as_a_probe(condition: &Condition, began: Timestamp, now: Timestamp) -> bool {
    condition.is_due(now) && began >= condition.until
}

/// The condition of a target whose endpoint asked for a pause. The latest end wins. Pauses one
/// after the other become a Glitch only after `failures_in_a_row` requests have failed.
fn paused(
    before: Option<&Condition>,
    asked: &Asked,
    now: Timestamp,
    settings: &HealthSettings,
) -> Option<Condition> {
    let Asked {
        until, last, began, ..
    } = *asked;
    let Some(it) = before.filter(|it| it.phase != Phase::Recovering) else {
        let told_down = before.is_some_and(|it| it.told_down);
        let pause = || Condition {
            until,
            hold: 0,
            asked: true,
            told_down,
            ..first(1, last, now, settings)
        };
        return before.is_none_or(|it| began >= it.since).then(pause);
    };
    let is_probe = asked.probe.as_deref().is_some_and(|by| it.is_probed_by(by));
    if !is_probe && !is_as_good_as_a_probe(it, began, now) {
        return (until > it.until).then(|| Condition {
            last,
            ..not_before(until, it.clone())
        });
    }
    let failures = it.failures.saturating_add(1);
    if it.is_pause() && failures < settings.failures_in_a_row {
        return Some(not_before(
            until,
            Condition {
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
fn not_before(asked: Timestamp, hold: Condition) -> Condition {
    if asked > hold.until {
        Condition {
            until: asked,
            asked: true,
            ..hold
        }
    } else {
        hold
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
        asked: false,
        forced: false,
        refused: false,
    }
}

/// The first hold of a target that was recovering. Where nothing succeeded in between, because an
/// operator ended the last hold, it is the same spell of failures.
fn again(before: &Condition, hold: Condition) -> Condition {
    let failing_since = if before.forced {
        before.failing_since
    } else {
        hold.failing_since
    };
    Condition {
        failing_since,
        told_down: before.told_down,
        ..hold
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
    let same = Condition {
        failures,
        last,
        probe: None,
        asked: false,
        ..before.clone()
    };
    let next = match before.phase {
        Phase::Glitch if before.hold < settings.glitches => Condition {
            hold: before.hold + 1,
            until: now + settings.glitch_hold,
            ..same
        },
        Phase::Glitch | Phase::Recovering => Condition {
            phase: Phase::Retry,
            since: now,
            hold: 1,
            until: now + settings.hold(1),
            ..same
        },
        Phase::Retry => {
            let hold = before.hold.saturating_add(1);
            Condition {
                hold,
                until: now + settings.hold(hold),
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
fn released(before: &Condition, now: Timestamp) -> Condition {
    Condition {
        forced: true,
        ..recovering(before, now)
    }
}

fn recovering(before: &Condition, now: Timestamp) -> Condition {
    let phase = Phase::Recovering;
    Condition {
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
