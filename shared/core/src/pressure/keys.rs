//! The names under which an operator finds each setting: Exchange's where it has one, ours in the
//! same style. Errors and the file of settings speak of them.

use super::Resource;

/// The master switch.
pub(super) const ENABLED: &str = "EnableResourceMonitoring";
/// The time between two polls.
pub(super) const INTERVAL: &str = "ResourceMonitoringInterval";
/// The wait of every acknowledgement.
pub(super) const TARPIT_BASE: &str = "SMTPBaseThrottlingDelayInterval";
/// The wait after the first poll under pressure.
pub(super) const TARPIT_START: &str = "SMTPStartThrottlingDelayInterval";
/// The time that each further poll adds.
pub(super) const TARPIT_STEP: &str = "SMTPStepThrottlingDelayInterval";
/// The longest wait.
pub(super) const TARPIT_MAX: &str = "SMTPMaxThrottlingDelayInterval";
/// A third of what is kept free on the journal's disk.
pub(super) const CHECKPOINT_DEPTH: &str = "DatabaseCheckPointDepthMax";
/// The bytes kept free on the database's disk; Exchange's fixed constant.
pub(super) const DATABASE_RESERVE: &str = "DatabaseDiskSpaceReserve";
/// The most that is kept free on the journal's disk; fixed in Exchange.
pub(super) const LOG_RESERVE_MAX: &str = "DatabaseLoggingDiskSpaceReserveMax";
/// The high threshold of the machine's memory, from which the other two follow.
pub(super) const MEMORY_LIMIT: &str = "PercentagePhysicalMemoryUsedLimit";
/// Messages of one batch.
pub(super) const BATCH_SIZE: &str = "BatchPointBatchSize";
/// The time for which a batch takes messages.
pub(super) const BATCH_TIMEOUT: &str = "BatchPointBatchTimeout";
/// Has no counterpart; only the documents' value is taken.
pub(super) const BATCH_ITEM_EXPIRY: &str = "BatchPointItemExpiryInterval";

/// The keys of one resource.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResourceKeys {
    /// The keys of its three thresholds.
    pub(super) normal: &'static str,
    pub(super) medium: &'static str,
    pub(super) high: &'static str,
    /// The key of its history depth, if it has one.
    pub(super) history_depth: Option<&'static str>,
}

macro_rules! thresholds {
    ($resource:literal, $history_depth:expr) => {
        ResourceKeys {
            normal: concat!($resource, "NormalThreshold"),
            medium: concat!($resource, "MediumThreshold"),
            high: concat!($resource, "HighThreshold"),
            history_depth: $history_depth,
        }
    };
}

/// The keys of the share of messages in flight, which on AWS takes the place of the database's
/// disk.
pub(super) const IN_FLIGHT: ResourceKeys = thresholds!("PercentageInFlightUsed", None);

impl Resource {
    /// The keys of this resource.
    pub(super) const fn setting_keys(self) -> ResourceKeys {
        match self {
            Self::SubmissionQueue => {
                thresholds!("SubmissionQueue", Some("SubmissionQueueHistoryDepth"))
            }
            Self::VersionBuckets => {
                thresholds!("VersionBuckets", Some("VersionBucketsHistoryDepth"))
            }
            Self::BatchPoints => thresholds!("BatchPoint", Some("BatchPointHistoryDepth")),
            Self::DatabaseDisk => thresholds!("PercentageDatabaseDiskSpaceUsed", None),
            Self::LogDisk => thresholds!("PercentageDatabaseLoggingDiskSpaceUsed", None),
            Self::ProcessMemory => {
                thresholds!(
                    "PercentagePrivateBytesUsed",
                    Some("PrivateBytesHistoryDepth")
                )
            }
            Self::SystemMemory => ResourceKeys {
                normal: MEMORY_LIMIT,
                medium: MEMORY_LIMIT,
                high: MEMORY_LIMIT,
                history_depth: None,
            },
            Self::DeadLetterBacklog => {
                thresholds!("DeadLetterBacklog", Some("DeadLetterBacklogHistoryDepth"))
            }
            Self::DrainTime => thresholds!("DrainTime", Some("DrainTimeHistoryDepth")),
        }
    }
}
