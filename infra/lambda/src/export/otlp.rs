//! The export itself.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use posthaste_aws::telemetry::{self, Copied, CopiedValue};
use posthaste_aws::{Clients, CollectorClient};
use posthaste_core::model::Timestamp;
use posthaste_core::model::metric::{DURATION_BOUNDS_MS, METRICS, Unit, place};
use posthaste_core::trace::collector::ExportSettings;
use posthaste_otlp::{
    Answer, Collector, CollectorRequest, Distribution, Exporter, Point, PointValue, Spans,
    Temporality, Unreachable,
};
use posthaste_ports::Clock;
use posthaste_services::{Traces, timeout};
use posthaste_system::SystemClock;

/// The name of the service, where the operator gives none.
const SERVICE: &str = "posthaste";

/// Longest time of a request: an invocation lasts as much longer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

/// Time for which a collector that took nothing is left alone, so that not every invocation waits for
/// it.
const REST_AFTER_FAILURE: Duration = Duration::from_secs(30);

/// The export of this process.
static EXPORT: OnceLock<Arc<Export>> = OnceLock::new();

/// The client of AWS's services, to a collector.
#[derive(Debug)]
struct Client(CollectorClient);

struct Export {
    exporter: Exporter<Client>,
    traces: Traces,
    /// The end of the time that was exported last.
    exported: Mutex<Timestamp>,
    rests_until: Mutex<Timestamp>,
}

impl Collector for Client {
    async fn post(&self, request: CollectorRequest) -> Result<Answer, Unreachable> {
        let CollectorRequest { url, headers, body } = request;
        let post = self.0.post(url.as_str(), &headers, body);
        let answer = timeout(&SystemClock, REQUEST_TIMEOUT, post).await;
        let (status, body) = answer.ok_or("no answer in time")??;
        Ok(Answer { status, body })
    }
}

pub(super) fn start(settings: &ExportSettings, clients: &Clients) {
    let spans = Arc::<Spans>::default();
    let client = Client(clients.collector());
    let traces = Traces::to(spans.clone(), settings.ratio);
    let export = Export {
        exporter: Exporter::new(client, settings.collector.clone(), SERVICE, spans),
        traces: traces.telling_endpoints(settings.tells_endpoints),
        exported: Mutex::new(SystemClock.now()),
        rests_until: Mutex::new(Timestamp::EPOCH),
    };
    let export = EXPORT.get_or_init(|| Arc::new(export));
    telemetry::export_with(move || {
        let export = Arc::clone(export);
        async move { export.run().await }.boxed()
    });
}

pub(super) fn traces() -> Traces {
    let export = EXPORT.get();
    export
        .map(|export| export.traces.clone())
        .unwrap_or_default()
}

impl Export {
    async fn run(&self) {
        let now = SystemClock.now();
        if now < *self.rests_until.lock() {
            return;
        }
        if !self.exporter.send_spans().await {
            *self.rests_until.lock() = now + REST_AFTER_FAILURE;
            return;
        }
        let copies = telemetry::take_copies();
        let points: Vec<_> = copies.into_iter().filter_map(point).collect();
        if points.is_empty() {
            return;
        }
        let since = std::mem::replace(&mut *self.exported.lock(), now);
        let since = Temporality::SinceLast(since);
        self.exporter.send_metrics(points, since, now).await;
    }
}

/// The point of a series under the name that `serve` shows; `None` for one that it does not show.
fn point(copied: Copied) -> Option<Point> {
    let metric = &METRICS[place(&copied.name)?];
    let per_base_unit = metric.unit.per_base_unit();
    let unit = match metric.unit {
        Unit::Milliseconds | Unit::Seconds => "s",
        Unit::Bytes => "By",
        Unit::Number(_) => "1",
    };
    let value = match copied.value {
        CopiedValue::Count(count) => PointValue::Count(count),
        CopiedValue::Last(value) => PointValue::Number(value / per_base_unit),
        CopiedValue::Values(values) => PointValue::Times(distribution(&values, per_base_unit)),
    };
    let fixed = metric
        .fixed
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut labels = copied.labels;
    labels.extend(fixed);
    Some(Point {
        name: metric.exposed?,
        help: metric.help,
        unit,
        labels,
        value,
    })
}

fn distribution(values: &[(f64, u64, f64)], per_base_unit: f64) -> Distribution {
    let mut counts = vec![0; DURATION_BOUNDS_MS.len() + 1];
    for (value, count, _) in values {
        let bucket = DURATION_BOUNDS_MS.iter().position(|bound| value <= bound);
        counts[bucket.unwrap_or(DURATION_BOUNDS_MS.len())] += count;
    }
    Distribution {
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

    fn copied(name: &str, value: CopiedValue) -> Copied {
        Copied {
            name: name.to_owned(),
            labels: vec![("topic".to_owned(), "orders".to_owned())],
            value,
        }
    }

    #[test]
    fn series_has_the_name_that_serve_shows() {
        let point = point(copied("DeliverySuccessCount", CopiedValue::Count(3))).unwrap();
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
        let PointValue::Times(times) = point(copied).unwrap().value else {
            panic!("a distribution")
        };
        assert_eq!((times.counts[0], times.counts[1]), (2, 1));
        assert_eq!(times.counts.last(), Some(&4));
        assert!((times.sum - 280.0031).abs() < 1e-6, "{}", times.sum);
        assert!((times.bounds[0] - 0.001).abs() < 1e-9);
    }

    #[test]
    fn what_serve_does_not_show_is_left_out() {
        assert_eq!(point(copied("NoSuchMetric", CopiedValue::Count(1))), None);
    }
}
