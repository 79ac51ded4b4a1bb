//! The clock of the machine at the start: what is obviously wrong is said before it does harm.

use std::time::Duration;

use posthaste_core::model::Timestamp;

/// The day of the last release, 2026-11-27. Nobody ran this program before, so an earlier time is
/// wrong. A test compares it with the changelog.
const RELEASED: Timestamp = Timestamp::from_millis(1_795_737_600_000);

/// How far the clock may be behind what the data folder holds. Time servers correct less than that,
/// and receivers refuse a signature that is five minutes off.
const BEHIND_MAX: Duration = Duration::from_mins(5);

/// A fault of the clock.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    /// It shows a time before this program was made.
    BeforeRelease,
    /// It shows a time before the one at which this was written into the data folder.
    BehindData(Timestamp),
}

/// Says in the log that the clock is wrong, or was wrong before. `written_until` is the newest time
/// at which something was written that the data folder holds.
pub(super) fn warn_if_wrong(now: Timestamp, written_until: Option<Timestamp>) {
    match fault(now, written_until) {
        Some(Fault::BeforeRelease) => tracing::warn!(
            clock = now.to_event_grid(),
            released = RELEASED.to_event_grid(),
            "the clock of this machine shows a time before this release, so it is wrong: signatures and certificates fail"
        ),
        Some(Fault::BehindData(newest)) => tracing::warn!(
            clock = now.to_event_grid(),
            newest = newest.to_event_grid(),
            "the clock of this machine is behind what the data folder holds: it is wrong now, or was when that was written"
        ),
        None => {}
    }
}

fn fault(now: Timestamp, written_until: Option<Timestamp>) -> Option<Fault> {
    if now < RELEASED {
        return Some(Fault::BeforeRelease);
    }
    let newest = written_until?;
    (newest.since(now) > BEHIND_MAX).then_some(Fault::BehindData(newest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGELOG: &str = include_str!("../../../../CHANGELOG.md");

    #[test]
    fn a_clock_before_the_release_or_behind_the_data_is_wrong() {
        let now = RELEASED + Duration::from_hours(1);
        assert_eq!(fault(now, None), None);
        assert_eq!(fault(now, Some(RELEASED)), None);
        assert_eq!(fault(now, Some(now + BEHIND_MAX)), None);
        let beyond = now + BEHIND_MAX + Duration::from_millis(1);
        assert_eq!(fault(now, Some(beyond)), Some(Fault::BehindData(beyond)));
        assert_eq!(fault(RELEASED, None), None);
        assert_eq!(
            fault(Timestamp::EPOCH, Some(now)),
            Some(Fault::BeforeRelease)
        );
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
