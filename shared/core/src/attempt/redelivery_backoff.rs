//! The rest of a message that a function handed back.

use std::time::Duration;

/// The rest after the first time.
pub const REDELIVERY_BACKOFF_FIRST: Duration = Duration::from_secs(10);

/// The number of doublings after which the rest is longer than any visibility timeout of ours.
const DOUBLINGS_MAX: u32 = 8;

/// The rest of a message that was received for the `receive_count`th time and handed back. It is
/// short at first, so that a store which failed for a moment does not hold what was in flight for
/// the queue's whole visibility timeout. It doubles up to that timeout, so that an outage of hours
/// does not use up the receives.
pub fn redelivery_backoff(receive_count: u32, visibility: Duration) -> Duration {
    let doublings = receive_count.saturating_sub(1).min(DOUBLINGS_MAX);
    (REDELIVERY_BACKOFF_FIRST * 2_u32.pow(doublings)).min(visibility)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(receive_count: u32, visibility_secs: u64, expected_secs: u64) {
        let rest = redelivery_backoff(receive_count, Duration::from_secs(visibility_secs));
        assert_eq!(rest, Duration::from_secs(expected_secs), "{receive_count}");
    }

    #[test]
    fn the_rest_begins_at_ten_seconds_and_doubles() {
        check(1, 730, 10);
        check(2, 730, 20);
        check(3, 730, 40);
        check(7, 730, 640);
    }

    #[test]
    fn the_rest_is_never_longer_than_the_visibility_timeout() {
        check(1, 5, 5);
        check(8, 730, 730);
        check(9, 3600, 2560);
        check(u32::MAX, 3600, 2560);
    }

    #[test]
    fn uncounted_message_rests_as_after_the_first_time() {
        check(0, 730, 10);
    }
}
