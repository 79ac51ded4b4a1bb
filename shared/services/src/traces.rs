//! The traces of events, where a collector takes them.

use std::sync::Arc;

use posthaste_core::model::{DeliveryEntry, Subscription, Timestamp};
use posthaste_core::trace::{EventTrace, SampleRatio, TraceSpan};
use posthaste_ports::SpanSink;

/// Says which events are traced, and takes their spans. Clones share the way to the collector.
#[derive(Debug, Clone, Default)]
pub struct EventTraces(Option<TraceOutput>);

#[derive(Debug, Clone)]
struct TraceOutput {
    sink: Arc<dyn SpanSink>,
    ratio: SampleRatio,
    goes_outward: bool,
}

impl EventTraces {
    /// Traces of this share of the events without a trace of their own, and of all others whose
    /// producers say so.
    pub fn with_sink(sink: Arc<dyn SpanSink>, ratio: SampleRatio) -> Self {
        Self(Some(TraceOutput {
            sink,
            ratio,
            goes_outward: false,
        }))
    }

    /// Whether endpoints are told the span of their request, too.
    #[must_use]
    pub fn telling_endpoints(mut self, goes_outward: bool) -> Self {
        if let Some(collected) = &mut self.0 {
            collected.goes_outward = goes_outward;
        }
        self
    }

    /// Whether anything is traced.
    pub const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// The trace of the event with this `webhook-id` and `traceparent`, if it is recorded.
    pub fn event_trace<'a>(
        &self,
        webhook_id: &'a str,
        traceparent: Option<&str>,
    ) -> Option<EventTrace<'a>> {
        let ratio = self.0.as_ref()?.ratio;
        EventTrace::if_recorded(webhook_id, traceparent, ratio)
    }

    /// The `traceparent` of a request that begins then, with this event alone, where endpoints are
    /// told.
    pub fn outward_traceparent(
        &self,
        entry: &DeliveryEntry,
        subscription: &Subscription,
        began: Timestamp,
    ) -> Option<String> {
        let collected = self.0.as_ref().filter(|it| it.goes_outward)?;
        let webhook_id = entry.webhook_id();
        let trace =
            EventTrace::if_recorded(&webhook_id, entry.traceparent.as_deref(), collected.ratio)?;
        let place = trace.attempt_span(&span_target(subscription), began);
        Some(place.context.to_string())
    }

    /// Takes a span.
    pub fn take_span(&self, span: TraceSpan) {
        if let Some(TraceOutput { sink, .. }) = &self.0 {
            sink.take_span(span);
        }
    }
}

/// The name of a subscription in the names and ids of spans.
pub fn span_target(subscription: &Subscription) -> String {
    format!("{}/{}", subscription.topic, subscription.name)
}
