//! Sends an invocation's requests, shared out over the subscriptions, so that a long queue for a
//! slow endpoint does not delay the requests to the others, on its own link neither. Each request is
//! admitted and loaded here.

mod attempt;
mod judge;
mod log;
mod spans;
mod split;

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use indexmap::IndexMap;
use posthaste_core::attempt::EntryVerdict;
use posthaste_core::circuit::DeliveryTarget;
use posthaste_core::model::Subscription;
use posthaste_ports::{Clock, Ports};
use posthaste_services::catch_panic::catch_panic;
use posthaste_services::timeout_at;

use crate::circuit::CircuitBreaker;
use crate::concurrency::ConcurrencyLimits;
use crate::current::CurrentSubscriptions;
use crate::invocation::{EntryRef, Invocation};
use crate::payloads::{LoadedPayload, PayloadReader};
use crate::plan::RequestPlan;
use crate::rate_limit::RateLimiter;
use crate::slots::SlotLimiter;
pub(crate) use attempt::EventPoster;
pub use attempt::UNANSWERED;

/// Most requests of one invocation that are under way or wait for their link, over all
/// subscriptions. Each takes some kilobytes besides its events.
const REQUESTS_PER_INVOCATION_MAX: usize = 1000;

/// Sends the requests of invocations.
pub(crate) struct RequestSender<P: Ports> {
    pub(crate) clock: P::Clock,
    pub(crate) limits: ConcurrencyLimits,
    pub(crate) slots: SlotLimiter<P>,
    pub(crate) rates: RateLimiter<P>,
    pub(crate) circuit: Arc<CircuitBreaker<P>>,
    pub(crate) payloads: Arc<PayloadReader<P>>,
    pub(crate) current: Arc<CurrentSubscriptions<P>>,
    pub(crate) attempts: EventPoster<P>,
    pub(crate) requests_per_link_start: usize,
    /// The unit in which the delivery queue delays.
    pub(crate) delay_step: Duration,
}

/// An attempt, made or not.
#[derive(Debug)]
pub(crate) struct EndedAttempt {
    pub(crate) subscription: Arc<Subscription>,
    pub(crate) verdicts: Vec<(EntryRef, EntryVerdict)>,
    /// Whether the subscription is to be disabled, because its endpoint is gone for good.
    pub(crate) is_to_be_disabled: bool,
}

/// Takes attempts as they end.
pub(crate) trait AttemptSink: Sync {
    /// Settles the messages that are complete with this attempt.
    fn settle_attempt(
        &self,
        invocation: &Invocation,
        attempted: EndedAttempt,
    ) -> impl Future<Output = ()> + Send;
}

impl<P: Ports> RequestSender<P> {
    /// Makes all planned requests, and hands each attempt to `settle` as soon as it has ended. The
    /// requests of one subscription begin in their order, and as many of them are under way, or wait
    /// for its link, as is its share.
    pub(crate) async fn send_all(
        &self,
        invocation: &Invocation,
        requests: Vec<RequestPlan>,
        settle: &impl AttemptSink,
    ) {
        let targets = by_target(requests);
        let share = requests_per_target(targets.len(), self.requests_per_link_start);
        let send = |request| self.send_planned(invocation, request, settle);
        let target = async |requests: Vec<RequestPlan>| match <[RequestPlan; 1]>::try_from(requests)
        {
            // Most invocations make one request, which needs no bookkeeping.
            Ok([request]) => send(request).await,
            Err(requests) => {
                stream::iter(requests)
                    .for_each_concurrent(share, send)
                    .await;
            }
        };
        match <[Vec<RequestPlan>; 1]>::try_from(targets) {
            Ok([requests]) => target(requests).await,
            Err(targets) => {
                stream::iter(targets)
                    .for_each_concurrent(None, target)
                    .await;
            }
        }
    }

    /// Makes a planned request, or several where a batch is split. A panic costs the messages of
    /// this request, which are handed back, and not their neighbours. Slots that no request has a
    /// use for any more are given back after the messages are settled.
    async fn send_planned(
        &self,
        invocation: &Invocation,
        plan: RequestPlan,
        settle: &impl AttemptSink,
    ) {
        match catch_panic(self.make_attempt(invocation, &plan)).await {
            Ok(Ok(attempted)) => settle.settle_attempt(invocation, attempted).await,
            Ok(Err(verdict)) => {
                self.note_postponed(invocation, &plan, verdict);
                let verdicts = plan.entries.iter().map(|at| (*at, verdict)).collect();
                let subscription = Arc::clone(&plan.subscription);
                let attempted = EndedAttempt {
                    subscription,
                    verdicts,
                    is_to_be_disabled: false,
                };
                settle.settle_attempt(invocation, attempted).await;
            }
            Err(_) => tracing::error!(
                topic = %plan.subscription.topic, subscription = %plan.subscription.name,
                "an attempt panicked, its messages are handed back"
            ),
        }
        self.slots
            .give_back(&plan.subscription, &invocation.deadlines)
            .await;
    }

    /// Notes a request that may not begin now, as [`ConcurrencyLimits::note_postponed`] does.
    fn note_postponed(&self, invocation: &Invocation, plan: &RequestPlan, verdict: EntryVerdict) {
        if invocation.measures_drain() {
            self.limits
                .note_postponed(&self.clock, &plan.subscription, verdict);
        }
    }

    /// Waits until the request is admitted, loads it and sends it. An `Err` is the verdict over its
    /// events if it may not begin.
    async fn make_attempt(
        &self,
        invocation: &Invocation,
        plan: &RequestPlan,
    ) -> Result<EndedAttempt, EntryVerdict> {
        let subscription = &*plan.subscription;
        let route = self.circuit.choose_route(plan).await?;
        let last_start = invocation.deadlines.last_start(subscription.timeout);
        // First of all, as it takes longest. What comes after it may be over soon.
        let slot = self.slots.wait_for_permit(subscription, last_start).await?;
        let rate = self
            .rates
            .wait_for_permit(subscription, last_start, Duration::ZERO)
            .await?;
        let now = self.clock.monotonic();
        let last_start = last_start.filter(|last_start| *last_start >= now);
        let last_start = last_start.ok_or(EntryVerdict::NotStarted)?;
        let waits_from = invocation.measures_drain().then_some(now);
        let entering = self.limits.wait_for_permit(&route.target, waits_from);
        let admitted = timeout_at(&self.clock, last_start, entering).await;
        let admitted = admitted.flatten().ok_or(EntryVerdict::NotStarted)?;
        let payloads: Vec<_> = plan
            .entries
            .iter()
            .map(|at| &invocation.entry(*at).payload)
            .collect();
        let payloads = self.payloads.read(&payloads, last_start).await;
        let mut loaded = Vec::with_capacity(plan.entries.len());
        let mut verdicts = Vec::new();
        for (at, text) in plan.entries.iter().zip(payloads.texts) {
            match text {
                Ok(text) => loaded.push(LoadedPayload { at: *at, text }),
                Err(verdict) => verdicts.push((*at, verdict)),
            }
        }
        let attempted = self
            .send_parts(invocation, plan, (route, slot, rate), loaded, verdicts)
            .await;
        drop((admitted, payloads.held));
        Ok(attempted)
    }
}

/// An equal share, but no less than the link's limit at the start: then none of its slots stays
/// free.
fn requests_per_target(targets: usize, start: usize) -> usize {
    (REQUESTS_PER_INVOCATION_MAX / targets.max(1))
        .max(start)
        .max(1)
}

/// The requests of each subscription on its link, in their order. That of the first request comes
/// first.
fn by_target(requests: Vec<RequestPlan>) -> Vec<Vec<RequestPlan>> {
    let mut targets: IndexMap<DeliveryTarget, Vec<RequestPlan>> = IndexMap::new();
    for request in requests {
        let subscription = &request.subscription;
        let target = DeliveryTarget::on_link(subscription.endpoint.link(), subscription);
        targets.entry(target).or_default().push(request);
    }
    targets.into_values().collect()
}

#[cfg(test)]
mod tests;
