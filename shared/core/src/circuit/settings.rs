//! The settings that an operator may change about failing endpoints, with the documents' defaults
//! and the range of each.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::model::ArrivalSettings;

/// Counts that make sense: less than one is never reached, and more than a worker has requests
/// under way would let an endpoint be hammered.
const COUNT: RangeInclusive<u32> = 1..=1000;

/// The same for a count that may be off.
const COUNT_OR_OFF: RangeInclusive<u32> = 0..=1000;

/// Shortest and longest hold in the queue: no longer than the queue can delay.
const GLITCH: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_mins(15);

/// Shortest and longest hold outside the queue: `wake` looks once a minute, and an endpoint is
/// asked once a day at least.
const RETRY: RangeInclusive<Duration> = Duration::from_mins(1)..=Duration::from_hours(24);

/// Shortest and longest lease of a probe: longer than the longest attempt (60 s), or two would be
/// under way at once.
const PROBE: RangeInclusive<Duration> = Duration::from_secs(75)..=Duration::from_mins(15);

/// Shortest and longest step of the ramp.
const RAMP: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_mins(10);

/// Longest time after which a notice is sent.
const CHANGE_DELAY: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_hours(24);

/// Shortest and longest time before recovery: `wake` looks once a minute, and an endpoint that is
/// down for a part of each day would never have recovered.
const RECOVER: RangeInclusive<Duration> = Duration::from_mins(1)..=Duration::from_hours(12);

/// Shares in percent that make sense.
const PERCENT: RangeInclusive<u32> = 1..=100;

/// Shortest and longest time over which tries are measured: minutes are counted, and as many are
/// kept.
const WINDOW: RangeInclusive<Duration> = Duration::from_mins(1)..=Duration::from_hours(1);

/// Shortest and longest time without an arrival, or of an event without a delivery.
const ARRIVAL: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(24);

/// All settings of failing endpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthSettings {
    /// The number of failures in a row, in one worker, that make a streak.
    pub failures_in_a_row: u32,
    /// The number of requests of one invocation that make a streak as well, if all of them failed.
    pub failures_of_invocation: u32,
    /// The number of refusals in a row, of different events, that make a streak as well. 0: none
    /// does.
    pub refusals_in_row: u32,
    /// The length of a Glitch (`GlitchRetrySeconds`).
    pub glitch_hold: Duration,
    /// The number of Glitches before Retry.
    pub glitches: u32,
    /// The length of the first holds in Retry.
    pub first_hold: Duration,
    /// The number of those holds.
    pub first_holds: u32,
    /// The length of every later hold.
    pub later_hold: Duration,
    /// The time after which another probe may be made, if the last one has no result.
    pub probe_lease: Duration,
    /// The time for which the ramp stays at 1, 2, 4 … requests at once.
    pub ramp_step: Duration,
    /// The time after which a notice says that a link is down, or up again (`StateChangeDelay`).
    pub state_change_delay: Duration,
    /// Whether no notices are sent (`SuppressStateChanges`).
    pub suppress_state_changes: bool,
    /// An event that failed so often while others succeeded is a problem event
    /// (`PerMsgFailuresBeforeMarkingAsProblem`).
    pub problem_failures: u32,
    /// The time for which an endpoint must have been well before its dead letters are recovered.
    pub recover_after: Duration,
    /// The limits at which a subscription is failing, and healthy again.
    pub arrivals: ArrivalSettings,
}

/// The reason why settings are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HealthSettingsError {
    /// A count is out of its range.
    #[error("{member} is {value}; expected {min} to {max}")]
    Count {
        /// The setting.
        member: &'static str,
        /// The value that was set.
        value: u32,
        /// The least.
        min: u32,
        /// The most.
        max: u32,
    },
    /// A length of time is out of its range.
    #[error("{member} is {value:?}; expected {min:?} to {max:?}")]
    Length {
        /// The setting.
        member: &'static str,
        /// The value that was set.
        value: Duration,
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
}

impl HealthSettingsError {
    /// The setting at fault, as it stands in a file.
    pub fn member(&self) -> &'static str {
        match self {
            Self::Count { member, .. } | Self::Length { member, .. } => member,
        }
    }
}

impl Default for HealthSettings {
    fn default() -> Self {
        Self {
            failures_in_a_row: 10,
            failures_of_invocation: 3,
            refusals_in_row: 10,
            glitch_hold: Duration::from_mins(1),
            glitches: 3,
            first_hold: Duration::from_mins(10),
            first_holds: 3,
            later_hold: Duration::from_mins(15),
            probe_lease: Duration::from_secs(90),
            ramp_step: Duration::from_secs(5),
            state_change_delay: Duration::from_mins(5),
            suppress_state_changes: false,
            problem_failures: 2,
            recover_after: Duration::from_mins(5),
            arrivals: ArrivalSettings::default(),
        }
    }
}

impl HealthSettings {
    /// Checks every setting, and names the first that is out of its range as it stands in a file of
    /// settings.
    pub fn validate(&self) -> Result<(), HealthSettingsError> {
        let arrivals = &self.arrivals;
        let counts = [
            ("failuresInARow", self.failures_in_a_row, COUNT),
            ("failuresOfInvocation", self.failures_of_invocation, COUNT),
            ("refusalsInRow", self.refusals_in_row, COUNT_OR_OFF),
            ("glitches", self.glitches, COUNT),
            ("firstHolds", self.first_holds, COUNT),
            ("problemFailures", self.problem_failures, COUNT),
            ("failingInRow", arrivals.failing_in_row, COUNT),
            ("failingPercent", arrivals.failing_percent, PERCENT),
            ("failingTriesMin", arrivals.tries_min, COUNT),
            ("recoveredPercent", arrivals.recovered_percent, PERCENT),
        ];
        let lengths = [
            ("glitchHold", self.glitch_hold, GLITCH),
            ("firstHold", self.first_hold, RETRY),
            ("laterHold", self.later_hold, RETRY),
            ("probeLease", self.probe_lease, PROBE),
            ("rampStep", self.ramp_step, RAMP),
            ("stateChangeDelay", self.state_change_delay, CHANGE_DELAY),
            ("recoverAfter", self.recover_after, RECOVER),
            ("failingWindow", arrivals.window, WINDOW),
            ("failingAfter", arrivals.failing_after, ARRIVAL),
            ("delayedAfter", arrivals.delayed_after, ARRIVAL),
        ];
        for (member, value, range) in counts {
            if !range.contains(&value) {
                let (min, max) = range.into_inner();
                return Err(HealthSettingsError::Count {
                    member,
                    value,
                    min,
                    max,
                });
            }
        }
        for (member, value, range) in lengths {
            if !range.contains(&value) {
                let (min, max) = range.into_inner();
                return Err(HealthSettingsError::Length {
                    member,
                    value,
                    min,
                    max,
                });
            }
        }
        Ok(())
    }

    /// The length of the `nth` hold in Retry; the first is 1.
    pub fn hold_length(&self, nth: u32) -> Duration {
        if nth <= self.first_holds {
            self.first_hold
        } else {
            self.later_hold
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_keep_their_rules_and_a_broken_one_is_named() {
        let default = HealthSettings::default();
        assert_eq!(default.validate(), Ok(()));
        let check = |settings: HealthSettings, expected: &str| {
            assert_eq!(settings.validate().unwrap_err().to_string(), expected);
        };
        check(
            HealthSettings {
                glitches: 0,
                ..default.clone()
            },
            "glitches is 0; expected 1 to 1000",
        );
        let refusals_in_row = |refusals_in_row| HealthSettings {
            refusals_in_row,
            ..default.clone()
        };
        assert_eq!(refusals_in_row(0).validate(), Ok(()));
        check(
            refusals_in_row(1001),
            "refusalsInRow is 1001; expected 0 to 1000",
        );
        let glitch_hold = Duration::from_mins(16);
        check(
            HealthSettings {
                glitch_hold,
                ..default.clone()
            },
            "glitchHold is 960s; expected 1s to 900s",
        );
        let probe_lease = Duration::from_mins(1);
        check(
            HealthSettings {
                probe_lease,
                ..default
            },
            "probeLease is 60s; expected 75s to 900s",
        );
    }
}
