//! Failures in a row, counted by one worker for itself.

use std::collections::HashMap;

use super::target::Target;

/// Most targets that are counted. Beyond, all counts begin anew: it only takes somewhat longer to see a streak.
const TARGETS_MAX: usize = 4096;

/// Failures in a row, by target. A target that is well takes no room.
#[derive(Debug, Default)]
pub struct Streaks(HashMap<Target, u32>);

/// The requests of one invocation, by target, for the rule that a few which all failed are a streak too.
#[derive(Debug, Default)]
pub struct Tally(HashMap<Target, Requests>);

#[derive(Debug, Default, Clone, Copy)]
struct Requests {
    failed: u32,
    succeeded: bool,
}

impl Streaks {
    /// Counts a failure, and answers how many there are in a row by now.
    pub fn failed(&mut self, target: &Target) -> u32 {
        if self.0.len() >= TARGETS_MAX && !self.0.contains_key(target) {
            self.0.clear();
        }
        let count = self.0.entry(target.clone()).or_default();
        *count = count.saturating_add(1);
        *count
    }

    /// A success, or what was done about the streak, ends it.
    pub fn end(&mut self, target: &Target) {
        if !self.0.is_empty() {
            self.0.remove(target);
        }
    }

    /// Whether its last request here failed.
    pub fn is_failing(&self, target: &Target) -> bool {
        !self.0.is_empty() && self.0.contains_key(target)
    }
}

impl Tally {
    /// Counts a failure.
    pub fn failed(&mut self, target: &Target) {
        let requests = self.0.entry(target.clone()).or_default();
        requests.failed = requests.failed.saturating_add(1);
    }

    /// Counts a success.
    pub fn succeeded(&mut self, target: &Target) {
        self.0.entry(target.clone()).or_default().succeeded = true;
    }

    /// The targets all of whose requests failed, `least` of them at least, with how many those were.
    pub fn all_failed(&self, least: u32) -> impl Iterator<Item = (&Target, u32)> {
        let is_streak = move |requests: &Requests| !requests.succeeded && requests.failed >= least;
        self.0.iter().filter(move |(_, it)| is_streak(it)).map(|(target, it)| (target, it.failed))
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
        let (mut streaks, a, b) = (Streaks::default(), target("a.example"), target("b.example"));
        assert_eq!([streaks.failed(&a), streaks.failed(&b), streaks.failed(&a)], [1, 1, 2]);
        streaks.end(&b);
        assert_eq!((streaks.is_failing(&a), streaks.is_failing(&b)), (true, false));
        assert_eq!([streaks.failed(&a), streaks.failed(&b)], [3, 1]);
    }

    #[test]
    fn counts_take_no_more_room_than_they_may() {
        let mut streaks = Streaks::default();
        for index in 0..=TARGETS_MAX {
            streaks.failed(&target(&format!("h{index}.example")));
        }
        assert_eq!(streaks.0.len(), 1);
    }

    #[test]
    fn an_invocation_is_a_streak_where_enough_failed_and_none_succeeded() {
        let mut tally = Tally::default();
        for (host, failures) in [("a", 3), ("b", 2), ("c", 5)] {
            (0..failures).for_each(|_| tally.failed(&target(host)));
        }
        tally.succeeded(&target("c"));
        assert_eq!(tally.all_failed(3).collect::<Vec<_>>(), [(&target("a"), 3)]);
    }
}
