//! The times at which an instance writes its metrics. CloudWatch keeps them by the minute, and
//! bills each line of the log: a line an invocation says no more than a line a minute.

use std::time::Duration;

use posthaste_core::model::Timestamp;

/// Longest time for which an instance that is invoked keeps values. CloudWatch's own metrics have
/// this resolution.
pub(super) const INTERVAL: Duration = Duration::from_mins(1);

/// The part of its life for which a young instance keeps values. What is kept is lost when Lambda
/// ends the instance: so at most a fifth of all that an instance has counted, even if it lives for
/// seconds.
const YOUNG_INTERVALS: u32 = 4;

/// The metrics that are written at the end of an invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DrainPart {
    /// All of them.
    All,
    /// Metrics that are never kept: gauges, and what an alarm watches.
    Prompt,
}

/// The writes of an instance. Time is the wall clock's, which continues while Lambda freezes the
/// instance.
#[derive(Debug, Default)]
pub(super) struct WritePace {
    /// The end of the first invocation.
    born: Option<Timestamp>,
    /// The last time that everything was written.
    written: Option<Timestamp>,
    /// The end of the last invocation whose values are kept.
    kept: Option<Timestamp>,
}

impl WritePace {
    /// Begins an invocation. Returns the time of the values that are to be written before it: those
    /// that were kept an interval ago, which must not count for the time of this invocation.
    pub(super) fn begin_invocation(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.kept.take_if(|at| is_over(*at, INTERVAL, now))
    }

    /// An invocation ends. Everything is written if the last time is long enough ago.
    pub(super) fn end_invocation(&mut self, now: Timestamp) -> DrainPart {
        // A clock that was set back makes the instance young again.
        let born = *self.born.insert(self.born.map_or(now, |at| at.min(now)));
        let is_due = self.written.is_none_or(|at| {
            let young = at.since(born) / YOUNG_INTERVALS;
            is_over(at, young.min(INTERVAL), now)
        });
        if !is_due {
            self.kept = Some(now);
            return DrainPart::Prompt;
        }
        self.written = Some(now);
        self.kept = None;
        DrainPart::All
    }
}

/// Whether the time is over. A clock that was set back ends it, too.
fn is_over(since: Timestamp, time: Duration, now: Timestamp) -> bool {
    now < since || now.since(since) >= time
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_ports::Clock;
    use posthaste_testkit::ManualClock;

    fn world() -> (WritePace, ManualClock) {
        (
            WritePace::default(),
            ManualClock::new(Timestamp::from_millis(1_764_000_000_000)),
        )
    }

    /// Runs invocations of no length, this long after each other, and returns the seconds at whose
    /// end everything was written.
    fn written(
        pace: &mut WritePace,
        clock: &ManualClock,
        gap: Duration,
        invocations: u32,
    ) -> Vec<u64> {
        let began = clock.now();
        let mut seconds = Vec::new();
        for _ in 0..invocations {
            pace.begin_invocation(clock.now());
            if pace.end_invocation(clock.now()) == DrainPart::All {
                seconds.push(clock.now().since(began).as_secs());
            }
            clock.advance(gap);
        }
        seconds
    }

    #[test]
    fn an_instance_writes_at_once_and_later_once_a_minute() {
        let (mut pace, clock) = world();
        let seconds = written(&mut pace, &clock, Duration::from_secs(1), 600);
        let young = [
            0, 1, 2, 3, 4, 5, 7, 9, 12, 15, 19, 24, 30, 38, 48, 60, 75, 94, 118, 148, 185, 232, 290,
        ];
        assert_eq!(seconds, [&young[..], &[350, 410, 470, 530, 590]].concat());
    }

    #[test]
    fn each_invocation_of_sparse_traffic_is_written_at_once() {
        let (mut pace, clock) = world();
        assert_eq!(written(&mut pace, &clock, INTERVAL, 20).len(), 20);
    }

    #[test]
    fn values_kept_before_a_break_go_first_with_their_own_time() {
        let (mut pace, clock) = world();
        written(&mut pace, &clock, Duration::from_secs(1), 600);
        pace.begin_invocation(clock.now());
        assert_eq!(pace.end_invocation(clock.now()), DrainPart::Prompt);
        let kept_at = clock.now();
        clock.advance(INTERVAL.checked_sub(Duration::from_millis(1)).unwrap());
        assert_eq!(pace.begin_invocation(clock.now()), None);
        clock.advance(Duration::from_millis(1));
        assert_eq!(pace.begin_invocation(clock.now()), Some(kept_at));
        assert_eq!(pace.begin_invocation(clock.now()), None, "once");
        assert_eq!(pace.end_invocation(clock.now()), DrainPart::All);
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_stop_the_writes() {
        let mut pace = WritePace::default();
        let now = Timestamp::from_millis(1_764_000_000_000);
        assert_eq!(pace.end_invocation(now), DrainPart::All);
        let set_back = ManualClock::new(Timestamp::from_millis(1_000));
        let seconds = written(&mut pace, &set_back, Duration::from_secs(1), 600);
        assert_eq!((seconds.len(), seconds[..3].to_vec()), (28, vec![0, 1, 2]));
    }
}
