//! The reach of failures: what they say about the event, the subscription and the link.

use crate::circuit::{HealthSettings, RefusalSubject, SuccessSpan, refusal_subject};
use crate::model::{AttemptOutcome, Delivery, LastAttempt, OutcomeName, SendFailure};

/// The reach of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureScope {
    /// The events alone: the endpoint answers, or its host name does not exist, so that waiting
    /// cannot help.
    Event,
    /// The subscription: the link was reached, and what is behind it does not do its work.
    Subscription,
    /// The link, with every subscription on that host and port.
    Link,
}

/// The reach of an outcome; `None` for a success, and for a fault of our own.
pub fn failure_scope(outcome: AttemptOutcome) -> Option<FailureScope> {
    match outcome {
        AttemptOutcome::Answered {
            status: 200..=204, ..
        }
        | AttemptOutcome::Failed(SendFailure::Exhausted | SendFailure::Withdrawn) => None,
        // All that 408 and 429 leave of the client errors.
        AttemptOutcome::Answered {
            status: 400..=407 | 409..=428 | 430..=499,
            ..
        }
        | AttemptOutcome::Unacknowledged { .. }
        | AttemptOutcome::Failed(SendFailure::Resolution {
            does_not_exist: true,
        }) => Some(FailureScope::Event),
        AttemptOutcome::Answered { .. }
        | AttemptOutcome::Failed(
            SendFailure::TimedOut | SendFailure::KeptTimedOut | SendFailure::Closed,
        ) => Some(FailureScope::Subscription),
        AttemptOutcome::Failed(
            SendFailure::ConnectTimedOut
            | SendFailure::Refused
            | SendFailure::Socket
            | SendFailure::Resolution {
                does_not_exist: false,
            }
            | SendFailure::Certificate(_)
            | SendFailure::NotTls
            | SendFailure::Tls
            | SendFailure::AddressRefused,
        ) => Some(FailureScope::Link),
    }
}

/// The evidence that a request gives about a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthSignal {
    /// The target is well.
    Good,
    /// The target answers, but whether it does its work is not known. Enough for a probe.
    Answers,
    /// The target answers, and refuses the events. Enough for a probe, if that is new.
    Refuses(RefusalSubject),
    /// Nothing is known. Not enough for a probe.
    Unknown,
    /// The target may have failed: it has, if another subscription says so too.
    Suspect,
    /// The target failed.
    Bad,
}

/// The evidence that a request gives about the link and the subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthSignals {
    /// About the link.
    pub link: HealthSignal,
    /// About the subscription.
    pub subscription: HealthSignal,
}

/// Reads the evidence of an outcome; `None` if the fault was our own.
pub fn health_signals(outcome: AttemptOutcome) -> Option<HealthSignals> {
    let (link, subscription) = match failure_scope(outcome) {
        None if outcome.is_success() => (HealthSignal::Good, HealthSignal::Good),
        None => return None,
        // No endpoint was asked.
        Some(FailureScope::Event) if outcome.is_unknown_name() => {
            (HealthSignal::Unknown, HealthSignal::Unknown)
        }
        Some(FailureScope::Event) => {
            let answers =
                refusal_subject(outcome).map_or(HealthSignal::Answers, HealthSignal::Refuses);
            (HealthSignal::Good, answers)
        }
        // Silence on a connection that may not be there any more is that of a NAT or a balancer.
        Some(FailureScope::Subscription)
            if outcome == AttemptOutcome::Failed(SendFailure::KeptTimedOut) =>
        {
            (HealthSignal::Unknown, HealthSignal::Unknown)
        }
        // Silence on a connection that is there may still be that of a host that is not.
        Some(FailureScope::Subscription)
            if outcome == AttemptOutcome::Failed(SendFailure::TimedOut) =>
        {
            (HealthSignal::Unknown, HealthSignal::Bad)
        }
        // A receiver that crashes closes its connection, and so does a host that is going down.
        Some(FailureScope::Subscription)
            if outcome == AttemptOutcome::Failed(SendFailure::Closed) =>
        {
            (HealthSignal::Suspect, HealthSignal::Bad)
        }
        Some(FailureScope::Subscription) => (HealthSignal::Good, HealthSignal::Bad),
        Some(FailureScope::Link) => (HealthSignal::Bad, HealthSignal::Unknown),
    };
    Some(HealthSignals { link, subscription })
}

/// Whether a delivery's events have a problem of their own: they failed their subscription often
/// enough, and others there succeeded before the last time and since. What failed while the
/// endpoint was down has none. They are sent alone, after the rest, and what comes of it says
/// nothing about the endpoint.
pub fn is_problem(
    delivery: &Delivery,
    successes: Option<SuccessSpan>,
    settings: &HealthSettings,
) -> bool {
    let Some(last) = delivery.last else {
        return false;
    };
    let Some(successes) = successes else {
        return false;
    };
    let is_often = u32::from(delivery.attempts) >= settings.problem_failures;
    let is_among_successes = (successes.first..=successes.last).contains(&last.at);
    is_often && speaks_of_event(last) && is_among_successes
}

/// Whether an attempt reached an endpoint that others reach too, so that its failure may be the
/// event's own. What a connection did that may not have been there any more says nothing.
fn speaks_of_event(last: LastAttempt) -> bool {
    !last.was_kept && scope_of(last) == FailureScope::Subscription
}

fn scope_of(last: LastAttempt) -> FailureScope {
    match last.outcome {
        OutcomeName::TimedOut if last.was_unconnected => FailureScope::Link,
        OutcomeName::SocketError if last.was_connected => FailureScope::Subscription,
        // A client error, or a success of which one event was not acknowledged.
        OutcomeName::GenericError if matches!(last.status, Some(200..=204 | 400..=499)) => {
            FailureScope::Event
        }
        OutcomeName::GenericError
        | OutcomeName::TimedOut
        | OutcomeName::Busy
        | OutcomeName::Redirected => FailureScope::Subscription,
        OutcomeName::SocketError
        | OutcomeName::ResolutionError
        | OutcomeName::TlsError
        | OutcomeName::AddressRefused => FailureScope::Link,
        OutcomeName::BadRequest
        | OutcomeName::Unauthorized
        | OutcomeName::Forbidden
        | OutcomeName::NotFound
        | OutcomeName::Gone
        | OutcomeName::PayloadTooLarge
        | OutcomeName::Aborted
        | OutcomeName::Probation => FailureScope::Event,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{EventSchema, Hops, SubscriptionName, Timestamp, TopicName};

    const FAILED_AT: Timestamp = Timestamp::from_millis(1_000_000);

    /// `successes` are before and after the failure, in seconds.
    fn check(attempts: u16, status: u16, successes: Option<[i64; 2]>, expected: bool) {
        check_after(
            AttemptOutcome::Answered {
                status,
                retry_after: None,
            },
            attempts,
            successes,
            expected,
        );
    }

    fn check_after(
        outcome: AttemptOutcome,
        attempts: u16,
        successes: Option<[i64; 2]>,
        expected: bool,
    ) {
        let delivery = Delivery {
            topic: TopicName::parse("orders").unwrap(),
            subscription: SubscriptionName::parse("billing").unwrap(),
            schema: EventSchema::CloudEvents,
            published_at: Timestamp::EPOCH,
            not_before: Timestamp::EPOCH,
            attempts,
            last: LastAttempt::from_outcome(outcome, FAILED_AT),
            timed_out: false,
            identity: None,
            hops: Hops::default(),
            events: Vec::new(),
        };
        let at = |secs: i64| {
            Timestamp::from_millis(FAILED_AT.as_millis().saturating_add_signed(secs * 1000))
        };
        let seen = successes.map(|[first, last]| SuccessSpan {
            first: at(first),
            last: at(last),
        });
        let is = is_problem(&delivery, seen, &HealthSettings::default());
        assert_eq!(is, expected, "{attempts} {outcome:?} {successes:?}");
    }

    /// An event that failed twice among others that succeeded has a problem.
    #[test]
    fn event_that_failed_twice_among_successes_has_a_problem() {
        check(2, 500, Some([-60, 1]), true);
        check(7, 503, Some([0, 0]), true);
        check(1, 500, Some([-60, 1]), false);
        check(2, 500, None, false);
        check(2, 500, Some([-60, -1]), false);
        check(2, 422, Some([-60, 1]), false);
        check(0, 200, Some([-60, 1]), false);
    }

    #[test]
    fn a_problem_event_had_a_connection() {
        let check = |failure, expected| {
            check_after(AttemptOutcome::Failed(failure), 2, Some([-60, 1]), expected);
        };
        check(SendFailure::TimedOut, true);
        check(SendFailure::KeptTimedOut, false);
        check(SendFailure::ConnectTimedOut, false);
        check(SendFailure::Closed, true);
        check(SendFailure::Socket, false);
    }

    #[test]
    fn event_that_failed_in_an_outage_has_no_problem_after_it() {
        check(5, 503, Some([1, 60]), false);
    }

    #[test]
    fn silence_of_a_kept_connection_says_nothing() {
        let signals = |failure| health_signals(AttemptOutcome::Failed(failure)).unwrap();
        let of = |link, subscription| HealthSignals { link, subscription };
        assert_eq!(
            signals(SendFailure::KeptTimedOut),
            of(HealthSignal::Unknown, HealthSignal::Unknown)
        );
        assert_eq!(
            signals(SendFailure::TimedOut),
            of(HealthSignal::Unknown, HealthSignal::Bad)
        );
    }

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
            check(
                AttemptOutcome::Answered {
                    status,
                    retry_after: None,
                },
                expected,
            );
        }
        check(
            AttemptOutcome::Unacknowledged { status: 200 },
            Some(FailureScope::Event),
        );
        let failures = [
            SendFailure::TimedOut,
            SendFailure::KeptTimedOut,
            SendFailure::Closed,
        ];
        for failure in failures {
            check(
                AttemptOutcome::Failed(failure),
                Some(FailureScope::Subscription),
            );
        }
        let unresolved =
            |does_not_exist| AttemptOutcome::Failed(SendFailure::Resolution { does_not_exist });
        check(unresolved(false), Some(FailureScope::Link));
        check(unresolved(true), Some(FailureScope::Event));
        let unreached = [
            SendFailure::ConnectTimedOut,
            SendFailure::Socket,
            SendFailure::Tls,
            SendFailure::AddressRefused,
        ];
        for failure in unreached {
            check(AttemptOutcome::Failed(failure), Some(FailureScope::Link));
        }
        check(AttemptOutcome::Failed(SendFailure::Exhausted), None);
        check(AttemptOutcome::Failed(SendFailure::Withdrawn), None);
    }

    #[test]
    fn every_kind_of_outcome_has_its_signs() {
        let check = |outcome, link, subscription| {
            assert_eq!(
                health_signals(outcome),
                Some(HealthSignals { link, subscription }),
                "{outcome:?}"
            );
        };
        let answered = |status| AttemptOutcome::Answered {
            status,
            retry_after: None,
        };
        check(answered(204), HealthSignal::Good, HealthSignal::Good);
        check(
            answered(400),
            HealthSignal::Good,
            HealthSignal::Refuses(RefusalSubject::OfEvent),
        );
        check(
            answered(401),
            HealthSignal::Good,
            HealthSignal::Refuses(RefusalSubject::OfEndpoint),
        );
        check(
            AttemptOutcome::Unacknowledged { status: 200 },
            HealthSignal::Good,
            HealthSignal::Answers,
        );
        check(answered(503), HealthSignal::Good, HealthSignal::Bad);
        check(
            AttemptOutcome::Failed(SendFailure::TimedOut),
            HealthSignal::Unknown,
            HealthSignal::Bad,
        );
        check(
            AttemptOutcome::Failed(SendFailure::Closed),
            HealthSignal::Suspect,
            HealthSignal::Bad,
        );
        check(
            AttemptOutcome::Failed(SendFailure::ConnectTimedOut),
            HealthSignal::Bad,
            HealthSignal::Unknown,
        );
        check(
            AttemptOutcome::Failed(SendFailure::Socket),
            HealthSignal::Bad,
            HealthSignal::Unknown,
        );
        let unknown_name = AttemptOutcome::Failed(SendFailure::Resolution {
            does_not_exist: true,
        });
        check(unknown_name, HealthSignal::Unknown, HealthSignal::Unknown);
        assert_eq!(
            health_signals(AttemptOutcome::Failed(SendFailure::Exhausted)),
            None
        );
    }
}
