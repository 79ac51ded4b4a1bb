//! Work with a deadline by the clock port. Work that does not end in time is dropped, and its last
//! effect is unknown.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use posthaste_ports::Clock;

/// The output of `work`, or `None` if it has not ended by `deadline`, a time of
/// [`Clock::monotonic`]. Work that ends without waiting succeeds even past the deadline.
pub fn timeout_at<T>(
    clock: &impl Clock,
    deadline: Duration,
    work: impl Future<Output = T>,
) -> impl Future<Output = Option<T>> {
    timeout(clock, deadline.saturating_sub(clock.monotonic()), work)
}

/// The output of `work`, or `None` if it takes longer than `length`.
pub fn timeout<T>(
    clock: &impl Clock,
    length: Duration,
    work: impl Future<Output = T>,
) -> impl Future<Output = Option<T>> {
    Limited {
        work,
        end: None,
        sleep: move || clock.sleep(length),
        is_over: false,
        is_strict: false,
    }
}

/// The output of `work` like [`timeout_at`], for work that must not continue once the deadline has
/// come: not even if what it waited for, such as a permit, became free at the same moment.
pub fn stop_at<T>(
    clock: &impl Clock,
    deadline: Duration,
    work: impl Future<Output = T>,
) -> impl Future<Output = Option<T>> {
    let is_over = time_left(clock, deadline).is_zero();
    Limited {
        work,
        end: None,
        sleep: move || clock.sleep(time_left(clock, deadline)),
        is_over,
        is_strict: true,
    }
}

fn time_left(clock: &impl Clock, deadline: Duration) -> Duration {
    deadline.saturating_sub(clock.monotonic())
}

pin_project! {
    /// Work with an end. Most work does not wait, and then it needs no timer. Not an `async fn`,
    /// which would hold the work twice.
    struct Limited<W, S, F> {
        #[pin]
        work: W,
        #[pin]
        end: Option<S>,
        sleep: F,
        // The end came before the work began.
        is_over: bool,
        // The end comes first where both are ready.
        is_strict: bool,
    }
}

impl<W: Future, S: Future<Output = ()>, F: Fn() -> S> Future for Limited<W, S, F> {
    type Output = Option<W::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if *this.is_over || (*this.is_strict && is_at_end(this.end.as_mut(), cx)) {
            return Poll::Ready(None);
        }
        if let Poll::Ready(output) = this.work.poll(cx) {
            return Poll::Ready(Some(output));
        }
        let is_new = this.end.is_none();
        if is_new {
            this.end.set(Some((this.sleep)()));
        }
        if (is_new || !*this.is_strict) && is_at_end(this.end, cx) {
            Poll::Ready(None)
        } else {
            Poll::Pending
        }
    }
}

fn is_at_end(end: Pin<&mut Option<impl Future<Output = ()>>>, cx: &mut Context<'_>) -> bool {
    end.as_pin_mut().is_some_and(|end| end.poll(cx).is_ready())
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::pin;
    use std::task::Waker;

    use posthaste_core::model::Timestamp;
    use posthaste_system::SystemClock;
    use posthaste_testkit::ManualClock;
    use tokio::task::coop::consume_budget;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn poll<T>(work: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        work.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn work_that_never_ends_is_given_up_at_the_deadline() {
        let clock = ManualClock::new(Timestamp::EPOCH);
        clock.advance(SECOND);
        let mut work = pin!(timeout_at(&clock, SECOND * 3, pending::<()>()));
        let mut stopped = pin!(stop_at(&clock, SECOND * 3, pending::<()>()));
        for expected in [Poll::Pending, Poll::Pending, Poll::Ready(None)] {
            assert_eq!(
                (poll(work.as_mut()), poll(stopped.as_mut())),
                (expected, expected)
            );
            clock.advance(SECOND);
        }
    }

    /// Work that waits for nothing ends even past the deadline, and stopped work does not.
    #[test]
    fn ready_work_past_the_deadline_ends_unless_stopped() {
        let clock = ManualClock::new(Timestamp::EPOCH);
        clock.advance(SECOND);
        assert_eq!(
            poll(pin!(timeout_at(&clock, Duration::ZERO, ready(7)))),
            Poll::Ready(Some(7))
        );
        assert_eq!(
            poll(pin!(stop_at(&clock, Duration::ZERO, ready(7)))),
            Poll::Ready(None)
        );
        assert_eq!(
            poll(pin!(stop_at(&clock, SECOND * 2, ready(7)))),
            Poll::Ready(Some(7))
        );
    }

    /// Work that is always ready for more, as a socket is whose peer never stops sending. It ends
    /// by itself, so that a test that fails does not hang.
    async fn flood() {
        tokio::task::yield_now().await;
        tokio::time::advance(SECOND * 2).await;
        for _ in 0..1_000_000 {
            consume_budget().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_is_always_ready_ends_at_its_deadline() {
        let clock = SystemClock;
        assert_eq!(timeout(&clock, SECOND, flood()).await, None);
        let deadline = clock.monotonic() + SECOND;
        assert_eq!(timeout_at(&clock, deadline, flood()).await, None);
        let deadline = clock.monotonic() + SECOND;
        assert_eq!(stop_at(&clock, deadline, flood()).await, None);
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
