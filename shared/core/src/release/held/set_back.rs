//! A clock that is set back while deliveries are parked: none waits longer from now than it was to wait when
//! it was parked.

use std::time::Duration;

use crate::attempt::retry::JITTER_MAX;
use crate::model::limits::SCHEDULE_STEP_MAX;
use crate::model::time::Timestamp;
use crate::stored::layout;

/// Longest time for which a delivery is parked: the longest step of a schedule with its jitter. What an
/// endpoint asks for by `Retry-After` and the wait for a turn of a rate are shorter.
const PARKED_WAIT_MAX: Duration = SCHEDULE_STEP_MAX.saturating_add(JITTER_MAX);

/// The least by which a clock counts as set back, in minutes: the clocks of two workers differ by less.
const SET_BACK_MIN_MINUTES: u64 = 2;

const MINUTES_A_DAY: u64 = 24 * 60;

/// The first minute after `now` whose parked deliveries are not sent yet, nor in the next minute.
pub fn later_minute(now: Timestamp) -> u64 {
    now.minute() + SET_BACK_MIN_MINUTES
}

/// Whether everything that is parked must be looked at, by a run that begins `now` after one that began at
/// `last`: the clock was set back since, or it is another day. That finds what a clock wrote that was ahead
/// for less than a minute.
pub fn is_look_due(last: Timestamp, now: Timestamp) -> bool {
    let is_set_back = last.minute() >= now.minute() + SET_BACK_MIN_MINUTES;
    is_set_back || last.minute() / MINUTES_A_DAY < now.minute() / MINUTES_A_DAY
}

/// The key that a parked object gets instead, where it was parked by a clock that was ahead. It then waits
/// from the beginning of the look that found it as long as it was to wait, so that each try to move it finds
/// the same key. Once that time is over it is due now: wake does not look at minutes that have gone.
pub fn key_instead(key: &str, look_began: Timestamp, now: Timestamp) -> Option<String> {
    let due = layout::parked_due_minute(key)?;
    let wait_max = PARKED_WAIT_MAX.as_secs().div_ceil(60) + 1;
    let wait = layout::parked_at_minute(key).map_or(wait_max, |parked_at| due.saturating_sub(parked_at));
    let wait = wait.min(wait_max);
    if due < now.minute() + wait + SET_BACK_MIN_MINUTES {
        return None;
    }
    // No later than now, so that it is never the key that the object has.
    let from = look_began.min(now);
    layout::parked_instead(key, (from.minute() + wait).max(now.minute()), from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    /// When an object is due instead that was parked at `parked_at` until `due`, where it is moved.
    fn check(parked_at: Option<&str>, due: &str, now: &str, expected: Option<&str>) {
        let minute = due.replace([':', '-'], "");
        let id = parked_at.map_or("x".to_owned(), |time| layout::parked_id(at(time), "x"));
        let key = format!("parked/{}/orders.billing/{id}.json", minute.replace("00Z", "Z"));
        let instead = key_instead(&key, at(now), at(now));
        let due = instead.as_deref().and_then(layout::parked_due_minute);
        assert_eq!(due, expected.map(|time| at(time).minute()), "{key} at {now}");
    }

    #[test]
    fn what_a_clock_parked_that_was_ahead_waits_as_long_from_now() {
        let parked_at = Some("2026-03-07T10:05:00Z");
        let due = "2026-03-07T10:25:00Z";
        check(parked_at, due, "2026-03-07T04:05:00Z", Some("2026-03-07T04:25:00Z"));
        check(parked_at, due, "2026-03-07T10:03:00Z", Some("2026-03-07T10:23:00Z"));
        // Clocks that differ a little are not set back, and what waits already is nearer.
        check(parked_at, due, "2026-03-07T10:04:00Z", None);
        check(parked_at, due, "2026-03-07T10:20:00Z", None);
        check(parked_at, due, "2026-03-08T10:20:00Z", None);
    }

    #[test]
    fn what_does_not_tell_when_it_was_parked_waits_no_longer_than_anything_may() {
        let now = "2026-03-07T04:05:00Z";
        check(None, "2026-03-08T04:05:00Z", now, None);
        check(None, "2026-03-08T04:12:00Z", now, None);
        check(None, "2026-03-08T04:13:00Z", now, Some("2026-03-08T04:11:00Z"));
        check(None, "2027-03-08T04:05:00Z", now, Some("2026-03-08T04:11:00Z"));
        // Nor does what two clocks wrote.
        check(Some("2026-03-07T05:05:00Z"), "2027-03-08T04:05:00Z", now, Some("2026-03-08T04:11:00Z"));
        check(Some("2028-03-07T05:05:00Z"), "2027-03-08T04:05:00Z", now, Some(now));
        assert_eq!(key_instead("parked/x", at(now), at(now)), None);
    }

    #[test]
    fn what_was_moved_stays_where_it_is() {
        let now = at("2026-03-07T04:05:00Z");
        let moved = |due| format!("parked/{due}/orders.billing/{}.json", layout::parked_id(now, "x"));
        assert_eq!(key_instead(&moved("20260307T0425Z"), now, now), None);
        assert_eq!(key_instead(&moved("20260308T0411Z"), now, now), None);
    }

    #[test]
    fn each_try_of_a_look_finds_the_same_key_until_its_minute_has_gone() {
        let key = "parked/20260307T1025Z/orders.billing/20260307T1005Z-a-b.json";
        let check = |now: &str, expected: &str| {
            let expected = format!("parked/{expected}/orders.billing/20260307T0405Z-a-b.json");
            assert_eq!(key_instead(key, at("2026-03-07T04:05:00Z"), at(now)), Some(expected), "{now}");
        };
        check("2026-03-07T04:05:00Z", "20260307T0425Z");
        check("2026-03-07T04:25:59Z", "20260307T0425Z");
        check("2026-03-07T04:26:00Z", "20260307T0426Z");
        // A clock that is set back once more, during the look.
        let now = at("2026-03-07T03:05:00Z");
        let instead = key_instead(key, at("2026-03-07T10:05:00Z"), now);
        assert_eq!(instead, key_instead(key, now, now));
    }

    #[test]
    fn a_look_is_due_when_the_clock_was_set_back_and_once_a_day() {
        let check = |last: &str, now: &str, expected: bool| {
            assert_eq!(is_look_due(at(last), at(now)), expected, "{last} {now}");
        };
        check("2026-03-07T04:05:00Z", "2026-03-07T04:06:00Z", false);
        check("2026-03-07T04:05:00Z", "2026-03-07T23:59:59Z", false);
        check("2026-03-07T23:59:30Z", "2026-03-08T00:00:30Z", true);
        check("2026-03-07T04:05:00Z", "2026-03-07T04:04:00Z", false);
        check("2026-03-07T04:05:00Z", "2026-03-07T04:03:59Z", true);
        check("2026-03-07T04:05:00Z", "2025-03-07T04:05:00Z", true);
        // Two workers whose clocks differ look once at midnight.
        check("2026-03-08T00:00:01Z", "2026-03-07T23:59:59Z", false);
    }
}
