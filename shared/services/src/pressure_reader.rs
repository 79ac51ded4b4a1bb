//! The producers' side of back pressure: reads the state that the monitor wrote, every few seconds,
//! and keeps it.
//!
//! No caller waits while another reads the store: one refreshes, the others continue with the last
//! known state. If the store does not respond, the last known state stays in use and grows stale by
//! its own rules. An object that is missing or cannot be read counts as Normal.
//!
//! If no monitor runs in its process, it also relieves the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::model::{ProducerTier, TopicName};
use posthaste_core::pressure::{
    Admission, PressureCause, PressureState, admit_producer, admit_to, pressure_cause,
    pressure_header, replay_wait,
};
use posthaste_core::stored::PRESSURE_KEY;

use crate::{MemoryReliever, get_newer};
use posthaste_ports::{Clock, ETag, ObjectStore, RevalidatedObject, StoredObject};

/// The age at which the state is read again.
pub const PRESSURE_MAX_AGE: Duration = Duration::from_secs(2);

/// The decision about a producer, and the treatment of its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionResult {
    /// The decision.
    pub admission: Admission,
    /// The value of the header `Posthaste-Pressure`, if there is one to send.
    pub header: Option<String>,
    /// The resource that causes the delay or refusal; `None` if there is neither, or the wait only
    /// runs out.
    pub pressing: Option<PressureCause>,
    /// Whether payloads go to the object store.
    pub dehydrate: bool,
    /// The wait of every acknowledgement, also at Normal.
    pub base: Duration,
    /// The time until what is due now is delivered, as far as the state shows it: a new event waits
    /// for so long.
    pub drain: Duration,
}

impl AdmissionResult {
    /// Whether pressure refuses the producer, or delays it by more than the wait at Normal.
    pub fn is_held_back(&self) -> bool {
        match self.admission {
            Admission::Accept => false,
            Admission::Delay(wait) => wait > self.base,
            Admission::Refuse { .. } => true,
        }
    }
}

/// Reads the pressure. Clones share the last known state.
#[derive(Debug, Clone)]
pub struct PressureReader<S, C> {
    store: S,
    clock: C,
    max_age: Duration,
    shared: Arc<SharedPressure>,
    reliever: Option<Arc<MemoryReliever<C>>>,
}

#[derive(Debug, Default)]
struct SharedPressure {
    known: Mutex<KnownPressure>,
    /// Locked by the caller that refreshes.
    refreshing: tokio::sync::Mutex<()>,
    is_alarmed: AtomicBool,
}

#[derive(Debug, Default)]
struct KnownPressure {
    etag: Option<ETag>,
    state: Option<Arc<PressureState>>,
    checked_at: Option<Duration>,
}

impl<S: ObjectStore, C: Clock> PressureReader<S, C> {
    /// A reader of the state bucket; [`PRESSURE_MAX_AGE`] is the usual age.
    pub fn new(store: S, clock: C, max_age: Duration) -> Self {
        Self {
            store,
            clock,
            max_age,
            shared: Arc::default(),
            reliever: None,
        }
    }

    /// Adds the relief of this process, as the state demands it. Where a monitor runs in the
    /// process, the monitor does that.
    #[must_use]
    pub fn with_reliever(self, reliever: MemoryReliever<C>) -> Self {
        Self {
            reliever: Some(Arc::new(reliever)),
            ..self
        }
    }

    /// Decides about one producer of any topic.
    pub async fn admit(&self, tier: ProducerTier) -> AdmissionResult {
        let (known, is_forgotten) = self.last_state().await;
        let admission = admit_producer(known.as_deref(), tier, self.clock.now());
        admission_result(known.as_deref(), is_forgotten, None, tier, admission)
    }

    /// Decides about one producer of this topic.
    pub async fn admit_to(&self, topic: &TopicName, tier: ProducerTier) -> AdmissionResult {
        let (known, is_forgotten) = self.last_state().await;
        let admission = admit_to(known.as_deref(), topic, tier, self.clock.now());
        admission_result(known.as_deref(), is_forgotten, Some(topic), tier, admission)
    }

    /// Whether replays of this topic continue: they are the first that pressure holds back.
    pub async fn takes_replays(&self, topic: &TopicName) -> bool {
        let state = self.state().await;
        replay_wait(state.as_deref(), topic, self.clock.now()).is_none()
    }

    /// The state, if the monitor has written one recently. A state so old that it counts as Normal
    /// is not returned; an alarm is logged once.
    pub async fn state(&self) -> Option<Arc<PressureState>> {
        let (known, is_forgotten) = self.last_state().await;
        known.filter(|_| !is_forgotten)
    }

    /// The last written state, and whether it is so old that it counts as Normal.
    async fn last_state(&self) -> (Option<Arc<PressureState>>, bool) {
        self.refresh_if_due().await;
        let Some(state) = self.shared.known.lock().state.clone() else {
            return (None, false);
        };
        let is_forgotten = state.is_forgotten(self.clock.now());
        let was_alarmed = self.shared.is_alarmed.swap(is_forgotten, Ordering::Relaxed);
        if is_forgotten && !was_alarmed {
            tracing::error!(
                written_at = %state.at, "the monitor has stopped, back pressure is off until it writes again"
            );
        }
        if let Some(reliever) = self.reliever.as_ref().filter(|_| !is_forgotten) {
            reliever.relieve(reliever.take_due_relief(&state));
        }
        (Some(state), is_forgotten)
    }

    async fn refresh_if_due(&self) {
        let now = self.clock.monotonic();
        let checked_at = self.shared.known.lock().checked_at;
        if checked_at.is_some_and(|at| now.saturating_sub(at) < self.max_age) {
            return;
        }
        let _refreshing = match checked_at {
            // The known state is good enough while another caller reads.
            Some(_) => match self.shared.refreshing.try_lock() {
                Ok(refreshing) => refreshing,
                Err(_) => return,
            },
            // Nothing is known yet, which must not look as if there were no pressure.
            None => self.shared.refreshing.lock().await,
        };
        let etag = self.shared.known.lock().etag.clone();
        let read = get_newer(&self.store, PRESSURE_KEY, etag.as_ref()).await;
        let mut known = self.shared.known.lock();
        known.checked_at = Some(now);
        match read {
            Ok(RevalidatedObject::Unchanged) => {}
            Ok(RevalidatedObject::Missing) => {
                known.etag = None;
                known.state = None;
            }
            Ok(RevalidatedObject::Changed(object)) => {
                known.state = parse_usable(&object).map(Arc::new);
                known.etag = Some(object.etag);
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "pressure not read, keeping what is known");
            }
        }
    }
}

/// The treatment of a producer after this decision.
fn admission_result(
    known: Option<&PressureState>,
    is_forgotten: bool,
    topic: Option<&TopicName>,
    tier: ProducerTier,
    admission: Admission,
) -> AdmissionResult {
    // A forgotten state still gives the wait of every acknowledgement, but says nothing of any
    // pressure.
    let state = known.filter(|_| !is_forgotten);
    let pressing = state.and_then(|state| pressure_cause(state, topic, tier, &admission));
    AdmissionResult {
        header: pressure_header(state, pressing.as_ref(), &admission),
        pressing: pressing.filter(|_| admission != Admission::Accept),
        dehydrate: state.is_some_and(PressureState::asks_to_dehydrate),
        base: known.map_or(Duration::ZERO, PressureState::base_wait),
        drain: state.map_or(Duration::ZERO, |state| state.drain_time(topic)),
        admission,
    }
}

fn parse_usable(object: &StoredObject) -> Option<PressureState> {
    let state = PressureState::parse(&object.bytes).inspect_err(|error| {
        let error = error as &dyn std::error::Error;
        tracing::error!(error, "pressure state unusable, counts as normal");
    });
    state.ok()
}

#[cfg(test)]
mod tests;
