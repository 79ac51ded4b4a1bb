//! The export itself.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use posthaste_aws::telemetry::{self, CopiedSeries, CopiedValue};
use posthaste_aws::{AwsClients, CollectorClient};
use posthaste_core::model::Timestamp;
use posthaste_core::model::metric::{DURATION_BOUNDS_MS, METRICS, metric_index};
use posthaste_core::trace::collector::ExportSettings;
use posthaste_otlp::{
    Collector, CollectorRequest, CollectorResponse, MetricDistribution, MetricPoint, OtlpExporter,
    PointValue, SpanQueue, Temporality, UnreachableError,
};
use posthaste_ports::Clock;
use posthaste_services::{EventTraces, timeout};
use posthaste_system::SystemClock;

/// The name of the service, where the operator gives none.
const SERVICE: &str = "posthaste";

/// Longest time that an invocation lasts for its export.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(1);

/// Most requests with spans of one invocation.
const REQUESTS_MAX: usize = 4;

/// Most points that wait for a collector which takes none.
const POINTS_WAITING_MAX: usize = 2_000;

/// Time for which a collector that took nothing is left alone, so that not every invocation waits
/// for it.
const REST_AFTER_FAILURE: Duration = Duration::from_secs(30);

/// The export of this process.
static EXPORT: OnceLock<Arc<LambdaExport>> = OnceLock::new();

/// The client of AWS's services, to a collector.
#[derive(Debug)]
struct LambdaCollector(CollectorClient);

struct LambdaExport {
    exporter: OtlpExporter<LambdaCollector>,
    traces: EventTraces,
    /// The end of the time that was exported last.
    exported: Mutex<Timestamp>,
    rests_until: Mutex<Timestamp>,
    /// The points that were measured since then.
    waiting: Mutex<Vec<MetricPoint>>,
}

impl Collector for LambdaCollector {
    async fn post_blocking(
        &self,
        request: CollectorRequest,
    ) -> Result<CollectorResponse, UnreachableError> {
        let CollectorRequest { url, headers, body } = request;
        let (status, body) = self.0.post(url.as_str(), &headers, body).await?;
        Ok(CollectorResponse { status, body })
    }
}

pub(super) fn start(settings: &ExportSettings, clients: &AwsClients) {
    let spans = Arc::<SpanQueue>::default();
    let client = LambdaCollector(clients.collector());
    let traces = EventTraces::with_sink(spans.clone(), settings.ratio);
    let export = LambdaExport {
        exporter: OtlpExporter::new(client, settings.collector.clone(), SERVICE, spans),
        traces: traces.telling_endpoints(settings.tells_endpoints),
        exported: Mutex::new(SystemClock.now()),
        rests_until: Mutex::new(Timestamp::EPOCH),
        waiting: Mutex::default(),
    };
    let export = EXPORT.get_or_init(|| Arc::new(export));
    telemetry::export_with(move || {
        let export = Arc::clone(export);
        async move { export.run().await }.boxed()
    });
}

pub(super) fn traces() -> EventTraces {
    let export = EXPORT.get();
    export
        .map(|export| export.traces.clone())
        .unwrap_or_default()
}

impl LambdaExport {
    /// Sends what an invocation has measured. Lambda would end an invocation that lasts too long and
    /// give its messages to another one, so that this has one time for all.
    async fn run(&self) {
        let now = SystemClock.now();
        let copies = telemetry::take_copies();
        let lost = merge_points(
            &mut self.waiting.lock(),
            copies.into_iter().filter_map(point_from_copy),
        );
        if lost > 0 {
            tracing::warn!(lost, "metrics lost on their way to the collector");
        }
        if now < *self.rests_until.lock() {
            return;
        }
        let sent = timeout(&SystemClock, EXPORT_TIMEOUT, self.send_waiting(now)).await;
        if sent != Some(true) {
            *self.rests_until.lock() = now + REST_AFTER_FAILURE;
        }
    }

    /// Sends the waiting points. Returns whether the collector took all of them.
    async fn send_waiting(&self, now: Timestamp) -> bool {
        if !self.exporter.send_spans(REQUESTS_MAX).await {
            return false;
        }
        let points = self.waiting.lock().clone();
        if points.is_empty() {
            return true;
        }
        let since = Temporality::SinceLast(*self.exported.lock());
        let is_taken = self.exporter.send_metrics(&points, since, now).await;
        if is_taken {
            *self.exported.lock() = now;
            self.waiting.lock().clear();
        }
        is_taken
    }
}

/// Adds points to those that the collector has not taken yet. Returns the number of points without
/// room.
fn merge_points(
    waiting: &mut Vec<MetricPoint>,
    points: impl Iterator<Item = MetricPoint>,
) -> usize {
    let mut lost = 0;
    for point in points {
        let known = waiting
            .iter()
            .position(|it| it.name == point.name && it.labels == point.labels);
        match known {
            Some(place) => waiting[place].value = sum_values(&waiting[place].value, point.value),
            None if waiting.len() < POINTS_WAITING_MAX => waiting.push(point),
            None => lost += 1,
        }
    }
    lost
}

/// The value over the time of both. A gauge has its last one.
fn sum_values(first: &PointValue, second: PointValue) -> PointValue {
    match (first, second) {
        (PointValue::Count(first), PointValue::Count(second)) => PointValue::Count(first + second),
        (PointValue::Times(first), PointValue::Times(second)) => {
            let counts = first.counts.iter().zip(&second.counts);
            PointValue::Times(MetricDistribution {
                counts: counts.map(|(first, second)| first + second).collect(),
                sum: first.sum + second.sum,
                bounds: second.bounds,
            })
        }
        (_, second) => second,
    }
}

/// The point of a series under the name that `serve` shows; `None` for one that it does not show.
fn point_from_copy(copied: CopiedSeries) -> Option<MetricPoint> {
    let metric = &METRICS[metric_index(&copied.name)?];
    let per_base_unit = metric.unit.per_base_unit();
    let value = match copied.value {
        CopiedValue::Count(count) => PointValue::Count(count),
        CopiedValue::Last(value) => PointValue::Number(value / per_base_unit),
        CopiedValue::Values(values) => PointValue::Times(to_distribution(&values, per_base_unit)),
    };
    let fixed = metric
        .fixed
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut labels = copied.labels;
    labels.extend(fixed);
    Some(MetricPoint {
        name: metric.exposed?,
        help: metric.help,
        unit: metric.unit.ucum_unit(),
        labels,
        value,
    })
}

fn to_distribution(values: &[(f64, u64, f64)], per_base_unit: f64) -> MetricDistribution {
    let mut counts = vec![0; DURATION_BOUNDS_MS.len() + 1];
    for (value, count, _) in values {
        let bucket = DURATION_BOUNDS_MS.iter().position(|bound| value <= bound);
        counts[bucket.unwrap_or(DURATION_BOUNDS_MS.len())] += count;
    }
    MetricDistribution {
        bounds: DURATION_BOUNDS_MS
            .map(|bound| bound / per_base_unit)
            .to_vec(),
        counts,
        sum: values.iter().map(|(_, _, sum)| sum).sum::<f64>() / per_base_unit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(name: &str, value: CopiedValue) -> CopiedSeries {
        CopiedSeries {
            name: name.to_owned(),
            labels: vec![("topic".to_owned(), "orders".to_owned())],
            value,
        }
    }

    #[test]
    fn series_has_the_name_that_serve_shows() {
        let point = point_from_copy(copied("DeliverySuccessCount", CopiedValue::Count(3))).unwrap();
        assert_eq!(
            (point.name, point.value),
            ("posthaste_deliveries_total", PointValue::Count(3))
        );
        let labels = [("topic", "orders"), ("outcome", "delivered")];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(point.labels, labels);
    }

    #[test]
    fn times_are_in_the_buckets_of_serve() {
        let values = vec![(1.0, 2, 2.0), (1.1, 1, 1.1), (70_000.0, 4, 280_000.0)];
        let copied = copied("PublishSuccessLatencyInMs", CopiedValue::Values(values));
        let PointValue::Times(times) = point_from_copy(copied).unwrap().value else {
            panic!("a distribution")
        };
        assert_eq!((times.counts[0], times.counts[1]), (2, 1));
        assert_eq!(times.counts.last(), Some(&4));
        assert!((times.sum - 280.0031).abs() < 1e-6, "{}", times.sum);
        assert!((times.bounds[0] - 0.001).abs() < 1e-9);
    }

    #[test]
    fn points_that_wait_are_added_up() {
        let measured = |name: &str, value| point_from_copy(copied(name, value)).unwrap();
        let mut waiting = Vec::new();
        for _ in 0..2 {
            let values = CopiedValue::Values(vec![(1.0, 2, 2.0)]);
            let points = [
                measured("DeliverySuccessCount", CopiedValue::Count(3)),
                measured("PublishSuccessLatencyInMs", values),
            ];
            assert_eq!(merge_points(&mut waiting, points.into_iter()), 0);
        }
        assert_eq!(waiting.len(), 2);
        assert_eq!(waiting[0].value, PointValue::Count(6));
        let PointValue::Times(times) = &waiting[1].value else {
            panic!("{waiting:?}")
        };
        assert_eq!((times.counts[0], times.sum), (4, 0.004));
        let last = sum_values(&PointValue::Number(1.0), PointValue::Number(2.0));
        assert_eq!(last, PointValue::Number(2.0));
    }

    #[test]
    fn metrics_that_serve_does_not_show_are_left_out() {
        assert_eq!(
            point_from_copy(copied("NoSuchMetric", CopiedValue::Count(1))),
            None
        );
    }
}
