#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod attributes;
mod collector;
mod exporter;
mod metric;
mod span;
mod waiting;

pub use collector::{Answer, Collector, CollectorRequest, Unreachable};
pub use exporter::Exporter;
pub use metric::{Distribution, Point, PointValue, Temporality};
pub use waiting::{SPANS_WAITING_MAX, Spans};
