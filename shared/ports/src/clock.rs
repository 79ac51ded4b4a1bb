//! Time as a port: nothing else in the program reads a clock or sleeps.

use std::future::Future;
use std::time::Duration;

use posthaste_core::model::Timestamp;

/// A clock. Clones tell the same time.
pub trait Clock: Clone + Send + Sync + 'static {
    /// The wall-clock time. It may jump; deadlines that are stored use it.
    fn now(&self) -> Timestamp;

    /// Time since some fixed point of this process. It never jumps back; lengths are measured with
    /// it.
    fn monotonic(&self) -> Duration;

    /// Completes no earlier than `length` from now, by this clock. Dropping the future cancels it.
    /// Polled beside work that is always ready, the future is not held back by the runtime's budget
    /// of a task, because every deadline is a sleep.
    fn sleep(&self, length: Duration) -> impl Future<Output = ()> + Send;
}
