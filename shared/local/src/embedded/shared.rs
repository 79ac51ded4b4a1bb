//! State that the callers and the commit thread share.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use posthaste_ports::{Clock, QueueName};
use tokio::sync::watch;

use super::bodies::Bodies;
use super::engine::Engine;
use super::gauges::Counters;
use super::inbox::Inbox;
use super::index::Now;
use super::queue_state::QueueState;
use super::record::{QUEUES, number_of};
use super::versions::Versions;
use super::waiting_objects::WaitingObjects;

/// The handle that all users of a store hold; dropping the last one ends the commit thread.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) shared: Arc<Shared>,
    pub(super) ended: watch::Receiver<()>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.inbox.close();
    }
}

/// State that the callers and the commit thread share.
pub(super) struct Shared {
    pub(super) engine: Engine,
    pub(super) folder_id: u64,
    pub(super) opening: u64,
    pub(super) inbox: Inbox,
    pub(super) queues: [QueueState; QUEUES.len()],
    pub(super) bodies: Mutex<Bodies>,
    pub(super) versions: Versions,
    pub(super) waiting_objects: WaitingObjects,
    pub(super) counters: Arc<Counters>,
    pub(super) now: Box<dyn Fn() -> Now + Send + Sync>,
    pub(super) disk_reserve_bytes: u64,
    pub(super) records_reserve_bytes: u64,
    pub(super) records_bytes_max: u64,
}

impl Shared {
    pub(super) fn queue(&self, name: QueueName) -> &QueueState {
        &self.queues[usize::from(number_of(name))]
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("opening", &self.opening)
            .finish_non_exhaustive()
    }
}

pub(super) fn now_of(clock: &impl Clock) -> Now {
    // In this order: time that passes in between must not look as if the clock had been set back.
    let monotonic = clock.monotonic();
    Now {
        wall: clock.now(),
        monotonic,
    }
}
