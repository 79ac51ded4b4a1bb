//! A clock that is set back while deliveries are parked: none waits longer from now than it was to
//! wait when it was parked.

use std::time::Duration;

use crate::attempt::JITTER_MAX;
use crate::model::{SCHEDULE_STEP_MAX, Timestamp};
use crate::stored::{SetBackScan, WakeCheckpoint, layout};

/// Longest time for which a delivery is parked: the longest step of a schedule with its jitter. The
/// wait that an endpoint asks for by `Retry-After` and the wait for a turn of a rate are shorter.
const PARKED_WAIT_MAX: Duration = SCHEDULE_STEP_MAX.saturating_add(JITTER_MAX);

/// The least by which a clock counts as set back, in minutes: the clocks of two workers differ by
/// less.
const SET_BACK_MIN_MINUTES: u64 = 2;

const MINUTES_A_DAY: u64 = 24 * 60;

/// The first minute after `now` whose parked deliveries are not sent yet, nor in the next minute.
pub fn later_minute(now: Timestamp) -> u64 {
    now.minute_rounded_down() + SET_BACK_MIN_MINUTES
}

/// Tells whether everything that is parked must be scanned, by a run that begins `now` after one
/// that began at `last`: the clock was set back since, or it is another day. That finds what a
/// clock wrote that was ahead for less than a minute.
pub fn is_scan_due(last: Timestamp, now: Timestamp) -> bool {
    let is_set_back =
        last.minute_rounded_down() >= now.minute_rounded_down() + SET_BACK_MIN_MINUTES;
    is_set_back
        || last.minute_rounded_down() / MINUTES_A_DAY < now.minute_rounded_down() / MINUTES_A_DAY
}

impl SetBackScan {
    /// The scan that a run does which begins now: a new one where one is due, or else the one that
    /// the last run left.
    pub fn resume(checkpoint: &WakeCheckpoint, began: Timestamp) -> Option<Self> {
        let is_due = checkpoint
            .began_at
            .is_some_and(|last| is_scan_due(last, began));
        if is_due {
            Some(Self::begin(began))
        } else {
            checkpoint.look.clone()
        }
    }

    /// A scan that begins now.
    fn begin(now: Timestamp) -> Self {
        Self {
            began_at: now,
            after: layout::parked_before(later_minute(now)),
            again_after: None,
        }
    }

    /// The scan past a page, of which some objects may be left, the first of them after
    /// `left_after`. `None` if all was looked at and none is left.
    #[must_use]
    pub fn past_page(self, next_after: Option<String>, left_after: Option<String>) -> Option<Self> {
        let Self {
            began_at,
            again_after,
            ..
        } = self;
        let again_after = again_after.or(left_after);
        match next_after {
            Some(after) => Some(Self {
                began_at,
                after,
                again_after,
            }),
            None => again_after.map(|after| Self {
                began_at,
                after,
                again_after: None,
            }),
        }
    }
}

/// The key that a parked object gets instead, where it was parked by a clock that was ahead. It
/// then waits from the beginning of the scan that found it as long as it was to wait, so that each
/// try to move it finds the same key. A time that a producer named stays as it is. Once that time is over it is due now: wake does not look at
/// minutes that have gone.
pub fn key_instead(key: &str, scan_began: Timestamp, now: Timestamp) -> Option<String> {
    if layout::is_scheduled(key) {
        return None;
    }
    let due = layout::parked_due_minute(key)?;
    let wait_max = PARKED_WAIT_MAX.as_secs().div_ceil(60) + 1;
    let wait =
        layout::parked_at_minute(key).map_or(wait_max, |parked_at| due.saturating_sub(parked_at));
    let wait = wait.min(wait_max);
    if due < now.minute_rounded_down() + wait + SET_BACK_MIN_MINUTES {
        return None;
    }
    // No later than now, so that it is never the key that the object has.
    let from = scan_began.min(now);
    layout::parked_instead(
        key,
        (from.minute_rounded_down() + wait).max(now.minute_rounded_down()),
        from,
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    /// When an object is due instead that was parked at `parked_at` until `due`, where it is moved.
    fn check(parked_at: Option<&str>, due: &str, now: &str, expected: Option<&str>) {
        let minute = due.replace([':', '-'], "");
        let id = parked_at.map_or("x".to_owned(), |time| layout::parked_id(at(time), "x"));
        let key = format!(
            "parked/{}/orders.billing/{id}.json",
            minute.replace("00Z", "Z")
        );
        let instead = key_instead(&key, at(now), at(now));
        let due = instead.as_deref().and_then(layout::parked_due_minute);
        assert_eq!(
            due,
            expected.map(|time| at(time).minute_rounded_down()),
            "{key} at {now}"
        );
    }

    #[test]
    fn delivery_parked_by_a_clock_ahead_waits_as_long_from_now() {
        let parked_at = Some("2026-03-07T10:05:00Z");
        let due = "2026-03-07T10:25:00Z";
        check(
            parked_at,
            due,
            "2026-03-07T04:05:00Z",
            Some("2026-03-07T04:25:00Z"),
        );
        check(
            parked_at,
            due,
            "2026-03-07T10:03:00Z",
            Some("2026-03-07T10:23:00Z"),
        );
        // Clocks that differ a little are not set back, and what waits already is nearer.
        check(parked_at, due, "2026-03-07T10:04:00Z", None);
        check(parked_at, due, "2026-03-07T10:20:00Z", None);
        check(parked_at, due, "2026-03-08T10:20:00Z", None);
    }

    /// A key that does not tell when it was parked waits no longer than anything may.
    #[test]
    fn key_without_parking_time_waits_no_longer_than_any_may() {
        let now = "2026-03-07T04:05:00Z";
        check(None, "2026-03-08T04:05:00Z", now, None);
        check(None, "2026-03-08T04:12:00Z", now, None);
        check(
            None,
            "2026-03-08T04:13:00Z",
            now,
            Some("2026-03-08T04:11:00Z"),
        );
        check(
            None,
            "2027-03-08T04:05:00Z",
            now,
            Some("2026-03-08T04:11:00Z"),
        );
        // Nor does what two clocks wrote.
        check(
            Some("2026-03-07T05:05:00Z"),
            "2027-03-08T04:05:00Z",
            now,
            Some("2026-03-08T04:11:00Z"),
        );
        check(
            Some("2028-03-07T05:05:00Z"),
            "2027-03-08T04:05:00Z",
            now,
            Some(now),
        );
        assert_eq!(key_instead("parked/x", at(now), at(now)), None);
    }

    #[test]
    fn moved_delivery_stays_where_it_is() {
        let now = at("2026-03-07T04:05:00Z");
        let moved = |due| {
            format!(
                "parked/{due}/orders.billing/{}.json",
                layout::parked_id(now, "x")
            )
        };
        assert_eq!(key_instead(&moved("20260307T0425Z"), now, now), None);
        assert_eq!(key_instead(&moved("20260308T0411Z"), now, now), None);
    }

    /// Every try of a scan finds the same key until its minute has gone.
    #[test]
    fn scan_finds_the_same_key_until_its_minute_has_gone() {
        let key = "parked/20260307T1025Z/orders.billing/20260307T1005Z-a-b.json";
        let check = |now: &str, expected: &str| {
            let expected = format!("parked/{expected}/orders.billing/20260307T0405Z-a-b.json");
            assert_eq!(
                key_instead(key, at("2026-03-07T04:05:00Z"), at(now)),
                Some(expected),
                "{now}"
            );
        };
        check("2026-03-07T04:05:00Z", "20260307T0425Z");
        check("2026-03-07T04:25:59Z", "20260307T0425Z");
        check("2026-03-07T04:26:00Z", "20260307T0426Z");
        // A clock that is set back once more, during the scan.
        let now = at("2026-03-07T03:05:00Z");
        let instead = key_instead(key, at("2026-03-07T10:05:00Z"), now);
        assert_eq!(instead, key_instead(key, now, now));
    }

    #[test]
    fn a_scan_is_due_when_the_clock_was_set_back_and_once_a_day() {
        let check = |last: &str, now: &str, expected: bool| {
            assert_eq!(is_scan_due(at(last), at(now)), expected, "{last} {now}");
        };
        check("2026-03-07T04:05:00Z", "2026-03-07T04:06:00Z", false);
        check("2026-03-07T04:05:00Z", "2026-03-07T23:59:59Z", false);
        check("2026-03-07T23:59:30Z", "2026-03-08T00:00:30Z", true);
        check("2026-03-07T04:05:00Z", "2026-03-07T04:04:00Z", false);
        check("2026-03-07T04:05:00Z", "2026-03-07T04:03:59Z", true);
        check("2026-03-07T04:05:00Z", "2025-03-07T04:05:00Z", true);
        // Two workers whose clocks differ scan once at midnight.
        check("2026-03-08T00:00:01Z", "2026-03-07T23:59:59Z", false);
    }

    #[test]
    fn scan_goes_page_by_page_then_to_what_could_not_be_moved() {
        let scan = SetBackScan::begin(at("2026-03-07T04:05:00Z"));
        assert_eq!(
            (&*scan.after, &scan.again_after),
            ("parked/20260307T0407Z", &None)
        );
        let key = |text: &str| Some(text.to_owned());
        let scan = scan
            .past_page(key("b"), None)
            .unwrap()
            .past_page(key("c"), key("b"))
            .unwrap();
        let scan = scan.past_page(key("d"), key("c")).unwrap();
        assert_eq!((&*scan.after, &scan.again_after), ("d", &key("b")));
        let scan = scan.past_page(None, None).unwrap();
        assert_eq!((&*scan.after, &scan.again_after), ("b", &None));
        assert_eq!(scan.past_page(None, None), None);
    }

    #[test]
    fn run_begins_a_due_scan_or_goes_on_with_the_last() {
        let now = at("2026-03-07T04:05:00Z");
        let earlier = at("2026-03-07T04:04:00Z");
        let left = SetBackScan {
            after: "x".to_owned(),
            ..SetBackScan::begin(earlier)
        };
        let check = |began_at: Option<Timestamp>, expected| {
            let checkpoint = WakeCheckpoint {
                began_at,
                look: Some(left.clone()),
                ..WakeCheckpoint::default()
            };
            assert_eq!(
                SetBackScan::resume(&checkpoint, now),
                Some(expected),
                "{began_at:?}"
            );
        };
        check(None, left.clone());
        check(Some(earlier), left.clone());
        check(Some(at("2026-03-07T10:05:00Z")), SetBackScan::begin(now));
        assert_eq!(SetBackScan::resume(&WakeCheckpoint::default(), now), None);
    }

    proptest! {
        #[test]
        fn no_object_is_moved_to_a_later_minute_or_waits_longer_than_it_was_to_wait(
            parked_at in 30_000_000_u64..30_100_000,
            wait in 0_u64..2_000,
            now in 29_990_000_u64..30_110_000,
        ) {
            let time = |minute: u64| Timestamp::from_millis(minute * 60_000);
            let due = layout::parked_before(parked_at + wait);
            let key = format!("{due}/orders.billing/{}.json", layout::parked_id(time(parked_at), "x"));
            if let Some(moved) = key_instead(&key, time(now), time(now)) {
                let due = layout::parked_due_minute(&moved).unwrap();
                prop_assert!(due < parked_at + wait && (now..=now + wait).contains(&due));
                // Moved once, it stays there.
                prop_assert_eq!(key_instead(&moved, time(now), time(now)), None);
            }
        }
    }
}
