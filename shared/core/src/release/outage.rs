//! Outages of wake, seen by how far apart two runs begin. Deliveries that were due in an outage
//! were not attempted, so no time before its end counts as idle.

use std::time::Duration;

use crate::model::Timestamp;

/// Runs that begin further apart than this have an outage between them. It is less than the queue's
/// longest delay, for which a wait is noted ahead, so that idleness is never confused with a
/// shorter gap.
pub const OUTAGE_MIN: Duration = Duration::from_mins(10);

/// The end of the last known outage, for a run that begins now. `last_began` is the beginning of
/// the run before, `known` the end of an outage that it knew of; a time in the future is from a
/// clock that was ahead.
pub fn awake_since(
    last_began: Option<Timestamp>,
    known: Option<Timestamp>,
    began: Timestamp,
) -> Option<Timestamp> {
    let was_asleep = last_began.is_some_and(|last| began > last + OUTAGE_MIN);
    if was_asleep {
        Some(began)
    } else {
        known.map(|since| since.min(began))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(minute: u64) -> Timestamp {
        Timestamp::from_millis(minute * 60_000)
    }

    #[test]
    fn an_outage_ends_with_the_run_that_comes_late() {
        let check = |last: Option<u64>, known: Option<u64>, began: u64, expected: Option<u64>| {
            let since = awake_since(last.map(at), known.map(at), at(began));
            assert_eq!(since, expected.map(at), "{last:?} {known:?} {began}");
        };
        check(None, None, 100, None);
        check(Some(99), None, 100, None);
        check(Some(90), None, 100, None);
        check(Some(89), None, 100, Some(100));
        check(Some(89), Some(50), 100, Some(100));
        check(Some(99), Some(50), 100, Some(50));
        // From a clock that was ahead.
        check(Some(200), Some(200), 100, Some(100));
    }

    proptest! {
        #[test]
        fn the_end_of_an_outage_is_remembered_until_the_next_and_never_lies_ahead(
            gaps in prop::collection::vec(0_u64..30, 1..40),
        ) {
            let (mut last, mut known, mut now) = (None, None, 1_000);
            let mut expected = None;
            for gap in gaps {
                now += gap;
                if gap > 10 && last.is_some() {
                    expected = Some(at(now));
                }
                known = awake_since(last, known, at(now));
                prop_assert_eq!(known, expected);
                last = Some(at(now));
            }
        }
    }
}
