//! The spans of accepted events.

use std::time::Duration;

use http::HeaderMap;
use posthaste_core::events::Event;
use posthaste_core::model::{Timestamp, TopicName, webhook_id_of};
use posthaste_core::trace::{SpanKind, TraceContext, TraceSpan};
use posthaste_services::{EventTraces, event_key};

/// Events that one request published.
pub(crate) struct AcceptedEvents<'a> {
    pub(crate) topic: &'a TopicName,
    pub(crate) events: &'a [Event],
    /// The id of the request, from which the events have their keys.
    pub(crate) request_id: Option<&'a str>,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) arrived_at: Timestamp,
    pub(crate) took: Duration,
}

/// Takes a span of each event that is traced. One without a trace of its own is linked to the span
/// that the request's header `traceparent` names.
pub(crate) fn take_event_spans(traces: &EventTraces, accepted: &AcceptedEvents<'_>) {
    let Some(request_id) = accepted.request_id.filter(|_| traces.is_on()) else {
        return;
    };
    let producer = accepted.headers.get("traceparent");
    let producer = producer.and_then(|value| TraceContext::parse(value.to_str().ok()?));
    for (index, event) in accepted.events.iter().enumerate() {
        let webhook_id = webhook_id_of(&event_key(request_id, index));
        let Some(trace) = traces.event_trace(&webhook_id, event.traceparent()) else {
            continue;
        };
        let target = accepted.topic.to_string();
        let values = vec![
            ("messaging.destination.name", target.as_str().into()),
            ("messaging.operation.type", "create".into()),
            ("messaging.message.id", event.id().into()),
            ("cloudevents.event_type", event.event_type().into()),
            ("posthaste.webhook_id", webhook_id.as_str().into()),
        ];
        traces.take_span(TraceSpan {
            kind: SpanKind::Publish,
            target,
            place: trace.publish_span(),
            link: producer.filter(|_| event.traceparent().is_none()),
            began: accepted.arrived_at,
            took: accepted.took,
            values,
            error: None,
        });
    }
}
