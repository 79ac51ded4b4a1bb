//! Deadlines of the parts of an invocation, so that it answers before it is ended from outside: an
//! invocation that is cut off answers nothing, and everything that it delivered is delivered again.
//!
//! Backwards from the end, in the two minutes that an invocation has on AWS and embedded
//! (`posthaste_lambda::redelivery_backoff` and `posthaste_aws::lambda` have what comes after):
//!
//! | at least | part |
//! |---|---|
//! | 10 s | messages are replaced in the queue ([`QUEUE_TIME`]) |
//! | 15 s before that | objects with waiting deliveries are written (the rest of [`SETTLING_TIME`]) |
//! | 2 s of these | records of the delivery log are sent (`RECORDS_TIME`) |
//! | 2 s of these | slots are given back (`GIVING_BACK_MAX`) |
//! | 60 s before that | the longest attempt (`ATTEMPT_TIMEOUT_MAX`) |
//! | 15 s, from the beginning | messages are read and looked up ([`RECEIVING_TIME`]) |
//!
//! Some ten seconds are left between the last two: for waiting until a limit on concurrency has
//! room, and for stored payloads. A shorter attempt may wait longer.

use std::time::Duration;

/// Time for settling after the last attempt. One call to SQS or S3 takes 20 s at most, its
/// repetitions included (`OPERATION_TIMEOUT` of posthaste-aws), so that a hanging service is seen
/// as an error and not cut off.
pub const SETTLING_TIME: Duration = Duration::from_secs(25);

/// The part of it that is for the queue alone. Deliveries that were not stored by then wait in the
/// queue instead.
pub const QUEUE_TIME: Duration = Duration::from_secs(10);

/// The longest time for reading messages and looking up their subscriptions, at the beginning. A
/// topic that cannot be read delays its neighbours for that long, and its own messages are handed
/// back.
pub const RECEIVING_TIME: Duration = Duration::from_secs(15);

/// The beginning and the end of an invocation, by the clock's `monotonic`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InvocationDeadlines {
    pub(crate) began: Duration,
    pub(crate) end: Duration,
}

impl InvocationDeadlines {
    /// The end of receiving.
    pub(crate) fn receiving_end(self) -> Duration {
        (self.began + RECEIVING_TIME).min(self.storing_end())
    }

    /// The end of the last attempt.
    pub(crate) fn attempts_end(self) -> Duration {
        self.end.saturating_sub(SETTLING_TIME)
    }

    /// The latest start of an attempt of this length; `None` if that was before the clock began to
    /// run.
    pub(crate) fn last_start(self, timeout: Duration) -> Option<Duration> {
        self.end.checked_sub(SETTLING_TIME)?.checked_sub(timeout)
    }

    /// The end of everything but replacing messages in the queue.
    pub(crate) fn storing_end(self) -> Duration {
        self.end.saturating_sub(QUEUE_TIME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    /// After receiving, an invocation of two minutes still has time for the longest attempt.
    #[test]
    fn two_minute_invocation_has_time_for_the_longest_attempt() {
        let deadlines = InvocationDeadlines {
            began: secs(1000),
            end: secs(1120),
        };
        assert_eq!(deadlines.receiving_end(), secs(1015));
        assert_eq!(deadlines.last_start(secs(60)), Some(secs(1035)));
        assert_eq!(deadlines.attempts_end(), secs(1095));
        assert_eq!(deadlines.storing_end(), secs(1110));
    }

    #[test]
    fn a_short_invocation_ends_receiving_early_enough_for_the_queue() {
        let deadlines = InvocationDeadlines {
            began: secs(1000),
            end: secs(1012),
        };
        assert_eq!(deadlines.receiving_end(), secs(1002));
        assert_eq!(deadlines.last_start(secs(1)), Some(secs(986)));
    }

    #[test]
    fn deadlines_before_the_clock_began_to_run_are_its_beginning() {
        let deadlines = InvocationDeadlines {
            began: Duration::ZERO,
            end: secs(5),
        };
        assert_eq!(
            [
                deadlines.receiving_end(),
                deadlines.attempts_end(),
                deadlines.storing_end()
            ],
            [Duration::ZERO; 3]
        );
        assert_eq!(deadlines.last_start(Duration::ZERO), None);
        let deadlines = InvocationDeadlines {
            began: Duration::ZERO,
            end: secs(30),
        };
        assert_eq!(
            (deadlines.last_start(secs(5)), deadlines.last_start(secs(6))),
            (Some(Duration::ZERO), None)
        );
    }
}
