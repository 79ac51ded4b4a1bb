//! The exporter: requests to the collector, and the meaning of its responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::HeaderValue;
use http::header::{CONTENT_TYPE, USER_AGENT};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use opentelemetry_proto::tonic::resource::v1::Resource;
use posthaste_core::model::Timestamp;
use posthaste_core::trace::collector::CollectorSettings;
use prost::Message;
use url::Url;

use crate::attributes::text_attribute;
use crate::collector::{Collector, CollectorRequest, CollectorResponse, UnreachableError};
use crate::metric::{self, MetricPoint, Temporality};
use crate::span;
use crate::span_queue::{SPANS_PER_REQUEST_MAX, SpanQueue};

/// Most points of one request. With their labels they take some hundred bytes each.
const POINTS_PER_REQUEST_MAX: usize = 5_000;

/// Sends spans and metrics to a collector.
#[derive(Debug)]
pub struct OtlpExporter<C> {
    collector: C,
    settings: CollectorSettings,
    resource: Resource,
    spans: Arc<SpanQueue>,
    /// Whether the last request of each signal failed, which the log has said.
    is_failing: [AtomicBool; 2],
    /// Whether the last request of spans was taken without some of them, which the log has said.
    is_rejecting: AtomicBool,
}

/// The signal of a request.
#[derive(Debug, Clone, Copy)]
enum OtlpSignal {
    Spans,
    Metrics,
}

impl OtlpSignal {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Spans => "spans",
            Self::Metrics => "metrics",
        }
    }

    /// The path of the signal, below the collector's URL.
    const fn path(self) -> &'static str {
        match self {
            Self::Spans => "v1/traces",
            Self::Metrics => "v1/metrics",
        }
    }
}

/// The outcome of a request.
#[derive(Debug)]
enum SendOutcome {
    /// The collector took the request.
    Taken(Bytes),
    /// The collector may take the request later.
    Later(String),
    /// The collector will never take the request.
    Refused(String),
}

impl<C: Collector> OtlpExporter<C> {
    /// An exporter of the spans that wait here, for a process of this name.
    pub fn new(
        collector: C,
        settings: CollectorSettings,
        service: &str,
        spans: Arc<SpanQueue>,
    ) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let own = [("service.name", service), ("service.version", version)];
        let own = own
            .into_iter()
            .filter(|(name, _)| settings.resource.iter().all(|(known, _)| known != name));
        let given = settings
            .resource
            .iter()
            .map(|(name, value)| (&**name, &**value));
        let attributes = own
            .chain(given)
            .map(|(name, value)| text_attribute(name, value));
        Self {
            resource: Resource {
                attributes: attributes.collect(),
                ..Resource::default()
            },
            collector,
            settings,
            spans,
            is_failing: Default::default(),
            is_rejecting: AtomicBool::new(false),
        }
    }

    /// Sends the spans that wait, in so many requests at most. Ends with the first request that the
    /// collector does not take for now: its spans wait for the next call. Returns whether the
    /// collector took all requests. May be dropped at any time.
    pub async fn send_spans(&self, requests_max: usize) -> bool {
        let mut are_taken = true;
        for _ in 0..requests_max {
            let spans = self.spans.take_first(SPANS_PER_REQUEST_MAX);
            if spans.spans().is_empty() {
                break;
            }
            let request = span::export_request(&self.resource, spans.spans());
            match self.post_message(OtlpSignal::Spans, &request).await {
                SendOutcome::Taken(answer) => {
                    spans.keep_taken();
                    self.note_rejected(&answer);
                }
                SendOutcome::Later(reason) => {
                    self.note_failure(OtlpSignal::Spans, &reason);
                    are_taken = false;
                    break;
                }
                SendOutcome::Refused(reason) => {
                    self.spans.count_lost(spans.keep_taken());
                    self.note_failure(OtlpSignal::Spans, &reason);
                    are_taken = false;
                }
            }
        }
        let lost = self.spans.take_lost();
        if lost > 0 {
            tracing::warn!(lost, "spans lost on their way to the collector");
        }
        are_taken
    }

    /// Sends each request of spans as soon as it is full, forever. While the collector takes none,
    /// [`send_spans`](Self::send_spans) alone tries again, however many wait. May be dropped at any
    /// time.
    pub async fn send_full_requests(&self) {
        loop {
            let is_failing = self.is_failing[OtlpSignal::Spans as usize].load(Ordering::Relaxed);
            if is_failing || !self.spans.is_filled() {
                self.spans.wait_until_filled().await;
            } else {
                self.send_spans(1).await;
            }
        }
    }

    /// Sends metrics that were read now, and returns whether the collector took them.
    pub async fn send_metrics(
        &self,
        points: &[MetricPoint],
        time: Temporality,
        now: Timestamp,
    ) -> bool {
        for points in points.chunks(POINTS_PER_REQUEST_MAX) {
            let request = metric::export_request(&self.resource, points.to_vec(), time, now);
            match self.post_message(OtlpSignal::Metrics, &request).await {
                SendOutcome::Taken(_) => {}
                SendOutcome::Later(reason) | SendOutcome::Refused(reason) => {
                    self.note_failure(OtlpSignal::Metrics, &reason);
                    return false;
                }
            }
        }
        true
    }

    async fn post_message(&self, signal: OtlpSignal, message: &impl Message) -> SendOutcome {
        let mut headers = self.settings.headers.clone();
        let protobuf = HeaderValue::from_static("application/x-protobuf");
        headers.insert(CONTENT_TYPE, protobuf);
        let agent = concat!("posthaste/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        let request = CollectorRequest {
            url: signal_url(&self.settings.endpoint, signal.path()),
            headers,
            body: message.encode_to_vec().into(),
        };
        let sent = outcome_of_response(self.collector.post_blocking(request).await);
        let is_failing = &self.is_failing[signal as usize];
        if matches!(sent, SendOutcome::Taken(_)) && is_failing.swap(false, Ordering::Relaxed) {
            let signal = signal.as_str();
            tracing::info!(signal, "the collector takes what is sent again");
        }
        sent
    }

    /// Counts spans of a request that was taken without them.
    fn note_rejected(&self, answer: &[u8]) {
        let answer = ExportTraceServiceResponse::decode(answer).unwrap_or_default();
        let partial = answer.partial_success.unwrap_or_default();
        let rejected = partial.rejected_spans > 0;
        if rejected {
            let rejected = usize::try_from(partial.rejected_spans).unwrap_or(usize::MAX);
            self.spans.count_lost(rejected);
        }
        if !self.is_rejecting.swap(rejected, Ordering::Relaxed) && rejected {
            self.warn_of_failure(OtlpSignal::Spans, &partial.error_message);
        }
    }

    /// Logs the first failure of several.
    fn note_failure(&self, signal: OtlpSignal, reason: &str) {
        if !self.is_failing[signal as usize].swap(true, Ordering::Relaxed) {
            self.warn_of_failure(signal, reason);
        }
    }

    fn warn_of_failure(&self, signal: OtlpSignal, reason: &str) {
        let signal = signal.as_str();
        // A URL may have a password in it.
        let collector = self.settings.endpoint.origin().ascii_serialization();
        tracing::warn!(
            collector,
            signal,
            reason,
            "the collector does not take what is sent"
        );
    }
}

/// The URL of a signal, below the path of the collector.
/// <https://opentelemetry.io/docs/specs/otel/protocol/exporter/#endpoint-urls-for-otlphttp>
fn signal_url(endpoint: &Url, path: &str) -> Url {
    let mut url = endpoint.clone();
    let below = url.path().trim_end_matches('/');
    let path = format!("{below}/{path}");
    url.set_path(&path);
    url
}

/// The outcome that a response means.
/// <https://opentelemetry.io/docs/specs/otlp/#otlphttp-response>
fn outcome_of_response(answer: Result<CollectorResponse, UnreachableError>) -> SendOutcome {
    match answer {
        Ok(CollectorResponse { status, body }) if (200..300).contains(&status) => {
            SendOutcome::Taken(body)
        }
        Ok(CollectorResponse { status, .. }) if matches!(status, 429 | 502 | 503 | 504) => {
            SendOutcome::Later(format!("it answered {status}"))
        }
        Ok(CollectorResponse { status, .. }) => {
            SendOutcome::Refused(format!("it answered {status}"))
        }
        Err(error) => SendOutcome::Later(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
