//! How far a failure reaches: what it says about the event, the subscription and the link.

use crate::attempt::{Outcome, SendFailure};

/// What has failed with a request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureScope {
    /// Only its events: the endpoint answers, or its host name does not exist, so that waiting cannot help.
    Event,
    /// The subscription: the link was reached, and what is behind it does not do its work.
    Subscription,
    /// The link, with every subscription on that host and port.
    Link,
}

/// How far an outcome reaches; `None` for a success, and for what was our own fault.
pub fn failure_scope(outcome: Outcome) -> Option<FailureScope> {
    match outcome {
        Outcome::Answered { status: 200..=204, .. } | Outcome::Failed(SendFailure::Exhausted) => None,
        // All that 408 and 429 leave of the client errors.
        Outcome::Answered { status: 400..=407 | 409..=428 | 430..=499, .. }
        | Outcome::Unacknowledged { .. }
        | Outcome::Failed(SendFailure::Resolution { does_not_exist: true }) => Some(FailureScope::Event),
        Outcome::Answered { .. } | Outcome::Failed(SendFailure::TimedOut) => Some(FailureScope::Subscription),
        Outcome::Failed(
            SendFailure::ConnectTimedOut
            | SendFailure::Socket
            | SendFailure::Resolution { does_not_exist: false }
            | SendFailure::Tls
            | SendFailure::AddressRefused,
        ) => Some(FailureScope::Link),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_its_reach() {
        let check = |outcome, expected| assert_eq!(failure_scope(outcome), expected, "{outcome:?}");
        for status in 100..=999 {
            let expected = match status {
                200..=204 => None,
                408 | 429 => Some(FailureScope::Subscription),
                400..=499 => Some(FailureScope::Event),
                _ => Some(FailureScope::Subscription),
            };
            check(Outcome::Answered { status, retry_after: None }, expected);
        }
        check(Outcome::Unacknowledged { status: 200 }, Some(FailureScope::Event));
        check(Outcome::Failed(SendFailure::TimedOut), Some(FailureScope::Subscription));
        let unresolved = |does_not_exist| Outcome::Failed(SendFailure::Resolution { does_not_exist });
        check(unresolved(false), Some(FailureScope::Link));
        check(unresolved(true), Some(FailureScope::Event));
        let unreached = [
            SendFailure::ConnectTimedOut,
            SendFailure::Socket,
            SendFailure::Tls,
            SendFailure::AddressRefused,
        ];
        for failure in unreached {
            check(Outcome::Failed(failure), Some(FailureScope::Link));
        }
        check(Outcome::Failed(SendFailure::Exhausted), None);
    }
}
