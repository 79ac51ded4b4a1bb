//! Until when each part of an invocation may go on, so that its answer goes out before the invocation is ended from
//! outside: what that cuts off answers nothing, and everything it delivered is posted again.
//!
//! Backwards from the deadline, in the two minutes that an invocation has on AWS and embedded (`posthaste_lambda::redelivery_backoff`
//! and `posthaste_aws::lambda` have what comes after):
//!
//! | at least | what |
//! |---|---|
//! | 10 s | messages are replaced in the queue ([`QUEUE_TIME`]) |
//! | 15 s before that | parked objects are written (the rest of [`SETTLING_TIME`]) |
//! | 60 s before that | the longest attempt (`ATTEMPT_TIMEOUT_MAX`) |
//! | 15 s, from the beginning | messages are read and looked up ([`TAKING_IN_TIME`]) |
//!
//! What is left between the last two, some ten seconds, is for waiting for a link's lane and for stored payloads. A
//! shorter attempt may wait longer.

use std::future::Future;
use std::time::Duration;

use posthaste_ports::{Clock, Ports};

use crate::Deliver;
use crate::invocation::Invocation;

/// What is kept for settling after the last attempt. One call to SQS or S3 takes 20 s at most, its repetitions included
/// (`OPERATION_TIMEOUT` of posthaste-aws), so that a service which hangs is seen as an error and not cut off.
pub const SETTLING_TIME: Duration = Duration::from_secs(25);

/// What of that is kept for the queue alone. What could not be parked by then waits in the queue instead.
pub const QUEUE_TIME: Duration = Duration::from_secs(10);

/// The longest time for reading messages and looking up whose they are, at the beginning. A topic that cannot be read
/// keeps its neighbours for as long, and its own messages are then handed back.
pub const TAKING_IN_TIME: Duration = Duration::from_secs(15);

impl Invocation {
    /// When the last attempt must have ended.
    pub(crate) fn attempts_end(&self) -> Duration {
        self.deadline.saturating_sub(SETTLING_TIME)
    }

    /// When an attempt of this length must have begun; `None` if that was before the clock began to run.
    pub(crate) fn last_start(&self, timeout: Duration) -> Option<Duration> {
        self.deadline.checked_sub(SETTLING_TIME)?.checked_sub(timeout)
    }

    /// When nothing but the queue is asked any more.
    pub(crate) fn parking_ends(&self) -> Duration {
        self.deadline.saturating_sub(QUEUE_TIME)
    }
}

impl<P: Ports> Deliver<P> {
    /// Does the work, but not past `end`, a time of the clock's `monotonic`: then it is dropped, and `None`. What could
    /// only begin at the end is not begun, also when somebody else's end has just made room for it.
    pub(crate) async fn before<T>(&self, end: Duration, work: impl Future<Output = T>) -> Option<T> {
        let left = end.saturating_sub(self.ports.clock.monotonic());
        tokio::select! {
            biased;
            () = self.ports.clock.sleep(left) => None,
            done = work => Some(done),
        }
    }
}
