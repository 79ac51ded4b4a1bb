//! Notices that could not be sent yet: a dead-letter message of their own asks for them, less often
//! each time, and not forever.

use std::time::Duration;

use crate::attempt::settle::dead_letter_delay;
use crate::model::{DeadLetter, StorageTrouble, Timestamp};

/// The wait after the first failure; it doubles up to what the queue can delay (15 minutes).
const WAIT_FIRST: Duration = Duration::from_mins(1);

/// The number of doublings after which the wait is longer than the queue can delay.
const DOUBLINGS_MAX: u32 = 4;

/// The time for which notices are tried: as long as an event, by default.
const TRIED_FOR: Duration = Duration::from_hours(24);

/// The fate of the events that a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LetterFate<'a> {
    /// Written into this object.
    Written(&'a str),
    /// Dropped: kept nowhere.
    Dropped,
}

/// The letter that asks again for the notices about this one, and the delay of its message;
/// `None` when the time for them is over.
pub fn notice_retry_letter(
    letter: DeadLetter,
    fate: LetterFate<'_>,
    now: Timestamp,
) -> Option<(DeadLetter, Duration)> {
    let before = letter.storage.filter(|_| letter.asks_for_notices_only());
    let trouble = StorageTrouble::once_more(before, now);
    if now.since(trouble.since) >= TRIED_FOR {
        return None;
    }
    let wait = WAIT_FIRST * 2_u32.pow(trouble.failures.saturating_sub(1).min(DOUBLINGS_MAX));
    let (object, dropped) = match fate {
        LetterFate::Written(object) => (Some(object.to_owned()), false),
        LetterFate::Dropped => (None, true),
    };
    let letter = DeadLetter {
        storage: Some(trouble),
        object,
        dropped,
        ..letter
    };
    Some((letter, dead_letter_delay(wait)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::dead_letter_message::parse_dead_letter;
    use bytes::Bytes;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    const DEAD_LETTER: &str = include_str!("../../stored/fixtures/dead-letter-v1.json");

    fn letter() -> DeadLetter {
        parse_dead_letter(&Bytes::from_static(DEAD_LETTER.as_bytes())).unwrap()
    }

    #[test]
    fn notices_are_asked_for_rarer_each_time_and_not_for_ever() {
        // A refusal of the bucket before the object was there does not count.
        let refused = StorageTrouble {
            since: Timestamp::EPOCH,
            failures: 9,
        };
        let mut asked = DeadLetter {
            storage: Some(refused),
            ..letter()
        };
        let mut now = NOW;
        let mut delays = Vec::new();
        while let Some((next, delay)) = notice_retry_letter(asked, LetterFate::Written("x"), now) {
            assert_eq!((next.object.as_deref(), next.dropped), (Some("x"), false));
            delays.push(delay.as_secs());
            now = now + delay;
            asked = next;
        }
        assert_eq!(delays[..6], [60, 120, 240, 480, 900, 900]);
        assert_eq!(delays.len(), 99);
    }

    /// Letter that asks again for notices about dropped events says that they were dropped.
    #[test]
    fn dropped_events_stay_dropped_in_the_retry_letter() {
        let (asked, _) = notice_retry_letter(letter(), LetterFate::Dropped, NOW).unwrap();
        assert!(asked.asks_for_notices_only() && asked.dropped && asked.object.is_none());
    }
}
