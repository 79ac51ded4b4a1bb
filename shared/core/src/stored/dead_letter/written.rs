//! The time in which a dead-letter object was written: one rule for lists and for replays.

use super::key::dead_letter_hour;
use crate::model::Timestamp;

/// From `from` on and before `to`. What is left out restricts nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WrittenIn {
    /// At this time or later.
    pub from: Option<Timestamp>,
    /// Before this time.
    pub to: Option<Timestamp>,
}

impl WrittenIn {
    /// Whether an object that a list shows was written in this time. Its key tells the hour; its own time is
    /// exact, unless somebody copied it later. `prefix` is its subscription's. An object whose key tells no
    /// hour was written at no time.
    pub fn takes(&self, prefix: &str, key: &str, modified_at: Timestamp) -> bool {
        let Some(hour) = dead_letter_hour(prefix, key) else { return false };
        let written = if hour.contains(&modified_at) { modified_at..modified_at } else { hour };
        let is_early = self.from.is_some_and(|from| written.end <= from && written.start < from);
        let is_late = self.to.is_some_and(|to| written.start >= to);
        !is_early && !is_late
    }
}
