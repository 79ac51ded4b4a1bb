//! Replays: dead letters that were asked for go back into the delivery queue, at the rate of each replay. What may be
//! asked for, and when which event may go, is decided in [`posthaste_core::release::replay`].
//!
//! A replay's record is written after every few objects, on condition that nobody else wrote it: a crash sends some
//! events again, under the same keys, and passes over none.

mod job;
mod objects;
mod pick;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::api::{ReplayReason, ReplayState};
use posthaste_core::model::time::Timestamp;
use posthaste_core::model::topic::{Status, Subscription, Topic};
use posthaste_core::pressure::Tier;
use posthaste_core::release::replay::ReplayRequestError;
use posthaste_core::stored::format::FormatError;
use posthaste_core::stored::layout;
use posthaste_core::stored::replay::ReplayRecord;
use posthaste_ports::{Clock, Entropy, ErrorKind, ObjectMeta, ObjectStore, PortError, QueueSender};
use posthaste_services::RegistryError;
use posthaste_services::catch_panic::{Panicked, catch_panic};

use crate::Wake;
use crate::limits::{Limits, within};

/// Most replays that are looked at in one run.
const REPLAYS_MAX: usize = 100;

/// How long after a marker its record may still come.
const MARKER_LEFT_AFTER: Duration = Duration::from_hours(1);

/// Why a replay did not get on. The next run tries again.
#[derive(Debug, thiserror::Error)]
enum ReplayError {
    #[error("failed to read or write the replay's record")]
    Store(#[source] PortError),
    #[error("failed to understand the replay's record")]
    Record(#[source] FormatError),
    #[error("failed to carry out what the replay asks for")]
    Request(#[source] ReplayRequestError),
    #[error("failed to look the subscription up")]
    Registry(#[source] RegistryError),
    #[error("failed to list the dead letters")]
    List(#[source] PortError),
    #[error("failed to read a dead-letter object")]
    Read(#[source] PortError),
    #[error("failed to queue some of the events")]
    Send(#[source] PortError),
    #[error("failed in the middle")]
    Panicked(#[source] Panicked),
}

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Works on every replay that has not ended, while there is time.
    pub(crate) async fn replay_all(&self, limits: Limits) {
        let clock = &self.ports.clock;
        let work = async {
            let mut open = self.ports.state.list(layout::REPLAYING, None, REPLAYS_MAX).await?.objects;
            in_turn(&mut open, clock.now());
            for marker in open {
                if clock.monotonic() >= limits.begin {
                    break;
                }
                self.try_replay(&marker, limits).await;
            }
            Ok(())
        };
        match within(clock, limits.work, work).await {
            Some(Ok(())) => {}
            Some(Err::<_, PortError>(error)) => {
                tracing::error!(error = &error as &dyn Error, "replays not listed, the next run goes on");
            }
            None => tracing::error!("replays not worked on to the end in time, the next run goes on"),
        }
    }

    async fn try_replay(&self, marker: &ObjectMeta, limits: Limits) {
        let id = marker.key.strip_prefix(layout::REPLAYING).unwrap_or_default();
        let replayed = catch_panic(Box::pin(self.replay(id, marker, limits))).await;
        if let Err(error) = replayed.map_err(ReplayError::Panicked).flatten() {
            tracing::error!(replay = id, error = &error as &dyn Error, "a replay does not get on");
        }
    }

    /// Works on one replay: looks whether it may go on, and how it ends.
    async fn replay(&self, id: &str, marker: &ObjectMeta, limits: Limits) -> Result<(), ReplayError> {
        let Some(mut job) = self.load(id).await? else {
            // The marker is written first, so its record may be on its way.
            let is_left = self.ports.clock.now().since(marker.modified_at) >= MARKER_LEFT_AFTER;
            return if is_left { self.close(id).await } else { Ok(()) };
        };
        if job.record.has_ended() {
            return self.close(id).await;
        }
        let Some((topic, subscription)) = self.receiver(&job.record).await? else {
            self.turn(&mut job, ReplayState::Cancelled, Some(ReplayReason::SubscriptionDeleted)).await?;
            return self.close(id).await;
        };
        if subscription.status != Status::Active {
            return self
                .turn(&mut job, ReplayState::Waiting, Some(ReplayReason::SubscriptionNotActive))
                .await;
        }
        self.go_on(&mut job, &topic, &subscription, limits).await?;
        if job.record.has_ended() { self.close(id).await } else { Ok(()) }
    }

    /// The subscription that asked for a replay, and its topic. That it is gone is not taken from a record
    /// that the store could not give again.
    async fn receiver(
        &self,
        record: &ReplayRecord,
    ) -> Result<Option<(Arc<Topic>, Arc<Subscription>)>, ReplayError> {
        let own = |topic: Option<Arc<Topic>>| {
            let topic = topic?;
            let subscription = topic.subscription(&record.subscription)?.clone();
            record.is_for(&subscription.created).then_some((topic, subscription))
        };
        let (registry, asked_after) = (&self.ports.registry, self.ports.clock.monotonic());
        let known = registry.topic(&record.topic).await.map_err(ReplayError::Registry)?;
        if let Some(known) = own(known) {
            return Ok(Some(known));
        }
        let found = registry.topic_asked_after(&record.topic, asked_after).await;
        Ok(own(found.map_err(ReplayError::Registry)?))
    }

    /// Whether back pressure lets replays through: they are the first that it holds back.
    async fn takes_bulk(&self) -> bool {
        let admitted = self.ports.pressure.admit(Tier::Bulk).await;
        !admitted.is_held_back() && !self.is_under_pressure().await
    }

    /// Nobody need look at this replay again.
    async fn close(&self, id: &str) -> Result<(), ReplayError> {
        self.ports.state.delete(&layout::replaying(id)).await.map_err(ReplayError::Store)
    }
}

/// Another replay comes first every minute, so that one that takes all the time leaves some to the others.
fn in_turn(open: &mut [ObjectMeta], now: Timestamp) {
    let count = u64::try_from(open.len().max(1)).unwrap_or(1);
    let first = usize::try_from(now.minute() % count).unwrap_or(0);
    open.rotate_left(first);
}

/// Whether a store will answer no better in a minute.
fn is_lasting(error: &PortError) -> bool {
    matches!(error.kind, ErrorKind::Denied | ErrorKind::Invalid | ErrorKind::NotFound)
}
