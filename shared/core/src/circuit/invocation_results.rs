//! The results of one invocation, by target, for the rule that a few requests which all failed are
//! a streak too.

use std::collections::BTreeMap;

use crate::circuit::{DeliveryTarget, FailureBlame, Observation, RequestFailure};
use crate::model::Timestamp;

/// The requests of one invocation, by target.
#[derive(Debug, Default)]
pub struct InvocationResults(BTreeMap<DeliveryTarget, TargetRequests>);

#[derive(Debug, Default)]
struct TargetRequests {
    failed: u32,
    succeeded: bool,
    blame: FailureBlame,
    first_began: Option<Timestamp>,
    last: Option<(RequestFailure, Timestamp)>,
}

/// A target all of whose requests in an invocation failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllFailed {
    /// The target.
    pub target: DeliveryTarget,
    /// The observation to report.
    pub observation: Observation,
    /// The beginning of the first of the requests.
    pub first_began: Timestamp,
    /// Whether the failures are the target's, as far as this invocation shows.
    pub is_blamed: bool,
}

impl InvocationResults {
    /// Counts a failure of a request that was begun at that time.
    pub fn count_failure(
        &mut self,
        target: &DeliveryTarget,
        last: RequestFailure,
        began: Timestamp,
    ) {
        self.add_failure(target, last, began).blame_target();
    }

    /// Counts a failure of a subscription that may be the target's.
    pub fn count_suspected(
        &mut self,
        target: &DeliveryTarget,
        subscription: &DeliveryTarget,
        last: RequestFailure,
        began: Timestamp,
    ) {
        self.add_failure(target, last, began)
            .add_suspected(subscription);
    }

    /// Forgets a target whose failures were reported.
    pub fn forget_target(&mut self, target: &DeliveryTarget) {
        self.0.remove(target);
    }

    /// Counts a success.
    pub fn note_success(&mut self, target: &DeliveryTarget) {
        self.0.entry(target.clone()).or_default().succeeded = true;
    }

    /// The targets all of whose requests failed, `minimum` of them at least. Links come first, then
    /// subscriptions, each by name.
    pub fn all_failed(&self, minimum: u32) -> impl Iterator<Item = AllFailed> {
        self.0
            .iter()
            .filter(move |(_, it)| !it.succeeded && it.failed >= minimum)
            .filter_map(|(target, requests)| requests.to_all_failed(target))
    }

    fn add_failure(
        &mut self,
        target: &DeliveryTarget,
        last: RequestFailure,
        began: Timestamp,
    ) -> &mut FailureBlame {
        let requests = self.0.entry(target.clone()).or_default();
        requests.failed = requests.failed.saturating_add(1);
        let first = requests.first_began.unwrap_or(began);
        requests.first_began = Some(first.min(began));
        requests.last = Some((last, began));
        &mut requests.blame
    }
}

impl TargetRequests {
    fn to_all_failed(&self, target: &DeliveryTarget) -> Option<AllFailed> {
        let (last, began) = self.last?;
        Some(AllFailed {
            target: target.clone(),
            observation: Observation::Failing {
                failures: self.failed,
                last,
                began,
            },
            first_began: self.first_began?,
            is_blamed: self.blame.is_of_target(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::OutcomeName;

    const BUSY: RequestFailure = RequestFailure {
        outcome: OutcomeName::Busy,
        status: Some(503),
    };

    fn target(host: &str) -> DeliveryTarget {
        DeliveryTarget::parse(&format!("https://{host}:443")).unwrap()
    }

    const fn at(secs: u64) -> Timestamp {
        Timestamp::from_millis(secs * 1000)
    }

    #[test]
    fn invocation_with_enough_failures_and_no_success_is_a_streak() {
        let mut tally = InvocationResults::default();
        for (host, failures) in [("a", 3), ("b", 2), ("c", 5)] {
            (0..failures).for_each(|second| tally.count_failure(&target(host), BUSY, at(second)));
        }
        tally.note_success(&target("c"));
        let all_failed = AllFailed {
            target: target("a"),
            observation: Observation::Failing {
                failures: 3,
                last: BUSY,
                began: at(2),
            },
            first_began: at(0),
            is_blamed: true,
        };
        assert_eq!(tally.all_failed(3).collect::<Vec<_>>(), [all_failed]);
        tally.forget_target(&target("a"));
        assert_eq!(tally.all_failed(3).count(), 0);
    }

    #[test]
    fn suspected_failures_of_one_subscription_blame_no_link() {
        let link = target("a.example");
        let subscription = |name: &str| {
            DeliveryTarget::parse(&format!("https://a.example:443 orders.{name}")).unwrap()
        };
        let mut tally = InvocationResults::default();
        let mut suspect = |name| tally.count_suspected(&link, &subscription(name), BUSY, at(1));
        (0..3).for_each(|_| suspect("billing"));
        let is_blamed = |tally: &InvocationResults| {
            let all: Vec<_> = tally.all_failed(3).map(|it| it.is_blamed).collect();
            all
        };
        assert_eq!(is_blamed(&tally), [false]);
        tally.count_suspected(&link, &subscription("audit"), BUSY, at(1));
        assert_eq!(is_blamed(&tally), [true]);
    }
}
