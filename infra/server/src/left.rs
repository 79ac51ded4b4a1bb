//! Work that a server leaves behind when it ends. All of it is durable and goes on after the next
//! start.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use posthaste_core::stored::layout::{HELD, PARKED};
use posthaste_deliver::Deliver;
use posthaste_local::{EmbeddedStore, StateStore};
use posthaste_ports::{PortError, QueueCounts, QueueName, QueueReceiver};
use posthaste_services::pages::list_objects;
use posthaste_system::SystemClock;

use super::adapters::EmbeddedPorts;
use super::http::UnderWay;

/// Most objects of a kind that are counted. Where there are more, the number is this one.
const OBJECTS_MAX: usize = 10_000;

/// The requests that a server has under way.
#[derive(Clone)]
pub(super) struct InFlight {
    pub(super) deliver: Arc<Deliver<EmbeddedPorts>>,
    pub(super) clients: Arc<UnderWay>,
}

/// The requests that the end of a server cuts short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CutShortRequests {
    /// Requests to endpoints without an answer.
    webhooks: usize,
    /// Requests of clients whose answers are not sent to their end.
    clients: usize,
}

impl InFlight {
    /// The requests that an end at this moment cuts short.
    pub(super) fn cut_short_now(&self) -> CutShortRequests {
        CutShortRequests {
            webhooks: self.deliver.open_requests(),
            clients: self.clients.count(),
        }
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cut_short_now().fmt(f)
    }
}

/// The work that a server leaves behind. `None` where it cannot be counted.
#[derive(Debug)]
pub(super) struct LeftBehind {
    /// The queue of deliveries.
    pub(super) deliveries: Option<QueueCounts>,
    /// Dead letters that are not written yet.
    dead_letters: Option<u64>,
    /// Records that are not in the delivery log yet.
    records: Option<u64>,
    /// Objects with deliveries that wait for a later attempt.
    parked_objects: Option<usize>,
    /// Objects with deliveries that wait for their endpoint or subscription.
    held_objects: Option<usize>,
}

impl LeftBehind {
    /// Counts what there is. Queues are counted in memory.
    pub(super) async fn count(local: &EmbeddedStore<SystemClock>) -> Self {
        let state = local.state_store();
        let dead_letters = count_queue(local, QueueName::DeadLetters).await;
        let records = count_queue(local, QueueName::Records).await;
        Self {
            deliveries: count_queue(local, QueueName::Deliveries).await,
            dead_letters: dead_letters.map(|counts| counts.total()),
            records: records.map(|counts| counts.total()),
            parked_objects: count_objects(&state, PARKED).await.ok(),
            held_objects: count_objects(&state, HELD).await.ok(),
        }
    }

    /// The number of delivery messages that are worked on.
    pub(super) fn in_flight(&self) -> u64 {
        self.deliveries.map_or(0, |counts| counts.in_flight)
    }

    /// Says in the log what was cut short, what is left, and how long the drain took.
    pub(super) fn log_left(&self, cut: CutShortRequests, took: Duration) {
        let counts = self.deliveries.unwrap_or_default();
        tracing::info!(
            waiting = counts.visible + counts.delayed,
            in_flight = counts.in_flight,
            webhook_requests_cut = cut.webhooks,
            client_requests_cut = cut.clients,
            parked_objects = self.parked_objects,
            held_objects = self.held_objects,
            unwritten_dead_letters = self.dead_letters,
            unwritten_records = self.records,
            took_s = took.as_secs_f64(),
            "ended; what is left goes on after the next start"
        );
    }
}

async fn count_queue(local: &EmbeddedStore<SystemClock>, name: QueueName) -> Option<QueueCounts> {
    local.queue(name).counts().await.ok()
}

async fn count_objects(state: &StateStore, prefix: &str) -> Result<usize, PortError> {
    list_objects(state, prefix, None)
        .take(OBJECTS_MAX)
        .try_fold(0, |count, _| async move { Ok(count + 1) })
        .await
}
