//! The speed of the delivery queue where many processes of deliver work on it and each reports its
//! own part.
//!
//! A report is about one process alone and carries no time of day. The store that keeps it knows
//! its age, so the clocks of the processes need not agree. The reports by themselves give the rate.
//! Earlier ones need not be remembered, which suits a monitor that starts afresh every minute.

use std::time::Duration;

/// The shortest wait worth a report: a process reports only after it received a message that had
/// been due for this long. Far below the drain time's lowest threshold (30 s), and far above the
/// waits in a queue that keeps up.
pub const REPORTED_WAIT_MIN: Duration = Duration::from_secs(5);

/// The shortest time between two reports of one process.
pub const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// The longest time that a report may be about: deliver's longest invocation (120 s), and some to
/// spare. A count over a longer time is of a process that had nothing to do in between, and says
/// nothing about its speed.
pub const REPORT_WINDOW_MAX: Duration = Duration::from_secs(150);

/// For how long a report speaks of the present at least: three intervals.
const CURRENT_MIN: Duration = Duration::from_secs(30);

/// For how long a report speaks of the present at most: from then on its process has surely ended
/// or has nothing that waits.
pub const CURRENT_MAX: Duration = REPORT_WINDOW_MAX;

/// The report of one process of deliver about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainReport {
    /// Messages it settled …
    pub settled: u64,
    /// … in this time, which ended when it reported.
    pub window: Duration,
    /// The longest that a message it received had been due.
    pub waited_max: Duration,
}

/// The messages that were drained, and the time that took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drained {
    /// Messages that were settled …
    pub messages: u64,
    /// … in this time.
    pub over: Duration,
    /// The longest that a received one had been due (`now − notBefore`).
    pub waited_max: Duration,
}

impl DrainReport {
    /// Whether a report of this age still speaks of the present. A process whose invocations are
    /// long reports seldom, so its word holds longer.
    pub fn is_current(&self, age: Duration) -> bool {
        age <= self
            .window
            .saturating_mul(2)
            .clamp(CURRENT_MIN, CURRENT_MAX)
    }

    fn per_second(&self) -> f64 {
        as_f64(self.settled) / self.window.max(Duration::from_millis(1)).as_secs_f64()
    }
}

impl Drained {
    /// The drain of all processes of these reports together. The time is the one in which all of
    /// them at once settle as many messages as they reported. Where they settled none it is
    /// `elapsed`, the time since the last look.
    pub fn together(reports: &[DrainReport], elapsed: Duration) -> Self {
        let messages = reports
            .iter()
            .fold(0_u64, |sum, report| sum.saturating_add(report.settled));
        let per_second: f64 = reports.iter().map(DrainReport::per_second).sum();
        let over = match messages {
            0 => elapsed,
            _ => {
                Duration::try_from_secs_f64(as_f64(messages) / per_second).unwrap_or(Duration::MAX)
            }
        };
        let waited_max = reports
            .iter()
            .map(|report| report.waited_max)
            .max()
            .unwrap_or_default();
        Self {
            messages,
            over,
            waited_max,
        }
    }

    /// The same for this number of processes, where only `read` of them could be looked at.
    pub fn scaled(self, processes: usize, read: usize) -> Self {
        let times = |messages: u64| u128::from(messages) * processes as u128 / read.max(1) as u128;
        Self {
            messages: u64::try_from(times(self.messages)).unwrap_or(u64::MAX),
            ..self
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of messages are far below 2^52"
)]
pub(super) fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ELAPSED: Duration = Duration::from_secs(10);

    fn report(settled: u64, window_secs: u64, waited_secs: u64) -> DrainReport {
        let (window, waited_max) = (
            Duration::from_secs(window_secs),
            Duration::from_secs(waited_secs),
        );
        DrainReport {
            settled,
            window,
            waited_max,
        }
    }

    fn check(reports: &[DrainReport], messages: u64, over_secs: u64, waited_secs: u64) {
        let [over, waited_max] = [over_secs, waited_secs].map(Duration::from_secs);
        assert_eq!(
            Drained::together(reports, ELAPSED),
            Drained {
                messages,
                over,
                waited_max
            },
            "{reports:?}"
        );
    }

    #[test]
    fn rates_of_processes_add_up_whatever_their_windows() {
        check(&[report(100, 10, 7)], 100, 10, 7);
        check(&[report(100, 10, 7), report(100, 10, 9)], 200, 10, 9);
        // 10 a second and 5 a second.
        check(
            &[report(100, 10, 7), report(50, 10, 9), report(0, 120, 6)],
            150,
            10,
            9,
        );
        check(&[report(600, 60, 7), report(100, 10, 9)], 700, 35, 9);
    }

    #[test]
    fn where_nothing_was_settled_the_time_is_the_one_since_the_last_look() {
        check(&[report(0, 60, 50)], 0, 10, 50);
        check(&[], 0, 10, 0);
    }

    #[test]
    fn processes_that_were_not_looked_at_count_as_the_others() {
        let drained = Drained::together(&[report(100, 10, 7)], ELAPSED);
        assert_eq!(
            drained.scaled(30, 10),
            Drained {
                messages: 300,
                ..drained
            }
        );
        assert_eq!(drained.scaled(0, 0).messages, 0);
    }

    #[test]
    fn a_report_holds_twice_its_window_within_bounds() {
        let check = |window_secs, holds_secs: u64| {
            let report = report(1, window_secs, 5);
            let ages = [holds_secs, holds_secs + 1].map(Duration::from_secs);
            assert_eq!(
                ages.map(|age| report.is_current(age)),
                [true, false],
                "{window_secs} s"
            );
        };
        check(0, 30);
        check(10, 30);
        check(60, 120);
        check(140, 150);
        check(u64::MAX, 150);
    }

    proptest! {
        #[test]
        fn no_reports_break_the_sum(
            reports in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 0..9),
        ) {
            let reports: Vec<_> = reports.into_iter().map(|(settled, window_ms, waited_ms)| DrainReport {
                settled,
                window: Duration::from_millis(window_ms),
                waited_max: Duration::from_millis(waited_ms),
            }).collect();
            let drained = Drained::together(&reports, ELAPSED);
            prop_assert_eq!(drained.messages == 0, reports.iter().all(|report| report.settled == 0));
            prop_assert!(drained.scaled(1000, 128).messages >= drained.messages);
        }
    }
}
