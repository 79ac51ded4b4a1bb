//! The port through which spans reach their collector.

use std::fmt;

use posthaste_core::trace::TraceSpan;

/// Takes spans that have ended. The call never waits, because a delivery must not wait for what
/// only observes it: a span for which there is no room is counted and lost.
pub trait SpanSink: fmt::Debug + Send + Sync {
    /// Takes one span.
    fn take_span(&self, span: TraceSpan);
}
