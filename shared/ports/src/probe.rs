//! The numbers about this machine and this process that back pressure needs and that are not queue
//! counts.

use posthaste_core::pressure::ByteUsage;

/// The resource that can fill up where the queue keeps its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseResource {
    /// A disk of this machine.
    Disk(ByteUsage),
    /// No disk of ours, but the queue bounds how many messages are in flight; the monitor counts
    /// them.
    InFlight,
}

/// The readings of a probe. `None` if a value cannot be known here, or could not be read this time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProbeSample {
    /// The resource that holds the queue's data.
    pub database: Option<DatabaseResource>,
    /// The disk that holds the journal.
    pub log_disk: Option<ByteUsage>,
    /// Resident size of this process, in bytes.
    pub process_bytes: Option<u64>,
    /// The memory this process shares with others.
    pub memory: Option<ByteUsage>,
    /// Publishes that wait for their commit.
    pub version_buckets: Option<u64>,
    /// Batches of events on their way into a commit; a large event counts as several.
    pub batch_points: Option<u64>,
}

/// Samples resources. A sample is cheap enough for every poll, never fails as a whole and never
/// waits for the network; what cannot be read is `None`. Used space is what this process cannot use
/// any more, so that what is kept for the superuser counts as used.
pub trait ResourceProbe: Send + Sync {
    /// Reads everything once.
    fn sample(&self) -> ProbeSample;
}

/// The probe for where there is no machine of ours to look at: on AWS only the queue can fill up.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMachine;

impl ResourceProbe for NoMachine {
    fn sample(&self) -> ProbeSample {
        ProbeSample {
            database: Some(DatabaseResource::InFlight),
            ..ProbeSample::default()
        }
    }
}
