//! The counts that one worker keeps for itself: failures in a row, last successes, requests to
//! recovering targets, and brief pauses.

use parking_lot::Mutex;
use posthaste_core::circuit::{
    AllFailed, AnsweredSubscriptions, ConsecutiveFailures, ConsecutiveRefusals, DeliveryTarget,
    HealthSettings, HealthSignal, LastSuccesses, RefusalSubject, is_problem,
};
use posthaste_core::model::{Delivery, Subscription, Timestamp};

use super::fresh::FreshDeliveries;
use super::pauses::TargetPauses;
use super::ramps::RecoveryRamps;

/// The counts of one worker.
#[derive(Debug, Default)]
pub(crate) struct WorkerCounts {
    failures: Mutex<ConsecutiveFailures>,
    refusals: Mutex<ConsecutiveRefusals>,
    successes: Mutex<LastSuccesses>,
    answered: Mutex<AnsweredSubscriptions>,
    pub(super) fresh: FreshDeliveries,
    pub(super) ramps: RecoveryRamps,
    pub(super) pauses: TargetPauses,
}

impl WorkerCounts {
    /// Whether the last request to a subscription, or to its link, failed here.
    pub(super) fn is_failing(&self, target: &DeliveryTarget) -> bool {
        let failures = self.failures.lock();
        failures.is_failing(target)
            || failures.is_failing(&DeliveryTarget::Link(target.link().clone()))
    }

    /// Whether a delivery's events fail where others of their subscription succeed, at either of
    /// its endpoints.
    pub(crate) fn is_problem(
        &self,
        delivery: &Delivery,
        subscription: &Subscription,
        settings: &HealthSettings,
    ) -> bool {
        let failures = self.failures.lock();
        let mut targets = subscription
            .endpoints()
            .map(|endpoint| DeliveryTarget::on_link(endpoint.link(), subscription));
        targets.any(|target| is_problem(delivery, failures.successes(&target), settings))
    }

    /// Notes that a target is well.
    pub(super) fn note_success(&self, target: &DeliveryTarget, now: Timestamp) {
        self.successes.lock().note_success(target, now);
        self.refusals.lock().reset(target);
        self.failures.lock().note_success(target, now);
    }

    /// Whether a target was well within the last minute.
    pub(crate) fn is_recently_well(&self, target: &DeliveryTarget, now: Timestamp) -> bool {
        self.successes.lock().is_recent(target, now)
    }

    /// Whether requests of an invocation that all failed are a streak: nothing succeeded since the
    /// first of them or within the last minute, and they are not one subscription's own.
    pub(super) fn is_streak(&self, all_failed: &AllFailed, now: Timestamp) -> bool {
        let AllFailed {
            target,
            first_began,
            is_blamed,
            ..
        } = all_failed;
        let is_blamed = *is_blamed || self.failures.lock().is_blamed(target);
        let successes = self.successes.lock();
        is_blamed && !successes.has_success_beside(target, *first_began, now)
    }

    /// Counts the result of a request of a subscription, and answers how many failures in a row
    /// that makes.
    pub(super) fn count_result(
        &self,
        target: &DeliveryTarget,
        subscription: &DeliveryTarget,
        sign: HealthSignal,
        now: Timestamp,
    ) -> u32 {
        match sign {
            HealthSignal::Good => {
                self.note_success(target, now);
                if matches!(target, DeliveryTarget::Link(_)) {
                    self.answered.lock().note_answer(subscription, now);
                }
                0
            }
            HealthSignal::Bad => self.failures.lock().count_failure(target),
            HealthSignal::Suspect => self.count_suspected_failure(target, subscription, now),
            HealthSignal::Answers | HealthSignal::Refuses(_) | HealthSignal::Unknown => 0,
        }
    }

    /// Counts a failure of a subscription that may be its target's. While others there are
    /// answered, it is not.
    fn count_suspected_failure(
        &self,
        target: &DeliveryTarget,
        subscription: &DeliveryTarget,
        now: Timestamp,
    ) -> u32 {
        let failures = self.failures.lock().count_suspected(target, subscription);
        let mut answered = self.answered.lock();
        answered.note_closed_connection(subscription);
        if answered.is_any(target.link(), now) {
            0
        } else {
            failures
        }
    }

    /// Counts a refused request, and answers how many in a row that makes. Where others arrive, a
    /// refusal that speaks of the event is none.
    pub(super) fn count_refusal<'a>(
        &self,
        target: &DeliveryTarget,
        refusal: RefusalSubject,
        events: impl IntoIterator<Item = &'a str>,
        now: Timestamp,
    ) -> u32 {
        if refusal == RefusalSubject::OfEvent && self.is_recently_well(target, now) {
            return 0;
        }
        self.refusals.lock().count_refusal(target, events)
    }

    /// Counts a target from zero: its failures were reported.
    pub(super) fn reset_target(&self, target: &DeliveryTarget) {
        self.failures.lock().reset(target);
        self.refusals.lock().reset(target);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{START, secs, subscription, target};

    #[test]
    fn failures_of_a_link_are_failures_of_its_subscriptions() {
        let counts = WorkerCounts::default();
        let own = target(&subscription(json!({})));
        let link = DeliveryTarget::Link(own.link().clone());
        assert!(!counts.is_failing(&own));
        assert_eq!(
            [1, 2].map(|_| counts.count_result(&link, &own, HealthSignal::Bad, START)),
            [1, 2]
        );
        assert!(counts.is_failing(&own) && counts.is_failing(&link));
        counts.reset_target(&link);
        assert!(!counts.is_failing(&own));
    }

    /// Two receivers that crash beside one that answers: their host is well.
    #[test]
    fn closed_connections_blame_no_link_where_another_is_answered() {
        let counts = WorkerCounts::default();
        let of = |name: &str| {
            DeliveryTarget::parse(&format!("https://a.example:443 orders.{name}")).unwrap()
        };
        let [first, second, well] = ["first", "second", "well"].map(of);
        let link = DeliveryTarget::Link(well.link().clone());
        let count = |of, sign, at| counts.count_result(&link, of, sign, at);
        count(&well, HealthSignal::Good, START);
        let both = |at| [&first, &second].map(|of| count(of, HealthSignal::Suspect, at));
        assert_eq!([both(START), both(START + secs(60))], [[0; 2]; 2]);
        // It was answered too long ago.
        assert_eq!(both(START + secs(61)), [5, 6]);
        count(&well, HealthSignal::Good, START + secs(62));
        assert_eq!(both(START + secs(63)), [0; 2]);
        // It fails too.
        assert_eq!(count(&well, HealthSignal::Suspect, START + secs(64)), 3);
    }

    #[test]
    fn a_success_ends_a_streak_and_what_says_nothing_does_not() {
        let counts = WorkerCounts::default();
        let own = target(&subscription(json!({})));
        let count = |sign| counts.count_result(&own, &own, sign, START);
        assert_eq!(
            [
                HealthSignal::Bad,
                HealthSignal::Answers,
                HealthSignal::Unknown,
                HealthSignal::Bad
            ]
            .map(count),
            [1, 0, 0, 2]
        );
        assert_eq!([HealthSignal::Good, HealthSignal::Bad].map(count), [0, 1]);
        counts.reset_target(&own);
        assert!(!counts.is_failing(&own));
    }

    /// Events that fail have a problem where others succeeded before and since.
    #[test]
    fn events_that_fail_between_successes_of_others_are_problems() {
        use posthaste_core::model::{AttemptOutcome, LastAttempt};
        let counts = WorkerCounts::default();
        let own = subscription(json!({}));
        let refused = AttemptOutcome::Answered {
            status: 503,
            retry_after: None,
        };
        let delivery = Delivery {
            attempts: 50,
            last: LastAttempt::from_outcome(refused, START + secs(5)),
            ..crate::testing::delivery(1)
        };
        let is_problem = || counts.is_problem(&delivery, &own, &HealthSettings::default());
        let own_target = target(&own);
        let count = |sign, at| counts.count_result(&own_target, &own_target, sign, at);
        count(HealthSignal::Bad, START);
        count(HealthSignal::Good, START + secs(1));
        assert!(!is_problem());
        count(HealthSignal::Good, START + secs(9));
        assert!(is_problem());
    }
}
