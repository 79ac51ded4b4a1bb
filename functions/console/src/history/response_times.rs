//! The durations of requests as counts in buckets, so that a percentile can be computed over any
//! time.

/// Buckets: eight for each power of ten from 0.1 ms to 100 s, and one for what took longer.
/// Neighbours are 33 % apart, and a percentile is taken from inside its bucket.
pub const ANSWER_BUCKETS: usize = 50;

/// Upper end of the first bucket, in milliseconds.
const FIRST_MS: f64 = 0.1;

/// Buckets for each power of ten.
const PER_DECADE: f64 = 8.0;

/// The bucket that ends at 100 s, the last with an end.
const LAST_BOUND: i32 = 48;

/// Counts of durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseTimes([u32; ANSWER_BUCKETS]);

impl Default for ResponseTimes {
    fn default() -> Self {
        Self([0; ANSWER_BUCKETS])
    }
}

impl From<[u32; ANSWER_BUCKETS]> for ResponseTimes {
    fn from(counts: [u32; ANSWER_BUCKETS]) -> Self {
        Self(counts)
    }
}

impl ResponseTimes {
    /// The bucket of a duration.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float becomes the nearest number of the type, and what is not a number becomes 0"
    )]
    pub fn bucket_index(duration_ms: f64) -> usize {
        let place = ((duration_ms / FIRST_MS).log10() * PER_DECADE).ceil();
        (place.max(0.0) as usize).min(ANSWER_BUCKETS - 1)
    }

    /// Counts one more of this duration.
    pub fn record_duration(&mut self, duration_ms: f64) {
        let count = &mut self.0[Self::bucket_index(duration_ms)];
        *count = count.saturating_add(1);
    }

    /// Adds the counts of another time.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count = count.saturating_add(more);
        }
    }

    /// The duration in milliseconds that this share of the requests, of 0 to 1, does not exceed.
    /// `None` without requests. Of requests that took longer than the last bound it is that
    /// bound.
    pub fn percentile(&self, share: f64) -> Option<f64> {
        let counts = self.0.map(f64::from);
        let mut before = 0.0;
        let wanted = counts.iter().sum::<f64>() * share;
        let mut end_ms = FIRST_MS;
        let ratio = 10_f64.powf(1.0 / PER_DECADE);
        let last_ms = FIRST_MS * ratio.powi(LAST_BOUND);
        for count in counts {
            if count > 0.0 && before + count >= wanted {
                let inside = ((wanted - before) / count).clamp(0.0, 1.0);
                return Some((end_ms / ratio * ratio.powf(inside)).min(last_ms));
            }
            before += count;
            end_ms *= ratio;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_in_the_bucket_that_ends_at_it_or_above() {
        let check = |ms, expected| assert_eq!(ResponseTimes::bucket_index(ms), expected, "{ms} ms");
        for (ms, bucket) in [
            (0.0, 0),
            (0.1, 0),
            (0.11, 1),
            (0.99, 8),
            (1.01, 9),
            (99_000.0, 48),
        ] {
            check(ms, bucket);
        }
        for (ms, bucket) in [
            (101_000.0, 49),
            (f64::INFINITY, 49),
            (f64::NAN, 0),
            (-1.0, 0),
        ] {
            check(ms, bucket);
        }
    }

    #[test]
    fn percentiles_are_near_those_of_the_durations_themselves() {
        let mut answers = ResponseTimes::default();
        assert_eq!(answers.percentile(0.5), None);
        (1..=1000).for_each(|ms| answers.record_duration(f64::from(ms)));
        for (share, exact) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0), (0.01, 10.0)] {
            let found = answers.percentile(share).unwrap();
            assert!(
                (found / exact - 1.0).abs() < 0.13,
                "{share}: {found} instead of {exact}"
            );
        }
    }

    #[test]
    fn counts_of_several_times_are_added() {
        let mut one = ResponseTimes::default();
        let mut other = ResponseTimes::default();
        one.record_duration(10.0);
        other.record_duration(200_000.0);
        one.add(&other);
        assert!(one.percentile(0.4).unwrap() < 11.0);
        assert!((one.percentile(1.0).unwrap() - 100_000.0).abs() < 1.0);
    }
}
