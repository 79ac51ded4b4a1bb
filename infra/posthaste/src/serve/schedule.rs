//! Schedules: a job at a fixed rate on the clock port, one run at a time.

use std::future::Future;
use std::time::Duration;

use posthaste_ports::Clock;
use tokio_util::sync::CancellationToken;

/// Runs `job` at once and then every `period`, until `stop` is cancelled. A job that takes longer delays its
/// next run; one that panics is logged and runs again. This completes after the end of the last run.
pub async fn every<C, J, F>(
    name: &'static str,
    period: Duration,
    clock: C,
    stop: CancellationToken,
    mut job: J,
) where
    C: Clock,
    J: FnMut() -> F,
    F: Future<Output = ()> + Send + 'static,
{
    while !stop.is_cancelled() {
        let next = clock.monotonic() + period;
        if let Err(error) = tokio::spawn(job()).await {
            tracing::error!(job = name, %error, "a scheduled job failed");
        }
        let rest = next.saturating_sub(clock.monotonic());
        stop.run_until_cancelled(clock.sleep(rest)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_core::model::Timestamp;
    use posthaste_testkit::ManualClock;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test]
    async fn a_job_runs_at_once_and_every_period_even_after_a_panic() {
        let (clock, stop) = (ManualClock::new(Timestamp::EPOCH), CancellationToken::new());
        let runs = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&runs);
        let job = move || {
            let counted = Arc::clone(&counted);
            async move { assert_ne!(counted.fetch_add(1, Ordering::SeqCst), 1, "the second run fails") }
        };
        let schedule = tokio::spawn(every("test", Duration::from_mins(1), clock.clone(), stop.clone(), job));
        for expected in 1..=3 {
            while clock.sleepers() == 0 {
                tokio::task::yield_now().await;
            }
            assert_eq!(runs.load(Ordering::SeqCst), expected);
            clock.advance(Duration::from_mins(1));
        }
        stop.cancel();
        schedule.await.unwrap();
    }
}
