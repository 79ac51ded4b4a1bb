//! The numbers about this machine and this process that back pressure needs and that are not queue counts.

use posthaste_core::pressure::{Space, Usage};

/// What a probe found. `None` is what cannot be known here, or could not be read this time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sample {
    /// The disk that holds the queue's data, or what stands for it.
    pub database: Option<Space>,
    /// The disk that holds the journal.
    pub log_disk: Option<Usage>,
    /// Resident size of this process, in bytes.
    pub process_bytes: Option<u64>,
    /// The memory this process shares with others.
    pub memory: Option<Usage>,
    /// Publishes that wait for their commit.
    pub version_buckets: Option<u64>,
    /// Batches of events on their way into a commit; a large event counts as several.
    pub batch_points: Option<u64>,
}

/// Samples resources. A sample is cheap enough for every poll, never fails as a whole and never waits for the
/// network; what cannot be read is `None`. Used space is what this process cannot use any more, so that what is kept
/// for the superuser counts as used.
pub trait Probe: Send + Sync {
    /// Reads everything once.
    fn sample(&self) -> Sample;
}
