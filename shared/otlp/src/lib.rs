#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod attributes;
mod collector;
mod exporter;
mod metric;
mod span;
mod span_queue;

pub use collector::{Collector, CollectorRequest, CollectorResponse, UnreachableError};
pub use exporter::OtlpExporter;
pub use metric::{MetricDistribution, MetricPoint, PointValue, Temporality};
pub use span_queue::{SPANS_WAITING_MAX, SpanQueue};
