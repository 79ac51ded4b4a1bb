//! State that the callers and the commit thread share.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use posthaste_ports::{Clock, QueueName};
use tokio::sync::watch;

use super::bodies::BodyCache;
use super::engine::StoreEngine;
use super::gauges::CallCounters;
use super::inbox::CommitInbox;
use super::index::StoreTime;
use super::queue_state::QueueState;
use super::record::{QUEUES, number_of};
use super::versions::KnownVersions;
use super::waiting_objects::WaitingObjects;

/// The handle that all users of a store hold; dropping the last one ends the commit thread.
#[derive(Debug)]
pub(super) struct StoreHandle {
    pub(super) shared: Arc<SharedStore>,
    pub(super) ended: watch::Receiver<()>,
}

impl Drop for StoreHandle {
    fn drop(&mut self) {
        self.shared.inbox.close();
    }
}

/// State that the callers and the commit thread share.
pub(super) struct SharedStore {
    pub(super) engine: StoreEngine,
    pub(super) folder_id: u64,
    pub(super) opening: u64,
    pub(super) inbox: CommitInbox,
    pub(super) queues: [QueueState; QUEUES.len()],
    pub(super) bodies: Mutex<BodyCache>,
    pub(super) versions: KnownVersions,
    pub(super) waiting_objects: WaitingObjects,
    pub(super) counters: Arc<CallCounters>,
    pub(super) now: Box<dyn Fn() -> StoreTime + Send + Sync>,
    pub(super) disk_reserve_bytes: u64,
    pub(super) records_reserve_bytes: u64,
    pub(super) records_bytes_max: u64,
}

impl SharedStore {
    pub(super) fn queue(&self, name: QueueName) -> &QueueState {
        &self.queues[usize::from(number_of(name))]
    }
}

impl fmt::Debug for SharedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("opening", &self.opening)
            .finish_non_exhaustive()
    }
}

pub(super) fn now_of(clock: &impl Clock) -> StoreTime {
    // In this order: time that passes in between must not look as if the clock had been set back.
    let monotonic = clock.monotonic();
    StoreTime {
        wall: clock.now(),
        monotonic,
    }
}
