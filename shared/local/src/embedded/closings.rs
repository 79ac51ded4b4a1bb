//! A count of how often a store's file was closed, so that a reader can tell whether it was closed
//! since.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts how often a store's file is closed. After a failed write the file is opened again, and
/// the pages that an older snapshot still reads may be overwritten from then on.
#[derive(Debug, Default)]
pub(super) struct ClosingCounter(Arc<AtomicU64>);

/// The number of closings at one moment.
#[derive(Debug)]
pub(super) struct ClosingCount {
    counted: Arc<AtomicU64>,
    then: u64,
}

impl ClosingCounter {
    /// Counts a closing, just before it happens.
    pub(super) fn count_closing(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn now(&self) -> ClosingCount {
        ClosingCount {
            counted: Arc::clone(&self.0),
            then: self.0.load(Ordering::Acquire),
        }
    }
}

impl ClosingCount {
    /// Whether the file was not closed since.
    pub(super) fn are_unchanged(&self) -> bool {
        self.counted.load(Ordering::Acquire) == self.then
    }
}
