//! The retry policy and its schedule: when the next attempt may be made.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::model::{DELIVERY_ATTEMPTS_MAX, EVENT_TIME_TO_LIVE_MINUTES_MAX, Timestamp};

/// The default waits after attempt 1, 2, 3 …; the last one repeats (Event Grid's schedule).
/// <https://learn.microsoft.com/azure/event-grid/delivery-and-retry>
pub const SCHEDULE_DEFAULT: [Duration; 10] = [
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_mins(1),
    Duration::from_mins(5),
    Duration::from_mins(10),
    Duration::from_mins(30),
    Duration::from_hours(1),
    Duration::from_hours(3),
    Duration::from_hours(6),
    Duration::from_hours(12),
];

/// The default floor under the wait after 408 (Event Grid: 2 minutes or more).
pub const WAIT_FLOOR_REQUEST_TIMEOUT: Duration = Duration::from_mins(2);

/// The default floor under the wait after 429 and 503 (Event Grid: 30 seconds or more).
pub const WAIT_FLOOR_BUSY: Duration = Duration::from_secs(30);

/// The default floor under every other wait (Event Grid: 10 seconds or more).
pub const WAIT_FLOOR_DEFAULT: Duration = Duration::from_secs(10);

/// The wait before the one retry that a host name gets which does not exist.
pub const WAIT_UNKNOWN_NAME: Duration = Duration::from_mins(5);

/// Statuses after which Event Grid does not try a webhook again.
pub const PERMANENT_STATUSES_DEFAULT: [u16; 5] = [400, 401, 403, 404, 413];

/// Jitter lengthens a wait by at most this share of it …
pub const JITTER_SHARE_MAX: f64 = 0.1;

/// … and by at most this long.
pub const JITTER_MAX: Duration = Duration::from_mins(5);

/// The rules by which a subscription's events are tried again.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    /// The number of attempts that an event gets, 1..=30.
    pub attempts_max: u16,
    /// The time after its acceptance at which an attempt may still be begun.
    pub time_to_live: Duration,
    /// The waits after attempt 1, 2, 3 …; never empty, the last one repeats.
    pub schedule: Vec<Duration>,
    /// The least wait after a status.
    pub wait_floors: WaitFloors,
    /// Statuses after which there is no retry.
    pub permanent_statuses: BTreeSet<u16>,
    /// Whether 410 disables the subscription.
    pub disable_on_gone: bool,
}

/// The least waits by status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitFloors {
    /// The waits after these statuses.
    pub by_status: BTreeMap<u16, Duration>,
    /// The wait after every other status, and after no answer at all.
    pub default: Duration,
}

/// A number in `0.0..1.0`, drawn once per invocation, subscription and step, so that what waits
/// together is stored together. The default is none.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Jitter(f64);

impl Jitter {
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

    /// The wait with its jitter: never shorter, longer by at most 10 % and 5 minutes.
    pub fn lengthen(self, wait: Duration) -> Duration {
        wait + wait.mul_f64(JITTER_SHARE_MAX * self.0).min(JITTER_MAX)
    }
}

impl Default for WaitFloors {
    fn default() -> Self {
        Self {
            by_status: BTreeMap::from([
                (408, WAIT_FLOOR_REQUEST_TIMEOUT),
                (429, WAIT_FLOOR_BUSY),
                (503, WAIT_FLOOR_BUSY),
            ]),
            default: WAIT_FLOOR_DEFAULT,
        }
    }
}

impl WaitFloors {
    /// The least wait after `status`, or after no answer.
    pub fn after(&self, status: Option<u16>) -> Duration {
        status
            .and_then(|status| self.by_status.get(&status).copied())
            .unwrap_or(self.default)
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts_max: DELIVERY_ATTEMPTS_MAX,
            time_to_live: Duration::from_secs(u64::from(EVENT_TIME_TO_LIVE_MINUTES_MAX) * 60),
            schedule: SCHEDULE_DEFAULT.to_vec(),
            wait_floors: WaitFloors::default(),
            permanent_statuses: PERMANENT_STATUSES_DEFAULT.into(),
            disable_on_gone: true,
        }
    }
}

impl RetryPolicy {
    /// The scheduled wait after the given attempt; the first attempt is 1.
    pub fn step(&self, attempt: u16) -> Duration {
        let index = usize::from(attempt.saturating_sub(1));
        self.schedule
            .get(index)
            .or(self.schedule.last())
            .copied()
            .unwrap_or(WAIT_FLOOR_DEFAULT)
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
    use proptest::prelude::*;

    #[test]
    fn the_last_step_repeats() {
        let policy = RetryPolicy::default();
        let hours = |n: u64| Duration::from_secs(n * 3600);
        assert_eq!(policy.step(1), Duration::from_secs(10));
        assert_eq!(
            (
                policy.step(9),
                policy.step(10),
                policy.step(11),
                policy.step(30)
            ),
            { (hours(6), hours(12), hours(12), hours(12)) }
        );
    }

    #[test]
    fn eleven_attempts_fit_into_a_day_and_the_twelfth_does_not() {
        let policy = RetryPolicy::default();
        let due = |attempt: u16| (1..attempt).map(|n| policy.step(n)).sum::<Duration>();
        assert!(due(11) < policy.time_to_live);
        assert!(due(12) >= policy.time_to_live);
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
        fn jitter_only_lengthens_by_at_most_a_tenth_and_five_minutes(
            ms in 0_u64..100_000_000,
            f in any::<f64>(),
        ) {
            let wait = Duration::from_millis(ms);
            let longer = Jitter::new(f).lengthen(wait);
            prop_assert!(longer >= wait);
            prop_assert!(longer <= wait + (wait / 10).min(JITTER_MAX) + Duration::from_nanos(100));
        }
    }
}
