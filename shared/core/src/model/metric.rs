//! The table of metrics: what each is called in `GET /metrics` of `serve` and in CloudWatch, and
//! what it means. Functions measure under the names that CloudWatch shows. The exposition, the
//! reference page and the units of CloudWatch are made from these rows.

mod row;
mod table;

pub use row::{MetricKind, MetricRow, MetricSource, MetricUnit, STATUS_CLASS, SUBSCRIPTION, TOPIC};
pub use table::{METRICS, looked_up_metric_index, metric_index};

/// Upper bounds of the buckets of times, in milliseconds: from a memory copy to the longest attempt.
pub const DURATION_BOUNDS_MS: [f64; 14] = [
    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 5_000.0, 10_000.0, 30_000.0,
    60_000.0,
];

#[cfg(test)]
mod tests;
