//! The signal that tells wake that there is, or will be, work, so that it does not rest. Sent
//! before work is made.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use posthaste_core::model::Timestamp;
use posthaste_core::stored::{WAKE_SIGNAL, WakeSignal};
use posthaste_ports::{Clock, ObjectStore, PortError, PutCondition};

/// Sends a signal.
pub async fn signal_wake(store: &impl ObjectStore, now: Timestamp) -> Result<(), PortError> {
    let signal = WakeSignal::sent_at(now);
    store
        .put(WAKE_SIGNAL, signal.render(), PutCondition::Always)
        .await
        .map(drop)
}

/// Sends the signals of one worker, few of them however much work it makes.
#[derive(Debug)]
pub struct WakeSignaller<S, C> {
    store: Arc<S>,
    clock: C,
    /// The end of the last signal, in milliseconds since the epoch.
    sent_until: AtomicU64,
}

impl<S: ObjectStore, C: Clock> WakeSignaller<S, C> {
    /// A worker that has sent no signal.
    pub fn new(store: Arc<S>, clock: C) -> Self {
        Self {
            store,
            clock,
            sent_until: AtomicU64::new(0),
        }
    }

    /// Sends a signal, unless the last one announces what is made now. Work whose signal is lost is
    /// found all the same, up to [`REST_MAX`](posthaste_core::release::rest::REST_MAX) later.
    pub async fn signal_if_due(&self) {
        let now = self.clock.now();
        let last = WakeSignal {
            until: Timestamp::from_millis(self.sent_until.load(Ordering::Relaxed)),
        };
        if last.announces_work_at(now) {
            return;
        }
        match signal_wake(&*self.store, now).await {
            Ok(()) => self.sent_until.store(
                WakeSignal::sent_at(now).until.as_millis(),
                Ordering::Relaxed,
            ),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn Error,
                    "wake not signalled, it may look minutes later"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use posthaste_ports::ErrorKind;
    use posthaste_testkit::memory::MemoryStore;
    use posthaste_testkit::{CallFault, FaultPlan, Faulty, ManualClock};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn until(store: &MemoryStore) -> Option<Timestamp> {
        let object = store.get(WAKE_SIGNAL).await.unwrap();
        object.map(|object| WakeSignal::parse(&object.bytes).unwrap().until)
    }

    #[tokio::test]
    async fn worker_signals_every_nine_minutes_at_most() {
        let clock = ManualClock::new(Timestamp::EPOCH);
        let store = MemoryStore::default();
        let signaller = WakeSignaller::new(Arc::new(store.clone()), clock.clone());
        for (second, expected) in [(0, 600), (540, 600), (541, 1141), (1081, 1141)] {
            clock.advance_to(Timestamp::EPOCH + second * SECOND);
            signaller.signal_if_due().await;
            assert_eq!(
                until(&store).await,
                Some(Timestamp::EPOCH + expected * SECOND),
                "{second}"
            );
        }
    }

    #[tokio::test]
    async fn a_signal_that_was_not_stored_is_sent_with_the_next_work() {
        let clock = ManualClock::new(Timestamp::EPOCH);
        let store = MemoryStore::default();
        let plan = FaultPlan::nth(0, CallFault::Before(ErrorKind::Other));
        let faulty = Faulty::new(store.clone(), "state", &plan);
        let signaller = WakeSignaller::new(Arc::new(faulty), clock);
        signaller.signal_if_due().await;
        assert_eq!(until(&store).await, None);
        signaller.signal_if_due().await;
        assert_eq!(until(&store).await, Some(Timestamp::EPOCH + 600 * SECOND));
    }
}
