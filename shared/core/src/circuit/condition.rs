//! The record of a target that is not well.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::word::display_the_word;
use crate::model::{AttemptOutcome, OutcomeName, Timestamp};

/// A lease that lapses later was written by a clock that was wrong: the longest that can be set is
/// 15 minutes.
const LEASE_AHEAD_MAX: Duration = Duration::from_mins(20);

/// The phase of a target that is not well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TargetPhase {
    /// The target failed just now. It gets no requests for a minute at a time.
    Glitch,
    /// The target has been failing for minutes. It gets no requests for long, and its deliveries
    /// are held.
    Retry,
    /// The target answered again. Its deliveries are let through little by little.
    Recovering,
}

display_the_word!(TargetPhase);

/// The record of a target that is not well, and the time until which it gets no requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a stored member of its own"
)]
pub struct TargetCondition {
    /// The target's phase.
    pub phase: TargetPhase,
    /// The time at which the phase began.
    pub since: Timestamp,
    /// The time of the first Glitch of this spell of failures.
    pub failing_since: Timestamp,
    /// The number of this hold in its phase; the first is 1. A pause that was asked for is 0.
    pub hold: u32,
    /// The end of the hold; while it is recovering, the time since which it is known to answer.
    pub until: Timestamp,
    /// The number of requests that failed in this spell, as far as they counted: the streak, and
    /// each probe.
    pub failures: u32,
    /// The last of those failures.
    pub last: RequestFailure,
    /// The probe that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeLease>,
    /// Whether a notice has said that it is down, and none yet that it is up again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told_down: bool,
    /// Whether its endpoint asked for this end of its hold, by `Retry-After`. A program that does
    /// not know this member takes it for a Glitch, or a hold in Retry, of this length.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// Whether it is recovering because an operator wants it, or because its host name does not
    /// exist, and no request has succeeded since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    /// Whether its endpoint refused different events, one after the other: then another refusal is
    /// no sign that it is well. A program that does not know this member takes it for one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
}

/// A failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestFailure {
    /// The failure's name, as in a dead letter.
    pub outcome: OutcomeName,
    /// The status, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// The right to the one request that finds out whether a target is well again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeLease {
    /// The holder: a new name for every probe.
    pub by: String,
    /// The time from which another worker may have it.
    pub until: Timestamp,
}

impl RequestFailure {
    /// The failure of an outcome; `None` for a success.
    pub fn from_outcome(outcome: AttemptOutcome) -> Option<Self> {
        outcome.name().map(|name| Self {
            outcome: name,
            status: outcome.status(),
        })
    }
}

impl TargetCondition {
    /// Whether a probe is under way.
    pub fn is_probed(&self, now: Timestamp) -> bool {
        self.probe
            .as_ref()
            .is_some_and(|probe| now < probe.until && probe.until <= now + LEASE_AHEAD_MAX)
    }

    /// Whether its last probe has this lease.
    pub fn is_probed_by(&self, by: &str) -> bool {
        self.probe.as_ref().is_some_and(|probe| probe.by == by)
    }

    /// Whether its hold is over and no probe has begun yet.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.phase != TargetPhase::Recovering && now >= self.until && !self.is_probed(now)
    }

    /// Whether its hold lasts because its endpoint asked for that: a success of a request that was
    /// under way does not end it.
    pub fn is_asked(&self, now: Timestamp) -> bool {
        self.asked && now < self.until
    }

    /// Whether the only hold on it is a pause that its endpoint asked for.
    pub fn is_pause(&self) -> bool {
        self.asked && self.phase == TargetPhase::Glitch && self.hold == 0
    }

    /// The time at which the next probe may be made; `None` while it is recovering.
    pub fn next_probe(&self) -> Option<Timestamp> {
        let lease = self
            .probe
            .as_ref()
            .map_or(Timestamp::EPOCH, |probe| probe.until);
        (self.phase != TargetPhase::Recovering).then(|| self.until.max(lease))
    }
}
