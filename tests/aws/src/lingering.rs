//! Work that sleeps for moments, on a clock that is moved by hand.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use posthaste_ports::Clock;
use posthaste_testkit::ManualClock;

/// The longest sleep over which the clock is moved.
const LINGER_MAX: Duration = Duration::from_secs(1);

/// Runs `work`, and moves the clock over the short sleeps in it once nothing else moves.
pub async fn lingering<T>(clock: &ManualClock, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    loop {
        let idle = pin!(tokio::task::yield_now());
        match select(work, idle).await {
            Either::Left((done, _)) => return done,
            Either::Right(((), unfinished)) => work = unfinished,
        }
        if clock
            .next_due()
            .is_some_and(|due| due <= clock.now() + LINGER_MAX)
        {
            clock.advance_to_next();
        }
    }
}
