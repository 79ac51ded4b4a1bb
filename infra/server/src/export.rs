//! The way of traces and metrics to a collector, where one is given.

use std::sync::Arc;
use std::time::Duration;

use posthaste_cli::client::{ServerTrust, http_agent};
use posthaste_core::model::Timestamp;
use posthaste_core::trace::collector::ExportSettings;
use posthaste_otlp::{
    Collector, CollectorRequest, CollectorResponse, OtlpExporter, SpanQueue, Temporality,
    UnreachableError,
};
use posthaste_ports::Clock;
use posthaste_services::{EventTraces, timeout};
use posthaste_system::SystemClock;
use tokio::runtime::Handle;
use tokio::task::{JoinSet, spawn_blocking};
use tokio_util::sync::CancellationToken;
use ureq::Agent;

use super::functions::EmbeddedPages;
use super::schedule::run_every;

/// The name of the service, where the operator gives none.
const SERVICE: &str = "posthaste";

/// Longest time of a request, as in OpenTelemetry's exporters.
/// <https://opentelemetry.io/docs/specs/otel/protocol/exporter/#configuration-options>
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest time between two requests with spans, as in OpenTelemetry's SDK: a full one goes at once.
/// <https://opentelemetry.io/docs/specs/otel/trace/sdk/#batching-processor>
const SPANS_PERIOD: Duration = Duration::from_secs(5);

/// Time between two requests with metrics, as in OpenTelemetry's SDK.
/// <https://opentelemetry.io/docs/specs/otel/metrics/sdk/#periodic-exporting-metricreader>
const METRICS_PERIOD: Duration = Duration::from_mins(1);

/// Most requests with spans in a row: as many as take all that may wait.
const REQUESTS_MAX: usize = 16;

/// Longest time that the end of the process waits for its last spans and metrics.
const LAST_EXPORT_TIMEOUT: Duration = Duration::from_secs(2);

/// The collector, spoken to over the client of commands.
#[derive(Debug)]
struct AgentCollector(Agent);

/// Sends to a collector.
#[derive(Debug, Clone)]
pub(super) struct ServeExport {
    exporter: Arc<OtlpExporter<AgentCollector>>,
    traces: EventTraces,
    /// Since when metrics are counted.
    began: Timestamp,
}

/// Sends every `period`. The end of the process cuts a request off: it sends what is left itself.
async fn export_every<F>(
    name: &'static str,
    period: Duration,
    stop: CancellationToken,
    mut send: impl FnMut() -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let ending = stop.clone();
    run_every(name, period, SystemClock, stop, move || {
        let ending = ending.clone();
        let request = send();
        async move {
            ending.run_until_cancelled(request).await;
        }
    })
    .await;
}

impl ServeExport {
    /// The way to this collector.
    pub(super) fn new(settings: &ExportSettings) -> Self {
        let spans = Arc::<SpanQueue>::default();
        let collector = settings.collector.clone();
        let agent = AgentCollector(http_agent(&collector.endpoint, &ServerTrust::Machine));
        let traces = EventTraces::with_sink(spans.clone(), settings.ratio);
        Self {
            exporter: Arc::new(OtlpExporter::new(agent, collector, SERVICE, spans)),
            traces: traces.telling_endpoints(settings.tells_endpoints),
            began: SystemClock.now(),
        }
    }

    /// The traces of events.
    pub(super) fn traces(&self) -> EventTraces {
        self.traces.clone()
    }

    /// Sends spans and metrics from now on.
    pub(super) fn spawn(
        &self,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
        upkeep: &Handle,
        pages: Arc<EmbeddedPages>,
    ) {
        let exporter = Arc::clone(&self.exporter);
        let spans = export_every("spans", SPANS_PERIOD, stop.clone(), move || {
            let exporter = Arc::clone(&exporter);
            async move {
                exporter.send_spans(REQUESTS_MAX).await;
            }
        });
        tasks.spawn_on(spans, upkeep);
        let exporter = Arc::clone(&self.exporter);
        let full = export_every("full-spans", SPANS_PERIOD, stop.clone(), move || {
            let exporter = Arc::clone(&exporter);
            async move { exporter.send_full_requests().await }
        });
        tasks.spawn_on(full, upkeep);
        let export = self.clone();
        let metrics = export_every("metrics-export", METRICS_PERIOD, stop.clone(), move || {
            let export = export.clone();
            let pages = Arc::clone(&pages);
            async move { export.send_metrics(&pages).await }
        });
        tasks.spawn_on(metrics, upkeep);
    }

    /// Sends the last spans and metrics, before the process ends.
    pub(super) async fn send_last(&self, pages: &EmbeddedPages) {
        let send = async {
            self.exporter.send_spans(REQUESTS_MAX).await;
            self.send_metrics(pages).await;
        };
        if timeout(&SystemClock, LAST_EXPORT_TIMEOUT, send)
            .await
            .is_none()
        {
            tracing::warn!("the last spans and metrics were not sent in time");
        }
    }

    async fn send_metrics(&self, pages: &EmbeddedPages) {
        if let Some(points) = pages.collect_points().await {
            let since = Temporality::Since(self.began);
            let now = SystemClock.now();
            self.exporter.send_metrics(&points, since, now).await;
        }
    }
}

impl Collector for AgentCollector {
    async fn post_blocking(
        &self,
        request: CollectorRequest,
    ) -> Result<CollectorResponse, UnreachableError> {
        let agent = self.0.clone();
        spawn_blocking(move || post(&agent, &request)).await?
    }
}

fn post(agent: &Agent, request: &CollectorRequest) -> Result<CollectorResponse, UnreachableError> {
    let mut post = agent.post(request.url.as_str());
    for (name, value) in &request.headers {
        post = post.header(name, value);
    }
    let post = post.config().timeout_global(Some(REQUEST_TIMEOUT)).build();
    let mut answer = post.send(&request.body[..])?;
    Ok(CollectorResponse {
        status: answer.status().as_u16(),
        body: answer.body_mut().read_to_vec()?.into(),
    })
}
