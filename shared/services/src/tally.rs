//! Log lines about repeated events, of which one a minute speaks for all.

use std::time::Duration;

use parking_lot::Mutex;

/// The least time between two lines.
pub const LINE_PERIOD: Duration = Duration::from_mins(1);

/// A count of the events since the last line about them.
#[derive(Debug, Default)]
pub struct LogTally(Mutex<TallyState>);

#[derive(Debug, Default)]
struct TallyState {
    since_line: u64,
    line_at: Option<Duration>,
}

impl LogTally {
    /// Adds to the count at `now`, a time of the clock's `monotonic`. If a line is due, returns the
    /// count for it, and begins again.
    pub fn add(&self, count: u64, now: Duration) -> Option<u64> {
        let mut counted = self.0.lock();
        counted.since_line = counted.since_line.saturating_add(count);
        if counted
            .line_at
            .is_some_and(|at| now.saturating_sub(at) < LINE_PERIOD)
        {
            return None;
        }
        counted.line_at = Some(now);
        Some(std::mem::take(&mut counted.since_line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_line_a_minute_has_the_count_since_the_last() {
        let tally = LogTally::default();
        let check = |seconds, count, expected| {
            assert_eq!(
                tally.add(count, Duration::from_secs(seconds)),
                expected,
                "{seconds}"
            );
        };
        check(7, 3, Some(3));
        check(7, 1, None);
        check(66, 4, None);
        check(67, 2, Some(7));
        check(500, 1, Some(1));
    }
}
