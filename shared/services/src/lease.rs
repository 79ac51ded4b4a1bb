//! Leases that keep two runs of a function apart: an object with a time at which it lapses. It also
//! carries the checkpoint from one run to the next.

use std::error::Error;
use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_core::stored::StoredLease;
use posthaste_ports::{Clock, ETag, Entropy, ErrorKind, ObjectStore, PortError, PutCondition};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The most that the clocks of two runs may differ. A lease holds for longer than a run continues
/// by more than this, so that no clock that is ahead ends it early.
pub const CLOCKS_APART_MAX: Duration = Duration::from_secs(30);

/// The object of a lease.
#[derive(Debug, Clone, Copy)]
pub struct LeaseObject {
    /// The key.
    pub key: &'static str,
    /// The time for which a lease holds when its holder dies: longer than a run may take, by more
    /// than [`CLOCKS_APART_MAX`].
    pub length: Duration,
}

/// A lease as a run finds it.
#[derive(Debug)]
pub struct FoundLease<C> {
    object: LeaseObject,
    condition: PutCondition,
    lapses_at: Timestamp,
    /// The checkpoint of the last run.
    pub checkpoint: C,
}

/// A lease that is held.
#[derive(Debug)]
pub struct HeldLease<C> {
    object: LeaseObject,
    etag: ETag,
    holder: String,
    /// The time at which it lapses.
    pub lapses_at: Timestamp,
    /// The checkpoint of the last run.
    pub checkpoint: C,
}

impl LeaseObject {
    /// Reads the lease, whether another run has it or not.
    pub async fn find<C>(self, store: &impl ObjectStore) -> Result<FoundLease<C>, PortError>
    where
        C: Serialize + DeserializeOwned + Default,
    {
        let (condition, found) = match store.get(self.key).await? {
            None => (PutCondition::IfAbsent, None),
            Some(object) => (
                PutCondition::IfMatch(object.etag),
                StoredLease::parse(&object.bytes),
            ),
        };
        let (lapses_at, checkpoint) = found.map_or_else(Default::default, |found| {
            (found.lapses_at, found.checkpoint)
        });
        Ok(FoundLease {
            object: self,
            condition,
            lapses_at,
            checkpoint,
        })
    }

    /// Takes the lease; `None` if another run has it.
    pub async fn take<C>(
        self,
        store: &impl ObjectStore,
        clock: &impl Clock,
        entropy: &impl Entropy,
    ) -> Result<Option<HeldLease<C>>, PortError>
    where
        C: Serialize + DeserializeOwned + Default + Clone,
    {
        self.find(store).await?.take(store, clock, entropy).await
    }
}

impl<C> FoundLease<C> {
    /// The same lease, whose holder is known to be a dead process.
    #[must_use]
    pub fn with_dead_holder(self) -> Self {
        Self {
            lapses_at: Timestamp::EPOCH,
            ..self
        }
    }
}

impl<C: Serialize + DeserializeOwned + Clone> FoundLease<C> {
    /// Takes the lease; `None` if another run has it, or took it since it was read.
    pub async fn take(
        self,
        store: &impl ObjectStore,
        clock: &impl Clock,
        entropy: &impl Entropy,
    ) -> Result<Option<HeldLease<C>>, PortError> {
        let Self {
            object,
            condition,
            checkpoint,
            ..
        } = self;
        let lapses_at = clock.now() + object.length;
        // A lease that lapses later than any that is given has lapsed, so that it keeps no run out
        // forever. The clock of its holder may be ahead.
        if self.lapses_at > clock.now() && self.lapses_at <= lapses_at + CLOCKS_APART_MAX {
            return Ok(None);
        }
        // The checkpoint stays as it is until the run has ended: the run after a killed one knows
        // nothing else.
        let holder = entropy.uuid().to_string();
        let lease = StoredLease {
            lapses_at,
            holder: holder.clone(),
            checkpoint: checkpoint.clone(),
        };
        match store.put(object.key, lease.render(), condition).await {
            Ok(etag) => Ok(Some(HeldLease {
                object,
                etag,
                holder,
                lapses_at,
                checkpoint,
            })),
            Err(error) if error.kind == ErrorKind::PreconditionFailed => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl<C: Serialize + DeserializeOwned> HeldLease<C> {
    /// Lets the lease lapse at once, and leaves this checkpoint. If that fails it lapses by itself,
    /// and the next run looks where this one did.
    pub async fn give_back(self, store: &impl ObjectStore, checkpoint: C) {
        let lapsed = StoredLease {
            lapses_at: Timestamp::EPOCH,
            holder: self.holder,
            checkpoint,
        };
        let put = store
            .put(
                self.object.key,
                lapsed.render(),
                PutCondition::IfMatch(self.etag),
            )
            .await;
        if let Err(error) = put {
            tracing::warn!(
                error = &error as &dyn Error,
                "lease not given back, it lapses by itself"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use posthaste_core::stored::{WAKE_LEASE, WakeCheckpoint};
    use posthaste_testkit::memory::MemoryStore;
    use posthaste_testkit::{ManualClock, SeededEntropy};

    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    const OBJECT: LeaseObject = LeaseObject {
        key: WAKE_LEASE,
        length: Duration::from_secs(90),
    };

    async fn take(
        store: &MemoryStore,
        clock: &ManualClock,
        seed: u64,
    ) -> Option<HeldLease<WakeCheckpoint>> {
        OBJECT
            .take(store, clock, &SeededEntropy::new(seed))
            .await
            .unwrap()
    }

    /// A lease keeps others out until it is given back, and carries the checkpoint.
    #[tokio::test]
    async fn lease_excludes_others_until_given_back_and_keeps_checkpoint() {
        let store = MemoryStore::default();
        let clock = ManualClock::new(START);
        let lease = take(&store, &clock, 1).await.unwrap();
        assert_eq!(lease.checkpoint, WakeCheckpoint::default());
        assert!(take(&store, &clock, 2).await.is_none());
        let checkpoint = WakeCheckpoint {
            held_to: Some("x".to_owned()),
            ..WakeCheckpoint::default()
        };
        lease.give_back(&store, checkpoint.clone()).await;
        assert_eq!(
            take(&store, &clock, 2).await.unwrap().checkpoint,
            checkpoint
        );
    }

    /// A lease lapses after its holder died, and one that ends too late counts as lapsed.
    #[tokio::test]
    async fn lease_of_a_dead_holder_or_the_future_has_lapsed() {
        for is_set_back in [false, true] {
            let store = MemoryStore::default();
            let clock = ManualClock::new(START);
            let dead = take(&store, &clock, 1).await.unwrap();
            if is_set_back {
                clock.set_back(CLOCKS_APART_MAX + Duration::from_millis(1));
            } else {
                clock.advance(OBJECT.length);
            }
            assert!(take(&store, &clock, 2).await.is_some());
            // It does not take back what is another's by now.
            dead.give_back(&store, WakeCheckpoint::default()).await;
            assert!(take(&store, &clock, 3).await.is_none());
        }
    }

    /// The clock of the second run is behind that of the first, as those of two workers are.
    #[tokio::test]
    async fn lease_of_a_clock_that_is_ahead_keeps_others_out() {
        let store = MemoryStore::default();
        let ahead = ManualClock::new(START + CLOCKS_APART_MAX);
        let behind = ManualClock::new(START);
        assert!(take(&store, &ahead, 1).await.is_some());
        assert!(take(&store, &behind, 2).await.is_none());
        behind.advance(OBJECT.length + CLOCKS_APART_MAX);
        assert!(take(&store, &behind, 3).await.is_some());
    }

    #[tokio::test]
    async fn found_lease_is_taken_by_one_of_two_runs() {
        let store = MemoryStore::default();
        let clock = ManualClock::new(START);
        let [first, second] = [(); 2].map(|()| OBJECT.find::<WakeCheckpoint>(&store));
        let first = first.await.unwrap();
        let second = second.await.unwrap();
        assert!(
            first
                .take(&store, &clock, &SeededEntropy::new(1))
                .await
                .unwrap()
                .is_some()
        );
        assert!(
            second
                .take(&store, &clock, &SeededEntropy::new(2))
                .await
                .unwrap()
                .is_none()
        );
    }
}
