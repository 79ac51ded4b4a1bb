//! The result of a run of the merge, and its times.

use std::time::Duration;

use posthaste_core::model::Timestamp;

/// The result of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MergeReport {
    /// Files that were merged.
    pub files: usize,
    /// Files that they were merged into.
    pub merged: usize,
    /// Records in these.
    pub records: usize,
    /// Files that were deleted because an earlier run was cut short.
    pub leftovers: usize,
    /// Files that were set aside because they are damaged.
    pub damaged: usize,
    /// Hours that are left to the next run.
    pub hours_left: usize,
    /// True if another run was going on.
    pub was_busy: bool,
}

/// The times of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunTimes {
    /// No merge begins from then on, by the clock's `monotonic`.
    pub(super) begin: Duration,
    /// All work ends by then.
    pub(super) work: Duration,
    /// The lease lapses then.
    pub(super) lapses_at: Timestamp,
}

impl MergeReport {
    pub(super) fn log_merge(&self) {
        let Self {
            files,
            merged,
            records,
            leftovers,
            ..
        } = *self;
        if files + leftovers > 0 {
            tracing::debug!(files, merged, records, leftovers, "delivery log merged");
        }
    }
}
