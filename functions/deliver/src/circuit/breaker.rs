//! The circuit breaker of one worker: what all workers know of links, and the counts of this one.

use std::sync::Arc;
use std::time::Duration;

use posthaste_core::circuit::{CircuitDecision, DeliveryTarget, stricter_decision};
use posthaste_core::model::{Delivery, Subscription};
use posthaste_ports::{Clock, Ports};
use posthaste_services::{LinkHealth, WakeSignaller, stop_at};

use super::counts::WorkerCounts;

/// The longest wait for what was stored before this process began.
const START_TIME: Duration = Duration::from_secs(5);

/// The longest time for reading the state of a link. If it takes longer, the link counts as
/// healthy.
pub(super) const LOOK_TIME: Duration = Duration::from_secs(5);

/// The circuit breaker of one worker.
pub(crate) struct CircuitBreaker<P: Ports> {
    pub(super) links: Arc<LinkHealth<P::Store, P::Clock>>,
    pub(super) wake: Arc<WakeSignaller<P::Store, P::Clock>>,
    pub(super) webhook: Arc<P::Webhook>,
    pub(super) clock: P::Clock,
    pub(super) entropy: P::Entropy,
    pub(super) counts: WorkerCounts,
}

impl<P: Ports> CircuitBreaker<P> {
    /// The breaker of a worker that has made no request yet.
    pub(crate) fn new(
        links: Arc<LinkHealth<P::Store, P::Clock>>,
        wake: Arc<WakeSignaller<P::Store, P::Clock>>,
        webhook: Arc<P::Webhook>,
        clock: P::Clock,
        entropy: P::Entropy,
    ) -> Self {
        Self {
            links,
            wake,
            webhook,
            clock,
            entropy,
            counts: WorkerCounts::default(),
        }
    }

    /// Reads what is stored of links, once, before the first request. If it cannot be read in time,
    /// requests go out, as they do wherever the state of a link cannot be read.
    pub(crate) async fn know_start(&self) {
        if self.links.is_start_known() {
            return;
        }
        let end = self.clock.monotonic() + START_TIME;
        if stop_at(&self.clock, end, self.links.read_start_once())
            .await
            .is_none()
        {
            tracing::warn!("states of links not read in time at the start, they count as healthy");
        }
    }

    /// Whether a delivery's events fail where others of their subscription succeed.
    pub(crate) fn is_problem(&self, delivery: &Delivery, subscription: &Subscription) -> bool {
        self.counts
            .is_problem(delivery, subscription, self.links.settings())
    }

    /// Whether nothing is known that would keep any request from being sent, as it is nearly
    /// always.
    pub(super) fn is_all_well(&self) -> bool {
        !self.links.is_any_failing() && self.counts.pauses.is_empty()
    }

    /// Whether a request to a target may be sent. The state of a suspected one is read first.
    pub(super) async fn decide(
        &self,
        target: &DeliveryTarget,
        is_suspected: bool,
    ) -> CircuitDecision {
        if !is_suspected && self.is_all_well() {
            return CircuitDecision::Open;
        }
        Box::pin(self.look_closely(target, is_suspected)).await
    }

    async fn look_closely(&self, target: &DeliveryTarget, is_suspected: bool) -> CircuitDecision {
        let end = self.clock.monotonic() + LOOK_TIME;
        let gate = stop_at(&self.clock, end, self.links.decide(target, is_suspected)).await;
        let gate = gate.unwrap_or_else(|| {
            tracing::warn!(link = %target.link(), "state of a link not read in time, it counts as healthy");
            CircuitDecision::Open
        });
        stricter_decision(gate, self.counts.pauses.decide(target, self.clock.now()))
    }
}
