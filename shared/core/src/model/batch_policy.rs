//! The batching of a subscription. `attempt` packs by it.

use crate::model::PREFERRED_BATCH_KILOBYTES_DEFAULT;

/// A subscription's batching: how many events and bytes one request carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPolicy {
    /// Whether the subscription asked for batches at all. Without, a request carries one event.
    pub enabled: bool,
    /// Most events in one request, 1..=5000. Never exceeded.
    pub events_max: usize,
    /// Preferred bytes of one request; exceeded only by an event that is larger by itself.
    pub bytes_preferred: usize,
    /// Whether an answer of success may say which events of the batch failed
    /// ([`crate::attempt::partial`]).
    pub partial_acknowledgement: bool,
}

impl Default for BatchPolicy {
    fn default() -> Self {
        Self {
            enabled: false,
            events_max: 1,
            bytes_preferred: PREFERRED_BATCH_KILOBYTES_DEFAULT as usize * 1024,
            partial_acknowledgement: false,
        }
    }
}
