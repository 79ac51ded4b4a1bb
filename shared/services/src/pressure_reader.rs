//! The producers' side of back pressure: reads the state the monitor wrote, now and then, and keeps it.
//!
//! Nobody waits for the store while somebody else reads it, and no lock is held over a read: one caller
//! refreshes, the others go on with what is known. A store that does not answer leaves the last known state
//! in use, which then grows stale by its own rules; an object that is missing or cannot be read counts as
//! Normal.
//!
//! Where it is the only one in its process that learns of the pressure, it also has the process relieved.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::pressure::{
    Admission, PressureState, ResourceState, Tier, admit, pressing, pressure_header,
};
use posthaste_core::stored::PRESSURE_KEY;

use crate::{Reliever, get_newer};
use posthaste_ports::{Clock, ETag, Object, ObjectStore, Revalidated};

/// How old what is known may grow before it is read again.
pub const PRESSURE_MAX_AGE: Duration = Duration::from_secs(2);

/// What a producer gets to hear, and what to do with its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// Whether it may go on.
    pub admission: Admission,
    /// The value of the header `Posthaste-Pressure`, if there is anything to tell.
    pub header: Option<String>,
    /// On whose account it is delayed or refused; `None` where it is not, or where the wait only runs out.
    pub pressing: Option<ResourceState>,
    /// Whether payloads go to the object store.
    pub dehydrate: bool,
    /// What every acknowledgement waits, also at Normal.
    pub base: Duration,
}

impl Admitted {
    /// Whether pressure refuses it, or delays it by more than every acknowledgement waits at rest.
    pub fn is_held_back(&self) -> bool {
        match self.admission {
            Admission::Accept => false,
            Admission::Delay(wait) => wait > self.base,
            Admission::Refuse { .. } => true,
        }
    }
}

/// Reads the pressure. Clones share what is known.
#[derive(Debug, Clone)]
pub struct PressureReader<S, C> {
    store: S,
    clock: C,
    max_age: Duration,
    shared: Arc<Shared>,
    reliever: Option<Arc<Reliever<C>>>,
}

#[derive(Debug, Default)]
struct Shared {
    known: Mutex<Known>,
    /// Locked by the caller that refreshes.
    refreshing: tokio::sync::Mutex<()>,
    is_alarmed: AtomicBool,
}

#[derive(Debug, Default)]
struct Known {
    etag: Option<ETag>,
    state: Option<Arc<PressureState>>,
    checked_at: Option<Duration>,
}

impl<S: ObjectStore, C: Clock> PressureReader<S, C> {
    /// A reader over the state bucket; [`PRESSURE_MAX_AGE`] is the usual age.
    pub fn new(store: S, clock: C, max_age: Duration) -> Self {
        Self { store, clock, max_age, shared: Arc::default(), reliever: None }
    }

    /// The same, which also does what the state it reads asks of this process. Where a monitor runs in the
    /// process it does that itself.
    #[must_use]
    pub fn relieving(self, reliever: Reliever<C>) -> Self {
        Self { reliever: Some(Arc::new(reliever)), ..self }
    }

    /// Decides about one producer.
    pub async fn admit(&self, tier: Tier) -> Admitted {
        let (known, is_forgotten) = self.known().await;
        let known = known.as_deref();
        let admission = admit(known, tier, self.clock.now());
        // Of a state that is forgotten, what every acknowledgement waits is left, and no word on any
        // pressure.
        let state = known.filter(|_| !is_forgotten);
        let header = pressure_header(state, tier, &admission);
        let held = state.filter(|_| admission != Admission::Accept);
        let pressing = held.and_then(|state| pressing(state, tier, &admission)).cloned();
        let dehydrate = state.is_some_and(PressureState::dehydrate);
        let base = known.map_or(Duration::ZERO, PressureState::base);
        Admitted { admission, header, pressing, dehydrate, base }
    }

    /// The state, if the monitor has written one lately. One that is so old that it counts as Normal is not
    /// answered; an alarm says so once.
    pub async fn state(&self) -> Option<Arc<PressureState>> {
        let (known, is_forgotten) = self.known().await;
        known.filter(|_| !is_forgotten)
    }

    /// The state that was written last, and whether it is so old that it counts as Normal.
    async fn known(&self) -> (Option<Arc<PressureState>>, bool) {
        self.refresh_if_due().await;
        let Some(state) = self.shared.known.lock().state.clone() else { return (None, false) };
        let is_forgotten = state.is_forgotten(self.clock.now());
        let was_alarmed = self.shared.is_alarmed.swap(is_forgotten, Ordering::Relaxed);
        if is_forgotten && !was_alarmed {
            tracing::error!(
                written_at = %state.at, "the monitor has stopped, back pressure is off until it writes again"
            );
        }
        if let Some(reliever) = self.reliever.as_ref().filter(|_| !is_forgotten) {
            reliever.relieve(reliever.due(&state));
        }
        (Some(state), is_forgotten)
    }

    async fn refresh_if_due(&self) {
        let now = self.clock.monotonic();
        let is_fresh = |at: Duration| now.saturating_sub(at) < self.max_age;
        if self.shared.known.lock().checked_at.is_some_and(is_fresh) {
            return;
        }
        let Ok(_refreshing) = self.shared.refreshing.try_lock() else { return };
        let etag = self.shared.known.lock().etag.clone();
        let read = get_newer(&self.store, PRESSURE_KEY, etag.as_ref()).await;
        let mut known = self.shared.known.lock();
        known.checked_at = Some(now);
        match read {
            Ok(Revalidated::Unchanged) => {}
            Ok(Revalidated::Missing) => (known.etag, known.state) = (None, None),
            Ok(Revalidated::Changed(object)) => {
                known.state = usable(&object).map(Arc::new);
                known.etag = Some(object.etag);
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "pressure not read, keeping what is known");
            }
        }
    }
}

fn usable(object: &Object) -> Option<PressureState> {
    let state = PressureState::parse(&object.bytes).inspect_err(|error| {
        let error = error as &dyn std::error::Error;
        tracing::error!(error, "pressure state unusable, counts as normal");
    });
    state.ok()
}

#[cfg(test)]
mod tests;
