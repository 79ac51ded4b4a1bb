//! Ports of a world: real adapters in memory or in a folder, which are recorded and may fail.

use posthaste_local::{FileStore, LocalQueue, StateStore};
use posthaste_testkit::faulty::FaultPlan;
use posthaste_testkit::{Faulty, ManualClock, Recorded};

/// A queue, as the functions see it.
pub(crate) type Queue = Faulty<Recorded<LocalQueue<ManualClock>>>;

/// The state bucket, as the functions see it.
pub type State = Faulty<Recorded<StateStore>>;

/// The dead-letter bucket, as the functions see it.
pub(crate) type Bucket = Faulty<Recorded<FileStore>>;

/// The bucket of the delivery log, as record sees it.
pub(crate) type Log = Faulty<Recorded<FileStore>>;

/// Faults, by part.
#[derive(Debug, Clone)]
pub struct Faults {
    /// In the queues.
    pub queues: FaultPlan,
    /// In the state bucket.
    pub state: FaultPlan,
    /// In the dead-letter bucket.
    pub bucket: FaultPlan,
    /// In the bucket of the delivery log.
    pub log: FaultPlan,
}

/// Makes the faults of one part from a plan.
type InPart = fn(&FaultPlan) -> Faults;

impl Faults {
    /// Each part by its name, and faults in it alone.
    pub const PARTS: [(&str, InPart); 3] = [
        ("queues", Self::in_queues),
        ("state", Self::in_state),
        ("bucket", Self::in_bucket),
    ];

    /// None.
    pub fn none() -> Self {
        Self {
            queues: FaultPlan::none(),
            state: FaultPlan::none(),
            bucket: FaultPlan::none(),
            log: FaultPlan::none(),
        }
    }

    /// Faults in all parts but the delivery log, whose effects are counted together.
    pub fn everywhere(plan: &FaultPlan) -> Self {
        Self {
            queues: plan.clone(),
            state: plan.clone(),
            bucket: plan.clone(),
            log: FaultPlan::none(),
        }
    }

    /// Faults in the state bucket.
    pub fn in_state(plan: &FaultPlan) -> Self {
        Self {
            state: plan.clone(),
            ..Self::none()
        }
    }

    /// Faults in the dead-letter bucket.
    pub fn in_bucket(plan: &FaultPlan) -> Self {
        Self {
            bucket: plan.clone(),
            ..Self::none()
        }
    }

    /// Faults in the bucket of the delivery log.
    pub fn in_log(plan: &FaultPlan) -> Self {
        Self {
            log: plan.clone(),
            ..Self::none()
        }
    }

    /// Faults in the queues.
    pub fn in_queues(plan: &FaultPlan) -> Self {
        Self {
            queues: plan.clone(),
            ..Self::none()
        }
    }
}
