//! Schedules: a job at a fixed rate on the clock port, one run at a time.

use std::future::Future;
use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_ports::Clock;
use tokio_util::sync::CancellationToken;

/// Runs `job` at once and then every `period`, until `stop` is cancelled. A job that takes longer
/// delays its next run; one that panics is logged and runs again. This completes after the end of
/// the last run.
pub async fn run_every<C, J, F>(
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
        run(name, job()).await;
        let rest = next.saturating_sub(clock.monotonic());
        stop.run_until_cancelled(clock.sleep(rest)).await;
    }
}

/// Runs `job` whenever the clock shows a whole multiple of `period`, until `stop` is cancelled. A
/// run that takes longer than half of the period leaves the next one out; one that panics is logged
/// and runs again.
pub async fn run_on_the_clock<C, J, F>(
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
    while stop
        .run_until_cancelled(clock.sleep(until_next(period, clock.now())))
        .await
        .is_some()
    {
        run(name, job()).await;
    }
}

/// The time until the next multiple of a period that is at least half a period away: a sleep that
/// ends a little early is not followed by a second run.
fn until_next(period: Duration, now: Timestamp) -> Duration {
    let now = Duration::from_millis(now.as_millis());
    let half = period / 2;
    let periods = (now + half).as_nanos() / period.as_nanos() + 1;
    let next = period.as_nanos() * periods;
    Duration::from_nanos_u128(next).saturating_sub(now)
}

async fn run(name: &'static str, job: impl Future<Output = ()> + Send + 'static) {
    if let Err(error) = tokio::spawn(job).await {
        tracing::error!(job = name, %error, "a scheduled job failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use posthaste_testkit::ManualClock;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test]
    async fn a_job_runs_at_once_and_every_period_even_after_a_panic() {
        let clock = ManualClock::new(Timestamp::EPOCH);
        let stop = CancellationToken::new();
        let runs = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&runs);
        let job = move || {
            let counted = Arc::clone(&counted);
            async move {
                assert_ne!(
                    counted.fetch_add(1, Ordering::SeqCst),
                    1,
                    "the second run fails"
                );
            }
        };
        let schedule = tokio::spawn(run_every(
            "test",
            Duration::from_mins(1),
            clock.clone(),
            stop.clone(),
            job,
        ));
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

    #[tokio::test]
    async fn a_job_on_the_clock_runs_at_each_multiple_of_its_period() {
        let clock = ManualClock::new(Timestamp::from_millis(3_000));
        let stop = CancellationToken::new();
        let runs = Arc::new(Mutex::new(Vec::new()));
        let job = {
            let clock = clock.clone();
            let runs = Arc::clone(&runs);
            move || {
                runs.lock().push(clock.now().as_millis());
                std::future::ready(())
            }
        };
        let schedule = run_on_the_clock(
            "test",
            Duration::from_secs(10),
            clock.clone(),
            stop.clone(),
            job,
        );
        let schedule = tokio::spawn(schedule);
        for _ in 0..3 {
            while clock.sleepers() == 0 {
                tokio::task::yield_now().await;
            }
            clock.advance_to_next();
        }
        while clock.sleepers() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(*runs.lock(), [10_000, 20_000, 30_000]);
        stop.cancel();
        schedule.await.unwrap();
    }

    #[test]
    fn early_or_late_run_is_followed_by_the_next_period() {
        let check = |now_ms, expected_ms| {
            let rest = until_next(Duration::from_secs(10), Timestamp::from_millis(now_ms));
            assert_eq!(rest, Duration::from_millis(expected_ms), "{now_ms}");
        };
        check(20_000, 10_000);
        check(19_999, 10_001);
        check(20_001, 9_999);
        check(24_999, 5_001);
        check(25_000, 15_000);
    }
}
