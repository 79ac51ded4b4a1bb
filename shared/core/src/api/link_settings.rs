//! The settings of failing endpoints as an operator writes them: in a file, or in a variable of the
//! environment.

use std::time::Duration;

use serde::Deserialize;

use super::IsoDuration;
use crate::circuit::{HealthSettings, HealthSettingsError};
use crate::model::ArrivalSettings;

/// Changes to the defaults. What is left out stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct LinkSettings {
    /// The number of failures in a row, in one worker, that begin a Glitch. 10.
    pub failures_in_a_row: Option<u32>,
    /// The number of requests of one invocation that begin a Glitch if all of them failed. 3.
    pub failures_of_invocation: Option<u32>,
    /// The number of refusals in a row, of at least three events, that begin a Glitch; 0 for none.
    /// 10.
    pub refusals_in_row: Option<u32>,
    /// The length of a Glitch (Exchange's `GlitchRetrySeconds`). PT1M.
    pub glitch_hold: Option<IsoDuration>,
    /// The number of Glitches before Retry. 3.
    pub glitches: Option<u32>,
    /// The length of the first holds in Retry. PT10M.
    pub first_hold: Option<IsoDuration>,
    /// The number of first holds. 3.
    pub first_holds: Option<u32>,
    /// The length of each later hold. PT15M.
    pub later_hold: Option<IsoDuration>,
    /// The time that a probe may take before another one is made. PT1M30S.
    pub probe_lease: Option<IsoDuration>,
    /// The time that the ramp stays at 1, 2, 4 … requests at once. PT5S.
    pub ramp_step: Option<IsoDuration>,
    /// The time after which a notice says that a link is down, or up again (Exchange's
    /// `StateChangeDelay`). PT5M.
    pub state_change_delay: Option<IsoDuration>,
    /// Whether there are no such notices (Exchange's `SuppressStateChanges`). False.
    pub suppress_state_changes: Option<bool>,
    /// The number of failures, while others succeeded, after which an event is delivered alone and
    /// last (Exchange's `PerMsgFailuresBeforeMarkingAsProblem`). 2.
    pub problem_failures: Option<u32>,
    /// The time for which an endpoint must have been well before its dead letters are recovered.
    /// PT5M.
    pub recover_after: Option<IsoDuration>,
    /// The number of tries in a row that failed, after which a subscription is failing. 10.
    pub failing_in_row: Option<u32>,
    /// The share of tries that failed, in percent, from which on it is failing. 50.
    pub failing_percent: Option<u32>,
    /// The least number of tries of which that share is taken. 20.
    pub failing_tries_min: Option<u32>,
    /// The time over which tries are measured. PT5M.
    pub failing_window: Option<IsoDuration>,
    /// The time without an arrival after which it is failing if requests are held back. PT1M.
    pub failing_after: Option<IsoDuration>,
    /// The share of the last tries that arrived, in percent, from which on it is healthy again. 90.
    pub recovered_percent: Option<u32>,
    /// The age of an undelivered event from which on there is a notice. PT1H.
    pub delayed_after: Option<IsoDuration>,
}

impl LinkSettings {
    /// The settings with these changes, or the error of the one that is out of its range.
    pub fn to_health_settings(&self) -> Result<HealthSettings, HealthSettingsError> {
        let default = HealthSettings::default();
        let settings = HealthSettings {
            failures_in_a_row: self.failures_in_a_row.unwrap_or(default.failures_in_a_row),
            failures_of_invocation: self
                .failures_of_invocation
                .unwrap_or(default.failures_of_invocation),
            refusals_in_row: self.refusals_in_row.unwrap_or(default.refusals_in_row),
            glitch_hold: length_or(self.glitch_hold, default.glitch_hold),
            glitches: self.glitches.unwrap_or(default.glitches),
            first_hold: length_or(self.first_hold, default.first_hold),
            first_holds: self.first_holds.unwrap_or(default.first_holds),
            later_hold: length_or(self.later_hold, default.later_hold),
            probe_lease: length_or(self.probe_lease, default.probe_lease),
            ramp_step: length_or(self.ramp_step, default.ramp_step),
            state_change_delay: length_or(self.state_change_delay, default.state_change_delay),
            suppress_state_changes: self
                .suppress_state_changes
                .unwrap_or(default.suppress_state_changes),
            problem_failures: self.problem_failures.unwrap_or(default.problem_failures),
            recover_after: length_or(self.recover_after, default.recover_after),
            arrivals: self.arrival_settings(),
        };
        settings.validate()?;
        Ok(settings)
    }

    fn arrival_settings(&self) -> ArrivalSettings {
        let default = ArrivalSettings::default();
        ArrivalSettings {
            failing_in_row: self.failing_in_row.unwrap_or(default.failing_in_row),
            failing_percent: self.failing_percent.unwrap_or(default.failing_percent),
            tries_min: self.failing_tries_min.unwrap_or(default.tries_min),
            window: length_or(self.failing_window, default.window),
            failing_after: length_or(self.failing_after, default.failing_after),
            recovered_percent: self.recovered_percent.unwrap_or(default.recovered_percent),
            delayed_after: length_or(self.delayed_after, default.delayed_after),
        }
    }
}

fn length_or(written: Option<IsoDuration>, default: Duration) -> Duration {
    written.map_or(default, |it| it.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::time::Duration;

    fn read(settings: Value) -> Result<HealthSettings, String> {
        let written: LinkSettings =
            serde_json::from_value(settings).map_err(|error| error.to_string())?;
        written
            .to_health_settings()
            .map_err(|error| error.to_string())
    }

    #[test]
    fn omitted_members_have_their_defaults() {
        assert_eq!(read(json!({})), Ok(HealthSettings::default()));
        let some = json!({
            "glitches": 4, "refusalsInRow": 0, "laterHold": "PT30M", "suppressStateChanges": true
        });
        let expected = HealthSettings {
            glitches: 4,
            refusals_in_row: 0,
            later_hold: Duration::from_mins(30),
            suppress_state_changes: true,
            ..HealthSettings::default()
        };
        assert_eq!(read(some), Ok(expected));
    }

    #[test]
    fn every_setting_has_the_name_by_which_it_is_refused() {
        let counts = [
            "failuresInARow",
            "failuresOfInvocation",
            "glitches",
            "firstHolds",
            "problemFailures",
        ];
        for member in counts {
            assert_eq!(
                read(json!({ member: 0 })),
                Err(format!("{member} is 0; expected 1 to 1000"))
            );
        }
        for member in [
            "glitchHold",
            "firstHold",
            "laterHold",
            "probeLease",
            "rampStep",
            "stateChangeDelay",
        ] {
            let error = read(json!({ member: "P2D" })).unwrap_err();
            assert!(error.starts_with(&format!("{member} is ")), "{error}");
        }
    }

    #[test]
    fn an_unknown_name_or_kind_of_value_is_refused() {
        let check = |settings, expected: &str| {
            let error = read(settings).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        check(
            json!({ "GlitchRetrySeconds": 60 }),
            "unknown field `GlitchRetrySeconds`",
        );
        check(json!({ "glitchHold": "60 s" }), "duration");
        check(json!({ "glitches": "three" }), "invalid type");
    }
}
