//! Pauses that an endpoint asks for: a 429 or a 503 with `Retry-After`.

use crate::model::{AttemptOutcome, PAUSE_MAX, PAUSE_SHARED_MIN, Timestamp};

const SECOND_MS: u64 = 1000;

/// A pause of one subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubscriptionPause {
    /// The end of the pause.
    pub until: Timestamp,
    /// Whether it is too short to tell other workers of it.
    pub is_brief: bool,
}

/// The pause that an answer asks for, if it asks for one. It ends with a second, so that the
/// answers of one second are noted together, and never earlier than was asked but for
/// [`PAUSE_MAX`].
pub fn requested_pause(outcome: AttemptOutcome, now: Timestamp) -> Option<SubscriptionPause> {
    let AttemptOutcome::Answered {
        status: 429 | 503,
        retry_after: Some(asked),
    } = outcome
    else {
        return None;
    };
    if asked < PAUSE_SHARED_MIN {
        return (!asked.is_zero()).then_some(SubscriptionPause {
            until: now + asked,
            is_brief: true,
        });
    }
    let longest = (now + PAUSE_MAX).as_secs() * SECOND_MS;
    let asked = (now + asked.min(PAUSE_MAX)).as_millis().div_ceil(SECOND_MS) * SECOND_MS;
    Some(SubscriptionPause {
        until: Timestamp::from_millis(asked.min(longest)),
        is_brief: false,
    })
}

/// The end of the pause that a worker keeps to itself where it could not tell others of a longer
/// one.
pub fn brief_pause_end(until: Timestamp, now: Timestamp) -> Timestamp {
    until.min(now + PAUSE_SHARED_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// 200 ms after a second.
    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_200);

    fn asked(status: u16, secs: u64) -> Option<(u64, bool)> {
        let outcome = AttemptOutcome::Answered {
            status,
            retry_after: Some(Duration::from_secs(secs)),
        };
        let pause = requested_pause(outcome, NOW)?;
        Some((pause.until.as_millis() - NOW.as_millis(), pause.is_brief))
    }

    #[test]
    fn only_429_and_503_ask_for_a_pause() {
        assert_eq!(
            [429, 503].map(|status| asked(status, 60)),
            [Some((60_800, false)); 2]
        );
        assert_eq!(
            [200, 400, 500, 408].map(|status| asked(status, 60)),
            [None; 4]
        );
        assert_eq!(
            requested_pause(
                AttemptOutcome::Answered {
                    status: 503,
                    retry_after: None
                },
                NOW
            ),
            None
        );
    }

    #[test]
    fn pause_is_brief_under_10_seconds_and_at_most_15_minutes() {
        assert_eq!(asked(503, 0), None);
        assert_eq!(asked(503, 1), Some((1000, true)));
        assert_eq!(asked(503, 9), Some((9000, true)));
        assert_eq!(asked(503, 10), Some((10_800, false)));
        // It must fit into the delay of a queue.
        for secs in [900, 3600, u64::MAX / 1000] {
            assert_eq!(asked(503, secs), Some((899_800, false)));
        }
    }

    /// A pause that could not be told to other workers is kept for ten seconds.
    #[test]
    fn unshared_pause_is_kept_for_ten_seconds() {
        let kept = |secs| {
            brief_pause_end(NOW + Duration::from_secs(secs), NOW)
                .since(NOW)
                .as_secs()
        };
        assert_eq!([kept(3), kept(600)], [3, 10]);
    }
}
