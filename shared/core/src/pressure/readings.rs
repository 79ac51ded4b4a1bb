//! The numbers that one poll measured, and the drain time that follows from counts.

use std::time::Duration;

use super::drain::as_f64;
use super::{REPORTED_WAIT_MIN, Resource};

/// A used part of a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteUsage {
    /// Used, in bytes.
    pub used: u64,
    /// There in all, in bytes.
    pub total: u64,
}

impl ByteUsage {
    /// Per cent used, rounded down; `None` if there is nothing in all.
    pub fn percent_used(self) -> Option<u64> {
        percent_of(self.used, self.total)
    }

    /// The bytes that are not used.
    pub fn free_bytes(self) -> u64 {
        self.total.saturating_sub(self.used)
    }
}

/// The database's disk, or what takes its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseSpace {
    /// A disk.
    Disk(ByteUsage),
    /// On AWS: messages in flight, of those that deliver may have at once.
    InFlight {
        /// The messages.
        messages: u64,
        /// The most there can be.
        max: u64,
    },
}

/// The numbers of one poll. `None` is what cannot be known here, or could not be read this time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceReadings {
    /// Visible messages of the delivery queue.
    pub visible: Option<u64>,
    /// Publishes that wait for their commit.
    pub version_buckets: Option<u64>,
    /// Batches of events on their way into a commit.
    pub batch_points: Option<u64>,
    /// The data folder's disk, or what stands for it.
    pub database: Option<DatabaseSpace>,
    /// The journal's disk.
    pub log_disk: Option<ByteUsage>,
    /// Resident size of this process, in bytes.
    pub process_bytes: Option<u64>,
    /// The machine's memory.
    pub memory: Option<ByteUsage>,
    /// Messages in the dead-letter queue past their delay.
    pub dead_letters: Option<u64>,
    /// Seconds until what is visible would be delivered.
    pub drain_secs: Option<u64>,
}

impl ResourceReadings {
    /// The reading of a resource in its own unit.
    pub fn reading_of(&self, resource: Resource) -> Option<u64> {
        match resource {
            Resource::SubmissionQueue => self.visible,
            Resource::VersionBuckets => self.version_buckets,
            Resource::BatchPoints => self.batch_points,
            Resource::DatabaseDisk => match self.database? {
                DatabaseSpace::Disk(disk) => disk.percent_used(),
                DatabaseSpace::InFlight { messages, max } => percent_of(messages, max),
            },
            Resource::LogDisk => self.log_disk?.percent_used(),
            Resource::ProcessMemory => percent_of(self.process_bytes?, self.memory?.total),
            Resource::SystemMemory => self.memory?.percent_used(),
            Resource::DeadLetterBacklog => self.dead_letters,
            Resource::DrainTime => self.drain_secs,
        }
    }
}

/// 100·part/whole, rounded down as the documents do.
fn percent_of(part: u64, whole: u64) -> Option<u64> {
    (u128::from(part) * 100)
        .checked_div(u128::from(whole))
        .map(|p| u64::try_from(p).unwrap_or(u64::MAX))
}

/// The memory of the drain rate: a change shows to two thirds after this time.
const RATE_MEMORY: Duration = Duration::from_secs(10);

/// The longest wait that is needed to show that there is a backlog.
pub(super) const BACKLOG_WAIT: Duration = REPORTED_WAIT_MIN;

/// The speed at which the delivery queue drains, smoothed over about ten seconds.
///
/// Only a time in which something waited throughout measures the rate. One in which the queue was
/// empty meanwhile shows how much arrived, not how much could be delivered: taken for the rate, the
/// trickle of a quiet hour would make the first thousand events after it look like an hour's
/// backlog. So the rate counts once a backlog has shown it, until the queue is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DrainRate {
    /// The rate, or as long as no backlog has shown it a lower bound.
    per_second: Option<f64>,
    is_shown: bool,
    visible: u64,
    stalled: Duration,
}

impl DrainRate {
    /// Takes one poll in and answers the drain time in whole seconds.
    ///
    /// `settled` messages were settled in the `elapsed` time since the last poll; `oldest_wait` is
    /// the longest `now − notBefore` among those received since. Nothing visible drains in no
    /// time. As long as no backlog has shown the rate, the drain time is as long as nothing at
    /// all was settled.
    pub fn add_poll(
        &mut self,
        visible: u64,
        settled: u64,
        oldest_wait: Duration,
        elapsed: Duration,
    ) -> u64 {
        let before = std::mem::replace(&mut self.visible, visible);
        if !elapsed.is_zero() {
            let waited_throughout = settled < before || oldest_wait >= elapsed.min(BACKLOG_WAIT);
            self.update_rate(
                as_f64(settled) / elapsed.as_secs_f64(),
                waited_throughout,
                elapsed,
            );
        }
        self.stalled = if before > 0 && settled == 0 {
            self.stalled.saturating_add(elapsed)
        } else {
            Duration::ZERO
        };
        if visible == 0 {
            self.is_shown = false;
            return 0;
        }
        let by_rate = match self.per_second.filter(|_| self.is_shown) {
            Some(rate) if rate > 0.0 => whole_secs(as_f64(visible) / rate),
            _ => self.stalled.as_secs(),
        };
        by_rate.max(oldest_wait.as_secs())
    }

    /// Corrects the last count of what was visible to the messages that count at the next poll.
    pub fn correct_visible(&mut self, visible: u64) {
        self.visible = visible;
    }

    /// Messages per second; `None` before anything could be measured.
    pub fn per_second(&self) -> Option<f64> {
        self.per_second
    }

    fn update_rate(&mut self, now: f64, waited_throughout: bool, elapsed: Duration) {
        let known = self.per_second;
        self.per_second = match known {
            // What was known before this backlog counts only where nothing at all shows how fast it
            // is.
            Some(rate) if waited_throughout && (self.is_shown || now <= 0.0) => {
                let weight = 1.0 - (-elapsed.as_secs_f64() / RATE_MEMORY.as_secs_f64()).exp();
                Some(rate + weight * (now - rate))
            }
            _ if waited_throughout => Some(now),
            // The queue was not full all the time, so the true rate is at least this.
            rate if now > 0.0 => Some(rate.unwrap_or(0.0).max(now)),
            rate => rate,
        };
        self.is_shown |= waited_throughout;
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "never negative, and `as` saturates"
)]
pub(super) fn whole_secs(secs: f64) -> u64 {
    secs as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POLL: Duration = Duration::from_secs(2);

    /// The drain times of polls given as (visible, settled, oldest wait in seconds).
    fn check(polls: &[(u64, u64, u64)], expected: &[u64]) {
        let mut drain = DrainRate::default();
        let seen: Vec<u64> = polls
            .iter()
            .map(|(visible, settled, oldest)| {
                drain.add_poll(*visible, *settled, Duration::from_secs(*oldest), POLL)
            })
            .collect();
        assert_eq!(seen, expected, "{polls:?}");
    }

    #[test]
    fn a_backlog_takes_as_long_as_the_measured_rate_says() {
        check(
            &[
                (10_000, 200, 0),
                (10_000, 200, 0),
                (5000, 200, 0),
                (0, 10_000, 0),
            ],
            &[0, 100, 50, 0],
        );
    }

    #[test]
    fn the_first_event_after_an_idle_hour_is_no_backlog() {
        let mut polls = vec![(0, 0, 0); 1800];
        polls.push((1, 0, 0));
        polls.push((0, 1, 0));
        check(&polls, &[0; 1802]);
    }

    /// A burst after a trickle is no backlog until it turns out to be one.
    #[test]
    fn burst_after_a_trickle_is_a_backlog_only_once_it_lasts() {
        // One event every two seconds, for a minute; then three thousand at once, for a fleet that
        // takes 1000 a second.
        let mut polls = [[(0, 1, 0), (1, 0, 0)]; 15].concat();
        polls.extend([(3000, 1, 0), (1000, 2000, 2), (0, 1000, 2)]);
        let drain: Vec<_> = [[0; 30].as_slice(), &[0, 2, 0]].concat();
        check(&polls, &drain);
        // The same for one that takes one in a second: known at the next poll.
        polls.truncate(30);
        polls.extend([(3000, 1, 0), (2998, 2, 2), (2996, 2, 4)]);
        check(&polls, &[[0; 30].as_slice(), &[0, 2998, 2996]].concat());
    }

    #[test]
    fn drain_rate_of_one_backlog_says_nothing_about_the_next() {
        check(
            &[
                (100, 0, 0),
                (98, 2, 2),
                (0, 98, 2),
                (3000, 0, 0),
                (1000, 2000, 2),
                (0, 1000, 0),
            ],
            &[0, 98, 0, 0, 2, 0],
        );
    }

    #[test]
    fn a_queue_that_never_drained_is_as_slow_as_it_is_old() {
        check(&[(5, 0, 0), (5, 0, 0), (5, 0, 0), (5, 0, 0)], &[0, 2, 4, 6]);
    }

    #[test]
    fn a_queue_that_stops_draining_soon_counts_as_slow() {
        let mut drain = DrainRate::default();
        drain.add_poll(1000, 2000, Duration::ZERO, POLL);
        let times: Vec<u64> = (0..30)
            .map(|_| drain.add_poll(1000, 0, Duration::ZERO, POLL))
            .collect();
        assert_eq!((times[0], times[10], times[20], times[29]), (1, 9, 66, 403));
    }

    #[test]
    fn late_received_messages_count_while_anything_is_visible() {
        check(
            &[(10, 1000, 45), (10, 1000, 45), (0, 1000, 45)],
            &[45, 45, 0],
        );
    }

    #[test]
    fn polls_at_the_same_moment_measure_nothing() {
        let mut drain = DrainRate::default();
        assert_eq!(drain.add_poll(10, 5, Duration::ZERO, Duration::ZERO), 0);
        assert_eq!(drain.per_second(), None);
    }

    #[test]
    fn shares_are_rounded_down() {
        assert_eq!(
            ByteUsage {
                used: 999,
                total: 1000
            }
            .percent_used(),
            Some(99)
        );
        assert_eq!(
            ByteUsage {
                used: u64::MAX,
                total: u64::MAX
            }
            .percent_used(),
            Some(100)
        );
        assert_eq!(ByteUsage { used: 0, total: 0 }.percent_used(), None);
        let aws = ResourceReadings {
            database: Some(DatabaseSpace::InFlight {
                messages: 364,
                max: 500,
            }),
            ..ResourceReadings::default()
        };
        assert_eq!(aws.reading_of(Resource::DatabaseDisk), Some(72));
    }

    proptest! {
        #[test]
        fn no_sequence_of_counts_breaks_the_rate(
            polls in prop::collection::vec(
                (any::<u64>(), any::<u64>(), 0..u64::MAX / 2000, 0..10_000_u64), 0..50,
            ),
        ) {
            let mut drain = DrainRate::default();
            for (visible, settled, oldest, elapsed) in polls {
                let (wait, elapsed) = (Duration::from_secs(oldest), Duration::from_millis(elapsed));
                let secs = drain.add_poll(visible, settled, wait, elapsed);
                prop_assert!(visible > 0 || secs == 0);
                prop_assert!(visible == 0 || secs >= oldest);
                prop_assert!(drain.per_second().is_none_or(|rate| rate >= 0.0 && rate.is_finite()));
            }
        }
    }
}
