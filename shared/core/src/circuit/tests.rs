//! The state machine of targets: its table, traces of it, and what holds for any course of things.

mod properties;
mod shards;
mod table;
mod traces;

use std::time::Duration;

use super::*;
use crate::model::{OutcomeName, Timestamp};

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const BUSY: RequestFailure = RequestFailure {
    outcome: OutcomeName::Busy,
    status: Some(503),
};

const UNAUTHORIZED: RequestFailure = RequestFailure {
    outcome: OutcomeName::Unauthorized,
    status: Some(401),
};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn mins(mins: u64) -> Duration {
    Duration::from_mins(mins)
}

fn failing() -> Observation {
    failing_since(NOW)
}

fn failing_since(began: Timestamp) -> Observation {
    Observation::Failing {
        failures: 10,
        last: BUSY,
        began,
    }
}

fn refused() -> Observation {
    Observation::Refused {
        refusals: 10,
        last: UNAUTHORIZED,
        began: NOW,
    }
}

fn probe_failed(by: &str) -> Observation {
    Observation::ProbeFailed {
        by: by.to_owned(),
        last: BUSY,
    }
}

/// A request that was begun now was answered with this number of seconds of `Retry-After`.
fn asked(pause: u64, probe: Option<&str>) -> Observation {
    Observation::Asked(RequestedPause {
        until: NOW + secs(pause),
        last: BUSY,
        began: NOW,
        probe: probe.map(str::to_owned),
    })
}

/// The last of so many pauses in a row.
fn pause(failures: u32, until: Timestamp) -> TargetCondition {
    TargetCondition {
        failures,
        ..as_asked(condition(TargetPhase::Glitch, 0, until))
    }
}

/// The same hold, but its endpoint asked for its end.
fn as_asked(condition: TargetCondition) -> TargetCondition {
    TargetCondition {
        asked: true,
        ..condition
    }
}

fn condition(phase: TargetPhase, hold: u32, until: Timestamp) -> TargetCondition {
    TargetCondition {
        phase,
        since: NOW,
        failing_since: NOW,
        hold,
        until,
        failures: 10,
        last: BUSY,
        probe: None,
        told_down: false,
        asked: false,
        forced: false,
        refused: false,
    }
}

/// The same hold, because its endpoint refused different events.
fn as_refused(condition: TargetCondition) -> TargetCondition {
    TargetCondition {
        refused: true,
        ..condition
    }
}

#[expect(clippy::needless_pass_by_value, reason = "made anew at every call")]
fn probed(condition: TargetCondition, by: &str, until: Timestamp) -> TargetCondition {
    TargetCondition {
        probe: Some(ProbeLease {
            by: by.to_owned(),
            until,
        }),
        ..condition
    }
}
