//! Age from which a pressure state counts less, or no more.

use std::time::Duration;

/// Embedded, a state is stale after so many polls.
pub const STATE_STALE_AFTER_POLLS: u32 = 3;

/// On AWS a state is stale after this: the schedule that starts the monitor runs once a minute.
pub const STATE_STALE_AFTER_AWS: Duration = Duration::from_secs(150);

/// A state older than this counts as Normal: the monitor has stopped, and producers must not be held for
/// ever.
pub const STATE_FORGOTTEN_AFTER: Duration = Duration::from_mins(15);

/// From when on a state is not taken at its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Staleness {
    /// Older than this, it keeps only the tarpit's first step.
    pub stale_after: Duration,
    /// Older than this, it counts as Normal.
    pub forgotten_after: Duration,
}
