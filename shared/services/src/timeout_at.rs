//! Work with a deadline by the clock port. Work that does not end in time is dropped, and its last effect is
//! unknown.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use posthaste_ports::Clock;

/// The output of `work`, or `None` if it has not ended by `deadline`, a time of [`Clock::monotonic`]. Work
/// that ends without waiting succeeds even past the deadline.
pub async fn timeout_at<T>(
    clock: &impl Clock,
    deadline: Duration,
    work: impl Future<Output = T>,
) -> Option<T> {
    timeout(clock, deadline.saturating_sub(clock.monotonic()), work).await
}

/// The output of `work`, or `None` if it takes longer than `length`.
pub async fn timeout<T>(clock: &impl Clock, length: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        output = work => Some(output),
        () = clock.sleep(length) => None,
    }
}

/// The output of `work` like [`timeout_at`], for work that must not go on once the deadline has come: not
/// even if what it waited for, such as a permit, became free at the same moment.
pub async fn stop_at<T>(clock: &impl Clock, deadline: Duration, work: impl Future<Output = T>) -> Option<T> {
    let length = deadline.saturating_sub(clock.monotonic());
    if length.is_zero() {
        return None;
    }
    let (mut work, mut end, mut has_waited) = (pin!(work), pin!(clock.sleep(length)), false);
    poll_fn(|cx| {
        if has_waited && end.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        if let Poll::Ready(output) = work.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        // Most work does not wait, and then it needs no timer.
        if !has_waited {
            has_waited = true;
            return end.as_mut().poll(cx).map(|()| None);
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::{Context, Waker};

    use posthaste_core::model::Timestamp;
    use posthaste_testkit::ManualClock;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn poll<T>(work: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        work.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn work_that_never_ends_is_given_up_at_the_deadline() {
        let clock = ManualClock::new(Timestamp::EPOCH);
        clock.advance(SECOND);
        let mut work = pin!(timeout_at(&clock, SECOND * 3, pending::<()>()));
        let mut stopped = pin!(stop_at(&clock, SECOND * 3, pending::<()>()));
        for expected in [Poll::Pending, Poll::Pending, Poll::Ready(None)] {
            assert_eq!((poll(work.as_mut()), poll(stopped.as_mut())), (expected, expected));
            clock.advance(SECOND);
        }
    }

    #[test]
    fn past_the_deadline_work_that_waits_for_nothing_ends_and_stopped_work_does_not() {
        let clock = ManualClock::new(Timestamp::EPOCH);
        clock.advance(SECOND);
        assert_eq!(poll(pin!(timeout_at(&clock, Duration::ZERO, ready(7)))), Poll::Ready(Some(7)));
        assert_eq!(poll(pin!(stop_at(&clock, Duration::ZERO, ready(7)))), Poll::Ready(None));
        assert_eq!(poll(pin!(stop_at(&clock, SECOND * 2, ready(7)))), Poll::Ready(Some(7)));
    }

    #[test]
    fn a_length_counts_from_the_first_poll() {
        let clock = ManualClock::new(Timestamp::EPOCH);
        let mut work = pin!(timeout(&clock, SECOND, pending::<()>()));
        assert_eq!(poll(work.as_mut()), Poll::Pending);
        clock.advance(SECOND);
        assert_eq!(poll(work.as_mut()), Poll::Ready(None));
    }
}
