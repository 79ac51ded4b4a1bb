//! The time budget of a run. A run ends by itself before its deadline, because one that is killed cannot
//! write down what it sent, and the next one sends that once more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use posthaste_ports::Clock;

/// Time before the deadline in which nothing new is begun: a request is answered in less, or not at all.
const BEGUN_BEFORE: Duration = Duration::from_secs(13);

/// Time before the deadline at which the sends under way are given up, so that what was sent is still written
/// down.
const SENT_BEFORE: Duration = Duration::from_secs(8);

/// Time before the deadline at which everything else is given up, so that the lease is still given back.
const WORKED_BEFORE: Duration = Duration::from_secs(3);

/// The limits of one run, as times of [`Clock::monotonic`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget<'a> {
    /// From then on nothing new is begun.
    pub(crate) begin: Duration,
    /// Sends end by then.
    pub(crate) send: Duration,
    /// All work ends by then.
    pub(crate) work: Duration,
    /// The end of the run.
    pub(crate) deadline: Duration,
    is_stopped: &'a AtomicBool,
}

impl<'a> Budget<'a> {
    /// The budget of a run that must have ended by `deadline`. Once `is_stopped` is set no held delivery is
    /// released.
    pub(crate) fn until(deadline: Duration, is_stopped: &'a AtomicBool) -> Self {
        Self {
            begin: deadline.saturating_sub(BEGUN_BEFORE),
            send: deadline.saturating_sub(SENT_BEFORE),
            work: deadline.saturating_sub(WORKED_BEFORE),
            deadline,
            is_stopped,
        }
    }

    /// The same, but nothing new is begun after half of the time from now, so that something else has the
    /// other half.
    pub(crate) fn half(self, clock: &impl Clock) -> Self {
        let now = clock.monotonic();
        Self { begin: now + self.begin.saturating_sub(now) / 2, ..self }
    }

    /// Tells whether there is time to begin something.
    pub(crate) fn has_time(self, clock: &impl Clock) -> bool {
        clock.monotonic() < self.begin
    }

    /// Tells whether there is time to begin something that a process which is to end leaves to the next.
    pub(crate) fn may_begin(self, clock: &impl Clock) -> bool {
        self.has_time(clock) && !self.is_stopped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use posthaste_core::model::Timestamp;
    use posthaste_testkit::ManualClock;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn nothing_is_begun_in_the_last_seconds_or_in_the_second_half_of_a_half() {
        let check = |elapsed, expected| {
            let (clock, is_stopped) = (ManualClock::new(Timestamp::EPOCH), AtomicBool::new(false));
            let began = clock.monotonic();
            let budget = Budget::until(began + 55 * SECOND, &is_stopped);
            let half = budget.half(&clock);
            clock.advance(elapsed);
            assert_eq!((half.has_time(&clock), budget.has_time(&clock)), expected, "{elapsed:?}");
        };
        check(Duration::ZERO, (true, true));
        check(20 * SECOND, (true, true));
        check(21 * SECOND, (false, true));
        check(41 * SECOND, (false, true));
        check(42 * SECOND, (false, false));
    }

    #[test]
    fn a_process_that_is_to_end_begins_only_what_cannot_wait() {
        let (clock, is_stopped) = (ManualClock::new(Timestamp::EPOCH), AtomicBool::new(false));
        let budget = Budget::until(clock.monotonic() + 55 * SECOND, &is_stopped);
        assert!(budget.may_begin(&clock));
        is_stopped.store(true, Ordering::Relaxed);
        assert_eq!((budget.may_begin(&clock), budget.has_time(&clock)), (false, true));
    }
}
