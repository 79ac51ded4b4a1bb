//! Sends an invocation's requests, shared out over the subscriptions, so that a long queue for a
//! slow endpoint does not delay the requests to the others, on its own link neither. Each request is
//! admitted and loaded here.

mod admission;
mod attempt;
mod judge;
mod log;
mod spans;
mod split;

use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use indexmap::IndexMap;
use posthaste_core::attempt::EntryVerdict;
use posthaste_core::circuit::DeliveryTarget;
use posthaste_ports::Ports;
use posthaste_services::catch_panic::catch_panic;

use crate::invocation::Invocation;
use crate::payloads::{LoadedPayload, PayloadReader};
use crate::plan::RequestPlan;
pub(crate) use admission::RequestAdmission;
pub(crate) use attempt::EventPoster;
pub use attempt::UNANSWERED;
pub(crate) use split::{AttemptMaker, EndedAttempt};

/// Most requests of one invocation that are under way or wait for their link, over all
/// subscriptions. Each takes some kilobytes besides its events.
const REQUESTS_PER_INVOCATION_MAX: usize = 1000;

/// Sends the requests of invocations.
pub(crate) struct RequestSender<P: Ports> {
    pub(crate) admission: RequestAdmission<P>,
    pub(crate) payloads: Arc<PayloadReader<P>>,
    pub(crate) attempts: AttemptMaker<P>,
    pub(crate) requests_per_link_start: usize,
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
        match <[Vec<RequestPlan>; 1]>::try_from(targets) {
            Ok([requests]) => {
                self.send_to_target(invocation, requests, share, settle)
                    .await;
            }
            Err(targets) => {
                stream::iter(targets)
                    .for_each_concurrent(None, |requests| {
                        self.send_to_target(invocation, requests, share, settle)
                    })
                    .await;
            }
        }
    }

    /// Makes the requests of one subscription on its link, `share` of them side by side.
    async fn send_to_target(
        &self,
        invocation: &Invocation,
        requests: Vec<RequestPlan>,
        share: usize,
        settle: &impl AttemptSink,
    ) {
        match <[RequestPlan; 1]>::try_from(requests) {
            // Most invocations make one request, which needs no bookkeeping.
            Ok([request]) => self.send_planned(invocation, request, settle).await,
            Err(requests) => {
                stream::iter(requests)
                    .for_each_concurrent(share, |request| {
                        self.send_planned(invocation, request, settle)
                    })
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
                self.admission.note_postponed(invocation, &plan, verdict);
                let attempted = EndedAttempt::not_begun(&plan, verdict);
                settle.settle_attempt(invocation, attempted).await;
            }
            Err(_) => tracing::error!(
                topic = %plan.subscription.topic, subscription = %plan.subscription.name,
                "an attempt panicked, its messages are handed back"
            ),
        }
        self.admission
            .slots
            .give_back(&plan.subscription, &invocation.deadlines)
            .await;
    }

    /// Waits until the request is admitted, loads it and sends it. An `Err` is the verdict over its
    /// events if it may not begin.
    async fn make_attempt(
        &self,
        invocation: &Invocation,
        plan: &RequestPlan,
    ) -> Result<EndedAttempt, EntryVerdict> {
        let admitted = self.admission.admit_request(invocation, plan).await?;
        let payloads: Vec<_> = plan
            .entries
            .iter()
            .map(|at| &invocation.entry(*at).payload)
            .collect();
        let payloads = self.payloads.read(&payloads, admitted.last_start).await;
        let mut loaded = Vec::with_capacity(plan.entries.len());
        let mut verdicts = Vec::new();
        for (at, text) in plan.entries.iter().zip(payloads.texts) {
            match text {
                Ok(text) => loaded.push(LoadedPayload { at: *at, text }),
                Err(verdict) => verdicts.push((*at, verdict)),
            }
        }
        let attempted = self.attempts.make_attempt(admitted, loaded, verdicts).await;
        drop(payloads.held);
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
