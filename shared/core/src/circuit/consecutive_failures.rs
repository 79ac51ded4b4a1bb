//! Failures in a row, counted by one worker for itself.

use std::collections::{BTreeMap, HashMap};

use crate::circuit::{Failure, Observation, Target};
use crate::model::Timestamp;

/// Most targets that are counted. Beyond that all counts start again from zero: it only takes
/// somewhat longer to see a streak.
const TARGETS_MAX: usize = 4096;

/// Failures in a row, by target. A target that has not failed takes no room.
#[derive(Debug, Default)]
pub struct ConsecutiveFailures(HashMap<Target, Seen>);

/// The requests to a target since it first failed.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    in_a_row: u32,
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

/// The requests of one invocation, by target, for the rule that a few which all failed are a streak
/// too.
#[derive(Debug, Default)]
pub struct InvocationResults(BTreeMap<Target, Requests>);

#[derive(Debug, Default, Clone, Copy)]
struct Requests {
    failed: u32,
    succeeded: bool,
    last: Option<(Failure, Timestamp)>,
}

impl ConsecutiveFailures {
    /// Counts a failure, and answers how many there are in a row by now.
    pub fn failed(&mut self, target: &Target) -> u32 {
        if self.0.len() >= TARGETS_MAX && !self.0.contains_key(target) {
            self.0.clear();
        }
        let seen = self.0.entry(target.clone()).or_default();
        seen.in_a_row = seen.in_a_row.saturating_add(1);
        seen.in_a_row
    }

    /// Notes a success, which ends the streak.
    pub fn succeeded(&mut self, target: &Target, now: impl FnOnce() -> Timestamp) {
        if let Some(seen) = self.0.get_mut(target) {
            let now = now();
            let first = seen.successes.map_or(now, |before| before.first);
            *seen = Seen {
                in_a_row: 0,
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

impl InvocationResults {
    /// Counts a failure of a request that was begun at that time.
    pub fn failed(&mut self, target: &Target, last: Failure, began: Timestamp) {
        let requests = self.0.entry(target.clone()).or_default();
        requests.failed = requests.failed.saturating_add(1);
        requests.last = Some((last, began));
    }

    /// Forgets a target whose failures were reported.
    pub fn end(&mut self, target: &Target) {
        self.0.remove(target);
    }

    /// Counts a success.
    pub fn succeeded(&mut self, target: &Target) {
        self.0.entry(target.clone()).or_default().succeeded = true;
    }

    /// The targets all of whose requests failed, `minimum` of them at least, with the observation
    /// to report. Links come first, then subscriptions, each by name.
    pub fn all_failed(&self, minimum: u32) -> impl Iterator<Item = (&Target, Observation)> {
        let is_streak = move |it: &Requests| !it.succeeded && it.failed >= minimum;
        self.0
            .iter()
            .filter(move |(_, it)| is_streak(it))
            .filter_map(|(target, requests)| {
                let (last, began) = requests.last?;
                Some((
                    target,
                    Observation::Failing {
                        failures: requests.failed,
                        last,
                        began,
                    },
                ))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::OutcomeName;

    const BUSY: Failure = Failure {
        outcome: OutcomeName::Busy,
        status: Some(503),
    };

    fn target(host: &str) -> Target {
        Target::parse(&format!("https://{host}:443")).unwrap()
    }

    #[test]
    fn a_success_ends_a_streak_of_its_own_target_alone() {
        let (mut streaks, a, b) = (
            ConsecutiveFailures::default(),
            target("a.example"),
            target("b.example"),
        );
        assert_eq!(
            [streaks.failed(&a), streaks.failed(&b), streaks.failed(&a)],
            [1, 1, 2]
        );
        streaks.succeeded(&b, || Timestamp::from_millis(7));
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
        streaks.succeeded(&b, || at(9));
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

    #[test]
    fn of_a_target_that_never_failed_nothing_is_kept() {
        let mut streaks = ConsecutiveFailures::default();
        streaks.succeeded(&target("a.example"), || Timestamp::EPOCH);
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

    #[test]
    fn an_invocation_is_a_streak_where_enough_failed_and_none_succeeded() {
        let mut tally = InvocationResults::default();
        for (host, failures) in [("a", 3), ("b", 2), ("c", 5)] {
            (0..failures).for_each(|_| tally.failed(&target(host), BUSY, Timestamp::EPOCH));
        }
        tally.succeeded(&target("c"));
        let failing = Observation::Failing {
            failures: 3,
            last: BUSY,
            began: Timestamp::EPOCH,
        };
        assert_eq!(
            tally.all_failed(3).collect::<Vec<_>>(),
            [(&target("a"), failing)]
        );
        tally.end(&target("a"));
        assert_eq!(tally.all_failed(3).count(), 0);
    }
}
