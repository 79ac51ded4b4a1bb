//! Brief pauses that endpoints asked for. One worker keeps them for itself, because they are over
//! before another would know.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::circuit::{CircuitDecision, DeliveryTarget, PROBE_LOOK_AGAIN};
use posthaste_core::model::{PAUSE_SHARED_MIN, Timestamp};

/// Most targets that are noted. Beyond it, what is over is forgotten, and then all.
const PAUSES_MAX: usize = 4096;

/// The time after a pause in which requests to a target go one at a time, until one succeeds.
const ONE_AT_A_TIME: Duration = Duration::from_mins(1);

/// The ends of pauses, by target. Targets that asked for no pause are not kept.
#[derive(Debug, Default)]
pub(crate) struct TargetPauses(Mutex<HashMap<DeliveryTarget, Timestamp>>);

impl TargetPauses {
    /// Notes a pause. The latest end wins, unless a clock that was set back since made it late.
    pub(crate) fn begin_pause(&self, target: &DeliveryTarget, until: Timestamp, now: Timestamp) {
        let mut pauses = self.0.lock();
        if pauses.len() >= PAUSES_MAX && !pauses.contains_key(target) {
            pauses.retain(|_, until| now < *until + ONE_AT_A_TIME);
            if pauses.len() >= PAUSES_MAX {
                pauses.clear();
            }
        }
        let end = pauses.entry(target.clone()).or_insert(until);
        *end = if is_of_a_wrong_clock(*end, now) {
            until
        } else {
            until.max(*end)
        };
    }

    /// Whether no target is known to have asked for one.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Notes a success: requests no longer go one at a time. A pause that has not ended stays.
    pub(crate) fn note_success(&self, target: &DeliveryTarget, now: Timestamp) {
        let mut pauses = self.0.lock();
        if pauses.get(target).is_some_and(|until| *until <= now) {
            pauses.remove(target);
        }
    }

    /// Whether a delivery to a target may be sent.
    pub(crate) fn decide(&self, target: &DeliveryTarget, now: Timestamp) -> CircuitDecision {
        let mut pauses = self.0.lock();
        match pauses.get(target).copied() {
            None => CircuitDecision::Open,
            Some(until) if is_of_a_wrong_clock(until, now) => {
                pauses.remove(target);
                CircuitDecision::Open
            }
            Some(until) if now < until => CircuitDecision::Delay { until },
            Some(until) if now < until + ONE_AT_A_TIME => CircuitDecision::Ramp {
                at_once: 1,
                until: now + PROBE_LOOK_AGAIN,
            },
            Some(_) => {
                pauses.remove(target);
                CircuitDecision::Open
            }
        }
    }
}

/// Whether a pause ends later than any that is kept here: a clock was set back since.
fn is_of_a_wrong_clock(until: Timestamp, now: Timestamp) -> bool {
    until > now + PAUSE_SHARED_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_millis(secs * 1000)
    }

    fn target(host: &str) -> DeliveryTarget {
        DeliveryTarget::parse(&format!("https://{host}:443 orders.billing")).unwrap()
    }

    #[test]
    fn after_a_pause_one_at_a_time_goes_until_one_succeeds() {
        let pauses = TargetPauses::default();
        let a = target("a.example");
        let check = |secs, expected| assert_eq!(pauses.decide(&a, at(secs)), expected, "{secs}");
        check(100, CircuitDecision::Open);
        pauses.begin_pause(&a, at(105), at(100));
        pauses.begin_pause(&a, at(103), at(100));
        check(100, CircuitDecision::Delay { until: at(105) });
        // Another that was under way does not end it.
        pauses.note_success(&a, at(104));
        check(104, CircuitDecision::Delay { until: at(105) });
        check(
            105,
            CircuitDecision::Ramp {
                at_once: 1,
                until: at(115),
            },
        );
        assert_eq!(
            pauses.decide(&target("b.example"), at(104)),
            CircuitDecision::Open
        );
        pauses.note_success(&a, at(106));
        check(106, CircuitDecision::Open);
    }

    #[test]
    fn a_clock_that_is_set_back_ends_a_pause() {
        let pauses = TargetPauses::default();
        let a = target("a.example");
        pauses.begin_pause(&a, at(20_005), at(20_000));
        pauses.begin_pause(&a, at(105), at(100));
        assert_eq!(
            pauses.decide(&a, at(100)),
            CircuitDecision::Delay { until: at(105) }
        );
        pauses.begin_pause(&a, at(20_005), at(20_000));
        assert_eq!(pauses.decide(&a, at(100)), CircuitDecision::Open);
    }

    #[test]
    fn a_pause_that_is_over_is_forgotten_and_room_is_bounded() {
        let pauses = TargetPauses::default();
        let a = target("a.example");
        pauses.begin_pause(&a, at(105), at(100));
        assert_eq!(pauses.decide(&a, at(165)), CircuitDecision::Open);
        assert!(pauses.0.lock().is_empty());
        for index in 0..PAUSES_MAX {
            pauses.begin_pause(&target(&format!("h{index}.example")), at(105), at(100));
        }
        pauses.begin_pause(&a, at(205), at(200));
        assert_eq!(pauses.0.lock().len(), 1);
    }
}
