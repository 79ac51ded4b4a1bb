//! What the outcome of a request says about its link and about its subscription there.

use super::reach::{Reach, reach};
use crate::attempt::decide::Outcome;
use crate::attempt::outcome::SendFailure;

/// What a request says about a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
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
pub struct Signs {
    /// About the link.
    pub link: Sign,
    /// About the subscription.
    pub subscription: Sign,
}

/// What an outcome says; `None` for what was our own fault.
pub fn signs(outcome: Outcome) -> Option<Signs> {
    let of = |link, subscription| Some(Signs { link, subscription });
    match reach(outcome) {
        None if outcome.is_success() => of(Sign::Good, Sign::Good),
        None => None,
        // Nobody was asked.
        Some(Reach::Event) if outcome.is_unknown_name() => of(Sign::Unknown, Sign::Unknown),
        Some(Reach::Event) => of(Sign::Good, Sign::Answers),
        // Silence on a connection that is there may still be that of a host that is not.
        Some(Reach::Subscription) if outcome == Outcome::Failed(SendFailure::TimedOut) => {
            of(Sign::Unknown, Sign::Bad)
        }
        Some(Reach::Subscription) => of(Sign::Good, Sign::Bad),
        Some(Reach::Link) => of(Sign::Bad, Sign::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_outcome_has_its_signs() {
        let check = |outcome, link, subscription| {
            assert_eq!(signs(outcome), Some(Signs { link, subscription }), "{outcome:?}");
        };
        let answered = |status| Outcome::Answered { status, retry_after: None };
        check(answered(204), Sign::Good, Sign::Good);
        check(answered(400), Sign::Good, Sign::Answers);
        check(Outcome::Unacknowledged { status: 200 }, Sign::Good, Sign::Answers);
        check(answered(503), Sign::Good, Sign::Bad);
        check(Outcome::Failed(SendFailure::TimedOut), Sign::Unknown, Sign::Bad);
        check(Outcome::Failed(SendFailure::ConnectTimedOut), Sign::Bad, Sign::Unknown);
        check(Outcome::Failed(SendFailure::Socket), Sign::Bad, Sign::Unknown);
        let unknown_name = Outcome::Failed(SendFailure::Resolution { does_not_exist: true });
        check(unknown_name, Sign::Unknown, Sign::Unknown);
        assert_eq!(signs(Outcome::Failed(SendFailure::Exhausted)), None);
    }
}
