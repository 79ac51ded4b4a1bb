//! The lanes of deliver: the queue that each of an invocation's messages came from, and what its
//! requests say about whether their targets are slow.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join;
use posthaste_core::circuit::DeliveryTarget;
use posthaste_core::lane::{DeliveryLane, LaneObservation, SlowTargets};
use posthaste_ports::{Clock, Ports};
use posthaste_services::{SlowTargetCache, stop_at, timeout};

use crate::invocation::Invocation;
use crate::limits::{DeliverSettings, SlowLaneMode};

/// The longest time for writing down that a target is slow. Its request may have been answered
/// meanwhile, and its message waits to be settled.
const NOTING_TIME: Duration = Duration::from_secs(1);

/// The longest time for looking up what is slow: what a process knows of it is good enough to go on.
const LOOK_TIME: Duration = Duration::from_secs(2);

/// The delivery queues.
#[derive(Debug)]
pub(crate) struct DeliveryQueues<Q> {
    pub(crate) quick: Arc<Q>,
    /// The queue of the slow lane, where there is one.
    pub(crate) slow: Option<Arc<Q>>,
}

impl<Q> Clone for DeliveryQueues<Q> {
    fn clone(&self) -> Self {
        Self {
            quick: Arc::clone(&self.quick),
            slow: self.slow.clone(),
        }
    }
}

impl<Q> DeliveryQueues<Q> {
    pub(crate) fn new(quick: &Arc<Q>, slow: Option<Q>) -> Self {
        Self {
            quick: Arc::clone(quick),
            slow: slow.map(Arc::new),
        }
    }

    /// The queue of an invocation's messages.
    pub(crate) fn for_invocation(&self, invocation: &Invocation) -> &Q {
        match (invocation.lane, &self.slow) {
            (DeliveryLane::Slow, Some(slow)) => slow,
            _ => &self.quick,
        }
    }
}

/// Watches how long requests take.
#[derive(Debug)]
pub(crate) struct LaneWatch<P: Ports> {
    pub(crate) lanes: SlowTargetCache<P::Store, P::Clock>,
    pub(crate) clock: P::Clock,
    /// The time after which a request is late.
    pub(crate) slow_after: Duration,
    pub(crate) mode: SlowLaneMode,
    /// Whether this process has ended what is slow, where the lane is drained.
    pub(crate) has_cleared: AtomicBool,
}

impl<P: Ports> LaneWatch<P> {
    /// The watch of a worker; `None` where there is one lane.
    pub(crate) fn for_worker(
        queues: &DeliveryQueues<P::Queue>,
        state: &Arc<P::Store>,
        clock: &P::Clock,
        settings: &DeliverSettings,
    ) -> Option<Arc<Self>> {
        queues.slow.as_ref()?;
        Some(Arc::new(Self {
            lanes: SlowTargetCache::new(Arc::clone(state), clock.clone()),
            clock: clock.clone(),
            slow_after: settings.slow_after,
            mode: settings.slow_lane,
            has_cleared: AtomicBool::new(false),
        }))
    }

    /// The targets that are slow, for an invocation; `None` where the lane is drained. For a message
    /// that came alone into the quick lane nothing is read: it holds no other up.
    pub(crate) async fn known_slow_targets(
        &self,
        invocation: &Invocation,
    ) -> Option<Arc<SlowTargets>> {
        match self.mode {
            SlowLaneMode::On => Some(self.slow_targets(invocation).await),
            SlowLaneMode::Drained => {
                self.end_all(invocation).await;
                None
            }
        }
    }

    /// Ends the time of all targets, once a process, so that publish and wake see none either.
    async fn end_all(&self, invocation: &Invocation) {
        if self.has_cleared.swap(true, Ordering::Relaxed) {
            return;
        }
        let end = self.look_ends(invocation);
        let cleared = stop_at(&self.clock, end, Box::pin(self.lanes.clear_all())).await;
        self.has_cleared
            .store(cleared == Some(true), Ordering::Relaxed);
    }

    async fn slow_targets(&self, invocation: &Invocation) -> Arc<SlowTargets> {
        if invocation.lane == DeliveryLane::Quick && !invocation.has_several_messages() {
            return self.lanes.known_targets();
        }
        let end = self.look_ends(invocation);
        let read = stop_at(&self.clock, end, Box::pin(self.lanes.refreshed_targets())).await;
        read.unwrap_or_else(|| self.lanes.known_targets())
    }

    fn look_ends(&self, invocation: &Invocation) -> Duration {
        let end = self.clock.monotonic() + LOOK_TIME;
        end.min(invocation.deadlines.receiving_end())
    }

    /// Waits for a request to a target, and writes down if it is late: while it is still open, so
    /// that other workers need not run into the same.
    pub(crate) async fn watch_request<T>(
        &self,
        invocation: &Invocation,
        target: &DeliveryTarget,
        request: impl Future<Output = T>,
    ) -> T {
        if self.mode == SlowLaneMode::Drained {
            return request.await;
        }
        let began = self.clock.monotonic();
        let mut request = pin!(request);
        let in_time = timeout(&self.clock, self.slow_after, request.as_mut()).await;
        let Some(answer) = in_time else {
            let late = LaneObservation::Late {
                in_invocation: invocation.count_late(target),
                holds_others_up: invocation.has_several_messages(),
            };
            let noting = self.note_slowness(invocation, late, target);
            return join(request, noting).await.0;
        };
        if self.clock.monotonic().saturating_sub(began) > self.slow_after / 2 {
            self.note_slowness(invocation, LaneObservation::SlowAnswer, target)
                .await;
        }
        answer
    }

    async fn note_slowness(
        &self,
        invocation: &Invocation,
        seen: LaneObservation,
        target: &DeliveryTarget,
    ) {
        let end = self.clock.monotonic() + NOTING_TIME;
        let end = end.min(invocation.deadlines.storing_end());
        let noted = Box::pin(self.lanes.note_slowness(seen, target));
        if stop_at(&self.clock, end, noted).await.is_none() {
            tracing::warn!(slow_target = %target, "slow target not written down in time");
        }
    }
}

#[cfg(test)]
mod tests;
