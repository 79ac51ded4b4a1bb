//! The last successes that one worker has seen, by target. A few failures of a target that
//! succeeded a moment ago are less than an outage: events that are published together often fail
//! together.

use std::collections::HashMap;
use std::time::Duration;

use crate::circuit::DeliveryTarget;
use crate::model::Timestamp;

/// The time for which a success speaks for its target.
const SPEAKS_FOR: Duration = Duration::from_mins(1);

/// Most targets that are remembered. Of any beyond, nothing is known: fewer failures are then
/// enough.
const TARGETS_MAX: usize = 16_384;

/// The time of the last success, by target.
#[derive(Debug, Default)]
pub struct LastSuccesses {
    at: HashMap<DeliveryTarget, Timestamp>,
    tidied_at: Option<Timestamp>,
}

impl LastSuccesses {
    /// Notes a success.
    pub fn note_success(&mut self, target: &DeliveryTarget, now: Timestamp) {
        if let Some(at) = self.at.get_mut(target) {
            *at = now;
        } else if self.has_room(now) {
            self.at.insert(target.clone(), now);
        }
    }

    /// Whether a target succeeded within the last minute.
    pub fn is_recent(&self, target: &DeliveryTarget, now: Timestamp) -> bool {
        self.last_success(target, now)
            .is_some_and(|at| now.since(at) <= SPEAKS_FOR)
    }

    /// Whether a target succeeded within the last minute, or since the first of some failures
    /// began.
    pub fn has_success_beside(
        &self,
        target: &DeliveryTarget,
        first_began: Timestamp,
        now: Timestamp,
    ) -> bool {
        self.is_recent(target, now)
            || self
                .last_success(target, now)
                .is_some_and(|at| at >= first_began)
    }

    /// A success that lies ahead was noted before a clock was set back.
    fn last_success(&self, target: &DeliveryTarget, now: Timestamp) -> Option<Timestamp> {
        self.at.get(target).copied().filter(|at| *at <= now)
    }

    /// Makes room by forgetting what is old, once in a while: a walk through all of them at each
    /// success would cost more than it is worth.
    fn has_room(&mut self, now: Timestamp) -> bool {
        if self.at.len() < TARGETS_MAX {
            return true;
        }
        if self.tidied_at.is_none_or(|at| !is_current(at, now)) {
            self.tidied_at = Some(now);
            self.at.retain(|_, at| is_current(*at, now));
        }
        self.at.len() < TARGETS_MAX
    }
}

/// Whether a time is neither too old nor ahead of the clock.
fn is_current(at: Timestamp, now: Timestamp) -> bool {
    at <= now && now.since(at) <= SPEAKS_FOR
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(secs: u64) -> Timestamp {
        Timestamp::from_millis(secs * 1000)
    }

    fn target(host: &str) -> DeliveryTarget {
        DeliveryTarget::parse(&format!("https://{host}:443")).unwrap()
    }

    #[test]
    fn success_speaks_for_its_own_target_for_a_minute() {
        let mut successes = LastSuccesses::default();
        let own = target("a.example");
        successes.note_success(&own, at(100));
        let recent = |secs| successes.is_recent(&own, at(secs));
        assert_eq!([100, 160, 161].map(recent), [true, true, false]);
        assert!(!successes.is_recent(&target("b.example"), at(100)));
    }

    #[test]
    fn success_since_the_first_failure_speaks_for_longer() {
        let mut successes = LastSuccesses::default();
        let own = target("a.example");
        successes.note_success(&own, at(100));
        let speak = |began| successes.has_success_beside(&own, at(began), at(300));
        assert_eq!([99, 100, 101].map(speak), [true, true, false]);
    }

    #[test]
    fn success_ahead_of_a_clock_that_was_set_back_says_nothing() {
        let mut successes = LastSuccesses::default();
        let own = target("a.example");
        successes.note_success(&own, at(10_000));
        assert!(!successes.has_success_beside(&own, at(0), at(100)));
        successes.note_success(&own, at(100));
        assert!(successes.is_recent(&own, at(101)));
    }

    #[test]
    fn successes_take_bounded_room_and_the_old_ones_make_way() {
        let mut successes = LastSuccesses::default();
        for index in 0..=TARGETS_MAX {
            successes.note_success(&target(&format!("h{index}.example")), at(100));
        }
        assert_eq!(successes.at.len(), TARGETS_MAX);
        let late = target("late.example");
        successes.note_success(&late, at(160));
        assert!(!successes.is_recent(&late, at(160)));
        successes.note_success(&late, at(161));
        assert!(successes.is_recent(&late, at(161)));
        assert_eq!(successes.at.len(), 1);
    }
}
