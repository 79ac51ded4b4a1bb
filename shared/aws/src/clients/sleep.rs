//! The sleep of the SDK's timeouts.

use std::time::Duration;

use aws_smithy_async::rt::sleep::{AsyncSleep, Sleep, TokioSleep};
use tokio::task::coop::unconstrained;

/// Tokio's sleep, outside of the budget of its task: a response that is always ready for more would
/// otherwise use that up before its timeout is looked at.
#[derive(Debug, Default)]
pub(super) struct PunctualSleep(TokioSleep);

impl AsyncSleep for PunctualSleep {
    fn sleep(&self, length: Duration) -> Sleep {
        Sleep::new(unconstrained(self.0.sleep(length)))
    }
}

#[cfg(test)]
mod tests {
    use aws_smithy_async::future::timeout::Timeout;
    use tokio::task::coop::consume_budget;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn timeout_beside_work_that_is_always_ready_comes() {
        let flood = Box::pin(async {
            tokio::time::advance(Duration::from_secs(2)).await;
            for _ in 0..1_000_000 {
                consume_budget().await;
            }
        });
        let sleep = PunctualSleep::default().sleep(Duration::from_secs(1));
        assert!(Timeout::new(flood, sleep).await.is_err());
    }
}
