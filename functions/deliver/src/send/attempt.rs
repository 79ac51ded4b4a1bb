//! One HTTP request of an attempt.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use metrics::{counter, histogram};
use posthaste_core::attempt::{Acknowledged, AttemptContext, BatchEvent, EntryVerdict, Outgoing};
use posthaste_core::model::EndpointUrl;
use posthaste_ports::{Clock, Ports};
use posthaste_services::outbound::{Outbound, Sent, delivery};

use super::judge::{RequestOutcome, UNRENDERABLE};
use crate::circuit::route::Route;
use crate::invocation::Invocation;
use crate::late_answers::{LateAnswers, LateEvent};
use crate::payloads::LoadedPayload;
use crate::plan::{RequestKind, RequestPlan};

/// Posts events to endpoints.
pub(crate) struct Attempts<P: Ports> {
    pub(crate) webhook: Arc<P::Webhook>,
    pub(crate) clock: P::Clock,
    pub(crate) origin: HeaderValue,
    pub(crate) late_answers: Arc<LateAnswers<P>>,
}

impl<P: Ports> Attempts<P> {
    /// Posts one request. An `Err` is the verdict over its events if it cannot be rendered.
    pub(super) async fn post(
        &self,
        invocation: &Invocation,
        plan: &RequestPlan,
        route: &Route<'_>,
        run: &[LoadedPayload],
    ) -> Result<RequestOutcome, EntryVerdict> {
        let (began, started) = (self.clock.now(), self.clock.monotonic());
        let (subscription, origin) = (&*plan.subscription, &self.origin);
        let RequestKind { schema, attempts_before, replayed, hops, .. } = plan.kind;
        let context =
            AttemptContext { subscription, schema, attempts_before, replayed, hops, at: began, origin };
        let events: Vec<_> = run.iter().map(|event| outgoing(invocation, event)).collect();
        let request = delivery(context, route.endpoint, subscription.timeout, &events).map_err(|error| {
            let error = &error as &dyn std::error::Error;
            tracing::error!(
                topic = %subscription.topic, subscription = %subscription.name, error, "event cannot be sent"
            );
            UNRENDERABLE
        })?;
        let sent = Outbound { webhook: &*self.webhook, clock: &self.clock }.send(request).await;
        let acknowledged = acknowledged(invocation, plan, run, &sent);
        let outcome = RequestOutcome { began, started, outcome: sent.outcome, acknowledged };
        report(plan, route.endpoint, run.len(), &outcome, sent.took);
        if let Some(answer) = sent.late {
            let events = || run.iter().map(|event| late_event(invocation, plan, event)).collect();
            self.late_answers.let_go_on(answer, &route.target, &plan.subscription, events);
        }
        Ok(outcome)
    }
}

fn outgoing<'a>(invocation: &'a Invocation, event: &LoadedPayload) -> Outgoing<'a> {
    let entry = invocation.entry(event.at);
    Outgoing { key: &entry.key, json: event.text.clone(), traceparent: entry.traceparent.as_deref() }
}

fn late_event(invocation: &Invocation, plan: &RequestPlan, event: &LoadedPayload) -> LateEvent {
    let entry = invocation.entry(event.at);
    let is_partial = plan.subscription.batching.partial_acknowledgement;
    LateEvent {
        key: entry.key.clone(),
        text: if is_partial { event.text.clone() } else { Bytes::new() },
        envelope_id: entry.envelope.as_ref().map(|envelope| String::from(&*envelope.id)),
    }
}

fn acknowledged(
    invocation: &Invocation,
    plan: &RequestPlan,
    run: &[LoadedPayload],
    sent: &Sent,
) -> Acknowledged {
    let events = run.iter().map(|event| {
        let envelope = invocation.entry(event.at).envelope.as_ref();
        BatchEvent { text: &event.text, envelope_id: envelope.map(|envelope| &*envelope.id) }
    });
    let subscription = &plan.subscription;
    let acknowledged = sent.acknowledged(subscription, events);
    if let Acknowledged::Nothing(error) = &acknowledged {
        let error = error as &dyn std::error::Error;
        tracing::warn!(
            topic = %subscription.topic, subscription = %subscription.name, error,
            "report of a batch not understood, its events are tried again"
        );
    }
    acknowledged
}

/// Counts a request, answered or not. The counts are of events, as in Event Grid.
fn report(
    plan: &RequestPlan,
    endpoint: &EndpointUrl,
    events: usize,
    request: &RequestOutcome,
    took: Duration,
) {
    let subscription = &plan.subscription;
    let labels = [("topic", subscription.topic.to_string()), ("subscription", subscription.name.to_string())];
    histogram!("DestinationProcessingDurationInMs", &labels).record(took.as_secs_f64() * 1000.0);
    let attempt = plan.kind.attempts_before.saturating_add(1);
    let (failed, outcome) = request.failures(events).unwrap_or((0, request.outcome));
    let delivered = events - failed;
    if delivered > 0 {
        counter!("DeliverySuccessCount", &labels).increment(delivered as u64);
        tracing::debug!(
            topic = %subscription.topic, subscription = %subscription.name,
            events = delivered, attempt, ?took, "delivered"
        );
    }
    if failed > 0 {
        counter!("DeliveryAttemptFailCount", &labels).increment(failed as u64);
        tracing::info!(
            topic = %subscription.topic, subscription = %subscription.name, ?endpoint,
            events = failed, attempt, ?outcome, ?took, "delivery attempt failed"
        );
    }
}
