//! The speed of a replay: its events are queued with delays, so that they are due one after the
//! other at its rate.

use std::time::Duration;

use crate::model::Timestamp;

/// The time ahead for which events are queued: until the next run of `wake`.
pub const PACE_HORIZON: Duration = Duration::from_mins(1);

const MICROS_PER_SEC: u64 = 1_000_000;

/// The times at which a replay's next events are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayPace {
    per_second: u32,
    began: Timestamp,
    /// The time at which the next event is due, in microseconds after `began`.
    next_us: u64,
}

impl ReplayPace {
    /// The pace of a run that begins now, after what earlier runs queued until `paced_until`. A
    /// time that is further off than any run queues for is from a clock that was ahead.
    pub fn new(per_second: u32, paced_until: Timestamp, now: Timestamp) -> Self {
        let ahead = paced_until.since(now).min(PACE_HORIZON);
        Self {
            per_second: per_second.max(1),
            began: now,
            next_us: whole_micros(ahead),
        }
    }

    /// The number of events that may still be queued in this run.
    pub fn room_in_run(&self) -> usize {
        let left_us = whole_micros(PACE_HORIZON).saturating_sub(self.next_us);
        usize::try_from(
            left_us
                .saturating_mul(self.per_second.into())
                .div_ceil(MICROS_PER_SEC),
        )
        .unwrap_or(usize::MAX)
    }

    /// Most events that may be due at once: the number that the rate allows in a second.
    pub fn at_once(&self) -> usize {
        self.per_second as usize
    }

    /// The time at which the next `events` are due together. The events after them wait for their
    /// turn.
    pub fn take_due_time(&mut self, events: usize) -> Timestamp {
        let due = self.paced_until();
        let events = u64::try_from(events).unwrap_or(u64::MAX);
        let length = events
            .saturating_mul(MICROS_PER_SEC)
            .div_ceil(self.per_second.into());
        self.next_us = self.next_us.saturating_add(length);
        due
    }

    /// The time at which the next event is due.
    pub fn paced_until(&self) -> Timestamp {
        self.began + Duration::from_micros(self.next_us)
    }
}

fn whole_micros(length: Duration) -> u64 {
    u64::try_from(length.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    #[test]
    fn a_run_queues_what_falls_due_until_the_next() {
        let check = |rate, paced_until, room| {
            assert_eq!(ReplayPace::new(rate, paced_until, NOW).room_in_run(), room);
        };
        check(1, Timestamp::EPOCH, 60);
        check(100, NOW, 6000);
        check(100, NOW + Duration::from_secs(45), 1500);
        check(1000, NOW + PACE_HORIZON, 0);
        check(3, NOW + Duration::from_hours(1), 0);
    }

    #[test]
    fn events_fall_due_at_the_rate() {
        let mut pace = ReplayPace::new(4, Timestamp::EPOCH, NOW);
        let due: Vec<_> = [4, 1, 1, 2]
            .map(|events| pace.take_due_time(events).since(NOW).as_millis())
            .to_vec();
        assert_eq!(
            (due, pace.paced_until()),
            (vec![0, 1000, 1250, 1500], NOW + Duration::from_secs(2))
        );
        assert_eq!(pace.room_in_run(), 232);
    }

    proptest! {
        #[test]
        fn two_runs_never_queue_more_than_the_rate(rate in 1_u32..=1000, later_s in 0_u64..120) {
            let mut first = ReplayPace::new(rate, Timestamp::EPOCH, NOW);
            let mut queued = 0_u64;
            while first.room_in_run() > 0 {
                let events = first.room_in_run().min(7);
                first.take_due_time(events);
                queued += events as u64;
            }
            let later = NOW + Duration::from_secs(later_s);
            let second = ReplayPace::new(rate, first.paced_until(), later);
            queued += second.room_in_run() as u64;
            prop_assert!(queued <= u64::from(rate) * (60 + later_s.max(1)) + 60, "{queued}");
        }
    }
}
