//! The part of a request's events that subscriptions take.

use serde::{Deserialize, Serialize};

/// The matches between the events of one request and the subscriptions of its topic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchCounts {
    /// Events that at least one subscription takes.
    pub events: usize,
    /// Subscriptions that take at least one of the events.
    pub subscriptions: usize,
}
