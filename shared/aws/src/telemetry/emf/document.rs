//! The documents themselves, within CloudWatch's limits.

use metrics::{KeyName, Label};
use posthaste_core::model::Timestamp;
use posthaste_core::model::metric::{self, METRICS, MetricUnit};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::series::{HistogramBucket, MeasuredValues};
use crate::telemetry::metrics_by::MetricsBy;

/// Most metrics of one document.
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format.html>
const METRICS_MAX: usize = 100;

/// Most values of one metric in one document; same source. With [`METRICS_MAX`] of them, a document
/// takes about 100 KB, within the 256 KB of a log event.
const VALUES_MAX: usize = 100;

/// Parts of a unit to which a value is rounded: a thousandth of a millisecond is exact enough, and
/// every further digit is paid for in each log line.
const PARTS: f64 = 1000.0;

/// Writes documents, one a line.
pub(super) struct DocumentWriter<'a> {
    namespace: &'a str,
    now: Timestamp,
    lines: Vec<u8>,
}

impl<'a> DocumentWriter<'a> {
    pub(super) fn new(namespace: &'a str, now: Timestamp) -> Self {
        Self {
            namespace,
            now,
            lines: Vec::new(),
        }
    }

    /// Writes the metrics of one set of labels and dimensions, in as many documents as the limits
    /// ask for.
    pub(super) fn write_metrics(
        &mut self,
        by: MetricsBy,
        labels: &[Label],
        metrics: &[(KeyName, MeasuredValues)],
    ) {
        let mut round = 0;
        loop {
            let parts: Vec<DocumentMetric<'_>> = metrics
                .iter()
                .filter_map(|(name, measured)| metric_in_round(name, measured, round))
                .collect();
            if parts.is_empty() {
                return;
            }
            for metrics in parts.chunks(METRICS_MAX) {
                self.write_line(by, labels, metrics);
            }
            round += 1;
        }
    }

    fn write_line(&mut self, by: MetricsBy, labels: &[Label], metrics: &[DocumentMetric<'_>]) {
        let kept = labels
            .iter()
            .map(Label::key)
            .filter(|label| by.is_dimension(label));
        let directive = MetricDirective {
            namespace: self.namespace,
            dimensions: [kept.collect()],
            metrics,
        };
        let head = EmfHead {
            timestamp: self.now,
            cloud_watch_metrics: [directive],
        };
        // Writing texts and finite numbers into memory cannot fail.
        let _ = serde_json::to_writer(
            &mut self.lines,
            &EmfDocument {
                head,
                labels,
                metrics,
            },
        );
        self.lines.push(b'\n');
    }

    pub(super) fn into_lines(self) -> Vec<u8> {
        self.lines
    }
}

/// The part of a metric for the documents of this round; `None` when all of it is written.
fn metric_in_round<'a>(
    name: &'a KeyName,
    measured: &'a MeasuredValues,
    round: usize,
) -> Option<DocumentMetric<'a>> {
    let value = match measured {
        MeasuredValues::Count(count) => (round == 0).then_some(EmfValue::Count(*count)),
        MeasuredValues::Values(values) => {
            values.chunks(VALUES_MAX).nth(round).map(EmfValue::Values)
        }
        MeasuredValues::Buckets(buckets) => {
            buckets.chunks(VALUES_MAX).nth(round).map(EmfValue::Buckets)
        }
    };
    let unit = match value? {
        EmfValue::Count(_) => Some("Count"),
        EmfValue::Values(_) | EmfValue::Buckets(_) => {
            is_of_milliseconds(name).then_some("Milliseconds")
        }
    };
    value.map(|value| DocumentMetric {
        name: name.as_str(),
        unit,
        value,
    })
}

fn is_of_milliseconds(name: &KeyName) -> bool {
    metric::metric_index(name.as_str())
        .is_some_and(|place| METRICS[place].unit == MetricUnit::Milliseconds)
}

struct EmfDocument<'a> {
    head: EmfHead<'a>,
    labels: &'a [Label],
    metrics: &'a [DocumentMetric<'a>],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct EmfHead<'a> {
    timestamp: Timestamp,
    cloud_watch_metrics: [MetricDirective<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct MetricDirective<'a> {
    namespace: &'a str,
    dimensions: [Vec<&'a str>; 1],
    metrics: &'a [DocumentMetric<'a>],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct DocumentMetric<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    #[serde(skip)]
    value: EmfValue<'a>,
}

#[derive(Clone, Copy)]
enum EmfValue<'a> {
    Count(u64),
    Values(&'a [f64]),
    Buckets(&'a [HistogramBucket]),
}

/// Values with the number of their occurrences, as the libraries of AWS write them.
/// <https://github.com/awslabs/aws-embedded-metrics-java>, `HistogramMetric`
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct HistogramDistribution {
    values: Vec<f64>,
    counts: Vec<u64>,
    max: f64,
    min: f64,
    count: u64,
    sum: f64,
}

impl HistogramDistribution {
    fn from_buckets(buckets: &[HistogramBucket]) -> Self {
        Self {
            values: buckets.iter().map(|one| one.value).collect(),
            counts: buckets.iter().map(|one| one.count).collect(),
            max: round_value(
                buckets
                    .iter()
                    .map(|one| one.max)
                    .fold(f64::NEG_INFINITY, f64::max),
            ),
            min: round_value(
                buckets
                    .iter()
                    .map(|one| one.min)
                    .fold(f64::INFINITY, f64::min),
            ),
            count: buckets.iter().map(|one| one.count).sum(),
            sum: round_value(buckets.iter().map(|one| one.sum).sum()),
        }
    }
}

/// Labels and values are members beside the head, under their names.
impl Serialize for EmfDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("_aws", &self.head)?;
        for label in self.labels {
            map.serialize_entry(label.key(), label.value())?;
        }
        for metric in self.metrics {
            map.serialize_entry(metric.name, &metric.value)?;
        }
        map.end()
    }
}

/// A single value is a number, several of a gauge are an array, and several of a histogram a
/// distribution.
impl Serialize for EmfValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => serializer.serialize_u64(*count),
            Self::Values([value]) => serializer.serialize_f64(round_value(*value)),
            Self::Values(values) => serializer.collect_seq(values.iter().copied().map(round_value)),
            Self::Buckets([one]) if one.count == 1 => {
                serializer.serialize_f64(round_value(one.sum))
            }
            Self::Buckets(buckets) => {
                HistogramDistribution::from_buckets(buckets).serialize(serializer)
            }
        }
    }
}

fn round_value(value: f64) -> f64 {
    let rounded = (value * PARTS).round() / PARTS;
    // The largest numbers overflow on the way; they have no such digits.
    if rounded.is_finite() { rounded } else { value }
}
