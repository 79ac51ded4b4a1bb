//! The one table of back pressure: resource → thresholds, history depth, and what happens at Medium
//! and at High.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{PressureProfile, Resource};
use crate::model::ProducerTier;

/// The distance of the medium and the normal threshold of a formula, and of the memory's limit,
/// from the high one, in per cent.
pub(super) const FORMULA_STEPS: (u64, u64) = (2, 4);

/// The three thresholds of a resource, in its own unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[schema(as = PressureThresholds)]
pub struct LevelThresholds {
    /// Below it the level goes back to `normal`.
    pub normal: u64,
    /// From here on the level is `medium`.
    pub medium: u64,
    /// From here on the level is `high`.
    pub high: u64,
}

impl LevelThresholds {
    /// The three, lowest first.
    pub const fn new(normal: u64, medium: u64, high: u64) -> Self {
        Self {
            normal,
            medium,
            high,
        }
    }
}

/// The source of a resource's thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThresholdRule {
    /// Thresholds that stand in the table.
    Fixed(LevelThresholds),
    /// A formula of the disk's size and a constant: high = floor(100·(size − 500 MB)/size), medium
    /// 2 less, normal 4 less. On AWS, where it is a share of the messages that deliver may have in
    /// flight, 71 / 73 / 75 unless set otherwise.
    DatabaseDisk,
    /// The same with min(5 GB, 3·384 MB) in the place of the 500 MB.
    LogDisk,
    /// A formula of the memory's size: high = the smaller of 75 % and 1 TB, medium 2 less, normal 4
    /// less.
    ProcessMemory,
}

/// A measure besides slowing and refusing producers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PressureMeasure {
    /// Give memory of caches back. It stands for Exchange's forced garbage collection, which Rust
    /// has no use for.
    TrimCaches,
    /// Forget resolved names.
    FlushDns,
    /// Put new payloads into the object store and only references into messages.
    Dehydrate,
    /// Tell the operator.
    Alarm,
}

/// The actions of a resource at a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelActions {
    /// Whether acknowledgements wait, longer with every poll.
    pub tarpit: bool,
    /// The most privileged tier that is refused, and with it every less privileged one: once the
    /// history has passed, or at once where there is none.
    pub refuse_from: Option<ProducerTier>,
    /// The other measures, taken at once and as long as the level lasts.
    pub measures: &'static [PressureMeasure],
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceRow {
    /// The watched resource.
    pub resource: Resource,
    /// The thresholds of the resource.
    pub thresholds: ThresholdRule,
    /// The number of polls in a row, none of them Normal, after which producers are refused;
    /// `None`: at once.
    pub history_depth: Option<u32>,
    /// Whether caches are trimmed as soon as the reading is above the normal threshold, whatever
    /// the level.
    pub trims_above_normal: bool,
    /// Whether it turns producers away. A row that does not is watched, logged and alarmed about.
    pub throttles: bool,
    /// Whether it does nothing while the drain time is below its own normal threshold.
    pub needs_slow_drain: bool,
    /// The actions at Medium.
    pub medium: LevelActions,
    /// The actions at High. The measures of Medium go on.
    pub high: LevelActions,
}

const NOTHING: LevelActions = LevelActions {
    tarpit: false,
    refuse_from: None,
    measures: &[],
};

/// Refuse `standard` and `bulk`.
const REFUSE_MOST: LevelActions = LevelActions {
    refuse_from: Some(ProducerTier::Standard),
    ..NOTHING
};

/// Refuse everybody.
const REFUSE_ALL: LevelActions = LevelActions {
    refuse_from: Some(ProducerTier::Internal),
    ..NOTHING
};

const TARPIT_THEN_REFUSE_MOST: LevelActions = LevelActions {
    tarpit: true,
    ..REFUSE_MOST
};
const TARPIT_THEN_REFUSE_ALL: LevelActions = LevelActions {
    tarpit: true,
    ..REFUSE_ALL
};

const BASE: ResourceRow = ResourceRow {
    resource: Resource::SubmissionQueue,
    thresholds: ThresholdRule::Fixed(LevelThresholds::new(2000, 4000, 10_000)),
    history_depth: None,
    trims_above_normal: false,
    throttles: true,
    needs_slow_drain: false,
    medium: REFUSE_MOST,
    high: REFUSE_ALL,
};

const SUBMISSION_QUEUE: ResourceRow = ResourceRow {
    history_depth: Some(300),
    medium: LevelActions {
        measures: &[PressureMeasure::TrimCaches],
        ..TARPIT_THEN_REFUSE_MOST
    },
    high: LevelActions {
        measures: &[
            PressureMeasure::TrimCaches,
            PressureMeasure::FlushDns,
            PressureMeasure::Dehydrate,
        ],
        ..TARPIT_THEN_REFUSE_ALL
    },
    ..BASE
};

const VERSION_BUCKETS: ResourceRow = ResourceRow {
    resource: Resource::VersionBuckets,
    thresholds: ThresholdRule::Fixed(LevelThresholds::new(1750, 2000, 2500)),
    history_depth: Some(10),
    medium: TARPIT_THEN_REFUSE_MOST,
    high: TARPIT_THEN_REFUSE_ALL,
    ..BASE
};

const BATCH_POINTS: ResourceRow = ResourceRow {
    resource: Resource::BatchPoints,
    thresholds: ThresholdRule::Fixed(LevelThresholds::new(1000, 2000, 4000)),
    history_depth: Some(300),
    ..VERSION_BUCKETS
};

const DATABASE_DISK: ResourceRow = ResourceRow {
    resource: Resource::DatabaseDisk,
    thresholds: ThresholdRule::DatabaseDisk,
    ..BASE
};

const LOG_DISK: ResourceRow = ResourceRow {
    resource: Resource::LogDisk,
    thresholds: ThresholdRule::LogDisk,
    ..BASE
};

const PROCESS_MEMORY: ResourceRow = ResourceRow {
    resource: Resource::ProcessMemory,
    thresholds: ThresholdRule::ProcessMemory,
    history_depth: Some(30),
    trims_above_normal: true,
    medium: LevelActions {
        measures: &[PressureMeasure::TrimCaches],
        ..REFUSE_MOST
    },
    high: LevelActions {
        measures: &[PressureMeasure::TrimCaches],
        ..REFUSE_ALL
    },
    ..BASE
};

const SYSTEM_MEMORY: ResourceRow = ResourceRow {
    resource: Resource::SystemMemory,
    thresholds: ThresholdRule::Fixed(LevelThresholds::new(90, 92, 94)),
    medium: LevelActions {
        measures: &[PressureMeasure::TrimCaches],
        ..REFUSE_MOST
    },
    high: LevelActions {
        measures: &[
            PressureMeasure::TrimCaches,
            PressureMeasure::FlushDns,
            PressureMeasure::Dehydrate,
        ],
        ..REFUSE_ALL
    },
    ..BASE
};

const DEAD_LETTER_BACKLOG: ResourceRow = ResourceRow {
    resource: Resource::DeadLetterBacklog,
    thresholds: ThresholdRule::Fixed(LevelThresholds::new(1000, 2000, 4000)),
    history_depth: Some(300),
    medium: LevelActions {
        measures: &[PressureMeasure::Alarm],
        ..NOTHING
    },
    high: LevelActions {
        measures: &[PressureMeasure::Alarm],
        refuse_from: Some(ProducerTier::Bulk),
        ..NOTHING
    },
    ..BASE
};

const DRAIN_TIME: ResourceRow = ResourceRow {
    resource: Resource::DrainTime,
    thresholds: ThresholdRule::Fixed(LevelThresholds::new(30, 60, 300)),
    history_depth: Some(30),
    medium: TARPIT_THEN_REFUSE_MOST,
    high: TARPIT_THEN_REFUSE_ALL,
    ..BASE
};

const SCALED: [ResourceRow; 9] = [
    ResourceRow {
        needs_slow_drain: true,
        ..SUBMISSION_QUEUE
    },
    VERSION_BUCKETS,
    BATCH_POINTS,
    DATABASE_DISK,
    LOG_DISK,
    PROCESS_MEMORY,
    SYSTEM_MEMORY,
    DEAD_LETTER_BACKLOG,
    DRAIN_TIME,
];

const EXCHANGE_2013: [ResourceRow; 9] = {
    let mut rows = SCALED;
    rows[Resource::SubmissionQueue as usize].needs_slow_drain = false;
    rows[Resource::DeadLetterBacklog as usize].throttles = false;
    rows[Resource::DrainTime as usize].throttles = false;
    rows
};

/// The version buckets are those of the German page.
const EXCHANGE_2013_GERMAN: [ResourceRow; 9] = {
    let mut rows = EXCHANGE_2013;
    let thresholds = ThresholdRule::Fixed(LevelThresholds::new(80, 120, 200));
    rows[Resource::VersionBuckets as usize].thresholds = thresholds;
    rows
};

/// The table of a profile: one row per resource, in the order of [`Resource::ALL`].
pub const fn rows_of_profile(profile: PressureProfile) -> &'static [ResourceRow; 9] {
    match profile {
        PressureProfile::Scaled => &SCALED,
        PressureProfile::Exchange2013 => &EXCHANGE_2013,
        PressureProfile::Exchange2013German => &EXCHANGE_2013_GERMAN,
    }
}
