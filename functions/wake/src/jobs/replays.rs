//! Replays: dead letters that were asked for go back into the delivery queue, at the rate of each replay.
//! Rules of what may be asked for, and when which event may be sent, are in
//! [`posthaste_core::release::replay`].

mod error;
mod pick;
mod records;
mod sender;
mod walk;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::api::{ReplayReason, ReplayState};
use posthaste_core::model::{Status, Subscription, Timestamp, Topic};
use posthaste_core::stored::{ReplayRecord, layout};
use posthaste_ports::{Clock, ObjectMeta, ObjectStore, PortError, Ports};
use posthaste_services::catch_panic::catch_panic;
use posthaste_services::{Registry, timeout_at};

use super::ended;
use crate::budget::Budget;
use crate::ports::WakePorts;
use error::ReplayError;
use records::Records;
use sender::Sender;
use walk::{Receiver, Walks};

/// Most replays that are looked at in one run.
const REPLAYS_MAX: usize = 100;

/// Time after which a marker without a record is deleted: its record may still come.
const MARKER_LEFT_AFTER: Duration = Duration::from_hours(1);

/// Works on replays.
pub(crate) struct Replays<'a, P: Ports> {
    walks: Walks<'a, P>,
    registry: &'a Registry<P::Store, P::Clock>,
    store: &'a P::Store,
    clock: &'a P::Clock,
}

impl<'a, P: Ports> Replays<'a, P> {
    pub(crate) fn new(ports: &'a WakePorts<P>) -> Self {
        let WakePorts { deliveries: queue, state: store, dead_letters, registry, pressure, clock, .. } =
            ports;
        let sender = Sender { queue, store, clock };
        let walks = Walks { records: Records { store, clock }, sender, dead_letters, pressure, clock };
        Self { walks, registry, store, clock }
    }

    /// Works on every replay that has not ended, while there is time.
    pub(crate) async fn run(&self, budget: Budget<'_>) {
        let ended = timeout_at(self.clock, budget.work, Box::pin(self.replay_all(budget))).await;
        ended::log("replays", ended);
    }

    async fn replay_all(&self, budget: Budget<'_>) -> Result<(), PortError> {
        let mut open = self.store.list(layout::REPLAYING, None, REPLAYS_MAX).await?.objects;
        rotate(&mut open, self.clock.now());
        for marker in open {
            if !budget.has_time(self.clock) {
                break;
            }
            let id = marker.key.strip_prefix(layout::REPLAYING).unwrap_or_default();
            let replayed = catch_panic(Box::pin(self.replay(id, &marker, budget))).await;
            if let Err(error) = replayed.map_err(ReplayError::Panicked).flatten() {
                tracing::error!(replay = id, error = &error as &dyn Error, "a replay does not get on");
            }
        }
        Ok(())
    }

    /// Works on one replay: looks whether it may go on, and how it ends.
    async fn replay(&self, id: &str, marker: &ObjectMeta, budget: Budget<'_>) -> Result<(), ReplayError> {
        let Some(mut job) = self.walks.records.load(id).await? else {
            // The marker is written first, so its record may be on its way.
            let is_left = self.clock.now().since(marker.modified_at) >= MARKER_LEFT_AFTER;
            return if is_left { self.close(id).await } else { Ok(()) };
        };
        if job.record.has_ended() {
            return self.close(id).await;
        }
        let Some((topic, subscription)) = self.receiver(&job.record).await? else {
            let reason = Some(ReplayReason::SubscriptionDeleted);
            self.walks.records.turn(&mut job, ReplayState::Cancelled, reason).await?;
            return self.close(id).await;
        };
        if subscription.status != Status::Active {
            let reason = Some(ReplayReason::SubscriptionNotActive);
            return self.walks.records.turn(&mut job, ReplayState::Waiting, reason).await;
        }
        let receiver = Receiver { topic: &topic, subscription: &subscription };
        self.walks.resume(&mut job, receiver, budget).await?;
        if job.record.has_ended() { self.close(id).await } else { Ok(()) }
    }

    /// The subscription that asked for a replay, and its topic. A damaged record of the topic does not say
    /// that it is gone.
    async fn receiver(
        &self,
        record: &ReplayRecord,
    ) -> Result<Option<(Arc<Topic>, Arc<Subscription>)>, ReplayError> {
        let own = |topic: Option<Arc<Topic>>| {
            let topic = topic?;
            let subscription = topic.subscription(&record.subscription)?.clone();
            record.is_for(&subscription.created).then_some((topic, subscription))
        };
        let asked_after = self.clock.monotonic();
        let known = self.registry.topic(&record.topic).await.map_err(ReplayError::Registry)?;
        if let Some(known) = own(known) {
            return Ok(Some(known));
        }
        let found = self.registry.topic_asked_after(&record.topic, asked_after).await;
        Ok(own(found.map_err(ReplayError::Registry)?))
    }

    /// Deletes the marker: this replay need not be looked at again.
    async fn close(&self, id: &str) -> Result<(), ReplayError> {
        self.store.delete(&layout::replaying(id)).await.map_err(ReplayError::Store)
    }
}

/// Puts another replay first every minute, so that one that takes all the time leaves some to the others.
fn rotate(open: &mut [ObjectMeta], now: Timestamp) {
    let count = u64::try_from(open.len().max(1)).unwrap_or(1);
    let first = usize::try_from(now.minute() % count).unwrap_or(0);
    open.rotate_left(first);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_replay_comes_first_every_minute() {
        let first = |minute: u64| {
            let meta = |id: &str| ObjectMeta { key: id.to_owned(), size: 0, modified_at: Timestamp::EPOCH };
            let mut open = ["a", "b", "c"].map(meta);
            rotate(&mut open, Timestamp::from_millis(minute * 60_000));
            open[0].key.clone()
        };
        assert_eq!([0, 1, 2, 3].map(first), ["a", "b", "c", "a"]);
        rotate(&mut [], Timestamp::EPOCH);
    }
}
