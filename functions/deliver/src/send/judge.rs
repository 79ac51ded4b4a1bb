//! Judges: the outcome of a request becomes a verdict over each of its events.

use std::time::Duration;

use posthaste_core::attempt::decide::judge_attempt;
use posthaste_core::attempt::{AttemptState, BatchAcknowledgement, EntryVerdict, RetryJitter};
use posthaste_core::model::{
    AttemptOutcome, DeadLetterReason, RetryPolicy, SendFailure, Timestamp,
};

use crate::limits::OUR_FAULT_WAIT;
use crate::plan::{RequestKind, RequestPlan};
use crate::records::LoggedAnswer;

/// The verdict over an event that cannot be rendered for its subscription: no retry can help, and
/// no attempt was made.
pub(super) const UNRENDERABLE: EntryVerdict = EntryVerdict::GiveUp {
    reason: DeadLetterReason::UndeliverableDueToClientError,
    last: None,
};

/// The outcome of a request: one for all of its events, or one for each, if the receiver of a batch
/// may name those that failed.
#[derive(Debug)]
pub(super) struct RequestOutcome {
    pub(super) began: Timestamp,
    /// The start by the clock's `monotonic`.
    pub(super) started: Duration,
    /// From the start of the request to its end.
    pub(super) took: Duration,
    pub(super) webhook_id: String,
    /// The outcome of the request as a whole.
    pub(super) outcome: AttemptOutcome,
    /// The failure in words, where there was no answer.
    pub(super) failure_words: Option<String>,
    pub(super) acknowledged: BatchAcknowledgement,
    /// The answer as the delivery log keeps it.
    pub(super) answer: Option<LoggedAnswer>,
    /// The place to which it leads, if it is a redirect.
    pub(super) redirect: Option<String>,
}

impl RequestOutcome {
    /// The outcome of the event at this index of the request.
    pub(super) fn event_outcome(&self, index: usize) -> AttemptOutcome {
        match self.outcome {
            AttemptOutcome::Answered { status, .. } if !self.acknowledged.includes(index) => {
                AttemptOutcome::Unacknowledged { status }
            }
            outcome => outcome,
        }
    }

    /// The number of the request's events that failed.
    pub(super) fn failed_events(&self, events: usize) -> usize {
        (0..events)
            .filter(|index| !self.event_outcome(*index).is_success())
            .count()
    }
}

/// The end of an attempt, by which its events are judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttemptEnd<'a> {
    /// The policy as it is now, which may have changed during the attempt.
    pub(super) retry: &'a RetryPolicy,
    pub(super) is_fallback: bool,
    pub(super) now: Timestamp,
}

impl RequestPlan {
    /// The verdict over an event of an attempt that ended like this, with this outcome.
    pub(super) fn verdict_for(
        &self,
        end: AttemptEnd<'_>,
        outcome: AttemptOutcome,
        expires_at: Timestamp,
        jitter: RetryJitter,
    ) -> EntryVerdict {
        let AttemptEnd {
            retry,
            is_fallback,
            now,
        } = end;
        if outcome == AttemptOutcome::Failed(SendFailure::Exhausted) {
            return EntryVerdict::Postponed {
                not_before: now + OUR_FAULT_WAIT,
            };
        }
        let RequestKind {
            attempts_before,
            name_was_unknown,
            ..
        } = self.kind;
        let attempt = attempts_before.saturating_add(1);
        let state = AttemptState {
            attempt,
            expires_at,
            name_was_unknown,
            is_fallback,
        };
        let verdict = judge_attempt(&state, outcome, retry, jitter, now);
        EntryVerdict::from_attempt(verdict, outcome, now)
    }
}

#[cfg(test)]
mod tests {
    use posthaste_core::attempt::partial::read_acknowledgement;
    use posthaste_core::attempt::{AnswerBody, BatchEvent};
    use posthaste_core::model::LastAttempt;
    use serde_json::json;

    use super::*;
    use crate::testing::{START, delivery, job, request_plan, secs, subscription};

    const fn answered(status: u16) -> AttemptOutcome {
        AttemptOutcome::Answered {
            status,
            retry_after: None,
        }
    }

    fn request(outcome: AttemptOutcome, acknowledged: BatchAcknowledgement) -> RequestOutcome {
        let started = Duration::ZERO;
        let took = Duration::ZERO;
        let webhook_id = String::new();
        RequestOutcome {
            began: START,
            started,
            took,
            webhook_id,
            outcome,
            failure_words: None,
            acknowledged,
            answer: None,
            redirect: None,
        }
    }

    /// The verdict over an event that expires in an hour.
    fn check(plan: &RequestPlan, outcome: AttemptOutcome, expected: EntryVerdict) {
        let expires_at = START + secs(3600);
        let verdict = plan.verdict_for(
            end(plan, START),
            outcome,
            expires_at,
            RetryJitter::default(),
        );
        assert_eq!(verdict, expected, "{outcome:?}");
    }

    /// The end, at this time, of an attempt at the first endpoint.
    fn end(plan: &RequestPlan, now: Timestamp) -> AttemptEnd<'_> {
        AttemptEnd {
            retry: &plan.subscription.retry,
            is_fallback: false,
            now,
        }
    }

    fn give_up(reason: DeadLetterReason, outcome: AttemptOutcome) -> EntryVerdict {
        EntryVerdict::GiveUp {
            reason,
            last: LastAttempt::from_outcome(outcome, START),
        }
    }

    #[test]
    fn an_outcome_becomes_a_verdict() {
        let retry = json!({ "schedule": ["PT1M", "PT5M"], "maxDeliveryAttempts": 3 });
        let plan = request_plan(&job(
            delivery(1),
            &subscription(json!({ "retryPolicy": retry })),
        ));
        check(&plan, answered(204), EntryVerdict::Delivered);
        let last = LastAttempt::from_outcome(answered(500), START).unwrap();
        check(
            &plan,
            answered(500),
            EntryVerdict::Retry {
                not_before: START + secs(60),
                last,
            },
        );
        let refused = DeadLetterReason::UndeliverableDueToClientError;
        check(&plan, answered(400), give_up(refused, answered(400)));
    }

    #[test]
    fn the_last_attempt_is_the_last() {
        let retry = json!({ "schedule": ["PT1M"], "maxDeliveryAttempts": 3 });
        let mut plan = request_plan(&job(
            delivery(1),
            &subscription(json!({ "retryPolicy": retry })),
        ));
        plan.kind.attempts_before = 2;
        let reason = DeadLetterReason::MaxDeliveryAttemptsExceeded;
        check(&plan, answered(500), give_up(reason, answered(500)));
    }

    #[test]
    fn attempt_without_a_socket_is_not_counted() {
        let plan = request_plan(&job(delivery(1), &subscription(json!({}))));
        let outcome = AttemptOutcome::Failed(SendFailure::Exhausted);
        check(
            &plan,
            outcome,
            EntryVerdict::Postponed {
                not_before: START + OUR_FAULT_WAIT,
            },
        );
    }

    #[test]
    fn an_expired_event_is_not_tried_again() {
        let plan = request_plan(&job(delivery(1), &subscription(json!({}))));
        let now = START + secs(1);
        let expected = EntryVerdict::GiveUp {
            reason: DeadLetterReason::TimeToLiveExceeded,
            last: LastAttempt::from_outcome(answered(500), now),
        };
        let verdict = plan.verdict_for(
            end(&plan, now),
            answered(500),
            START,
            RetryJitter::default(),
        );
        assert_eq!(verdict, expected);
    }

    #[test]
    fn the_fallback_may_refuse_what_the_endpoint_still_takes() {
        let plan = request_plan(&job(delivery(1), &subscription(json!({}))));
        let end = AttemptEnd {
            is_fallback: true,
            ..end(&plan, START)
        };
        let jitter = RetryJitter::default();
        let verdict = plan.verdict_for(end, answered(400), START + secs(36_000), jitter);
        assert!(matches!(verdict, EntryVerdict::Retry { .. }), "{verdict:?}");
    }

    #[test]
    fn events_of_a_success_fail_alone_where_the_answer_says_so() {
        let body = br#"{"batchItemFailures":[{"itemIdentifier":"1"}]}"#;
        let events = [r#"{"id":"0"}"#, r#"{"id":"1"}"#, r#"{"id":"2"}"#];
        let events = events.map(|text| BatchEvent {
            text: text.as_bytes(),
            envelope_id: None,
        });
        let acknowledged = read_acknowledgement(
            AnswerBody::new(&http::HeaderMap::new(), body, true),
            &events,
        );
        let request = request(answered(200), acknowledged);
        let failed = AttemptOutcome::Unacknowledged { status: 200 };
        assert_eq!(
            [0, 1, 2].map(|index| request.event_outcome(index)),
            [answered(200), failed, answered(200)]
        );
        assert_eq!(
            (request.event_outcome(1), request.failed_events(3)),
            (failed, 1)
        );
    }

    #[test]
    fn a_failure_is_the_failure_of_all_events() {
        let failed = request(answered(503), BatchAcknowledgement::All);
        assert_eq!(
            (failed.event_outcome(7), failed.failed_events(4)),
            (answered(503), 4)
        );
        assert_eq!(
            request(answered(202), BatchAcknowledgement::All).failed_events(4),
            0
        );
    }
}
