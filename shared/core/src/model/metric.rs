//! The table of metrics: what each is called in `GET /metrics` of `serve` and in CloudWatch, and
//! what it means. Functions measure under the names that CloudWatch shows. The exposition, the
//! reference page and the units of CloudWatch are made from these rows.

mod row;
mod table;

pub use row::{Kind, Metric, STATUS_CLASS, SUBSCRIPTION, Source, TOPIC, Unit};
pub use table::{METRICS, place, place_of_looked_up};

#[cfg(test)]
mod tests;
