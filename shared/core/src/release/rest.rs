//! Rest: wake does not look for work in minutes in which there can be none. A run that found
//! nothing at all says until when that holds. Parked deliveries fall due by time alone, and what
//! else makes work sends a signal first ([`crate::stored::WakeSignal`]).

use std::time::Duration;

use crate::model::{SQS_DELAY_SECS_MAX, Timestamp};
use crate::stored::WakeCheckpoint;

const MINUTE_MS: u64 = 60_000;

/// Longest rest. A delivery is parked for longer than the queue can delay it, so nothing that is
/// parked after a run falls due sooner. A minute less, because the clocks of two workers may be
/// apart. This also bounds how late work is found whose signal was lost, or that an older program
/// made.
pub const REST_MAX: Duration = Duration::from_secs(SQS_DELAY_SECS_MAX as u64 - 60);

/// The rest after a run that began at `began` and found nothing to do. `next_due` is the minute of
/// the next parked object that it saw.
pub fn rest_until(began: Timestamp, next_due: Option<u64>) -> Timestamp {
    let due = next_due.map(|minute| Timestamp::from_millis(minute.saturating_mul(MINUTE_MS)));
    due.into_iter()
        .chain([began + REST_MAX])
        .min()
        .unwrap_or(began)
}

/// Tells whether a run that begins now may end at once, by what the last one left. Before it does,
/// the signal has to be read as well: see [`is_covered`].
pub fn may_rest(last: &WakeCheckpoint, now: Timestamp) -> bool {
    let Some(began) = last.began_at else {
        return false;
    };
    let Some(until) = last.rest_until else {
        return false;
    };
    // Anything else is from a clock that was ahead.
    began <= now && now < until && until <= began + REST_MAX
}

/// Tells whether the last run saw all the work that a signal announced: it began after the signal's
/// time.
pub fn is_covered(last: &WakeCheckpoint, signalled_until: Timestamp) -> bool {
    last.began_at.is_some_and(|began| signalled_until < began)
}

/// The time until which wake was awake or had nothing to do, for finding outages.
pub fn well_until(last: &WakeCheckpoint) -> Option<Timestamp> {
    last.began_at.max(last.rest_until)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: u64) -> Timestamp {
        Timestamp::from_millis(minute * MINUTE_MS)
    }

    fn checkpoint(began: u64, until: Option<u64>) -> WakeCheckpoint {
        WakeCheckpoint {
            began_at: Some(at(began)),
            rest_until: until.map(at),
            ..WakeCheckpoint::default()
        }
    }

    #[test]
    fn rest_ends_at_the_next_due_time_and_after_fourteen_minutes() {
        let check = |next_due, expected| assert_eq!(rest_until(at(100), next_due), at(expected));
        check(None, 114);
        check(Some(120), 114);
        check(Some(114), 114);
        check(Some(107), 107);
        check(Some(u64::MAX), 114);
    }

    /// A run rests within the time that the last one gave, and never by a clock that was ahead.
    #[test]
    fn run_rests_in_the_given_time_but_not_by_a_clock_once_ahead() {
        let check = |began, until, now, expected| {
            assert_eq!(
                may_rest(&checkpoint(began, until), at(now)),
                expected,
                "{began} {until:?} {now}"
            );
        };
        check(100, Some(114), 100, true);
        check(100, Some(114), 113, true);
        check(100, Some(114), 114, false);
        check(100, None, 101, false);
        // The clock was set back.
        check(100, Some(114), 99, false);
        check(100, Some(115), 101, false);
        assert!(!may_rest(&WakeCheckpoint::default(), at(0)));
    }

    #[test]
    fn a_signal_is_covered_by_a_run_that_began_after_its_time() {
        let check = |began, signalled, expected| {
            assert_eq!(
                is_covered(&checkpoint(began, None), at(signalled)),
                expected,
                "{began} {signalled}"
            );
        };
        check(100, 99, true);
        check(100, 100, false);
        check(100, 101, false);
        assert!(!is_covered(&WakeCheckpoint::default(), at(0)));
    }

    #[test]
    fn a_rest_is_no_outage() {
        assert_eq!(well_until(&checkpoint(100, Some(114))), Some(at(114)));
        assert_eq!(well_until(&checkpoint(100, None)), Some(at(100)));
        assert_eq!(well_until(&WakeCheckpoint::default()), None);
    }
}
