//! Reasons for which an event arrived a second time.

use std::time::Duration;

use crate::ledger::{Arrival, Known};
use crate::moods::TIMEOUT;

/// The time after which an arrival is written down, also where the answer is awaited for as long as a
/// subscription waits, and the machine is busy.
const WRITTEN_DOWN_AFTER: Duration = TIMEOUT.saturating_add(Duration::from_secs(10));

/// The report of an unexplained arrival names what ended up to so long before it.
const AROUND: Duration = Duration::from_secs(30);

/// The reason for which an event was taken a second time: its answer was late, or there was a trouble
/// between the two, or a trouble made a copy before, of what waited then. `all` are the arrivals of
/// the event, with whatever answer.
pub(crate) fn reason(
    known: &Known,
    all: &[&Arrival],
    (first, second): (&Arrival, &Arrival),
) -> Option<String> {
    if first.was_late {
        return Some("late answer".to_owned());
    }
    // Until then its arrival was written down, if nothing kept the program from it.
    let end = second.at.min(first.at + WRITTEN_DOWN_AFTER);
    if let Some(trouble) = trouble_in(known, first.at, end) {
        return Some(trouble);
    }
    let trouble = trouble_in(known, parted_since(known, all, (first, second)), first.at);
    trouble.map(|trouble| format!("{trouble}, while it waited"))
}

/// The trouble of a time that explains a second arrival.
fn trouble_in(known: &Known, from: Duration, to: Duration) -> Option<String> {
    let mut times = known.times.iter();
    let found = times.find(|time| {
        time.from <= to && from <= time.to && time.trouble.explains_a_second_arrival()
    });
    found.map(|time| time.trouble.to_string())
}

/// The time since which there may have been two of an event that arrived as these: its last attempt
/// that was an earlier one of both, or its publication. A former release does not say which attempt
/// it is, and what could not be sent has no arrival.
fn parted_since(
    known: &Known,
    all: &[&Arrival],
    (first, second): (&Arrival, &Arrival),
) -> Duration {
    let attempt = first.attempt.min(second.attempt);
    let earlier = all
        .iter()
        .filter(|it| it.attempt > 0 && it.attempt < attempt)
        .map(|it| it.at)
        .filter(|at| *at <= first.at);
    earlier.max().unwrap_or(known.begun[first.event as usize])
}

/// A second arrival without a reason, with what was done to the program around it: the seconds are
/// counted from the first arrival.
pub(crate) fn around(known: &Known, (first, second): (&Arrival, &Arrival)) -> String {
    let since = |at: Duration| at.as_secs_f64() - first.at.as_secs_f64();
    let near = known
        .times
        .iter()
        .filter(|time| time.from <= second.at && first.at <= time.to.saturating_add(AROUND));
    let near: Vec<_> = near
        .map(|it| {
            format!(
                "{} {:.1} to {:.1}",
                it.trouble,
                since(it.from),
                since(it.to)
            )
        })
        .collect();
    format!(
        "{} again after {:.1} s, as attempt {} after {} ({})",
        first.event,
        since(second.at),
        second.attempt,
        first.attempt,
        near.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Fate, Time};
    use crate::trouble::Trouble;

    const fn at(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn arrival(secs: u64, status: u16, attempt: u16) -> Arrival {
        Arrival {
            event: 0,
            at: at(secs),
            status,
            attempt,
            was_late: false,
            is_whole: true,
            id: None,
        }
    }

    /// The reason of the last two arrivals, with an event that was published after 10 s.
    fn reason_of(arrivals: &[Arrival], trouble: Trouble, from: u64) -> Option<String> {
        let time = Time {
            trouble,
            from: at(from),
            to: at(from + 2),
        };
        let known = Known {
            fates: vec![Fate::Acknowledged],
            begun: vec![at(10)],
            times: vec![time],
            ..Known::default()
        };
        let all: Vec<_> = arrivals.iter().collect();
        let [.., first, second] = all.as_slice() else {
            panic!("two arrivals");
        };
        reason(&known, &all, (first, second))
    }

    #[test]
    fn trouble_explains_what_it_may_have_copied() {
        let twice = [
            arrival(30, 503, 1),
            arrival(60, 200, 2),
            arrival(63, 200, 2),
        ];
        let told = |from| reason_of(&twice, Trouble::Kill, from);
        assert_eq!(told(61).as_deref(), Some("kill -9"));
        assert_eq!(told(40).as_deref(), Some("kill -9, while it waited"));
        // Before the attempt that was the last one of both, and after both.
        assert_eq!((told(20), told(64)), (None, None));
        assert_eq!(reason_of(&twice, Trouble::LyingNames, 61), None);
    }

    #[test]
    fn unseen_attempts_may_have_been_copied_since_the_publication() {
        let twice = [arrival(60, 200, 3), arrival(63, 200, 3)];
        let told = |from| reason_of(&twice, Trouble::Kill, from);
        assert_eq!(told(20).as_deref(), Some("kill -9, while it waited"));
        assert_eq!(told(2), None);
        // A former release does not number them.
        let twice = [
            arrival(30, 503, 0),
            arrival(60, 200, 0),
            arrival(63, 200, 3),
        ];
        let told = reason_of(&twice, Trouble::Kill, 20);
        assert_eq!(told.as_deref(), Some("kill -9, while it waited"));
    }
}
