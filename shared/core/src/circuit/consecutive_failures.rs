//! Failures in a row, counted by one worker for itself.

use std::collections::HashMap;

use crate::circuit::{Blame, Target};
use crate::model::Timestamp;

/// Most targets that are counted. Beyond that all counts start again from zero: it only takes
/// somewhat longer to see a streak.
const TARGETS_MAX: usize = 4096;

/// Failures in a row, by target. A target that has not failed takes no room.
#[derive(Debug, Default)]
pub struct ConsecutiveFailures(HashMap<Target, Seen>);

/// The requests to a target since it first failed.
#[derive(Debug, Default)]
struct Seen {
    in_a_row: u32,
    blame: Blame,
    successes: Option<Successes>,
}

/// The successes at a target since it last began to be well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Successes {
    /// The first.
    pub first: Timestamp,
    /// The last.
    pub last: Timestamp,
}

impl ConsecutiveFailures {
    /// Counts a failure, and answers how many there are in a row by now.
    pub fn failed(&mut self, target: &Target) -> u32 {
        let seen = self.count(target);
        seen.blame.add();
        seen.in_a_row
    }

    /// Counts a failure of a subscription that may be the target's, and answers how many there are
    /// in a row by now: none, while all may be that subscription's own.
    pub fn suspected(&mut self, target: &Target, subscription: &Target) -> u32 {
        let seen = self.count(target);
        seen.blame.add_suspected(subscription);
        if seen.blame.is_of_target() {
            seen.in_a_row
        } else {
            0
        }
    }

    /// Whether the failures in a row are the target's, and not only those of one subscription.
    pub fn is_blamed(&self, target: &Target) -> bool {
        self.0
            .get(target)
            .is_some_and(|seen| seen.blame.is_of_target())
    }

    fn count(&mut self, target: &Target) -> &mut Seen {
        if self.0.len() >= TARGETS_MAX && !self.0.contains_key(target) {
            self.0.clear();
        }
        let seen = self.0.entry(target.clone()).or_default();
        seen.in_a_row = seen.in_a_row.saturating_add(1);
        seen
    }

    /// Notes a success, which ends the streak.
    pub fn succeeded(&mut self, target: &Target, now: Timestamp) {
        if let Some(seen) = self.0.get_mut(target) {
            let first = seen.successes.map_or(now, |before| before.first);
            *seen = Seen {
                in_a_row: 0,
                blame: Blame::Nobody,
                successes: Some(Successes { first, last: now }),
            };
        }
    }

    /// Counts from the beginning: it is known not to be well.
    pub fn end(&mut self, target: &Target) {
        if let Some(seen) = self.0.get_mut(target) {
            *seen = Seen::default();
        }
    }

    /// Whether its last request here failed.
    pub fn is_failing(&self, target: &Target) -> bool {
        self.0.get(target).is_some_and(|seen| seen.in_a_row > 0)
    }

    /// The successes here since the first request that failed, or since it was last known not to be
    /// well.
    pub fn successes(&self, target: &Target) -> Option<Successes> {
        self.0.get(target)?.successes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    fn target(host: &str) -> Target {
        Target::parse(&format!("https://{host}:443")).unwrap()
    }

    #[test]
    fn a_success_ends_a_streak_of_its_own_target_alone() {
        let mut streaks = ConsecutiveFailures::default();
        let a = target("a.example");
        let b = target("b.example");
        assert_eq!(
            [streaks.failed(&a), streaks.failed(&b), streaks.failed(&a)],
            [1, 1, 2]
        );
        streaks.succeeded(&b, Timestamp::from_millis(7));
        assert_eq!(
            (streaks.is_failing(&a), streaks.is_failing(&b)),
            (true, false)
        );
        assert_eq!([streaks.failed(&a), streaks.failed(&b)], [3, 1]);
        let at = Timestamp::from_millis;
        let of_b = Some(Successes {
            first: at(7),
            last: at(7),
        });
        assert_eq!([streaks.successes(&a), streaks.successes(&b)], [None, of_b]);
        streaks.succeeded(&b, at(9));
        assert_eq!(
            streaks.successes(&b),
            Some(Successes {
                first: at(7),
                last: at(9)
            })
        );
        streaks.end(&b);
        assert_eq!(streaks.successes(&b), None);
        streaks.end(&a);
        assert_eq!(streaks.failed(&a), 1);
    }

    /// A receiver that crashes closes its connections: that is not yet its host's failure.
    #[test]
    fn suspected_failures_count_once_a_second_subscription_has_them() {
        let mut streaks = ConsecutiveFailures::default();
        let link = target("a.example");
        let subscription =
            |name: &str| Target::parse(&format!("https://a.example:443 orders.{name}")).unwrap();
        let billing = subscription("billing");
        assert_eq!([1, 2].map(|_| streaks.suspected(&link, &billing)), [0, 0]);
        assert!(!streaks.is_blamed(&link));
        assert_eq!(streaks.suspected(&link, &subscription("audit")), 3);
        assert!(streaks.is_blamed(&link));
        streaks.succeeded(&link, Timestamp::EPOCH);
        assert_eq!(streaks.suspected(&link, &billing), 0);
        // One that found no connection.
        assert_eq!(streaks.failed(&link), 2);
    }

    #[test]
    fn of_a_target_that_never_failed_nothing_is_kept() {
        let mut streaks = ConsecutiveFailures::default();
        streaks.succeeded(&target("a.example"), Timestamp::EPOCH);
        assert!(streaks.0.is_empty());
    }

    #[test]
    fn counts_take_no_more_room_than_they_may() {
        let mut streaks = ConsecutiveFailures::default();
        for index in 0..=TARGETS_MAX {
            streaks.failed(&target(&format!("h{index}.example")));
        }
        assert_eq!(streaks.0.len(), 1);
    }
}
