//! Copies of the metrics that were written, for a collector.

use super::emf::series::MeasuredValues;

/// Most copies that wait. An invocation writes some dozens.
pub(super) const COPIES_MAX: usize = 10_000;

/// The values of one series since it was written last.
#[derive(Debug, Clone, PartialEq)]
pub struct CopiedSeries {
    /// The name under which it is measured.
    pub name: String,
    /// The labels of the series.
    pub labels: Vec<(String, String)>,
    /// The values.
    pub value: CopiedValue,
}

/// Values of a series.
#[derive(Debug, Clone, PartialEq)]
pub enum CopiedValue {
    /// The number of occurrences.
    Count(u64),
    /// The last value of a gauge.
    Last(f64),
    /// Values of a histogram: about this value, so many, with this sum.
    Values(Vec<(f64, u64, f64)>),
}

impl CopiedValue {
    pub(super) fn from_measured(measured: &MeasuredValues) -> Option<Self> {
        Some(match measured {
            MeasuredValues::Count(count) => Self::Count(*count),
            MeasuredValues::Values(values) => Self::Last(*values.last()?),
            MeasuredValues::Buckets(buckets) => {
                let values = buckets.iter().map(|it| (it.value, it.count, it.sum));
                Self::Values(values.collect())
            }
        })
    }
}
