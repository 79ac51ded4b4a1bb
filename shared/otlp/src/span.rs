//! A span as OTLP has it.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Link, SpanKind as Kind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span as SentSpan, Status};
use posthaste_core::model::Timestamp;
use posthaste_core::trace::{SpanKind, TraceContext, TraceSpan};

use crate::attributes::{instrumentation_scope, span_attribute};

/// The flag of a context that is sampled.
/// <https://www.w3.org/TR/trace-context/#sampled-flag>
const SAMPLED: u32 = 1;

/// A request with these spans.
pub(crate) fn export_request(
    resource: &Resource,
    spans: &[TraceSpan],
) -> ExportTraceServiceRequest {
    let scope_spans = ScopeSpans {
        scope: Some(instrumentation_scope()),
        spans: spans.iter().cloned().map(to_otlp_span).collect(),
        schema_url: String::new(),
    };
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(resource.clone()),
            scope_spans: vec![scope_spans],
            schema_url: String::new(),
        }],
    }
}

/// A time in nanoseconds.
pub(crate) fn unix_nanos(time: Timestamp) -> u64 {
    time.as_millis().saturating_mul(1_000_000)
}

fn to_otlp_span(span: TraceSpan) -> SentSpan {
    let took = u64::try_from(span.took.as_nanos()).unwrap_or(u64::MAX);
    let began = unix_nanos(span.began);
    let kind = match span.kind {
        SpanKind::Publish => Kind::Producer,
        SpanKind::Wait => Kind::Internal,
        SpanKind::Attempt => Kind::Client,
    };
    let status = span.error.map(|message| Status {
        message,
        code: StatusCode::Error.into(),
    });
    SentSpan {
        trace_id: span.place.context.trace_id.to_vec(),
        span_id: span.place.context.span_id.to_vec(),
        parent_span_id: span.place.parent.map(Vec::from).unwrap_or_default(),
        flags: SAMPLED,
        name: format!("{} {}", span.kind.as_str(), span.target),
        kind: kind.into(),
        start_time_unix_nano: began,
        end_time_unix_nano: began.saturating_add(took),
        attributes: span
            .values
            .into_iter()
            .map(|(name, value)| span_attribute(name, value))
            .collect(),
        links: span.link.map(to_otlp_link).into_iter().collect(),
        status,
        ..SentSpan::default()
    }
}

fn to_otlp_link(context: TraceContext) -> Link {
    Link {
        trace_id: context.trace_id.to_vec(),
        span_id: context.span_id.to_vec(),
        flags: u32::from(context.is_sampled),
        ..Link::default()
    }
}
