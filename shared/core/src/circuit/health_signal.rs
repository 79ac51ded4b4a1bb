//! What the outcome of a request says about its link and about its subscription there.

use super::failure_scope::{FailureScope, failure_scope};
use crate::attempt::{Outcome, SendFailure};

/// What a request says about a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthSignal {
    /// It is well.
    Good,
    /// It answers, but whether it does its work is not known. Enough for a probe.
    Answers,
    /// Nothing is known. Not enough for a probe.
    Unknown,
    /// It failed.
    Bad,
}

/// What a request says about both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthSignals {
    /// About the link.
    pub link: HealthSignal,
    /// About the subscription.
    pub subscription: HealthSignal,
}

/// What an outcome says; `None` for what was our own fault.
pub fn health_signals(outcome: Outcome) -> Option<HealthSignals> {
    let of = |link, subscription| Some(HealthSignals { link, subscription });
    match failure_scope(outcome) {
        None if outcome.is_success() => of(HealthSignal::Good, HealthSignal::Good),
        None => None,
        // Nobody was asked.
        Some(FailureScope::Event) if outcome.is_unknown_name() => {
            of(HealthSignal::Unknown, HealthSignal::Unknown)
        }
        Some(FailureScope::Event) => of(HealthSignal::Good, HealthSignal::Answers),
        // Silence on a connection that is there may still be that of a host that is not.
        Some(FailureScope::Subscription) if outcome == Outcome::Failed(SendFailure::TimedOut) => {
            of(HealthSignal::Unknown, HealthSignal::Bad)
        }
        Some(FailureScope::Subscription) => of(HealthSignal::Good, HealthSignal::Bad),
        Some(FailureScope::Link) => of(HealthSignal::Bad, HealthSignal::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_outcome_has_its_signs() {
        let check = |outcome, link, subscription| {
            assert_eq!(health_signals(outcome), Some(HealthSignals { link, subscription }), "{outcome:?}");
        };
        let answered = |status| Outcome::Answered { status, retry_after: None };
        check(answered(204), HealthSignal::Good, HealthSignal::Good);
        check(answered(400), HealthSignal::Good, HealthSignal::Answers);
        check(Outcome::Unacknowledged { status: 200 }, HealthSignal::Good, HealthSignal::Answers);
        check(answered(503), HealthSignal::Good, HealthSignal::Bad);
        check(Outcome::Failed(SendFailure::TimedOut), HealthSignal::Unknown, HealthSignal::Bad);
        check(Outcome::Failed(SendFailure::ConnectTimedOut), HealthSignal::Bad, HealthSignal::Unknown);
        check(Outcome::Failed(SendFailure::Socket), HealthSignal::Bad, HealthSignal::Unknown);
        let unknown_name = Outcome::Failed(SendFailure::Resolution { does_not_exist: true });
        check(unknown_name, HealthSignal::Unknown, HealthSignal::Unknown);
        assert_eq!(health_signals(Outcome::Failed(SendFailure::Exhausted)), None);
    }
}
