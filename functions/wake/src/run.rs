//! One run: its ports and its time. A run ends by itself before its deadline, because a run that is
//! killed cannot write down what it sent, and the next run would send that again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use posthaste_ports::{Clock, Ports};
use posthaste_services::{LeftWork, timeout_at};

use crate::cancellations::CancellationCache;
use crate::ports::WakePorts;

/// Time before the deadline in which nothing new begins: a request is answered in less, or not at
/// all.
const BEGUN_BEFORE: Duration = Duration::from_secs(13);

/// Time before the deadline at which the sends under way are given up, so that what was sent is
/// still written down.
const SENT_BEFORE: Duration = Duration::from_secs(8);

/// Time before the deadline at which everything else is given up, so that the lease is still given
/// back.
const WORKED_BEFORE: Duration = Duration::from_secs(3);

/// One run. Its times are times of [`Clock::monotonic`].
pub(crate) struct WakeRun<'a, P: Ports> {
    pub(crate) ports: &'a WakePorts<P>,
    /// From then on nothing new begins.
    pub(crate) begin: Duration,
    /// Sends end by then.
    pub(crate) send: Duration,
    /// All work ends by then.
    work: Duration,
    /// The rule by which work counts as left by its process.
    pub(crate) left: LeftWork,
    is_stopped: &'a AtomicBool,
    found_work: &'a AtomicBool,
    /// The last look at what was taken back.
    pub(crate) cancellations: &'a CancellationCache,
}

// Not derived: that would ask for ports that can be copied.
impl<P: Ports> Copy for WakeRun<'_, P> {}

impl<P: Ports> Clone for WakeRun<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<'a, P: Ports> WakeRun<'a, P> {
    /// A run that must have ended by `deadline`. Once `is_stopped` is set it releases no held
    /// delivery. `found_work` is set by the first job that finds something to do, or cannot
    /// look.
    pub(crate) fn with_deadline(
        deadline: Duration,
        ports: &'a WakePorts<P>,
        is_stopped: &'a AtomicBool,
        found_work: &'a AtomicBool,
        cancellations: &'a CancellationCache,
    ) -> Self {
        let [begin, send, work] = [BEGUN_BEFORE, SENT_BEFORE, WORKED_BEFORE]
            .map(|before| deadline.saturating_sub(before));
        Self {
            ports,
            begin,
            send,
            work,
            left: LeftWork::Old,
            is_stopped,
            found_work,
            cancellations,
        }
    }

    /// The same run over work that was left in this sense.
    pub(crate) fn with_left_work(self, left: LeftWork) -> Self {
        Self { left, ..self }
    }

    /// The same run, which begins nothing after half of the time from now, so that something else
    /// has the other half.
    pub(crate) fn with_half_time(self) -> Self {
        let now = self.ports.clock.monotonic();
        Self {
            begin: now + self.begin.saturating_sub(now) / 2,
            ..self
        }
    }

    /// Tells whether there is time to begin something.
    pub(crate) fn has_time(self) -> bool {
        self.ports.clock.monotonic() < self.begin
    }

    /// Tells whether there is time to begin something that a process which is about to end leaves
    /// to the next.
    pub(crate) fn may_begin(self) -> bool {
        self.has_time() && !self.is_stopped.load(Ordering::Relaxed)
    }

    /// Notes that there is work, or that a job could not find out, so that the next run does not
    /// rest.
    pub(crate) fn note_work(self) {
        self.found_work.store(true, Ordering::Relaxed);
    }

    /// Tells whether all jobs looked for work and found none. A run that ran out of time may not
    /// have looked.
    pub(crate) fn was_idle(self) -> bool {
        self.may_begin() && !self.found_work.load(Ordering::Relaxed)
    }

    /// The output of `work`, or `None` if it has not ended when all work must.
    pub(crate) fn in_time<T>(
        self,
        work: impl Future<Output = T>,
    ) -> impl Future<Output = Option<T>> {
        timeout_at(&self.ports.clock, self.work, Box::pin(work))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Kit;

    const SECOND: Duration = Duration::from_secs(1);

    /// A run begins nothing in its last seconds, and its half begins nothing past half of the time.
    #[test]
    fn run_begins_nothing_in_its_last_seconds_or_a_half_past_half() {
        let check = |elapsed, expected| {
            let kit = Kit::new();
            let run = kit.run();
            let half = run.with_half_time();
            kit.clock.advance(elapsed);
            assert_eq!((half.has_time(), run.has_time()), expected, "{elapsed:?}");
        };
        check(Duration::ZERO, (true, true));
        check(20 * SECOND, (true, true));
        check(21 * SECOND, (false, true));
        check(41 * SECOND, (false, true));
        check(42 * SECOND, (false, false));
    }

    #[test]
    fn a_process_that_is_to_end_begins_only_what_cannot_wait() {
        let kit = Kit::new();
        assert!(kit.run().may_begin());
        kit.stop();
        assert_eq!((kit.run().may_begin(), kit.run().has_time()), (false, true));
    }
}
