//! Failures in a row, counted by one worker for itself.

use std::collections::HashMap;

use crate::circuit::{DeliveryTarget, FailureBlame};
use crate::model::Timestamp;

/// Most targets that are counted. Beyond that all counts start again from zero: it only takes
/// somewhat longer to see a streak.
const TARGETS_MAX: usize = 4096;

/// Failures in a row, by target. A target that has not failed takes no room.
#[derive(Debug, Default)]
pub struct ConsecutiveFailures(HashMap<DeliveryTarget, FailureStreak>);

/// The requests to a target since it first failed.
#[derive(Debug, Default)]
struct FailureStreak {
    in_a_row: u32,
    blame: FailureBlame,
    successes: Option<SuccessSpan>,
}

/// The successes at a target since it last began to be well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuccessSpan {
    /// The first.
    pub first: Timestamp,
    /// The last.
    pub last: Timestamp,
}

impl ConsecutiveFailures {
    /// Counts a failure, and answers how many there are in a row by now.
    pub fn count_failure(&mut self, target: &DeliveryTarget) -> u32 {
        let seen = self.add_failure(target);
        seen.blame.blame_target();
        seen.in_a_row
    }

    /// Counts a failure of a subscription that may be the target's, and answers how many there are
    /// in a row by now: none, while all may be that subscription's own.
    pub fn count_suspected(
        &mut self,
        target: &DeliveryTarget,
        subscription: &DeliveryTarget,
    ) -> u32 {
        let seen = self.add_failure(target);
        seen.blame.add_suspected(subscription);
        if seen.blame.is_of_target() {
            seen.in_a_row
        } else {
            0
        }
    }

    /// Whether the failures in a row are the target's, and not only those of one subscription.
    pub fn is_blamed(&self, target: &DeliveryTarget) -> bool {
        self.0
            .get(target)
            .is_some_and(|seen| seen.blame.is_of_target())
    }

    fn add_failure(&mut self, target: &DeliveryTarget) -> &mut FailureStreak {
        if self.0.len() >= TARGETS_MAX && !self.0.contains_key(target) {
            self.0.clear();
        }
        let seen = self.0.entry(target.clone()).or_default();
        seen.in_a_row = seen.in_a_row.saturating_add(1);
        seen
    }

    /// Notes a success, which ends the streak.
    pub fn note_success(&mut self, target: &DeliveryTarget, now: Timestamp) {
        if let Some(seen) = self.0.get_mut(target) {
            let first = seen.successes.map_or(now, |before| before.first);
            *seen = FailureStreak {
                in_a_row: 0,
                blame: FailureBlame::Nobody,
                successes: Some(SuccessSpan { first, last: now }),
            };
        }
    }

    /// Counts from the beginning: it is known not to be well.
    pub fn reset(&mut self, target: &DeliveryTarget) {
        if let Some(seen) = self.0.get_mut(target) {
            *seen = FailureStreak::default();
        }
    }

    /// Whether its last request here failed.
    pub fn is_failing(&self, target: &DeliveryTarget) -> bool {
        self.0.get(target).is_some_and(|seen| seen.in_a_row > 0)
    }

    /// The successes here since the first request that failed, or since it was last known not to be
    /// well.
    pub fn successes(&self, target: &DeliveryTarget) -> Option<SuccessSpan> {
        self.0.get(target)?.successes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    fn target(host: &str) -> DeliveryTarget {
        DeliveryTarget::parse(&format!("https://{host}:443")).unwrap()
    }

    #[test]
    fn a_success_ends_a_streak_of_its_own_target_alone() {
        let mut streaks = ConsecutiveFailures::default();
        let a = target("a.example");
        let b = target("b.example");
        assert_eq!(
            [
                streaks.count_failure(&a),
                streaks.count_failure(&b),
                streaks.count_failure(&a)
            ],
            [1, 1, 2]
        );
        streaks.note_success(&b, Timestamp::from_millis(7));
        assert_eq!(
            (streaks.is_failing(&a), streaks.is_failing(&b)),
            (true, false)
        );
        assert_eq!(
            [streaks.count_failure(&a), streaks.count_failure(&b)],
            [3, 1]
        );
        let at = Timestamp::from_millis;
        let of_b = Some(SuccessSpan {
            first: at(7),
            last: at(7),
        });
        assert_eq!([streaks.successes(&a), streaks.successes(&b)], [None, of_b]);
        streaks.note_success(&b, at(9));
        assert_eq!(
            streaks.successes(&b),
            Some(SuccessSpan {
                first: at(7),
                last: at(9)
            })
        );
        streaks.reset(&b);
        assert_eq!(streaks.successes(&b), None);
        streaks.reset(&a);
        assert_eq!(streaks.count_failure(&a), 1);
    }

    /// A receiver that crashes closes its connections: that is not yet its host's failure.
    #[test]
    fn suspected_failures_count_once_a_second_subscription_has_them() {
        let mut streaks = ConsecutiveFailures::default();
        let link = target("a.example");
        let subscription = |name: &str| {
            DeliveryTarget::parse(&format!("https://a.example:443 orders.{name}")).unwrap()
        };
        let billing = subscription("billing");
        assert_eq!(
            [1, 2].map(|_| streaks.count_suspected(&link, &billing)),
            [0, 0]
        );
        assert!(!streaks.is_blamed(&link));
        assert_eq!(streaks.count_suspected(&link, &subscription("audit")), 3);
        assert!(streaks.is_blamed(&link));
        streaks.note_success(&link, Timestamp::EPOCH);
        assert_eq!(streaks.count_suspected(&link, &billing), 0);
        // One that found no connection.
        assert_eq!(streaks.count_failure(&link), 2);
    }

    #[test]
    fn target_that_never_failed_is_not_kept() {
        let mut streaks = ConsecutiveFailures::default();
        streaks.note_success(&target("a.example"), Timestamp::EPOCH);
        assert!(streaks.0.is_empty());
    }

    #[test]
    fn counts_take_no_more_room_than_they_may() {
        let mut streaks = ConsecutiveFailures::default();
        for index in 0..=TARGETS_MAX {
            streaks.count_failure(&target(&format!("h{index}.example")));
        }
        assert_eq!(streaks.0.len(), 1);
    }
}
