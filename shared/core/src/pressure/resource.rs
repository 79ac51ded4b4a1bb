//! The words of back pressure: resources, levels, tiers and profiles.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A watched resource. The order is that of every listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// Visible (due, not in flight) messages of the delivery queue.
    SubmissionQueue,
    /// Publishes that wait for their commit.
    VersionBuckets,
    /// Batches of events on their way into a commit.
    BatchPoints,
    /// Per cent used of the data folder's disk; on AWS, of the messages a queue can have in flight.
    DatabaseDisk,
    /// Per cent used of the journal's disk.
    LogDisk,
    /// Resident size of this process, in per cent of the machine's memory.
    ProcessMemory,
    /// Per cent used of the machine's memory.
    SystemMemory,
    /// Messages in the dead-letter queue past their delay.
    DeadLetterBacklog,
    /// Seconds until what is visible now would be delivered.
    DrainTime,
}

impl Resource {
    /// All of them, in order.
    pub const ALL: [Self; 9] = [
        Self::SubmissionQueue,
        Self::VersionBuckets,
        Self::BatchPoints,
        Self::DatabaseDisk,
        Self::LogDisk,
        Self::ProcessMemory,
        Self::SystemMemory,
        Self::DeadLetterBacklog,
        Self::DrainTime,
    ];

    /// The name in headers, metrics and logs: `submission-queue`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SubmissionQueue => "submission-queue",
            Self::VersionBuckets => "version-buckets",
            Self::BatchPoints => "batch-points",
            Self::DatabaseDisk => "database-disk",
            Self::LogDisk => "log-disk",
            Self::ProcessMemory => "process-memory",
            Self::SystemMemory => "system-memory",
            Self::DeadLetterBacklog => "dead-letter-backlog",
            Self::DrainTime => "drain-time",
        }
    }

    /// The unit of its reading and thresholds, in words. What stands for the database's disk on AWS
    /// has another: [`ResourceState::unit`](super::ResourceState::unit).
    pub const fn unit(self) -> &'static str {
        match self {
            Self::SubmissionQueue | Self::DeadLetterBacklog => "messages",
            Self::VersionBuckets => "publishes",
            Self::BatchPoints => "batch points",
            Self::DatabaseDisk | Self::LogDisk | Self::ProcessMemory | Self::SystemMemory => {
                "percent"
            }
            Self::DrainTime => "seconds",
        }
    }

    /// Whether its reading is a share in per cent, so that no threshold above 100 makes sense.
    pub const fn is_percentage(self) -> bool {
        self.is_disk() || self.is_memory()
    }

    /// Whether it is one of the two disks.
    pub const fn is_disk(self) -> bool {
        matches!(self, Self::DatabaseDisk | Self::LogDisk)
    }

    /// Whether it is one of the two kinds of memory.
    pub const fn is_memory(self) -> bool {
        matches!(self, Self::ProcessMemory | Self::SystemMemory)
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The level to which a resource is used.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum PressureLevel {
    /// Not overused.
    #[default]
    Normal,
    /// Slightly overused: some producers are slowed or refused.
    Medium,
    /// Severely overused: in the end every producer is refused.
    High,
}

impl PressureLevel {
    /// 0, 1 or 2, as the `PressureLevel` metric shows it.
    pub const fn as_number(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for PressureLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normal => "normal",
            Self::Medium => "medium",
            Self::High => "high",
        })
    }
}

/// The set of rows that act, and of their thresholds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PressureProfile {
    /// The submission queue acts only while it also drains slowly, because a fleet drains 10,000
    /// messages in a second.
    #[default]
    Scaled,
    /// The documents' rows to the letter. Our own two rows are watched and logged, but refuse no
    /// producer.
    Exchange2013,
    /// The same with the version buckets of the German page (80 / 120 / 200), which is older.
    Exchange2013German,
}
