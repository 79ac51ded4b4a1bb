//! Copies of what was written as metrics, for a collector.

use super::emf::series::Measured;

/// Most copies that wait. An invocation writes some dozens.
pub(super) const COPIES_MAX: usize = 10_000;

/// The values of one series since it was written last.
#[derive(Debug, Clone, PartialEq)]
pub struct Copied {
    /// The name under which it is measured.
    pub name: String,
    /// Its labels.
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
    pub(super) fn of(measured: &Measured) -> Option<Self> {
        Some(match measured {
            Measured::Count(count) => Self::Count(*count),
            Measured::Values(values) => Self::Last(*values.last()?),
            Measured::Buckets(buckets) => {
                let values = buckets.iter().map(|it| (it.value, it.count, it.sum));
                Self::Values(values.collect())
            }
        })
    }
}
