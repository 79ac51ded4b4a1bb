//! The thresholds of health, which an operator may change.

use std::time::Duration;

/// When a subscription is failing, and when it is healthy again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrivalSettings {
    /// The number of tries in a row that failed, which make it failing.
    pub failing_in_row: u32,
    /// The share of tries that failed, in percent, which makes it failing.
    pub failing_percent: u32,
    /// The least number of tries of which a share is taken. Where fewer were made within the
    /// window, older ones count too.
    pub tries_min: u32,
    /// The time over which tries are measured.
    pub window: Duration,
    /// The time without an arrival after which a hold of the circuit makes it failing.
    pub failing_after: Duration,
    /// The share of the last tries that arrived, in percent, which ends that.
    pub recovered_percent: u32,
    /// The age of an undelivered event of which an operator is told.
    pub delayed_after: Duration,
}

impl Default for ArrivalSettings {
    fn default() -> Self {
        Self {
            failing_in_row: 10,
            failing_percent: 50,
            tries_min: 20,
            window: Duration::from_mins(5),
            failing_after: Duration::from_mins(1),
            recovered_percent: 90,
            delayed_after: Duration::from_hours(1),
        }
    }
}
