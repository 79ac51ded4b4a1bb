//! The machine's clock. Nothing else in the program reads it.

use std::future::Future;
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

use posthaste_core::model::Timestamp;
use posthaste_ports::Clock;

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
        tokio::time::sleep(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_system_clock_runs_forward() {
        let before = SystemClock.monotonic();
        SystemClock.sleep(Duration::ZERO).await;
        assert!(SystemClock.monotonic() >= before);
        // Later than the day this was written.
        assert!(SystemClock.now() > Timestamp::parse("2020-01-01T00:00:00Z").unwrap());
    }
}
