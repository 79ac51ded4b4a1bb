//! The clock of the machine: what is obviously wrong with it is said at the start, before it does
//! harm, and to `posthaste doctor` later.

use std::time::Duration;

use posthaste_core::api::doctor::RELEASED;
use posthaste_core::model::Timestamp;
use posthaste_ports::Clock;

/// Longest time that the clock may be behind what the data folder holds. Time servers correct less
/// than that, and receivers refuse a signature that is five minutes off.
const BEHIND_MAX: Duration = Duration::from_mins(5);

/// A fault of the clock.
#[derive(Debug, PartialEq, Eq)]
enum ClockFault {
    /// It shows a time before this program was made.
    BeforeRelease,
    /// It shows a time before the one at which this was written into the data folder.
    BehindData(Timestamp),
}

/// Times that have been: the start of the process, carried on by the clock that nobody can set, the
/// newest of the data folder, and the release.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClockFloor {
    started_at: Timestamp,
    /// The reading of that clock at the start.
    started: Duration,
    written_until: Timestamp,
}

impl ClockFloor {
    /// It begins now. `written_until` is the newest time at which something was written that the
    /// data folder holds.
    pub(super) fn begin(clock: &impl Clock, written_until: Option<Timestamp>) -> Self {
        Self {
            started_at: clock.now(),
            started: clock.monotonic(),
            written_until: written_until.unwrap_or_default(),
        }
    }

    /// The time that the clock shows now if nobody has set it back.
    pub(super) fn now_at_least(&self, clock: &impl Clock) -> Timestamp {
        let shown = self.started_at + clock.monotonic().saturating_sub(self.started);
        shown.max(self.written_until).max(RELEASED)
    }
}

/// Says in the log that the clock is wrong, or was wrong before. `written_until` is the newest time
/// at which something was written that the data folder holds.
pub(super) fn warn_if_wrong(now: Timestamp, written_until: Option<Timestamp>) {
    match find_fault(now, written_until) {
        Some(ClockFault::BeforeRelease) => tracing::warn!(
            clock = now.to_event_grid(),
            released = RELEASED.to_event_grid(),
            "the clock of this machine shows a time before this release, so it is wrong: signatures and certificates fail"
        ),
        Some(ClockFault::BehindData(newest)) => tracing::warn!(
            clock = now.to_event_grid(),
            newest = newest.to_event_grid(),
            "the clock of this machine is behind what the data folder holds: it is wrong now, or was when that was written"
        ),
        None => {}
    }
}

fn find_fault(now: Timestamp, written_until: Option<Timestamp>) -> Option<ClockFault> {
    if now < RELEASED {
        return Some(ClockFault::BeforeRelease);
    }
    let newest = written_until?;
    (newest.since(now) > BEHIND_MAX).then_some(ClockFault::BehindData(newest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_testkit::ManualClock;

    const CHANGELOG: &str = include_str!("../../../CHANGELOG.md");

    #[test]
    fn a_clock_before_the_release_or_behind_the_data_is_wrong() {
        let now = RELEASED + Duration::from_hours(1);
        assert_eq!(find_fault(now, None), None);
        assert_eq!(find_fault(now, Some(RELEASED)), None);
        assert_eq!(find_fault(now, Some(now + BEHIND_MAX)), None);
        let beyond = now + BEHIND_MAX + Duration::from_millis(1);
        assert_eq!(
            find_fault(now, Some(beyond)),
            Some(ClockFault::BehindData(beyond))
        );
        assert_eq!(find_fault(RELEASED, None), None);
        assert_eq!(
            find_fault(Timestamp::EPOCH, Some(now)),
            Some(ClockFault::BeforeRelease)
        );
    }

    #[test]
    fn only_what_the_clock_has_shown_goes_on() {
        let now = RELEASED + Duration::from_hours(1);
        let later = now + Duration::from_hours(9);
        let minute = Duration::from_mins(1);
        let cases = [
            (now, None, now, now + minute),
            (later, Some(now), later, later + minute),
            // The data folder is of a time when the clock was ahead, and the release of no clock.
            (now, Some(later), later, later),
            (Timestamp::EPOCH, None, RELEASED, RELEASED),
        ];
        for (now, written_until, at_first, in_a_minute) in cases {
            let clock = ManualClock::new(now);
            let shown = ClockFloor::begin(&clock, written_until);
            assert_eq!(shown.now_at_least(&clock), at_first);
            clock.advance(minute);
            clock.set_back(Duration::from_mins(10));
            assert_eq!(shown.now_at_least(&clock), in_a_minute);
        }
    }

    /// `RELEASE.md` says that both are written together.
    #[test]
    fn day_of_the_release_is_that_of_the_changelog() {
        let mut headings = CHANGELOG.lines().filter(|line| line.starts_with("## "));
        let day = headings.find_map(|line| line.split_once(" – "));
        let (_, day) = day.expect("a release has a day");
        let midnight = Timestamp::parse(&format!("{day}T00:00:00Z")).unwrap();
        assert_eq!(RELEASED, midnight);
    }
}
