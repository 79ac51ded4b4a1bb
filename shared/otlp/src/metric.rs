//! Metrics as OTLP has them.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use posthaste_core::model::Timestamp;

use crate::attributes::{instrumentation_scope, text_attribute};
use crate::span::unix_nanos;

/// A value of a metric, with its labels.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricPoint {
    /// The metric's name.
    pub name: &'static str,
    /// The meaning of the metric.
    pub help: &'static str,
    /// The unit, as UCUM writes it.
    pub unit: &'static str,
    /// The labels.
    pub labels: Vec<(String, String)>,
    /// The value.
    pub value: PointValue,
}

/// The value of a metric.
#[derive(Debug, Clone, PartialEq)]
pub enum PointValue {
    /// A number that only grows.
    Count(u64),
    /// A number at this time.
    Number(f64),
    /// A distribution.
    Times(MetricDistribution),
}

/// The number of values within each bound.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricDistribution {
    /// The upper bounds.
    pub bounds: Vec<f64>,
    /// The number of values up to each bound and above the one before, and above the last.
    pub counts: Vec<u64>,
    /// The sum of the values.
    pub sum: f64,
}

/// The period over which values are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Temporality {
    /// From the start of the process on.
    Since(Timestamp),
    /// From the last export on, which was at this time.
    SinceLast(Timestamp),
}

/// The beginning and the end of the period of points.
#[derive(Clone, Copy)]
struct PointPeriod {
    began: u64,
    ended: u64,
    temporality: AggregationTemporality,
}

/// A request with these points, which were read at one time.
pub(crate) fn export_request(
    resource: &Resource,
    points: Vec<MetricPoint>,
    temporality: Temporality,
    now: Timestamp,
) -> ExportMetricsServiceRequest {
    let (began, temporality) = match temporality {
        Temporality::Since(began) => (began, AggregationTemporality::Cumulative),
        Temporality::SinceLast(began) => (began, AggregationTemporality::Delta),
    };
    let period = PointPeriod {
        began: unix_nanos(began),
        ended: unix_nanos(now),
        temporality,
    };
    let mut by_name: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for point in points {
        by_name.entry(point.name).or_default().push(point);
    }
    let scope_metrics = ScopeMetrics {
        scope: Some(instrumentation_scope()),
        metrics: by_name
            .values()
            .filter_map(|it| build_metric(it, period))
            .collect(),
        schema_url: String::new(),
    };
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource.clone()),
            scope_metrics: vec![scope_metrics],
            schema_url: String::new(),
        }],
    }
}

/// The metric of these points, which all belong to one.
fn build_metric(points: &[MetricPoint], period: PointPeriod) -> Option<Metric> {
    let first = points.first()?;
    let mut metric = Metric {
        name: first.name.to_owned(),
        description: first.help.to_owned(),
        unit: first.unit.to_owned(),
        ..Metric::default()
    };
    metric.data = Some(match &first.value {
        PointValue::Count(_) => Data::Sum(Sum {
            data_points: points.iter().map(|it| number_point(it, period)).collect(),
            aggregation_temporality: period.temporality.into(),
            is_monotonic: true,
        }),
        PointValue::Number(_) => Data::Gauge(Gauge {
            data_points: points.iter().map(|it| number_point(it, period)).collect(),
        }),
        PointValue::Times(_) => Data::Histogram(Histogram {
            data_points: points
                .iter()
                .filter_map(|it| histogram_point(it, period))
                .collect(),
            aggregation_temporality: period.temporality.into(),
        }),
    });
    Some(metric)
}

fn number_point(point: &MetricPoint, period: PointPeriod) -> NumberDataPoint {
    let value = match point.value {
        PointValue::Count(count) => Value::AsInt(i64::try_from(count).unwrap_or(i64::MAX)),
        PointValue::Number(number) => Value::AsDouble(number),
        PointValue::Times(ref times) => Value::AsDouble(times.sum),
    };
    NumberDataPoint {
        attributes: point
            .labels
            .iter()
            .map(|(name, value)| text_attribute(name, value))
            .collect(),
        start_time_unix_nano: period.began,
        time_unix_nano: period.ended,
        value: Some(value),
        ..NumberDataPoint::default()
    }
}

fn histogram_point(point: &MetricPoint, period: PointPeriod) -> Option<HistogramDataPoint> {
    let PointValue::Times(times) = &point.value else {
        return None;
    };
    Some(HistogramDataPoint {
        attributes: point
            .labels
            .iter()
            .map(|(name, value)| text_attribute(name, value))
            .collect(),
        start_time_unix_nano: period.began,
        time_unix_nano: period.ended,
        count: times.counts.iter().sum(),
        sum: Some(times.sum),
        bucket_counts: times.counts.clone(),
        explicit_bounds: times.bounds.clone(),
        ..HistogramDataPoint::default()
    })
}
