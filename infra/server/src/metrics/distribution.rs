//! The distribution of times: how many were within each bound, and their sum.

use std::sync::atomic::{AtomicU64, Ordering};

use metrics::HistogramFn;
use posthaste_core::model::metric::DURATION_BOUNDS_MS;

/// Upper bounds in seconds, as they are shown.
const BOUND_TEXTS: [&str; DURATION_BOUNDS_MS.len()] = [
    "0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1.0", "5.0", "10.0",
    "30.0", "60.0",
];

/// Upper bounds in milliseconds, as they are measured, and in seconds, as they are shown.
pub(super) const BOUNDS: [(f64, &str); DURATION_BOUNDS_MS.len()] = {
    let mut bounds = [(0.0, ""); DURATION_BOUNDS_MS.len()];
    let mut index = 0;
    while index < bounds.len() {
        bounds[index] = (DURATION_BOUNDS_MS[index], BOUND_TEXTS[index]);
        index += 1;
    }
    bounds
};

/// The number of buckets: one for each bound, and one for what is beyond the last.
const BUCKETS: usize = BOUNDS.len() + 1;

/// A distribution as it grows.
#[derive(Debug)]
pub(super) struct GrowingHistogram {
    buckets: [AtomicU64; BUCKETS],
    /// The bits of a sum in milliseconds.
    sum: AtomicU64,
}

/// A distribution at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct HistogramValue {
    /// The number of times in each bucket, without those of the buckets before.
    pub(super) buckets: [u64; BUCKETS],
    /// Their sum in milliseconds.
    pub(super) sum: f64,
}

impl Default for GrowingHistogram {
    fn default() -> Self {
        Self {
            buckets: [0; BUCKETS].map(AtomicU64::new),
            sum: AtomicU64::new(0.0_f64.to_bits()),
        }
    }
}

impl GrowingHistogram {
    pub(super) fn read(&self) -> HistogramValue {
        HistogramValue {
            buckets: self
                .buckets
                .each_ref()
                .map(|count| count.load(Ordering::Relaxed)),
            sum: f64::from_bits(self.sum.load(Ordering::Relaxed)),
        }
    }
}

impl HistogramFn for GrowingHistogram {
    fn record(&self, value: f64) {
        let bucket = BOUNDS.partition_point(|(bound, _)| *bound < value);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        // A closure that never gives up never fails.
        let _ = self
            .sum
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |sum| {
                Some((f64::from_bits(sum) + value).to_bits())
            });
    }
}

impl HistogramValue {
    /// Adds another distribution.
    pub(super) fn add(&mut self, other: &Self) {
        for (count, more) in self.buckets.iter_mut().zip(other.buckets) {
            *count += more;
        }
        self.sum += other.sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_the_same_in_both_units_and_grow() {
        for (ms, text) in BOUNDS {
            assert_eq!(format!("{:?}", ms / 1000.0), text);
        }
        assert!(BOUNDS.windows(2).all(|two| two[0].0 < two[1].0));
    }

    #[test]
    fn time_counts_in_the_bucket_whose_bound_it_reaches() {
        let distribution = GrowingHistogram::default();
        for value in [0.0, 1.0, 1.1, 2.0, 60_000.0, 60_000.1] {
            distribution.record(value);
        }
        let mut buckets = [0; BUCKETS];
        buckets[0] = 2;
        buckets[1] = 2;
        buckets[13] = 1;
        buckets[14] = 1;
        let sum = [0.0, 1.0, 1.1, 2.0, 60_000.0, 60_000.1].iter().sum();
        assert_eq!(distribution.read(), HistogramValue { buckets, sum });
    }
}
