//! The lease that keeps two runs apart: an object with a time at which it lapses. It also carries the
//! checkpoint from one run to the next.

use std::error::Error;
use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_core::stored::{Checkpoint, WAKE_LEASE, WakeLease};
use posthaste_ports::{Clock, ETag, Entropy, ErrorKind, ObjectStore, PortError, PutCondition};

/// How long a lease holds when its holder dies: longer than a run may go on.
const LEASE_LENGTH: Duration = Duration::from_secs(90);

/// A lease that is held.
#[derive(Debug)]
pub(crate) struct Lease {
    etag: ETag,
    holder: String,
    /// The checkpoint of the last run.
    pub(crate) checkpoint: Checkpoint,
}

impl Lease {
    /// Takes the lease; `None` if another run has it.
    pub(crate) async fn take(
        store: &impl ObjectStore,
        clock: &impl Clock,
        entropy: &impl Entropy,
    ) -> Result<Option<Self>, PortError> {
        let now = clock.now();
        let (condition, found) = match store.get(WAKE_LEASE).await? {
            None => (PutCondition::IfAbsent, None),
            Some(object) => (PutCondition::IfMatch(object.etag), WakeLease::parse(&object.bytes)),
        };
        // One that lapses later than any that is given has lapsed: it keeps no run out for ever.
        let is_held = |lease: &WakeLease| lease.lapses_at > now && lease.lapses_at <= now + LEASE_LENGTH;
        if found.as_ref().is_some_and(is_held) {
            return Ok(None);
        }
        // The checkpoint stays as it is until the run has ended: of a run that is killed the next knows
        // nothing else.
        let checkpoint = found.map(|lease| lease.checkpoint).unwrap_or_default();
        let holder = entropy.uuid().to_string();
        let lease = WakeLease {
            lapses_at: now + LEASE_LENGTH,
            holder: holder.clone(),
            checkpoint: checkpoint.clone(),
        };
        match store.put(WAKE_LEASE, lease.render(), condition).await {
            Ok(etag) => Ok(Some(Self { etag, holder, checkpoint })),
            Err(error) if error.kind == ErrorKind::PreconditionFailed => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lets the lease lapse at once, and leaves this checkpoint. If that fails it lapses by itself, and the
    /// next run looks where this one did.
    pub(crate) async fn give_back(self, store: &impl ObjectStore, checkpoint: Checkpoint) {
        let lapsed = WakeLease { lapses_at: Timestamp::EPOCH, holder: self.holder, checkpoint };
        let put = store.put(WAKE_LEASE, lapsed.render(), PutCondition::IfMatch(self.etag)).await;
        if let Err(error) = put {
            tracing::warn!(error = &error as &dyn Error, "lease not given back, it lapses by itself");
        }
    }
}

#[cfg(test)]
mod tests {
    use posthaste_testkit::memory::MemoryStore;
    use posthaste_testkit::{ManualClock, SeededEntropy};

    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    async fn take(store: &MemoryStore, clock: &ManualClock, seed: u64) -> Option<Lease> {
        Lease::take(store, clock, &SeededEntropy::new(seed)).await.unwrap()
    }

    #[tokio::test]
    async fn a_lease_keeps_others_out_until_it_is_given_back_and_carries_the_checkpoint() {
        let (store, clock) = (MemoryStore::default(), ManualClock::new(START));
        let lease = take(&store, &clock, 1).await.unwrap();
        assert_eq!(lease.checkpoint, Checkpoint::default());
        assert!(take(&store, &clock, 2).await.is_none());
        let checkpoint = Checkpoint { held_to: Some("x".to_owned()), ..Checkpoint::default() };
        lease.give_back(&store, checkpoint.clone()).await;
        assert_eq!(take(&store, &clock, 2).await.unwrap().checkpoint, checkpoint);
    }

    #[tokio::test]
    async fn a_lease_whose_holder_died_lapses_and_one_from_the_future_has_lapsed() {
        for is_set_back in [false, true] {
            let (store, clock) = (MemoryStore::default(), ManualClock::new(START));
            let dead = take(&store, &clock, 1).await.unwrap();
            if is_set_back {
                clock.set_back(Duration::from_secs(1));
            } else {
                clock.advance(LEASE_LENGTH);
            }
            assert!(take(&store, &clock, 2).await.is_some());
            // It does not take back what is another's by now.
            dead.give_back(&store, Checkpoint::default()).await;
            assert!(take(&store, &clock, 3).await.is_none());
        }
    }
}
