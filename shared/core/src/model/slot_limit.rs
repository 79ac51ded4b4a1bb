//! The bound on the open requests of a subscription. `attempt` leases them, over all workers.

use std::num::NonZeroU32;

/// The bound: the most requests that are open at once, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotLimit(NonZeroU32);

impl SlotLimit {
    /// The bound of this number of requests; `None` for zero.
    pub fn new(requests: u32) -> Option<Self> {
        NonZeroU32::new(requests).map(Self)
    }

    /// The number of requests.
    pub fn requests(self) -> u32 {
        self.0.get()
    }
}
