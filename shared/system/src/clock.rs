//! The machine's clock. Nothing else in the program reads it.

use std::future::Future;
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

use posthaste_core::model::Timestamp;
use posthaste_ports::Clock;
use tokio::task::coop::unconstrained;

#[expect(
    clippy::disallowed_methods,
    reason = "the one adapter that reads the real clock"
)]
static PROCESS_START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The machine's clock. `monotonic` counts from the first reading in this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one adapter that reads the real clock"
    )]
    fn now(&self) -> Timestamp {
        // A machine set to a time before 1970 is taken to be at its start: a `Timestamp` is never
        // negative.
        let since_epoch = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::EPOCH + since_epoch
    }

    fn monotonic(&self) -> Duration {
        PROCESS_START.elapsed()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the one adapter that reads the real clock"
    )]
    fn sleep(&self, length: Duration) -> impl Future<Output = ()> + Send {
        // Outside of tokio's budget: every deadline is a sleep, and work that is always ready uses
        // the budget of its task up before its deadline is looked at.
        unconstrained(tokio::time::sleep(length))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use tokio::task::coop::{has_budget_remaining, poll_proceed};

    use super::*;

    /// A deadline comes also in a turn whose budget was used up by work that is always ready.
    #[tokio::test(start_paused = true)]
    async fn sleep_beside_work_that_is_always_ready_ends() {
        let mut sleep = pin!(SystemClock.sleep(Duration::from_secs(2)));
        let mut turn = async |expected: Poll<()>| {
            poll_fn(|cx| {
                while let Poll::Ready(coop) = poll_proceed(cx) {
                    coop.made_progress();
                }
                assert!(!has_budget_remaining());
                assert_eq!(sleep.as_mut().poll(cx), expected);
                Poll::Ready(())
            })
            .await;
            tokio::task::yield_now().await;
        };
        turn(Poll::Pending).await;
        tokio::time::advance(Duration::from_secs(2)).await;
        turn(Poll::Ready(())).await;
    }

    #[tokio::test]
    async fn the_system_clock_runs_forward() {
        let before = SystemClock.monotonic();
        SystemClock.sleep(Duration::ZERO).await;
        assert!(SystemClock.monotonic() >= before);
        // Later than the day this was written.
        assert!(SystemClock.now() > Timestamp::parse("2020-01-01T00:00:00Z").unwrap());
    }
}
