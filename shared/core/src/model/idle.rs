//! Temporary entities: topics and subscriptions that are deleted automatically, when they were
//! unused for a while or at a time of their own. Pure: times are arguments.
//!
//! The use of an entity is noted now and then in an object of its own, never on every event: so a
//! deletion waits longer by the time between two notes, and comes late rather than early.

use std::time::Duration;

use crate::model::{SQS_DELAY_MAX, Timestamp};

/// The most notes that one process writes in one idle time.
const NOTES_PER_IDLE_TIME: u32 = 4;

/// The time ahead for which a wait is noted for its subscription: the longest that the queue
/// delays. With the shortest idle time (5 min) the subscription then stays for 20 minutes after a
/// retry was scheduled, also where the queue is slow. Events that wait longer are found in the
/// object store.
const WAIT_NOTED_AHEAD: Duration = SQS_DELAY_MAX;

/// The lifetime of a subscription.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SubscriptionLifetime {
    /// The time without deliveries, updates or dead-letter reads after which it is deleted.
    pub idle: Option<Duration>,
    /// The topic's own idle time: activity of the subscription is activity of the topic.
    pub topic_idle: Option<Duration>,
    /// The time from which it is gone.
    pub ends_at: Option<Timestamp>,
}

impl SubscriptionLifetime {
    /// Whether the subscription is gone at this moment, whatever its record says.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.ends_at.is_some_and(|ends_at| now >= ends_at)
    }
}

/// The time that is noted for a subscription when events begin to wait for it in the queue, or
/// until `due`.
pub fn wait_noted_at(due: Timestamp) -> Timestamp {
    due + WAIT_NOTED_AHEAD
}

/// Whether activity at `at` is to be noted where `noted` was noted last.
pub fn is_worth_noting(idle: Duration, noted: Option<Timestamp>, at: Timestamp) -> bool {
    noted.is_none_or(|noted| at >= noted + idle / NOTES_PER_IDLE_TIME)
}

/// Whether an entity is idle for which `noted` is the last note of activity. Activity that was not
/// noted came at most a quarter of the idle time later.
pub fn is_idle(idle: Duration, noted: Timestamp, now: Timestamp) -> bool {
    now >= noted + idle + idle / NOTES_PER_IDLE_TIME
}

/// The same for a program whose last outage ended at `awake_since`: no time before that counts as
/// idle, nor the time in which the queue attempts what was due in it.
pub fn is_idle_since(
    idle: Duration,
    noted: Timestamp,
    awake_since: Option<Timestamp>,
    now: Timestamp,
) -> bool {
    let noted = awake_since.map_or(noted, |awake_since| wait_noted_at(awake_since).max(noted));
    is_idle(idle, noted, now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::limits::AUTO_DELETE_ON_IDLE_MIN;
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000);
    const IDLE: Duration = Duration::from_mins(8);

    fn ago(secs: u64) -> Timestamp {
        Timestamp::from_millis(NOW.as_millis() - secs * 1000)
    }

    #[test]
    fn a_subscription_is_gone_from_its_time_on() {
        let check = |ends_at, expected| {
            assert_eq!(
                SubscriptionLifetime {
                    ends_at,
                    ..SubscriptionLifetime::default()
                }
                .is_over(NOW),
                expected,
                "{ends_at:?}"
            );
        };
        check(None, false);
        check(Some(NOW + Duration::from_millis(1)), false);
        check(Some(NOW), true);
        check(Some(Timestamp::EPOCH), true);
    }

    #[test]
    fn activity_is_noted_at_most_four_times_in_an_idle_time() {
        let check =
            |noted, expected| assert_eq!(is_worth_noting(IDLE, noted, NOW), expected, "{noted:?}");
        check(None, true);
        check(Some(ago(120)), true);
        check(Some(ago(119)), false);
        check(Some(NOW + Duration::from_hours(12)), false);
    }

    #[test]
    fn an_entity_is_idle_when_what_was_not_noted_is_old_enough_too() {
        let check =
            |secs, expected| assert_eq!(is_idle(IDLE, ago(secs), NOW), expected, "{secs} s");
        check(480, false);
        check(599, false);
        check(600, true);
        assert!(!is_idle(IDLE, NOW + Duration::from_hours(12), NOW));
        assert!(!is_idle(Duration::MAX, Timestamp::EPOCH, NOW));
    }

    /// A subscription is not idle for twenty minutes after a retry was scheduled.
    #[test]
    fn scheduled_retry_keeps_subscription_busy_for_20_minutes() {
        let idle = AUTO_DELETE_ON_IDLE_MIN;
        for noted_before_secs in 0..75 {
            // A note that is young enough is not written again.
            let noted = wait_noted_at(ago(noted_before_secs));
            assert!(!is_worth_noting(idle, Some(noted), wait_noted_at(NOW)));
            assert!(
                !is_idle(idle, noted, NOW + Duration::from_mins(20)),
                "{noted_before_secs} s"
            );
        }
    }

    proptest! {
        #[test]
        fn nothing_is_deleted_before_its_idle_time_is_over(
            idle_secs in 300_u64..10_000_000,
            uses in prop::collection::vec(0_u64..1_000_000, 1..30),
        ) {
            let idle = Duration::from_secs(idle_secs);
            let (mut noted, mut last) = (None, NOW);
            for gap in uses {
                last = last + Duration::from_secs(gap);
                if is_worth_noting(idle, noted, last) {
                    noted = Some(last);
                }
            }
            let noted = noted.unwrap();
            let almost = Timestamp::from_millis((last + idle).as_millis() - 1);
            prop_assert!(!is_idle(idle, noted, almost));
            prop_assert!(is_idle(idle, noted, last + idle * 5 / 4));
        }

        #[test]
        fn no_time_before_the_end_of_an_outage_counts_as_idle(
            idle_secs in 300_u64..1_000_000,
            noted_ago in 0_u64..2_000_000,
            awake_ago in prop::option::of(0_u64..1_000_000),
        ) {
            let idle = Duration::from_secs(idle_secs);
            let at = |ago: u64| Timestamp::from_millis((4_000_000 - ago) * 1000);
            let (now, noted) = (at(0), at(noted_ago));
            let awake_since = awake_ago.map(at);
            let is_idle_so = is_idle_since(idle, noted, awake_since, now);
            prop_assert!(!is_idle_so || is_idle(idle, noted, now));
            if let Some(ago) = awake_ago {
                prop_assert!(!is_idle_so || ago >= idle_secs + 900);
            } else {
                prop_assert_eq!(is_idle_so, is_idle(idle, noted, now));
            }
        }
    }
}
