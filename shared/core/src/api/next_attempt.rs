//! The time of the next attempt, as every answer shows it.

use super::{StatusState, WaitingCount};
use crate::circuit::{DeliveryTarget, LinkShard, TargetCondition};
use crate::model::Timestamp;

/// The conditions that decide when an event of a subscription is tried next, beside its own time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NextAttempt {
    /// Whether the subscription gets requests: not if it is paused, disabled or without consent.
    is_active: bool,
    /// The time of the next probe, where requests to the link or to the subscription pause.
    probe: Option<Timestamp>,
}

impl NextAttempt {
    /// For a subscription in this state, with what is known of its link and of itself on it.
    pub fn new(
        state: StatusState,
        link: Option<&TargetCondition>,
        subscription: Option<&TargetCondition>,
    ) -> Self {
        let conditions = [link, subscription].into_iter().flatten();
        Self {
            is_active: state == StatusState::Active,
            // A request goes out when both may be asked.
            probe: conditions.filter_map(TargetCondition::next_probe).max(),
        }
    }

    /// For a subscription in this state, by the part of the links' health that has its link.
    pub fn for_subscription(
        state: StatusState,
        target: &DeliveryTarget,
        shard: &LinkShard,
    ) -> Self {
        let link = DeliveryTarget::Link(target.link().clone());
        Self::new(state, shard.condition(&link), shard.condition(target))
    }

    /// The next attempt of one event that waits for this time, or that is held.
    pub fn for_event(&self, due: Option<Timestamp>) -> Option<Timestamp> {
        due.max(self.probe).filter(|_| self.is_active)
    }

    /// The next attempt of any of these events. Those that are due or held wait for the probe, if
    /// there is to be one; otherwise they go without a time of their own.
    pub fn for_waiting(&self, count: &WaitingCount) -> Option<Timestamp> {
        let waits_for_probe = count.due > 0 || count.held > 0;
        let probed = self.probe.filter(|_| waits_for_probe);
        let timed = count.next_due.and_then(|due| self.for_event(Some(due)));
        probed
            .into_iter()
            .chain(timed)
            .min()
            .filter(|_| self.is_active)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuit::{ProbeLease, RequestFailure, TargetPhase};
    use crate::model::OutcomeName;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_millis(secs * 1000)
    }

    fn condition(phase: TargetPhase, until: u64) -> TargetCondition {
        TargetCondition {
            phase,
            since: at(1),
            failing_since: at(1),
            hold: 1,
            until: at(until),
            failures: 10,
            last: RequestFailure {
                outcome: OutcomeName::Busy,
                status: Some(503),
            },
            probe: None,
            told_down: false,
            asked: false,
            forced: false,
            refused: false,
        }
    }

    fn active(
        link: Option<&TargetCondition>,
        subscription: Option<&TargetCondition>,
    ) -> NextAttempt {
        NextAttempt::new(StatusState::Active, link, subscription)
    }

    #[test]
    fn an_event_waits_for_its_time_and_for_the_probe() {
        let glitch = condition(TargetPhase::Glitch, 60);
        let retry = condition(TargetPhase::Retry, 600);
        let recovering = condition(TargetPhase::Recovering, 600);
        let check = |next: NextAttempt, due: Option<u64>, expected: Option<u64>| {
            assert_eq!(
                next.for_event(due.map(at)),
                expected.map(at),
                "{next:?} {due:?}"
            );
        };
        check(active(None, None), Some(10), Some(10));
        check(active(None, None), None, None);
        check(active(Some(&glitch), None), Some(10), Some(60));
        check(active(Some(&glitch), None), Some(70), Some(70));
        check(active(None, Some(&glitch)), Some(10), Some(60));
        check(active(Some(&glitch), Some(&retry)), Some(10), Some(600));
        check(active(Some(&retry), Some(&glitch)), None, Some(600));
        check(active(Some(&recovering), None), Some(10), Some(10));
        check(active(Some(&recovering), None), None, None);
        let probe = Some(ProbeLease {
            by: "x".to_owned(),
            until: at(90),
        });
        let probed = TargetCondition { probe, ..glitch };
        check(active(Some(&probed), None), Some(10), Some(90));
    }

    #[test]
    fn inactive_subscription_has_no_next_attempt() {
        let retry = condition(TargetPhase::Retry, 600);
        let count = WaitingCount {
            due: 1,
            held: 1,
            next_due: Some(at(10)),
            ..WaitingCount::default()
        };
        for state in [
            StatusState::Paused,
            StatusState::Pending,
            StatusState::Failed,
            StatusState::Disabled,
        ] {
            let next = NextAttempt::new(state, Some(&retry), None);
            assert_eq!(next.for_event(Some(at(10))), None, "{state:?}");
            assert_eq!(next.for_waiting(&count), None, "{state:?}");
        }
    }

    #[test]
    fn the_first_of_all_that_waits_is_shown() {
        let retry = condition(TargetPhase::Retry, 600);
        let check = |next: NextAttempt, due, held, next_due: Option<u64>, expected: Option<u64>| {
            let count = WaitingCount {
                due,
                held,
                next_due: next_due.map(at),
                ..WaitingCount::default()
            };
            assert_eq!(
                next.for_waiting(&count),
                expected.map(at),
                "{next:?} {count:?}"
            );
        };
        check(active(None, None), 0, 0, None, None);
        check(active(None, None), 5, 5, None, None);
        check(active(None, None), 5, 0, Some(10), Some(10));
        check(active(Some(&retry), None), 0, 0, None, None);
        check(active(Some(&retry), None), 0, 1, None, Some(600));
        check(active(Some(&retry), None), 1, 0, None, Some(600));
        check(active(Some(&retry), None), 0, 1, Some(900), Some(600));
        check(active(Some(&retry), None), 0, 0, Some(10), Some(600));
        check(active(Some(&retry), None), 0, 0, Some(900), Some(900));
    }
}
