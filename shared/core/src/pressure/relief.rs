//! Relief: the measures that cost something each time, and are due now: trimming caches, forgetting
//! names. The other two have no moment of their own: publish asks whether to dehydrate, and an
//! alarm looks at the level.

use std::time::Duration;

use super::{PressureMeasure, PressureState};

/// The rest of a measure before it is carried out again. If it ran at every poll, two seconds
/// apart, each request of a backlog would open its connection and look up its name again: that
/// would slow the very drain that it is to speed up. Thirty seconds is as long as a name is kept
/// anyway, and fills no cache to speak of.
pub const RELIEF_EVERY: Duration = Duration::from_secs(30);

/// The measures to carry out now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DueRelief {
    /// Give memory of caches back ([`PressureMeasure::TrimCaches`]).
    pub trim_caches: bool,
    /// Forget resolved names ([`PressureMeasure::FlushDns`]).
    pub flush_dns: bool,
}

/// The last time of each measure, in one process.
#[derive(Debug, Clone, Default)]
pub struct ReliefTimes {
    trimmed_at: Option<Duration>,
    flushed_at: Option<Duration>,
}

impl DueRelief {
    /// Whether there is anything to do.
    pub fn is_any(self) -> bool {
        self.trim_caches || self.flush_dns
    }
}

impl ReliefTimes {
    /// The measures due at `now`, a time of a clock that never goes back. They count as done from
    /// then on.
    pub fn take_due(&mut self, state: &PressureState, now: Duration) -> DueRelief {
        DueRelief {
            trim_caches: state.asks_for(PressureMeasure::TrimCaches)
                && begin_if_rested(&mut self.trimmed_at, now),
            flush_dns: state.asks_for(PressureMeasure::FlushDns)
                && begin_if_rested(&mut self.flushed_at, now),
        }
    }
}

fn begin_if_rested(last: &mut Option<Duration>, now: Duration) -> bool {
    let has_rested = last.is_none_or(|last| now.saturating_sub(last) >= RELIEF_EVERY);
    if has_rested {
        *last = Some(now);
    }
    has_rested
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;
    use crate::pressure::{ByteUsage, PressureSettings, ResourceReadings, evaluate_pressure};

    const NOTHING: DueRelief = DueRelief {
        trim_caches: false,
        flush_dns: false,
    };
    const TRIM: DueRelief = DueRelief {
        trim_caches: true,
        flush_dns: false,
    };
    const BOTH: DueRelief = DueRelief {
        trim_caches: true,
        flush_dns: true,
    };

    /// Polls of the monitor, each so many seconds after the first with so much of the memory used,
    /// and what is due at each.
    fn check(polls: &[(u64, u64, DueRelief)]) {
        let settings = PressureSettings::default();
        let mut state = PressureState::normal(Timestamp::EPOCH);
        let mut relief = ReliefTimes::default();
        for &(secs, used, expected) in polls {
            let readings = ResourceReadings {
                memory: Some(ByteUsage { used, total: 100 }),
                ..ResourceReadings::default()
            };
            let at = Timestamp::from_millis(secs * 1000);
            state = evaluate_pressure(&state, &readings, &settings, at).0;
            assert_eq!(
                relief.take_due(&state, Duration::from_secs(secs)),
                expected,
                "at {secs} s with {used} %"
            );
        }
    }

    #[test]
    fn at_normal_nothing_is_due() {
        check(&[(0, 0, NOTHING), (2, 91, NOTHING), (60, 91, NOTHING)]);
    }

    /// A measure is due when it begins, and then every thirty seconds while it lasts.
    #[test]
    fn measure_is_due_at_its_begin_and_then_every_thirty_seconds() {
        check(&[
            (0, 91, NOTHING),
            (2, 92, TRIM),
            (4, 92, NOTHING),
            (31, 93, NOTHING),
            (32, 91, TRIM),
            (61, 92, NOTHING),
            (62, 89, NOTHING),
            (92, 89, NOTHING),
        ]);
    }

    #[test]
    fn each_measure_has_a_beginning_of_its_own() {
        let flush = DueRelief {
            trim_caches: false,
            flush_dns: true,
        };
        check(&[
            (0, 92, TRIM),
            (10, 94, flush),
            (30, 94, TRIM),
            (38, 94, NOTHING),
            (40, 94, flush),
            (90, 94, BOTH),
        ]);
    }

    #[test]
    fn measure_that_ends_and_begins_anew_still_rests() {
        check(&[
            (0, 92, TRIM),
            (2, 80, NOTHING),
            (4, 92, NOTHING),
            (6, 80, NOTHING),
            (30, 92, TRIM),
        ]);
    }
}
