//! Sums over all labels of the few metrics of which the console draws charts. A measurement costs
//! one more atomic addition, without a lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{Counter, CounterFn, Histogram, HistogramFn};
use posthaste_console::history::{ANSWER_BUCKETS, ResponseTimes, StepCounts, saturated_count};

/// The sums, as they grow.
#[derive(Debug)]
pub struct MetricTotals {
    delivered: AtomicU64,
    failed: AtomicU64,
    dead_lettered: AtomicU64,
    unkept: AtomicU64,
    answers: [AtomicU64; ANSWER_BUCKETS],
}

/// The sums at one time.
#[derive(Debug, Clone, Copy)]
pub struct TotalsSnapshot {
    delivered: u64,
    failed: u64,
    dead_lettered: u64,
    unkept: u64,
    answers: [u64; ANSWER_BUCKETS],
}

/// A counter that is also added to a sum.
struct SummedCounter {
    series: Counter,
    totals: Arc<MetricTotals>,
    sum: fn(&MetricTotals) -> &AtomicU64,
}

/// A histogram that is also added up in buckets.
struct SummedHistogram {
    series: Histogram,
    totals: Arc<MetricTotals>,
}

impl Default for MetricTotals {
    fn default() -> Self {
        let [delivered, failed, dead_lettered, unkept] = [0; 4].map(AtomicU64::new);
        Self {
            delivered,
            failed,
            dead_lettered,
            unkept,
            answers: [0; ANSWER_BUCKETS].map(AtomicU64::new),
        }
    }
}

impl MetricTotals {
    /// The sums now. What is counted meanwhile may be in some of them and not yet in others.
    pub fn read(&self) -> TotalsSnapshot {
        TotalsSnapshot {
            delivered: load_sum(&self.delivered),
            failed: load_sum(&self.failed),
            dead_lettered: load_sum(&self.dead_lettered),
            unkept: load_sum(&self.unkept),
            answers: self.answers.each_ref().map(load_sum),
        }
    }

    /// A counter that is also added to its sum, if its metric has one.
    pub(super) fn summed_counter(self: &Arc<Self>, name: &str, series: Counter) -> Counter {
        let sum: fn(&Self) -> &AtomicU64 = match name {
            "DeliverySuccessCount" => |totals| &totals.delivered,
            "DeliveryAttemptFailCount" => |totals| &totals.failed,
            "DeadLetteredCount" => |totals| &totals.dead_lettered,
            "DroppedEventCount" | "SkippedEventCount" => |totals| &totals.unkept,
            _ => return series,
        };
        Counter::from_arc(Arc::new(SummedCounter {
            series,
            totals: Arc::clone(self),
            sum,
        }))
    }

    /// A histogram that is also added up, if its metric is.
    pub(super) fn summed_histogram(self: &Arc<Self>, name: &str, series: Histogram) -> Histogram {
        if name != "DestinationProcessingDurationInMs" {
            return series;
        }
        Histogram::from_arc(Arc::new(SummedHistogram {
            series,
            totals: Arc::clone(self),
        }))
    }
}

impl TotalsSnapshot {
    /// The counts that were added since an earlier time.
    pub fn added_since(&self, before: &Self) -> StepCounts {
        let mut answers = [0; ANSWER_BUCKETS];
        for (bucket, answers) in answers.iter_mut().enumerate() {
            *answers = added_count(self.answers[bucket], before.answers[bucket]);
        }
        StepCounts {
            delivered: added_count(self.delivered, before.delivered),
            failed: added_count(self.failed, before.failed),
            dead_lettered: added_count(self.dead_lettered, before.dead_lettered),
            unkept: added_count(self.unkept, before.unkept),
            answers: ResponseTimes::from(answers),
        }
    }
}

fn load_sum(sum: &AtomicU64) -> u64 {
    sum.load(Ordering::Relaxed)
}

fn added_count(now: u64, before: u64) -> u32 {
    saturated_count(now.saturating_sub(before))
}

impl CounterFn for SummedCounter {
    fn increment(&self, value: u64) {
        self.series.increment(value);
        (self.sum)(&self.totals).fetch_add(value, Ordering::Relaxed);
    }

    fn absolute(&self, value: u64) {
        self.series.absolute(value);
    }
}

impl HistogramFn for SummedHistogram {
    fn record(&self, value: f64) {
        self.series.record(value);
        self.totals.answers[ResponseTimes::bucket_index(value)].fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use posthaste_deliver::UNANSWERED;

    use super::*;
    use crate::metrics::{MetricSeries, SeriesBy};

    /// Measurements are summed over all labels, also those for whose series there is no place.
    #[test]
    fn totals_include_measurements_without_a_series() {
        let series = MetricSeries::new(SeriesBy::Total);
        let before = series.totals().read();
        metrics::with_local_recorder(&series, || {
            for topic in ["a", "b", "c", "d", "e"] {
                metrics::counter!("DeliverySuccessCount", "topic" => topic).increment(2);
                metrics::histogram!("DestinationProcessingDurationInMs", "topic" => topic)
                    .record(7.0);
            }
            metrics::histogram!(target: UNANSWERED, "DestinationProcessingDurationInMs")
                .record(7.0);
            metrics::counter!("DeliveryAttemptFailCount").increment(3);
            metrics::counter!("DeadLetteredCount", "reason" => "EndpointGone").increment(1);
            metrics::counter!("DroppedEventCount", "reason" => "EndpointGone").increment(4);
            metrics::counter!("SkippedEventCount").increment(5);
            metrics::counter!("PublishSuccessCount").increment(50);
            metrics::histogram!("PublishSuccessLatencyInMs").record(900.0);
        });
        let after = series.totals().read();
        let counts = after.added_since(&before);
        assert_eq!(
            (counts.delivered, counts.failed, counts.dead_lettered),
            (10, 3, 1)
        );
        assert_eq!(counts.unkept, 9);
        let mut answers = ResponseTimes::default();
        (0..5).for_each(|_| answers.record_duration(7.0));
        assert_eq!(counts.answers, answers);
        assert_eq!(after.added_since(&after), StepCounts::default());
    }
}
