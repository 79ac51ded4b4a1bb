//! The retry policy of a subscription, and its schedule.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::model::{DELIVERY_ATTEMPTS_MAX, EVENT_TIME_TO_LIVE_MINUTES_MAX};

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

/// Statuses after which an event is not tried again: those of Event Grid. Two other lists say what
/// a status refuses: the content ([`super::refuses_content`]), and the event or the endpoint
/// (`circuit/refusals.rs`).
pub const PERMANENT_STATUSES_DEFAULT: [u16; 5] = [400, 401, 403, 404, 413];

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
    pub fn after_status(&self, status: Option<u16>) -> Duration {
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
    pub fn wait_after_attempt(&self, attempt: u16) -> Duration {
        let index = usize::from(attempt.saturating_sub(1));
        self.schedule
            .get(index)
            .or(self.schedule.last())
            .copied()
            .unwrap_or(WAIT_FLOOR_DEFAULT)
    }
}
