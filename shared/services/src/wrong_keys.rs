//! Guesses at keys: each is counted, the log speaks of them once a minute, and where waiting costs
//! nothing their responses wait. The right key never waits, and nothing is locked.

use std::time::Duration;

use posthaste_ports::Clock;
use tokio::sync::Semaphore;

use crate::LogTally;

/// Most wrong keys of one door whose responses wait at once. More of them are refused at once.
const WAITING_MAX: usize = 8;

/// The wait of the response to a wrong key.
const PAUSE: Duration = Duration::from_secs(1);

/// Wait that is asked of a client whose wrong key found no place to wait.
pub const TOO_MANY_RETRY_AFTER: Duration = PAUSE;

/// Metric: keys that opened nothing.
const WRONG_KEY_COUNT: &str = "WrongKeyCount";

/// The wrong keys of one door.
#[derive(Debug, Default)]
pub struct WrongKeys {
    /// `None` where no response waits.
    places: Option<Semaphore>,
    tally: LogTally,
}

/// The treatment of a wrong key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum WrongKeyAnswer {
    /// The key is wrong.
    Wrong,
    /// Too many wrong keys wait for their responses.
    TooMany,
}

impl WrongKeys {
    /// A door at which the response to a wrong key waits for a second. On Lambda that second would
    /// cost money.
    pub fn with_pause() -> Self {
        Self {
            places: Some(Semaphore::new(WAITING_MAX)),
            tally: LogTally::default(),
        }
    }

    /// Notes a wrong key at the door of this function, and waits before the response.
    pub async fn refuse(&self, function: &'static str, clock: &impl Clock) -> WrongKeyAnswer {
        self.note_wrong_key(function, clock);
        self.slow_down(clock).await
    }

    /// Notes a wrong key at the door of this function. Where a line was written to the log, returns
    /// how many there were since the last one.
    pub fn note_wrong_key(&self, function: &'static str, clock: &impl Clock) -> Option<u64> {
        metrics::counter!(WRONG_KEY_COUNT, "function" => function).increment(1);
        let keys = self.count_wrong_key(clock)?;
        tracing::warn!(function, keys, "wrong keys were shown");
        Some(keys)
    }

    /// Counts a wrong key. Where a line in the log is due, returns how many there were since the
    /// last one.
    pub fn count_wrong_key(&self, clock: &impl Clock) -> Option<u64> {
        self.tally.add(1, clock.monotonic())
    }

    /// Waits before the response to a wrong key, if there is a place to wait.
    pub async fn slow_down(&self, clock: &impl Clock) -> WrongKeyAnswer {
        if let Some(places) = &self.places {
            let Ok(_place) = places.try_acquire() else {
                return WrongKeyAnswer::TooMany;
            };
            clock.sleep(PAUSE).await;
        }
        WrongKeyAnswer::Wrong
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use posthaste_core::model::Timestamp;
    use posthaste_testkit::ManualClock;

    use super::*;

    #[tokio::test]
    async fn answers_to_wrong_keys_wait_and_too_many_do_not() {
        let keys = WrongKeys::with_pause();
        let clock = ManualClock::new(Timestamp::EPOCH);
        let mut waiting: Vec<_> = (0..WAITING_MAX)
            .map(|_| Box::pin(keys.refuse("publish", &clock)))
            .collect();
        for one in &mut waiting {
            assert_eq!(one.as_mut().now_or_never(), None);
        }
        let more = keys.refuse("publish", &clock).now_or_never();
        assert_eq!(more, Some(WrongKeyAnswer::TooMany));
        clock.advance(PAUSE);
        for one in waiting {
            assert_eq!(one.await, WrongKeyAnswer::Wrong);
        }
    }

    /// A door without places to wait refuses a wrong key at once, as on Lambda, where waits cost.
    #[tokio::test]
    async fn wrong_key_is_answered_at_once_without_places_to_wait() {
        let keys = WrongKeys::default();
        let clock = ManualClock::new(Timestamp::EPOCH);
        let answer = keys.refuse("publish", &clock).now_or_never();
        assert_eq!(answer, Some(WrongKeyAnswer::Wrong));
    }
}
