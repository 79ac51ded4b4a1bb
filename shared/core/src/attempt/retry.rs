//! The retry policy and its schedule: when the next attempt may be made.

use std::time::Duration;

use crate::model::{SQS_DELAY_MAX, Timestamp};

/// The wait before the one retry that a host name gets which does not exist.
pub const WAIT_UNKNOWN_NAME: Duration = Duration::from_mins(5);

/// Jitter lengthens a wait by at most this share of it …
pub const JITTER_SHARE_MAX: f64 = 0.1;

/// … but a short wait by up to this long, so that there is something to draw where a queue delays
/// by whole seconds …
pub const JITTER_OF_SHORT_WAITS: Duration = Duration::from_secs(3);

/// … and a long one by at most this long.
pub const JITTER_MAX: Duration = Duration::from_mins(5);

/// A number in `0.0..1.0` that was drawn. The default is none.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DrawnJitter(f64);

impl DrawnJitter {
    /// The part of a length of time that was drawn.
    #[must_use]
    pub fn part_of(self, length: Duration) -> Duration {
        length.mul_f64(self.0)
    }

    /// Takes a fraction; what lies outside `0.0..=1.0`, or is no number, is drawn to its nearest
    /// end.
    pub fn new(fraction: f64) -> Self {
        Self(if fraction.is_nan() {
            0.0
        } else {
            fraction.clamp(0.0, 1.0)
        })
    }
}

/// The draws by which a retry's wait is lengthened.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RetryJitter {
    /// For a wait in the queue. Each message has its own, so that messages that failed together do
    /// not come back together.
    pub queued: DrawnJitter,
    /// For a longer wait. What fails together shares it, so that it is stored together.
    pub parked: DrawnJitter,
    /// The unit in which the queue delays: the jitter is a whole number of it, so that rounding up
    /// does not undo the draw.
    pub step: Duration,
}

impl RetryJitter {
    /// The wait with its jitter: never shorter, longer by at most 10 % or 3 seconds, whichever is
    /// more, and by 5 minutes at most.
    pub fn lengthen(self, wait: Duration) -> Duration {
        let longest = wait
            .mul_f64(JITTER_SHARE_MAX)
            .clamp(JITTER_OF_SHORT_WAITS, JITTER_MAX);
        let may_be_parked = wait.saturating_add(longest) > SQS_DELAY_MAX;
        let jitter = if may_be_parked {
            self.parked
        } else {
            self.queued
        };
        // Each whole step from none to the longest is as likely as the others.
        let drawn = jitter.part_of(longest + self.step);
        wait.saturating_add(self.whole_steps(drawn.min(longest)))
    }

    fn whole_steps(self, length: Duration) -> Duration {
        let step_ms = self.step.as_millis().max(1);
        let ms = length.as_millis() / step_ms * step_ms;
        Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX))
    }
}

/// Reads `Retry-After`: seconds, or an HTTP date. `None` if it is neither.
/// <https://www.rfc-editor.org/rfc/rfc9110#field.retry-after>
pub fn parse_retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        return Some(Duration::from_secs(
            value.parse().unwrap_or(u64::MAX / 1000),
        ));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    let at = Timestamp::EPOCH + date.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(at.since(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RetryPolicy;
    use proptest::prelude::*;

    #[test]
    fn the_last_step_repeats() {
        let policy = RetryPolicy::default();
        let hours = |n: u64| Duration::from_secs(n * 3600);
        assert_eq!(policy.wait_after_attempt(1), Duration::from_secs(10));
        assert_eq!(
            (
                policy.wait_after_attempt(9),
                policy.wait_after_attempt(10),
                policy.wait_after_attempt(11),
                policy.wait_after_attempt(30)
            ),
            { (hours(6), hours(12), hours(12), hours(12)) }
        );
    }

    #[test]
    fn eleven_attempts_fit_into_a_day_and_the_twelfth_does_not() {
        let policy = RetryPolicy::default();
        let due = |attempt: u16| {
            (1..attempt)
                .map(|n| policy.wait_after_attempt(n))
                .sum::<Duration>()
        };
        assert!(due(11) < policy.time_to_live);
        assert!(due(12) >= policy.time_to_live);
    }

    /// The waits after `wait` for draws that are spread evenly, in milliseconds.
    fn waits(wait: Duration, step: Duration) -> Vec<u128> {
        let lengthened = |tenth: u32| {
            let jitter = RetryJitter {
                queued: DrawnJitter::new(f64::from(tenth) / 8.0),
                parked: DrawnJitter::new(0.0),
                step,
            };
            jitter.lengthen(wait).as_millis()
        };
        (0..8).map(lengthened).collect()
    }

    /// If a queue delays by whole seconds, each of 10 to 13 seconds is as likely as the others.
    #[test]
    fn whole_second_of_a_short_wait_is_drawn_evenly() {
        let second = Duration::from_secs(1);
        assert_eq!(
            waits(Duration::from_secs(10), second),
            [
                10_000, 10_000, 11_000, 11_000, 12_000, 12_000, 13_000, 13_000
            ]
        );
        assert_eq!(
            waits(Duration::from_secs(70), second),
            [
                70_000, 71_000, 72_000, 73_000, 74_000, 75_000, 76_000, 77_000
            ]
        );
    }

    /// If a queue delays by milliseconds, messages that failed together come back apart.
    #[test]
    fn jitter_of_a_queue_of_milliseconds_keeps_them() {
        assert_eq!(
            waits(Duration::from_secs(10), Duration::from_millis(1)),
            [
                10_000, 10_375, 10_750, 11_125, 11_500, 11_875, 12_250, 12_625
            ]
        );
    }

    /// A wait that may end in the object store has the draw that what fails together shares.
    #[test]
    fn wait_that_may_be_parked_takes_the_shared_draw() {
        let jitter = RetryJitter {
            queued: DrawnJitter::new(1.0),
            parked: DrawnJitter::new(0.5),
            step: Duration::ZERO,
        };
        let lengthened = |secs| jitter.lengthen(Duration::from_secs(secs)).as_secs();
        assert_eq!([800, 818, 819, 1800].map(lengthened), [880, 899, 859, 1890]);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = Timestamp::parse("2015-10-21T07:27:00Z").unwrap();
        let check = |value: &str, wait: Option<u64>| {
            assert_eq!(
                parse_retry_after(value, now),
                wait.map(Duration::from_secs),
                "{value}"
            );
        };
        check("120", Some(120));
        check(" 0 ", Some(0));
        check("Wed, 21 Oct 2015 07:28:00 GMT", Some(60));
        check("Wed, 21 Oct 2015 07:26:00 GMT", Some(0));
        check("Wednesday, 21-Oct-15 07:28:00 GMT", Some(60));
        check("Wed Oct 21 07:28:00 2015", Some(60));
        check("", None);
        check("-1", None);
        check("1.5", None);
        check("soon", None);
        check("99999999999999999999999", Some(u64::MAX / 1000));
    }

    proptest! {
        #[test]
        fn jitter_only_lengthens_by_whole_steps_within_its_bounds(
            ms in 0_u64..100_000_000,
            f in any::<f64>(),
            step_ms in prop_oneof![Just(1_u64), Just(1000)],
        ) {
            let wait = Duration::from_millis(ms);
            let step = Duration::from_millis(step_ms);
            let jitter = RetryJitter { queued: DrawnJitter::new(f), parked: DrawnJitter::new(f), step };
            let longer = jitter.lengthen(wait);
            prop_assert!(longer >= wait);
            let longest = (wait / 10).max(Duration::from_secs(3)).min(Duration::from_mins(5));
            prop_assert!(longer <= wait + longest);
            prop_assert_eq!(longer.saturating_sub(wait).as_millis() % u128::from(step_ms), 0);
        }
    }
}
