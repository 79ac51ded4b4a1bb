//! One HTTP request of an attempt.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use metrics::{counter, histogram};
use parking_lot::Mutex;
use posthaste_core::attempt::{
    AttemptContext, BatchAcknowledgement, BatchEvent, EntryVerdict, OutgoingEvent,
};
use posthaste_core::model::{LastAttempt, SenderHeaders, Subscription, Timestamp};
use posthaste_ports::{Clock, LastLook, Ports, WebhookRequest};
use posthaste_services::EventTraces;
use posthaste_services::busy::run_off_worker_if_large;
use posthaste_services::outbound::{OutboundSender, SentRequest, delivery_request};

use super::judge::{RequestOutcome, UNRENDERABLE};
use crate::circuit::CircuitPass;
use crate::current::CurrentSubscriptions;
use crate::invocation::Invocation;
use crate::lanes::LaneWatch;
use crate::late_answers::{LateAnswers, LateEvent, LateRequest};
use crate::payloads::LoadedPayload;
use crate::plan::{RequestKind, RequestPlan};
use crate::records::masked_redirect;

/// Target of the measurements of requests without an answer, by which a recorder can leave them
/// out.
pub const UNANSWERED: &str = "posthaste_deliver::unanswered";

/// Posts events to endpoints.
pub(crate) struct EventPoster<P: Ports> {
    pub(crate) webhook: Arc<P::Webhook>,
    pub(crate) clock: P::Clock,
    pub(crate) origin: HeaderValue,
    /// The headers that say who sends, of topics that do not have their own.
    pub(crate) sender_headers: SenderHeaders,
    pub(crate) late_answers: Arc<LateAnswers<P>>,
    /// The traces of events.
    pub(crate) traces: EventTraces,
    /// Watches how long requests take, where slow targets have a lane of their own.
    pub(crate) lanes: Option<Arc<LaneWatch<P>>>,
}

impl<P: Ports> EventPoster<P> {
    /// Posts one request. An `Err` is the verdict over its events if it cannot be rendered, or may
    /// not begin any more when it has a connection.
    pub(super) async fn post_request(
        &self,
        pass: &CircuitPass<'_, P>,
        run: &[LoadedPayload],
        current: &CurrentSubscriptions<P>,
    ) -> Result<RequestOutcome, EntryVerdict> {
        let CircuitPass {
            invocation,
            plan,
            target,
            ..
        } = pass;
        let began = self.clock.now();
        let started = self.clock.monotonic();
        let subscription = &*plan.subscription;
        let request = self.build_request(pass, run, began)?;
        let webhook_id = header_text(&request, "webhook-id");
        let look = StillCurrentCheck {
            current,
            planned: subscription,
            refused: Mutex::new(None),
        };
        let outbound = OutboundSender {
            webhook: &*self.webhook,
            clock: &self.clock,
        };
        let sending = outbound.send_if(request, &look);
        let sent = match &self.lanes {
            None => sending.await,
            Some(lanes) => Box::pin(lanes.watch_request(invocation, target, sending)).await,
        };
        if let Some(verdict) = look.refused.into_inner() {
            return Err(verdict);
        }
        let acknowledged = acknowledged_events(invocation, plan, run, &sent);
        let answer = run
            .first()
            .and_then(|event| invocation.jobs[event.at.job].logged_answer(&sent));
        let failure_words = sent.failure_words();
        let redirect = masked_redirect(&sent, subscription);
        let outcome = sent.outcome;
        let took = sent.took;
        let outcome = RequestOutcome {
            began,
            started,
            took,
            webhook_id,
            outcome,
            failure_words,
            acknowledged,
            answer,
            redirect,
        };
        count_request(plan, run.len(), &outcome);
        // Where open requests are bounded, dropping it closes the connection before the slot is free.
        let is_bounded = subscription.concurrency.is_some();
        if let Some(answer) = sent.late.filter(|_| !is_bounded) {
            let late = LateRequest {
                answer,
                webhook_id: outcome.webhook_id.clone(),
            };
            self.late_answers
                .continue_request(late, target, &plan.subscription, || {
                    late_events(invocation, plan, run)
                });
        }
        Ok(outcome)
    }

    /// The request that posts these events, made at `began`.
    fn build_request(
        &self,
        pass: &CircuitPass<'_, P>,
        run: &[LoadedPayload],
        began: Timestamp,
    ) -> Result<WebhookRequest, EntryVerdict> {
        let CircuitPass {
            invocation, plan, ..
        } = pass;
        let subscription = &*plan.subscription;
        let origin = &self.origin;
        let sender_headers = &self.sender_headers;
        let RequestKind {
            schema,
            attempts_before,
            replayed,
            hops,
            ..
        } = plan.kind;
        let context = AttemptContext {
            subscription,
            schema,
            attempts_before,
            replayed,
            hops,
            at: began,
            origin,
            sender_headers,
        };
        let mut events: Vec<_> = run
            .iter()
            .map(|event| outgoing_event(invocation, event))
            .collect();
        // As the event's own context, that of its span is for one that travels alone.
        let traceparent = match run {
            [event] => {
                self.traces
                    .outward_traceparent(invocation.entry(event.at), subscription, began)
            }
            _ => None,
        };
        if let (Some(traceparent), [event]) = (&traceparent, &mut events[..]) {
            event.traceparent = Some(traceparent);
        }
        let bytes = run.iter().map(|event| event.text.len()).sum();
        let rendered = run_off_worker_if_large(bytes, || {
            delivery_request(context, pass.endpoint, subscription.timeout, &events)
        });
        let mut request = rendered.map_err(|error| {
            let error = &error as &dyn std::error::Error;
            tracing::error!(
                topic = %subscription.topic, subscription = %subscription.name, error, "event cannot be sent"
            );
            UNRENDERABLE
        })?;
        request.needs_new_connection = pass.is_probe() || had_no_answer_in_time(invocation, run);
        Ok(request)
    }
}

/// The look whether a subscription still is what its request was planned by.
struct StillCurrentCheck<'a, P: Ports> {
    current: &'a CurrentSubscriptions<P>,
    planned: &'a Subscription,
    /// The verdict over its events if not.
    refused: Mutex<Option<EntryVerdict>>,
}

impl<P: Ports> LastLook for StillCurrentCheck<'_, P> {
    async fn may_begin(&self) -> bool {
        let checked = self.current.check_may_begin(self.planned).await;
        *self.refused.lock() = checked.err();
        checked.is_ok()
    }
}

/// Whether the last attempt of any of these events had no answer in time. The next one goes out on
/// a new connection: a kept one may be dead, and each attempt counts.
fn had_no_answer_in_time(invocation: &Invocation, run: &[LoadedPayload]) -> bool {
    run.iter()
        .filter_map(|event| invocation.last_attempt(event.at))
        .any(LastAttempt::had_no_answer_in_time)
}

fn header_text(request: &WebhookRequest, name: &str) -> String {
    request
        .headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned()
}

fn outgoing_event<'a>(invocation: &'a Invocation, event: &LoadedPayload) -> OutgoingEvent<'a> {
    let entry = invocation.entry(event.at);
    OutgoingEvent {
        key: &entry.key,
        webhook_id: entry.marks.webhook_id.as_deref(),
        json: event.text.clone(),
        traceparent: entry.traceparent.as_deref(),
    }
}

fn late_events(
    invocation: &Invocation,
    plan: &RequestPlan,
    run: &[LoadedPayload],
) -> Vec<LateEvent> {
    run.iter()
        .map(|event| late_event(invocation, plan, event))
        .collect()
}

fn late_event(invocation: &Invocation, plan: &RequestPlan, event: &LoadedPayload) -> LateEvent {
    let entry = invocation.entry(event.at);
    let is_partial = plan.subscription.batching.partial_acknowledgement;
    LateEvent {
        key: entry.key.clone(),
        text: if is_partial {
            event.text.clone()
        } else {
            Bytes::new()
        },
        envelope_id: entry
            .envelope
            .as_ref()
            .map(|envelope| String::from(&*envelope.id)),
    }
}

fn acknowledged_events(
    invocation: &Invocation,
    plan: &RequestPlan,
    run: &[LoadedPayload],
    sent: &SentRequest,
) -> BatchAcknowledgement {
    let events = run.iter().map(|event| {
        let envelope = invocation.entry(event.at).envelope.as_ref();
        BatchEvent {
            text: &event.text,
            envelope_id: envelope.map(|envelope| &*envelope.id),
        }
    });
    let subscription = &plan.subscription;
    let acknowledged = sent.acknowledged_events(subscription, events);
    if let BatchAcknowledgement::Nothing(error) = &acknowledged {
        let error = error as &dyn std::error::Error;
        tracing::warn!(
            topic = %subscription.topic, subscription = %subscription.name, error,
            "report of a batch not understood, its events are tried again"
        );
    }
    acknowledged
}

/// Counts a request, answered or not. The counts are of events, as in Event Grid.
fn count_request(plan: &RequestPlan, events: usize, request: &RequestOutcome) {
    let subscription = &plan.subscription;
    let labels = [
        ("topic", subscription.topic.shared()),
        ("subscription", subscription.name.shared()),
    ];
    let is_answered = request.outcome.status().is_some();
    let time = if is_answered {
        histogram!("DestinationProcessingDurationInMs", &labels)
    } else {
        histogram!(target: UNANSWERED, "DestinationProcessingDurationInMs", &labels)
    };
    time.record(request.took.as_secs_f64() * 1000.0);
    let failed = request.failed_events(events);
    let class = status_class(request.outcome.status());
    if events > failed {
        let topic = subscription.topic.shared();
        let name = subscription.name.shared();
        counter!("DeliverySuccessCount", "topic" => topic, "subscription" => name, "status_class" => class)
            .increment((events - failed) as u64);
    }
    if failed > 0 {
        let topic = subscription.topic.shared();
        let name = subscription.name.shared();
        counter!("DeliveryAttemptFailCount", "topic" => topic, "subscription" => name, "status_class" => class)
            .increment(failed as u64);
    }
}

/// The class of an answer's status, as a label.
fn status_class(status: Option<u16>) -> &'static str {
    match status {
        None => "none",
        Some(200..=299) => "2xx",
        Some(300..=399) => "3xx",
        Some(400..=499) => "4xx",
        Some(500..=599) => "5xx",
        Some(_) => "other",
    }
}
