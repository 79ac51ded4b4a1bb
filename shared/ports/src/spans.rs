//! The way of spans to whoever collects them.

use std::fmt;

use posthaste_core::trace::TraceSpan;

/// Takes spans that have ended. It never waits, as a delivery does for nothing that only watches
/// it: a span for which there is no room is counted and lost.
pub trait SpanSink: fmt::Debug + Send + Sync {
    /// Takes one.
    fn take_span(&self, span: TraceSpan);
}
