//! Problem events: those that fail where others succeed.

use super::reach::Reach;
use super::settings::HealthSettings;
use crate::delivery::{Delivery, LastAttempt};
use crate::outcome::OutcomeName;
use crate::time::Timestamp;

/// Whether a delivery's events have a problem of their own: they failed their subscription often enough, and since the
/// last time another one there succeeded. They are sent alone, after the rest, and what comes of it says nothing about the
/// endpoint.
pub fn is_problem(delivery: &Delivery, last_success: Option<Timestamp>, settings: &HealthSettings) -> bool {
    let Some(last) = delivery.last else { return false };
    let is_often = u32::from(delivery.attempts) >= settings.problem_failures;
    is_often && reach_of(last) == Reach::Subscription && last_success.is_some_and(|at| at >= last.at)
}

fn reach_of(last: LastAttempt) -> Reach {
    match last.outcome {
        // A client error, or a success of which one event was not acknowledged.
        OutcomeName::GenericError if matches!(last.status, Some(200..=204 | 400..=499)) => Reach::Event,
        OutcomeName::GenericError | OutcomeName::TimedOut | OutcomeName::Busy | OutcomeName::Redirected => {
            Reach::Subscription
        }
        OutcomeName::SocketError
        | OutcomeName::ResolutionError
        | OutcomeName::TlsError
        | OutcomeName::AddressRefused => Reach::Link,
        OutcomeName::BadRequest
        | OutcomeName::Unauthorized
        | OutcomeName::Forbidden
        | OutcomeName::NotFound
        | OutcomeName::Gone
        | OutcomeName::PayloadTooLarge
        | OutcomeName::Aborted
        | OutcomeName::Probation => Reach::Event,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::decide::Outcome;
    use crate::name::{SubscriptionName, TopicName};
    use crate::schema::Schema;

    const FAILED_AT: Timestamp = Timestamp::from_millis(1_000_000);

    fn check(attempts: u16, status: u16, succeeded_at: Option<Timestamp>, expected: bool) {
        let outcome = Outcome::Answered { status, retry_after: None };
        let delivery = Delivery {
            topic: TopicName::parse("orders").unwrap(),
            subscription: SubscriptionName::parse("billing").unwrap(),
            schema: Schema::CloudEvents,
            published_at: Timestamp::EPOCH,
            not_before: Timestamp::EPOCH,
            attempts,
            last: LastAttempt::of(outcome, FAILED_AT),
            timed_out: false,
            events: Vec::new(),
        };
        let is = is_problem(&delivery, succeeded_at, &HealthSettings::default());
        assert_eq!(is, expected, "{attempts} {status} {succeeded_at:?}");
    }

    #[test]
    fn an_event_that_failed_twice_where_others_succeed_since_has_a_problem() {
        let since = Some(FAILED_AT + Duration::from_secs(1));
        check(2, 500, since, true);
        check(7, 503, since, true);
        check(1, 500, since, false);
        check(2, 500, None, false);
        check(2, 500, Some(Timestamp::EPOCH), false);
        check(2, 422, since, false);
        check(0, 200, since, false);
    }
}
