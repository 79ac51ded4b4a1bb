//! The spans of a request: for each traced event the wait before it and the request itself, so that
//! the trace of each event is whole also where events share a request.

use posthaste_core::attempt::EntryVerdict;
use posthaste_core::model::{AttemptOutcome, Timestamp};
use posthaste_core::trace::{SpanKind, SpanPlace, SpanValue, TraceSpan};
use posthaste_services::traces::span_target;

use super::log::RequestLog;
use crate::payloads::LoadedPayload;

impl RequestLog<'_> {
    /// Takes the spans of an event that was in this request, if it is traced.
    pub(super) fn take_spans(
        &self,
        event: &LoadedPayload,
        outcome: AttemptOutcome,
        verdict: EntryVerdict,
    ) {
        if !self.traces.is_on() {
            return;
        }
        let entry = self.invocation.entry(event.at);
        let webhook_id = entry.webhook_id();
        let Some(trace) = self
            .traces
            .event_trace(&webhook_id, entry.traceparent.as_deref())
        else {
            return;
        };
        let subscription = &*self.plan.subscription;
        let began = self.request.began;
        let target = span_target(subscription);
        let waited_from = self.waited_from(event);
        self.traces.take_span(TraceSpan {
            kind: SpanKind::Wait,
            place: trace.wait_span(&target, began),
            target: target.clone(),
            link: None,
            began: waited_from,
            took: began.since(waited_from),
            values: self.span_values(event),
            error: None,
        });
        self.traces.take_span(TraceSpan {
            values: self.request_values(event, outcome, verdict),
            error: (!outcome.is_success()).then(|| self.error_words(outcome)),
            ..self.request_span(trace.attempt_span(&target, began), target)
        });
    }

    fn request_span(&self, place: SpanPlace, target: String) -> TraceSpan {
        TraceSpan {
            kind: SpanKind::Attempt,
            target,
            place,
            link: None,
            began: self.request.began,
            took: self.request.took,
            values: Vec::new(),
            error: None,
        }
    }

    /// The end of the last attempt, or else the beginning of the event's life.
    fn waited_from(&self, event: &LoadedPayload) -> Timestamp {
        let last = self.invocation.last_attempt(event.at);
        last.map_or_else(
            || self.invocation.jobs[event.at.job].delivery.begins_at(),
            |last| last.at,
        )
    }

    /// Values of both spans about the event. Names are those of OpenTelemetry's conventions where it
    /// has one: <https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/>
    fn span_values(&self, event: &LoadedPayload) -> Vec<(&'static str, SpanValue)> {
        let subscription = &*self.plan.subscription;
        vec![
            (
                "messaging.destination.name",
                subscription.topic.to_string().into(),
            ),
            (
                "messaging.destination.subscription.name",
                subscription.name.to_string().into(),
            ),
            (
                "messaging.message.id",
                self.event_id(event).into_owned().into(),
            ),
            ("posthaste.attempt", self.attempt_number().into()),
        ]
    }

    /// Values of the request's span. The path of an endpoint may be a secret, and is left out.
    fn request_values(
        &self,
        event: &LoadedPayload,
        outcome: AttemptOutcome,
        verdict: EntryVerdict,
    ) -> Vec<(&'static str, SpanValue)> {
        let mut values = self.span_values(event);
        let url = self.endpoint.url();
        let shown = verdict.describe(&self.plan.subscription.dead_letter, self.ended_at);
        values.extend([
            ("messaging.operation.type", "send".into()),
            ("http.request.method", "POST".into()),
            ("url.scheme", url.scheme().into()),
            ("server.address", url.host_str().unwrap_or_default().into()),
            (
                "posthaste.webhook_id",
                self.request.webhook_id.as_str().into(),
            ),
            ("posthaste.verdict", shown.word.into()),
        ]);
        let port = url.port_or_known_default();
        values.extend(port.map(|port| ("server.port", port.into())));
        let status = outcome.status();
        values.extend(status.map(|status| ("http.response.status_code", status.into())));
        let name = outcome.name().map(|name| name.to_string());
        values.extend(name.map(|name| ("error.type", name.into())));
        let next = shown.retry_at.map(|at| at.to_string());
        values.extend(next.map(|at| ("posthaste.next_attempt_at", at.into())));
        values
    }

    fn error_words(&self, outcome: AttemptOutcome) -> String {
        if let Some(words) = self.error_text(outcome) {
            return words.into_owned();
        }
        match outcome.status() {
            Some(status) => format!("the endpoint answered {status}"),
            None => "not acknowledged".to_owned(),
        }
    }
}
