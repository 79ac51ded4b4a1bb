//! Until when a run does what. It ends by itself before its deadline, because one that is killed has told nobody what it
//! sent, and sends it once more.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use posthaste_ports::Clock;

/// How long before the deadline nothing new is begun: a request is answered in less, or not at all.
const BEGUN_BEFORE: Duration = Duration::from_secs(13);

/// How long before the deadline the sends under way are given up, so that what was sent is still written down.
const SENT_BEFORE: Duration = Duration::from_secs(8);

/// How long before the deadline everything else is given up, so that the lease is still given back.
const WORKED_BEFORE: Duration = Duration::from_secs(3);

/// The limits of one run, as times of [`Clock::monotonic`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// From then on nothing new is begun.
    pub(crate) begin: Duration,
    /// Sends end by then.
    pub(crate) send: Duration,
    /// All work ends by then.
    pub(crate) work: Duration,
    /// The run's end.
    pub(crate) deadline: Duration,
}

impl Limits {
    /// Those of a run that must have ended by `deadline`.
    pub(crate) fn before(deadline: Duration) -> Self {
        Self {
            begin: deadline.saturating_sub(BEGUN_BEFORE),
            send: deadline.saturating_sub(SENT_BEFORE),
            work: deadline.saturating_sub(WORKED_BEFORE),
            deadline,
        }
    }

    /// The same, but nothing new is begun after half of the time from `now`, so that something else has the other half.
    pub(crate) fn half_from(self, now: Duration) -> Self {
        Self { begin: now + self.begin.saturating_sub(now) / 2, ..self }
    }
}

/// What `work` comes to, or `None` if it has not ended by `until`. It is dropped then, and what it did last is unknown.
pub(crate) async fn within<C: Clock, F: Future>(clock: &C, until: Duration, work: F) -> Option<F::Output> {
    let rest = clock.sleep(until.saturating_sub(clock.monotonic()));
    match select(pin!(work), pin!(rest)).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(_) => None,
    }
}
