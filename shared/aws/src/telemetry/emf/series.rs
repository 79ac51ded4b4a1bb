//! Series: the values of one metric with one set of labels between two drains.

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{GaugeFn, HistogramFn};
use parking_lot::Mutex;

#[derive(Debug, PartialEq)]
pub(crate) enum MeasuredValues {
    /// Number of occurrences.
    Count(u64),
    /// Each value of a gauge in order; at least one, all finite.
    Values(Vec<f64>),
    /// The values of a histogram, the least first; at least one bucket.
    Buckets(Vec<HistogramBucket>),
}

/// A series that can be emptied.
pub(super) trait EmfSeries {
    /// Takes the values since the last time; `None` if there are none to write.
    fn take_values(&self) -> Option<MeasuredValues>;

    /// Whether the next values depend on the last ones, so that the series must not be forgotten.
    fn is_needed(&self) -> bool {
        false
    }
}

/// The values that a gauge was set to: between two samples of a monitor is a minute's peak, which
/// the last value alone would hide. Bounded by what one invocation does, because a gauge is never
/// kept longer.
///
/// Zero is a gauge's rest, and is written once, after another value: CloudWatch bills each metric
/// in each hour in which it is written.
#[derive(Debug, Default)]
pub(super) struct GaugeSamples(Mutex<SamplesState>);

#[derive(Debug, Default)]
struct SamplesState {
    /// The value that a gauge's next step starts from. A gauge without a holder starts from zero
    /// again after a drain at rest.
    last: f64,
    values: Vec<f64>,
    /// Whether the last value that was written is not zero.
    is_shown: bool,
}

/// The values of a histogram, in buckets.
#[derive(Debug, Default)]
pub(super) struct HistogramBuckets(Mutex<BTreeMap<u64, HistogramBucket>>);

/// Values that are the same in two significant digits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HistogramBucket {
    /// The value in two digits.
    pub(crate) value: f64,
    pub(crate) count: u64,
    pub(crate) sum: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// The least value that is no zero, in a metric's unit: a microsecond of a metric in milliseconds.
/// With two digits, the values from here to Lambda's 900,000 ms have 802 buckets at most.
const VALUE_MIN: f64 = 0.001;

impl EmfSeries for AtomicU64 {
    fn take_values(&self) -> Option<MeasuredValues> {
        match self.swap(0, Ordering::AcqRel) {
            0 => None,
            count => Some(MeasuredValues::Count(count)),
        }
    }
}

impl EmfSeries for GaugeSamples {
    fn take_values(&self) -> Option<MeasuredValues> {
        let mut state = self.0.lock();
        let values = mem::take(&mut state.values);
        let is_shown = state.last != 0.0;
        let was_shown = mem::replace(&mut state.is_shown, is_shown);
        let is_at_rest = !was_shown && values.iter().all(|value| *value == 0.0);
        (!values.is_empty() && !is_at_rest).then_some(MeasuredValues::Values(values))
    }

    fn is_needed(&self) -> bool {
        self.0.lock().is_shown
    }
}

impl EmfSeries for HistogramBuckets {
    fn take_values(&self) -> Option<MeasuredValues> {
        let buckets = mem::take(&mut *self.0.lock());
        (!buckets.is_empty()).then(|| MeasuredValues::Buckets(buckets.into_values().collect()))
    }
}

impl GaugeSamples {
    fn push(&self, next: impl FnOnce(f64) -> f64) {
        let mut state = self.0.lock();
        let value = next(state.last);
        // JSON has no infinity, and CloudWatch refuses NaN.
        if value.is_finite() {
            state.last = value;
            state.values.push(value);
        }
    }
}

impl GaugeFn for GaugeSamples {
    fn increment(&self, value: f64) {
        self.push(|last| last + value);
    }

    fn decrement(&self, value: f64) {
        self.push(|last| last - value);
    }

    fn set(&self, value: f64) {
        self.push(|_| value);
    }
}

impl HistogramFn for HistogramBuckets {
    fn record(&self, value: f64) {
        if !value.is_finite() {
            return;
        }
        let rounded = two_digits(value);
        let mut buckets = self.0.lock();
        // The bits of numbers that are not negative have the order of the numbers.
        let bucket = buckets.entry(rounded.to_bits()).or_insert(HistogramBucket {
            value: rounded,
            count: 0,
            sum: 0.0,
            min: value,
            max: value,
        });
        bucket.count += 1;
        bucket.sum += value;
        bucket.min = bucket.min.min(value);
        bucket.max = bucket.max.max(value);
    }
}

/// The value in two significant digits: within 5 % of it.
fn two_digits(value: f64) -> f64 {
    if value.abs() < VALUE_MIN {
        return 0.0;
    }
    // The shortest text of a number has no rest of a division.
    let rounded = format!("{value:.1e}").parse().unwrap_or(value);
    // The largest numbers overflow on the way.
    if f64::is_finite(rounded) {
        rounded
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(value: f64, expected: f64) {
        assert_eq!(two_digits(value).to_bits(), expected.to_bits(), "{value}");
    }

    #[test]
    fn a_value_keeps_two_digits() {
        check(0.0, 0.0);
        check(0.000_9, 0.0);
        check(0.012_34, 0.012);
        check(9.96, 10.0);
        check(123.4, 120.0);
        check(126.0, 130.0);
        check(899_999.0, 900_000.0);
        check(f64::MAX, f64::MAX);
    }

    #[test]
    fn a_histogram_of_every_duration_has_few_buckets() {
        let buckets = HistogramBuckets::default();
        for (decade, mantissa) in
            (-6..=2).flat_map(|decade| (0..10_000).map(move |one| (decade, one)))
        {
            let value = f64::from(mantissa) * 10_f64.powi(decade);
            if value <= 900_000.0 {
                buckets.record(value);
            }
        }
        assert_eq!(buckets.0.lock().len(), 802);
    }

    proptest! {
        #[test]
        fn a_bucket_is_within_a_twentieth_of_its_values(value in 0.001..900_000.0_f64) {
            prop_assert!((two_digits(value) - value).abs() <= value * 0.05 + 1e-9);
        }
    }
}
