//! Deliver's side on AWS: the reports of one process, written while messages have to wait.

use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::pressure::{
    DrainCount, DrainReport, OwnWait, REPORT_INTERVAL, REPORT_WINDOW_MAX, REPORTED_WAIT_MIN,
    SubscriptionDrain,
};
use posthaste_core::stored::drain_report::render_drain_report;
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ObjectStore, PutCondition};

use super::meter::{DrainMeter, MeterReading};
use crate::timeout_at::timeout;

/// The longest time for writing a report. It must end before the invocation does: the invocation's
/// response is worth more than its report.
pub const DRAIN_POST_TIMEOUT: Duration = Duration::from_secs(1);

/// Reports the drain rate of one process of deliver. A process that received no message late writes
/// nothing, so that the healthy path costs nothing.
#[derive(Debug)]
pub struct DrainPost<S, C> {
    meter: DrainMeter,
    store: S,
    clock: C,
    key: String,
    posted_at: Mutex<Option<Duration>>,
}

impl<S: ObjectStore, C: Clock> DrainPost<S, C> {
    /// Reports the counts of `meter` through the state bucket, under the name of this process: a
    /// UUID.
    pub fn new(meter: DrainMeter, store: S, clock: C, instance: &str) -> Self {
        Self {
            meter,
            store,
            clock,
            key: layout::drain_report_key(instance),
            posted_at: Mutex::default(),
        }
    }

    /// Writes a report if a message was received late and the last report is old enough. Called
    /// after every invocation, up to [`DRAIN_POST_TIMEOUT`] before its end. A report that
    /// cannot be written is lost; the next one covers its own time.
    pub async fn post_if_due(&self) {
        let Some(report) = self.due_report() else {
            return;
        };
        let put = self.store.put(
            &self.key,
            render_drain_report(&report),
            PutCondition::Always,
        );
        match timeout(&self.clock, DRAIN_POST_TIMEOUT, put).await {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "drain rate not reported"
                );
            }
            None => tracing::warn!("drain rate not reported in time"),
        }
    }

    fn due_report(&self) -> Option<DrainReport> {
        let now = self.clock.monotonic();
        if self.meter.waited_max() < REPORTED_WAIT_MIN {
            // The count then shows how much there was to do, and not how fast this process is.
            self.meter.take_reading(now);
            return None;
        }
        let mut posted_at = self.posted_at.lock();
        if posted_at.is_some_and(|at| now.saturating_sub(at) < REPORT_INTERVAL) {
            return None;
        }
        let taken = self.meter.take_reading(now);
        let window = now.saturating_sub(taken.all.began_at?);
        if window > REPORT_WINDOW_MAX {
            return None;
        }
        *posted_at = Some(now);
        Some(build_report(taken, window))
    }
}

/// The report of these counts. What cannot be told to be of a subscription that waited for itself
/// is of the others.
fn sum_counts(drains: &[&SubscriptionDrain]) -> DrainCount {
    let counts = drains.iter().map(|drain| drain.count);
    counts.fold(DrainCount::default(), DrainCount::plus)
}

fn build_report(taken: MeterReading, window: Duration) -> DrainReport {
    let (waited, others): (Vec<_>, Vec<_>) = taken
        .subscriptions
        .iter()
        .partition(|drain| drain.own_wait == OwnWait::Throughout);
    let self_limited = sum_counts(&waited);
    let others = sum_counts(&others);
    // Messages that were counted without their subscription are among the sums alone.
    let settled = taken.all.messages.saturating_sub(self_limited.settled);
    let is_of_others = others.settled == settled;
    DrainReport {
        window,
        shared: DrainCount {
            received: if is_of_others {
                others.received
            } else {
                settled
            },
            settled,
            waited_max: if is_of_others {
                others.waited_max
            } else {
                taken.all.waited_max
            },
        },
        self_limited,
        topics: taken.topics,
    }
}
