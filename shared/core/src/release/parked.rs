//! The list of parked objects, oldest first: where a run begins, and what it remembers for the
//! next.
//!
//! Every object that is released leaves a delete marker in a versioned bucket, for a day or two,
//! and a listing must walk past all of them: at a million it takes minutes. A list that begins
//! where something may still lie walks past none. The due minute of a new object is never before
//! the minute in which it was written, so what was found empty stays empty.

use std::time::Duration;

use crate::model::Timestamp;
use crate::stored::{WakeCheckpoint, layout};

/// Minutes by which a list begins before the open one: as much as the clocks of two workers may be
/// apart, and an object be written late.
const STEP_BACK_MINUTES: u64 = 10;

/// Time between two scans of what lies before the list's beginning, for objects that were written
/// later still.
const SCAN_EVERY: Duration = Duration::from_hours(24);

/// Time after which a scan that did not come to its end is tried again.
const SCAN_AGAIN_AFTER: Duration = Duration::from_hours(1);

/// Minutes after its due minute at which a parked object is late. deliver's note keeps its
/// subscription for longer.
const LATE_MINUTES: u64 = 5;

/// One run's way through the list.
#[derive(Debug, Clone)]
pub struct ParkedWalk {
    began: Timestamp,
    /// Everything due before this minute was tried, by this run or an earlier one.
    reached: Option<u64>,
    /// The oldest minute of what must be tried again.
    retry_from: Option<u64>,
    scan_at: Option<Timestamp>,
    /// The last object that was looked at under pressure for what has expired; `None` once all
    /// were.
    pub expired_to: Option<String>,
}

impl ParkedWalk {
    /// The way of a run that begins now, from what the last one left. A minute that has not come
    /// yet is from a clock that was ahead.
    pub fn resume(checkpoint: &WakeCheckpoint, began: Timestamp) -> Self {
        Self {
            began,
            reached: checkpoint
                .open_from_minute
                .map(|minute| minute.min(began.minute_rounded_down())),
            retry_from: None,
            scan_at: checkpoint.scan_at,
            expired_to: checkpoint.expired_to.clone(),
        }
    }

    /// The key after which the list begins; `None` for its start.
    pub fn begins_after(&self) -> Option<String> {
        self.reached
            .map(|minute| layout::parked_before(minute.saturating_sub(STEP_BACK_MINUTES)))
    }

    /// Tells whether what lies before the beginning must be scanned. A time that is further off
    /// than any that is ever set is from a clock that was ahead.
    pub fn is_scan_due(&self) -> bool {
        self.scan_at
            .is_none_or(|at| at <= self.began || at > self.began + SCAN_EVERY)
    }

    /// A scan begins. Until [`Self::end_scan`] it counts as not done.
    pub fn begin_scan(&mut self) {
        self.scan_at = Some(self.began + SCAN_AGAIN_AFTER);
    }

    /// Everything from the start of the list was tried.
    pub fn end_scan(&mut self) {
        self.scan_at = Some(self.began + SCAN_EVERY);
    }

    /// Everything from the beginning through now was tried.
    pub fn note_all_tried(&mut self) {
        self.reached = self.reached.max(Some(self.began.minute_rounded_down()));
    }

    /// Notes that these objects were tried, and everything before them.
    pub fn note_tried(&mut self, keys: &[String]) {
        let last = keys
            .iter()
            .rev()
            .find_map(|key| layout::parked_due_minute(key));
        self.reached = self.reached.max(last);
    }

    /// Notes that these objects must be tried again.
    pub fn note_retry(&mut self, keys: &[String]) {
        let first = keys.iter().find_map(|key| layout::parked_due_minute(key));
        self.retry_from = self.retry_from.into_iter().chain(first).min();
    }

    /// The part of the checkpoint that the next run resumes from; the other members are empty.
    pub fn into_checkpoint(self) -> WakeCheckpoint {
        let open_from_minute = self
            .reached
            .map(|reached| self.retry_from.map_or(reached, |retry| retry.min(reached)));
        WakeCheckpoint {
            open_from_minute,
            scan_at: self.scan_at,
            expired_to: self.expired_to,
            ..WakeCheckpoint::default()
        }
    }
}

/// Tells whether the minute of a parked object has come. A key that is none of ours counts as due,
/// so that its object is looked at and reported instead of holding up the list.
pub fn is_due(key: &str, now: Timestamp) -> bool {
    layout::parked_due_minute(key).is_none_or(|minute| minute <= now.minute_rounded_down())
}

/// Tells whether a parked object is released so late that the note which deliver made of its wait
/// is old.
pub fn is_late(key: &str, now: Timestamp) -> bool {
    layout::parked_due_minute(key)
        .is_some_and(|due| now.minute_rounded_down() >= due + LATE_MINUTES)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(minute: u64) -> Timestamp {
        Timestamp::from_millis(minute * 60_000)
    }

    fn key(minute: u64) -> String {
        format!("{}/orders.billing/x.json", layout::parked_before(minute))
    }

    /// The minute in which the list of the next run begins.
    fn next_begins(walk: &ParkedWalk, now: u64) -> Option<u64> {
        let next = ParkedWalk::resume(&walk.clone().into_checkpoint(), at(now));
        next.begins_after()
            .map(|key| layout::parked_due_minute(&key).unwrap())
    }

    #[test]
    fn list_begins_ten_minutes_before_the_oldest_open_minute() {
        let mut walk = ParkedWalk::resume(&WakeCheckpoint::default(), at(1_000));
        assert_eq!(walk.begins_after(), None);
        walk.note_tried(&[key(700), key(800)]);
        assert_eq!(next_begins(&walk, 1_001), Some(790));
        walk.note_all_tried();
        assert_eq!(next_begins(&walk, 1_001), Some(990));
        walk.note_retry(&[key(900), key(950)]);
        assert_eq!(next_begins(&walk, 1_001), Some(890));
        // The clock was set back since.
        assert_eq!(next_begins(&walk, 500), Some(490));
    }

    /// The start is scanned once a day, and after an hour where that failed.
    #[test]
    fn start_is_scanned_daily_and_an_hour_after_a_failed_scan() {
        let check = |scan_at: Option<u64>, expected| {
            let checkpoint = WakeCheckpoint {
                scan_at: scan_at.map(at),
                ..WakeCheckpoint::default()
            };
            let mut walk = ParkedWalk::resume(&checkpoint, at(10_000));
            assert_eq!(walk.is_scan_due(), expected, "{scan_at:?}");
            walk.begin_scan();
            assert_eq!(walk.clone().into_checkpoint().scan_at, Some(at(10_060)));
            walk.end_scan();
            assert_eq!(walk.into_checkpoint().scan_at, Some(at(11_440)));
        };
        check(None, true);
        check(Some(10_000), true);
        check(Some(10_001), false);
        check(Some(11_440), false);
        // Further off than any that is set.
        check(Some(11_441), true);
    }

    #[test]
    fn object_is_due_in_its_minute_and_late_five_minutes_after_it() {
        let check = |minute, expected| {
            let key = key(minute);
            let now = at(1_000);
            assert_eq!(
                (is_due(&key, now), is_late(&key, now)),
                expected,
                "{minute}"
            );
        };
        check(1_001, (false, false));
        check(1_000, (true, false));
        check(996, (true, false));
        check(995, (true, true));
        assert_eq!(
            (is_due("parked/x", at(1)), is_late("parked/x", at(1))),
            (true, false)
        );
    }

    /// One run: minutes since the last, of each object that is due how far back it lies and whether
    /// it stays, and whether the run comes to the end.
    fn run() -> impl Strategy<Value = (u64, Vec<(u64, bool)>, bool)> {
        (
            0_u64..300,
            prop::collection::vec((0_u64..400, any::<bool>()), 0..8),
            any::<bool>(),
        )
    }

    proptest! {
        #[test]
        fn no_list_begins_after_an_object_that_was_left_or_may_have_been_written_since(
            runs in prop::collection::vec(run(), 1..30),
        ) {
            let (mut checkpoint, mut now) = (WakeCheckpoint::default(), 10_000);
            for (gap, objects, completes) in runs {
                now += gap;
                let mut walk = ParkedWalk::resume(&checkpoint, at(now));
                let due = |(back, stays)| (now - back, stays);
                let mut objects: Vec<_> = objects.into_iter().map(due).collect();
                objects.sort_unstable();
                let keys: Vec<_> = objects.iter().map(|(minute, _)| key(*minute)).collect();
                let left: Vec<_> = objects.iter().filter(|(_, stays)| *stays).map(|it| it.0).collect();
                walk.note_retry(&left.iter().map(|minute| key(*minute)).collect::<Vec<_>>());
                walk.note_tried(&keys);
                if completes {
                    walk.note_all_tried();
                }
                let begins = next_begins(&walk, now);
                let oldest = left.iter().copied().chain([now]).min().unwrap_or(now);
                prop_assert!(begins.is_none_or(|begins| begins + STEP_BACK_MINUTES <= oldest));
                // What was completed is not walked past again.
                if completes {
                    prop_assert_eq!(begins, Some(oldest - STEP_BACK_MINUTES));
                }
                checkpoint = walk.into_checkpoint();
            }
        }
    }
}
