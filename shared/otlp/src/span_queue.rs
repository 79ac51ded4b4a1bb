//! The queue of spans that wait to be sent to the collector.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::counter;
use parking_lot::Mutex;
use posthaste_core::trace::TraceSpan;
use posthaste_ports::SpanSink;
use tokio::sync::Notify;

/// Most spans that wait, with about a kilobyte each. OpenTelemetry's SDK keeps 2,048 by default, and
/// an event has three spans here.
pub const SPANS_WAITING_MAX: usize = 8192;

/// Most spans of one request, as in OpenTelemetry's SDK.
/// <https://opentelemetry.io/docs/specs/otel/trace/sdk/#batching-processor>
pub(crate) const SPANS_PER_REQUEST_MAX: usize = 512;

/// Spans that wait.
#[derive(Debug, Default)]
pub struct SpanQueue {
    waiting: Mutex<VecDeque<TraceSpan>>,
    lost: AtomicU64,
    /// Notified whenever the spans fill another request.
    filled: Notify,
}

impl SpanSink for SpanQueue {
    fn take_span(&self, span: TraceSpan) {
        let mut waiting = self.waiting.lock();
        if waiting.len() < SPANS_WAITING_MAX {
            waiting.push_back(span);
            let is_full = waiting.len().is_multiple_of(SPANS_PER_REQUEST_MAX);
            drop(waiting);
            if is_full {
                self.filled.notify_one();
            }
        } else {
            drop(waiting);
            self.count_lost(1);
        }
    }
}

impl SpanQueue {
    /// Whether the spans fill a request.
    pub(crate) fn is_filled(&self) -> bool {
        self.waiting.lock().len() >= SPANS_PER_REQUEST_MAX
    }

    /// Completes once another request of them is full, also if that was before the call.
    pub(crate) async fn wait_until_filled(&self) {
        self.filled.notified().await;
    }

    /// Takes the oldest, at most so many. They return to the queue unless the caller keeps them.
    pub(crate) fn take_first(&self, spans_max: usize) -> BorrowedSpans<'_> {
        let mut waiting = self.waiting.lock();
        let count = waiting.len().min(spans_max);
        BorrowedSpans {
            spans: waiting.drain(..count).collect(),
            home: self,
        }
    }

    /// Returns spans that were taken to the front of the queue. Spans for which there is no room
    /// any more are lost.
    fn put_back(&self, mut spans: Vec<TraceSpan>) {
        let mut waiting = self.waiting.lock();
        let room = SPANS_WAITING_MAX - waiting.len();
        let lost = spans.len().saturating_sub(room);
        for span in spans.drain(lost..).rev() {
            waiting.push_front(span);
        }
        drop(waiting);
        self.count_lost(lost);
    }

    /// Counts spans that the collector does not get.
    pub(crate) fn count_lost(&self, spans: usize) {
        if spans > 0 {
            self.lost.fetch_add(spans as u64, Ordering::Relaxed);
            counter!("SpansLostCount").increment(spans as u64);
        }
    }

    /// Returns the number of spans that were lost since the last call.
    pub(crate) fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }
}

/// Spans on their way to the collector. A request that is cut off counts as not sent: a collector
/// recognizes a span that comes twice by its id.
pub(crate) struct BorrowedSpans<'s> {
    spans: Vec<TraceSpan>,
    home: &'s SpanQueue,
}

impl BorrowedSpans<'_> {
    pub(crate) fn spans(&self) -> &[TraceSpan] {
        &self.spans
    }

    /// Keeps the spans out of the queue, and returns their number.
    pub(crate) fn keep_taken(mut self) -> usize {
        std::mem::take(&mut self.spans).len()
    }
}

impl Drop for BorrowedSpans<'_> {
    fn drop(&mut self) {
        self.home.put_back(std::mem::take(&mut self.spans));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use posthaste_core::model::Timestamp;
    use posthaste_core::trace::{EventTrace, SampleRatio, SpanKind};

    use super::*;

    /// A span of the event of this number.
    pub(crate) fn span(number: usize) -> TraceSpan {
        let id = format!("msg_a-{number}");
        let trace = EventTrace::if_recorded(&id, None, SampleRatio::ALL).unwrap();
        TraceSpan {
            kind: SpanKind::Publish,
            target: "orders".to_owned(),
            place: trace.publish_span(),
            link: None,
            began: Timestamp::from_millis(1_700_000_000_000),
            took: Duration::from_micros(1_500),
            values: vec![("messaging.message.id", number.to_string().into())],
            error: None,
        }
    }

    fn take_first(spans: &SpanQueue, spans_max: usize) -> Vec<TraceSpan> {
        let first = spans.take_first(spans_max);
        let taken = first.spans().to_vec();
        first.keep_taken();
        taken
    }

    #[test]
    fn first_to_come_is_first_to_go() {
        let spans = SpanQueue::default();
        (0..5).for_each(|number| spans.take_span(span(number)));
        assert_eq!(spans.take_first(2).spans(), [span(0), span(1)]);
        assert_eq!(take_first(&spans, 9), [0, 1, 2, 3, 4].map(span));
        assert_eq!((take_first(&spans, 9), spans.take_lost()), (vec![], 0));
    }

    #[test]
    fn beyond_the_bound_they_are_counted_and_lost() {
        let spans = SpanQueue::default();
        (0..SPANS_WAITING_MAX + 3).for_each(|number| spans.take_span(span(number)));
        assert_eq!(spans.take_lost(), 3);
        let first = spans.take_first(4);
        spans.take_span(span(1));
        drop(first);
        assert_eq!(spans.take_lost(), 1);
        assert_eq!(take_first(&spans, 2), [span(1), span(2)]);
        assert_eq!(spans.take_lost(), 0);
    }
}
