//! wake: once a minute, sends the parked deliveries whose minute has come.
//!
//! An object is deleted only when every one of its messages was sent, so a crash or a failed send makes copies and
//! loses nothing. It never runs twice at once (a lease object), and it releases nothing while the pressure is Medium
//! or High: what waits in the object store burdens nobody.

mod lease;
mod payloads;
mod release;

use std::time::Duration;

use posthaste_core::layout;
use posthaste_core::pressure::Level;
use posthaste_core::time::Timestamp;
use posthaste_ports::{Clock, Entropy, ListPage, ObjectStore, PortError, PressureReader, QueueSender};

/// Most objects listed at a time.
const PAGE_MAX: usize = 1000;

/// How long one run may go on; the next one comes a minute after it began.
const RUN_MAX: Duration = Duration::from_secs(50);

/// What wake needs from outside.
#[derive(Debug)]
pub struct WakePorts<Q, S, C, E> {
    /// The delivery queue.
    pub deliveries: Q,
    /// The state bucket.
    pub state: S,
    /// The pressure, as the monitor wrote it.
    pub pressure: PressureReader<S, C>,
    /// Time.
    pub clock: C,
    /// Chance.
    pub entropy: E,
}

/// The function.
#[derive(Debug)]
pub struct Wake<Q, S, C, E> {
    ports: WakePorts<Q, S, C, E>,
}

/// What a run did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WakeReport {
    /// Objects whose deliveries were all sent.
    pub released: usize,
    /// Deliveries that were sent.
    pub sent: usize,
    /// Objects that are tried again in the next run.
    pub left: usize,
    /// Whether another run was going on.
    pub was_busy: bool,
    /// Whether pressure held everything back.
    pub was_held_back: bool,
}

/// Why a run ended early. The next one goes on.
#[derive(Debug, thiserror::Error)]
pub enum WakeError {
    /// The lease could not be read or written.
    #[error("failed to take the lease")]
    Lease(#[source] PortError),
    /// The parked objects could not be listed.
    #[error("failed to list what is parked")]
    List(#[source] PortError),
}

impl<Q, S, C, E> Wake<Q, S, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Wires the function up.
    pub fn new(ports: WakePorts<Q, S, C, E>) -> Self {
        Self { ports }
    }

    /// Runs once.
    pub async fn run(&self) -> Result<WakeReport, WakeError> {
        let Some(lease) = self.take_lease().await.map_err(WakeError::Lease)? else {
            return Ok(WakeReport { was_busy: true, ..WakeReport::default() });
        };
        // The lease outlasts a run that ends in time, and the one that is killed at its timeout (60 s on AWS) costs the
        // next run alone.
        let ends_at = self.ports.clock.monotonic() + RUN_MAX;
        let report = self.release_all(ends_at).await;
        self.expire_payloads(ends_at).await;
        self.give_back(lease).await;
        if let Ok(WakeReport { sent, released, left, .. }) = report
            && sent + released + left > 0
        {
            tracing::info!(sent, released, left, "parked deliveries released");
        }
        report
    }

    /// Lists from the start, oldest first, through now.
    async fn release_all(&self, ends_at: Duration) -> Result<WakeReport, WakeError> {
        let mut report = WakeReport::default();
        let mut after: Option<String> = None;
        loop {
            if self.is_under_pressure().await {
                return Ok(WakeReport { was_held_back: true, ..report });
            }
            let page = self.ports.state.list(layout::PARKED, after.as_deref(), PAGE_MAX).await;
            let ListPage { objects, next_after } = page.map_err(WakeError::List)?;
            let now = self.ports.clock.now();
            let due: Vec<_> = objects.into_iter().map(|o| o.key).take_while(|key| is_due(key, now)).collect();
            let is_last = due.len() < PAGE_MAX || next_after.is_none();
            for some in due.chunks(release::RELEASES_AT_ONCE) {
                self.release_some(some, &mut report).await;
                if self.ports.clock.monotonic() >= ends_at {
                    return Ok(report);
                }
            }
            if is_last {
                return Ok(report);
            }
            after = next_after;
        }
    }

    async fn is_under_pressure(&self) -> bool {
        self.ports.pressure.state().await.is_some_and(|state| state.level() != Level::Normal)
    }
}

/// Whether a parked object's minute has come. A key that is none of ours counts as due, so that its object is looked
/// at and reported instead of holding up the list.
fn is_due(key: &str, now: Timestamp) -> bool {
    layout::parked_due_minute(key).is_none_or(|minute| minute <= now.minute())
}
