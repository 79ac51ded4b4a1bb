//! A clock that is set back while messages wait.

use std::time::Duration;

use posthaste_core::model::Timestamp;

use super::{QueueIndex, StoreTime};

/// The least by which a clock counts as set back.
const SET_BACK_MIN: Duration = Duration::from_secs(1);

impl QueueIndex {
    /// A clock that was set back makes no message wait longer: delays end when they would have.
    /// Slow corrections, by which time servers keep a clock right, are below the least that
    /// counts. Answers whether the moment is no older than the last one: an older one, of a
    /// caller that was slow, says nothing about the clock or about what is due.
    pub(super) fn follow_clock(&mut self, now: StoreTime) -> bool {
        let last = *self.last.get_or_insert(now);
        let Some(passed) = now.monotonic.checked_sub(last.monotonic) else {
            return false;
        };
        self.last = Some(now);
        let back = (last.wall + passed).since(now.wall);
        if back < SET_BACK_MIN {
            return true;
        }
        let back_ms = u64::try_from(back.as_millis()).unwrap_or(u64::MAX);
        let earlier =
            |due: Timestamp| Timestamp::from_millis(due.as_millis().saturating_sub(back_ms));
        let delayed = std::mem::take(&mut self.delayed);
        self.delayed = delayed
            .into_iter()
            .map(|((due, sequence), group)| ((earlier(due), sequence), group))
            .collect();
        true
    }
}
