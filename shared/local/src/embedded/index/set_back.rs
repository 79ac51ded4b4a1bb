//! A clock that is set back while messages wait.

use std::time::Duration;

use posthaste_core::model::Timestamp;

use super::{QueueIndex, StoreTime};

/// The least by which a clock counts as set back.
const SET_BACK_MIN: Duration = Duration::from_secs(1);

impl QueueIndex {
    /// Moves delays along with a clock that was set back, so that no message waits longer. Slow
    /// corrections, by which time servers keep a clock right, are below the least that counts.
    /// Returns whether the moment is no older than the last one: an older one, of a caller that was
    /// slow, says nothing about the clock or about what is due.
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
        let delayed = std::mem::take(&mut self.delayed);
        self.delayed = delayed
            .into_iter()
            .map(|((due, sequence), message)| {
                let due_ms = due.as_millis().saturating_sub(back_ms);
                ((Timestamp::from_millis(due_ms), sequence), message)
            })
            .collect();
        true
    }
}
