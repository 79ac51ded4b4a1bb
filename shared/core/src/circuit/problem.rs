//! Problem events: those that fail where others succeed.

use super::consecutive_failures::Successes;
use super::failure_scope::FailureScope;
use super::settings::HealthSettings;
use crate::attempt::OutcomeName;
use crate::model::{Delivery, LastAttempt};

/// Whether a delivery's events have a problem of their own: they failed their subscription often enough, and
/// others there succeeded before the last time and since. What failed while the endpoint was down has none.
/// They are sent alone, after the rest, and what comes of it says nothing about the endpoint.
pub fn is_problem(delivery: &Delivery, successes: Option<Successes>, settings: &HealthSettings) -> bool {
    let Some(last) = delivery.last else { return false };
    let is_often = u32::from(delivery.attempts) >= settings.problem_failures;
    let is_among = |successes: Successes| (successes.first..=successes.last).contains(&last.at);
    is_often && reach_of(last) == FailureScope::Subscription && successes.is_some_and(is_among)
}

fn reach_of(last: LastAttempt) -> FailureScope {
    match last.outcome {
        OutcomeName::TimedOut if last.was_unconnected => FailureScope::Link,
        // A client error, or a success of which one event was not acknowledged.
        OutcomeName::GenericError if matches!(last.status, Some(200..=204 | 400..=499)) => {
            FailureScope::Event
        }
        OutcomeName::GenericError | OutcomeName::TimedOut | OutcomeName::Busy | OutcomeName::Redirected => {
            FailureScope::Subscription
        }
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
    use crate::attempt::{Outcome, SendFailure};
    use crate::model::{Hops, Schema, SubscriptionName, Timestamp, TopicName};

    const FAILED_AT: Timestamp = Timestamp::from_millis(1_000_000);

    /// `successes` are before and after the failure, in seconds.
    fn check(attempts: u16, status: u16, successes: Option<[i64; 2]>, expected: bool) {
        check_after(Outcome::Answered { status, retry_after: None }, attempts, successes, expected);
    }

    fn check_after(outcome: Outcome, attempts: u16, successes: Option<[i64; 2]>, expected: bool) {
        let delivery = Delivery {
            topic: TopicName::parse("orders").unwrap(),
            subscription: SubscriptionName::parse("billing").unwrap(),
            schema: Schema::CloudEvents,
            published_at: Timestamp::EPOCH,
            not_before: Timestamp::EPOCH,
            attempts,
            last: LastAttempt::of(outcome, FAILED_AT),
            timed_out: false,
            identity: None,
            hops: Hops::default(),
            events: Vec::new(),
        };
        let at = |secs: i64| Timestamp::from_millis(FAILED_AT.as_millis().saturating_add_signed(secs * 1000));
        let seen = successes.map(|[first, last]| Successes { first: at(first), last: at(last) });
        let is = is_problem(&delivery, seen, &HealthSettings::default());
        assert_eq!(is, expected, "{attempts} {outcome:?} {successes:?}");
    }

    #[test]
    fn an_event_that_failed_twice_among_others_that_succeeded_has_a_problem() {
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
        let check = |failure, expected| check_after(Outcome::Failed(failure), 2, Some([-60, 1]), expected);
        check(SendFailure::TimedOut, true);
        check(SendFailure::ConnectTimedOut, false);
        check(SendFailure::Socket, false);
    }

    #[test]
    fn what_failed_in_an_outage_has_none_when_that_is_over() {
        check(5, 503, Some([1, 60]), false);
    }
}
