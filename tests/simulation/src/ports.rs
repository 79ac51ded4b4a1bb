//! Ports of a world: real adapters in memory or in a folder, which are recorded and may fail.

use posthaste_local::{FileStore, Local, LocalQueue, StateStore};
use posthaste_ports::QueueName;
use posthaste_testkit::faulty::Plan;
use posthaste_testkit::recorded::Calls;
use posthaste_testkit::{Faulty, ManualClock, Recorded};

/// A queue, as the functions see it.
pub(crate) type Queue = Faulty<Recorded<LocalQueue<ManualClock>>>;

/// The state bucket, as the functions see it.
pub type State = Faulty<Recorded<StateStore>>;

/// The dead-letter bucket, as the functions see it.
pub(crate) type Bucket = Faulty<Recorded<FileStore>>;

/// Faults, by part.
#[derive(Debug, Clone)]
pub struct Faults {
    /// In the queues.
    pub queues: Plan,
    /// In the state bucket.
    pub state: Plan,
    /// In the dead-letter bucket.
    pub bucket: Plan,
}

impl Faults {
    /// None.
    pub fn none() -> Self {
        Self { queues: Plan::none(), state: Plan::none(), bucket: Plan::none() }
    }
}

/// Wraps adapters so that their calls are recorded and may fail.
pub(crate) struct Wrap<'a> {
    pub(crate) calls: &'a Calls,
    pub(crate) faults: &'a Faults,
}

impl Wrap<'_> {
    pub(crate) fn queue(&self, local: &Local<ManualClock>, name: QueueName) -> Queue {
        let label = match name {
            QueueName::Deliveries => "deliveries",
            QueueName::DeadLetters => "deadletters",
            QueueName::Redrive => "redrive",
        };
        Faulty::new(Recorded::new(local.queue(name), label, self.calls), label, &self.faults.queues)
    }

    pub(crate) fn state(&self, local: &Local<ManualClock>) -> State {
        Faulty::new(Recorded::new(local.state(), "state", self.calls), "state", &self.faults.state)
    }

    pub(crate) fn bucket(&self, bucket: &FileStore) -> Bucket {
        Faulty::new(Recorded::new(bucket.clone(), "bucket", self.calls), "bucket", &self.faults.bucket)
    }
}
