//! Decisions about an event, after an attempt and before one. Pure: time and jitter are arguments.

use std::time::Duration;

use crate::attempt::retry::{RetryJitter, WAIT_UNKNOWN_NAME};
use crate::model::{AttemptOutcome, DeadLetterReason, RETRY_AFTER_MAX, RetryPolicy, Timestamp};

/// The facts about an event that the decision needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptState {
    /// The attempt just made; the first is 1.
    pub attempt: u16,
    /// The time at which the event expires.
    pub expires_at: Timestamp,
    /// Whether the attempt before this one already found that the host name does not exist.
    pub name_was_unknown: bool,
    /// Whether it was the second endpoint that was asked: what that refuses for good the first may
    /// still take.
    pub is_fallback: bool,
}

/// The decision about an event after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptVerdict {
    /// The event arrived.
    Delivered,
    /// Try again, not before this time.
    Retry {
        /// The earliest next attempt.
        not_before: Timestamp,
    },
    /// Give up.
    GiveUp {
        /// The reason.
        reason: DeadLetterReason,
    },
}

/// Decides after one attempt that ended at `now`.
pub fn judge_attempt(
    state: &AttemptState,
    outcome: AttemptOutcome,
    policy: &RetryPolicy,
    jitter: RetryJitter,
    now: Timestamp,
) -> AttemptVerdict {
    if outcome.is_success() {
        return AttemptVerdict::Delivered;
    }
    if let Some(reason) = permanent_reason(state, outcome, policy) {
        return AttemptVerdict::GiveUp { reason };
    }
    if now >= state.expires_at {
        return AttemptVerdict::GiveUp {
            reason: DeadLetterReason::TimeToLiveExceeded,
        };
    }
    if state.attempt >= policy.attempts_max {
        return AttemptVerdict::GiveUp {
            reason: DeadLetterReason::MaxDeliveryAttemptsExceeded,
        };
    }
    let left = state.expires_at.since(now);
    AttemptVerdict::Retry {
        not_before: now + jitter.lengthen(wait_before_retry(state.attempt, outcome, policy, left)),
    }
}

/// The time at which an event expires: the smallest of its own time, the subscription's and the
/// topic's time to live.
pub fn expires_at(
    enqueued: Timestamp,
    event: Option<Timestamp>,
    subscription: Duration,
    topic: Option<Duration>,
) -> Timestamp {
    let by_policy = enqueued + topic.map_or(subscription, |topic| topic.min(subscription));
    event.map_or(by_policy, |own| own.min(by_policy))
}

fn permanent_reason(
    state: &AttemptState,
    outcome: AttemptOutcome,
    policy: &RetryPolicy,
) -> Option<DeadLetterReason> {
    match outcome {
        _ if state.is_fallback => None,
        AttemptOutcome::Answered { status: 410, .. } => Some(DeadLetterReason::EndpointGone),
        AttemptOutcome::Answered { status, .. } if policy.permanent_statuses.contains(&status) => {
            Some(DeadLetterReason::UndeliverableDueToClientError)
        }
        _ if outcome.is_unknown_name() && state.name_was_unknown => {
            Some(DeadLetterReason::UndeliverableDueToClientError)
        }
        _ => None,
    }
}

/// The wait is the largest of the schedule's step, the status's floor and `Retry-After`. That never
/// makes an event wait for longer than the time that is `left` to it, so that its dead letter is in
/// time.
fn wait_before_retry(
    attempt: u16,
    outcome: AttemptOutcome,
    policy: &RetryPolicy,
    left: Duration,
) -> Duration {
    let step = policy.wait_after_attempt(attempt);
    let floor = policy.wait_floors.after_status(outcome.status());
    let asked = match outcome {
        AttemptOutcome::Answered {
            status: 429 | 503,
            retry_after: Some(asked),
        } => asked.min(RETRY_AFTER_MAX).min(left),
        AttemptOutcome::Failed(_) if outcome.is_unknown_name() => WAIT_UNKNOWN_NAME,
        _ => Duration::ZERO,
    };
    step.max(floor).max(asked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::retry::{DrawnJitter, JITTER_MAX};
    use crate::model::{OutcomeName, SendFailure};
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000);

    #[test]
    fn every_reason_is_among_all() {
        let error = serde_json::from_str::<DeadLetterReason>("\"none\"")
            .unwrap_err()
            .to_string();
        let all = DeadLetterReason::ALL
            .map(|reason| format!("`{}`", reason.as_str()))
            .join(", ");
        assert!(
            error.contains(&format!("expected one of {all} at")),
            "{error}"
        );
    }

    fn answered(status: u16) -> AttemptOutcome {
        AttemptOutcome::Answered {
            status,
            retry_after: None,
        }
    }

    fn state(attempt: u16) -> AttemptState {
        AttemptState {
            attempt,
            expires_at: NOW + Duration::from_hours(24),
            name_was_unknown: false,
            is_fallback: false,
        }
    }

    fn check(attempt: u16, outcome: AttemptOutcome, expected: AttemptVerdict) {
        let verdict = judge_attempt(
            &state(attempt),
            outcome,
            &RetryPolicy::default(),
            RetryJitter::default(),
            NOW,
        );
        assert_eq!(verdict, expected, "{outcome:?}");
    }

    fn retry_in(secs: u64) -> AttemptVerdict {
        AttemptVerdict::Retry {
            not_before: NOW + Duration::from_secs(secs),
        }
    }

    fn give_up(reason: DeadLetterReason) -> AttemptVerdict {
        AttemptVerdict::GiveUp { reason }
    }

    #[test]
    fn five_statuses_are_success_and_no_other() {
        for status in 100..=999 {
            assert_eq!(answered(status).is_success(), (200..=204).contains(&status));
            assert_eq!(
                answered(status).name().is_none(),
                (200..=204).contains(&status)
            );
        }
    }

    #[test]
    fn every_outcome_has_its_name_of_the_closed_list() {
        let named = [
            (300, "Redirected"),
            (399, "Redirected"),
            (400, "BadRequest"),
            (401, "Unauthorized"),
            (403, "Forbidden"),
            (404, "NotFound"),
            (408, "TimedOut"),
            (410, "Gone"),
            (413, "PayloadTooLarge"),
            (429, "Busy"),
            (503, "Busy"),
            (199, "GenericError"),
            (205, "GenericError"),
            (402, "GenericError"),
            (500, "GenericError"),
            (999, "GenericError"),
        ];
        for (status, name) in named {
            assert_eq!(
                format!("{:?}", answered(status).name().unwrap()),
                name,
                "{status}"
            );
        }
        let failed = [
            (SendFailure::TimedOut, "TimedOut"),
            (SendFailure::KeptTimedOut, "TimedOut"),
            (SendFailure::ConnectTimedOut, "TimedOut"),
            (SendFailure::Socket, "SocketError"),
            (
                SendFailure::Resolution {
                    does_not_exist: true,
                },
                "ResolutionError",
            ),
            (SendFailure::Tls, "TlsError"),
            (SendFailure::AddressRefused, "AddressRefused"),
            (SendFailure::Exhausted, "Aborted"),
        ];
        for (failure, name) in failed {
            assert_eq!(
                format!("{:?}", AttemptOutcome::Failed(failure).name().unwrap()),
                name,
                "{failure:?}"
            );
        }
    }

    #[test]
    fn client_errors_are_permanent() {
        for status in [400, 401, 403, 404, 413] {
            check(
                1,
                answered(status),
                give_up(DeadLetterReason::UndeliverableDueToClientError),
            );
        }
        check(1, answered(410), give_up(DeadLetterReason::EndpointGone));
    }

    #[test]
    fn fallback_endpoint_answers_are_never_permanent() {
        let fallback = AttemptState {
            is_fallback: true,
            name_was_unknown: true,
            ..state(1)
        };
        let unknown = AttemptOutcome::Failed(SendFailure::Resolution {
            does_not_exist: true,
        });
        for outcome in [answered(400), answered(404), answered(410), unknown] {
            let verdict = judge_attempt(
                &fallback,
                outcome,
                &RetryPolicy::default(),
                RetryJitter::default(),
                NOW,
            );
            assert!(
                matches!(verdict, AttemptVerdict::Retry { .. }),
                "{outcome:?}"
            );
        }
    }

    #[test]
    fn each_status_has_its_floor() {
        check(1, answered(408), retry_in(120));
        check(1, answered(429), retry_in(30));
        check(1, answered(503), retry_in(30));
        check(1, answered(500), retry_in(10));
        check(1, answered(302), retry_in(10));
        check(4, answered(503), retry_in(300));
    }

    #[test]
    fn missing_answer_is_retried_by_the_schedule() {
        for failure in [
            SendFailure::TimedOut,
            SendFailure::Socket,
            SendFailure::Tls,
            SendFailure::AddressRefused,
        ] {
            check(2, AttemptOutcome::Failed(failure), retry_in(30));
        }
        check(
            1,
            AttemptOutcome::Failed(SendFailure::Resolution {
                does_not_exist: false,
            }),
            retry_in(10),
        );
    }

    /// `Retry-After` is a floor capped at 12 hours, whatever the schedule says.
    #[test]
    fn retry_after_is_a_floor_of_at_most_12_hours() {
        let asked = |status, secs| AttemptOutcome::Answered {
            status,
            retry_after: Some(Duration::from_secs(secs)),
        };
        let soon = RetryPolicy {
            schedule: vec![Duration::from_secs(1)],
            ..RetryPolicy::default()
        };
        for secs in [60, 12 * 3600] {
            assert_eq!(
                judge_attempt(
                    &state(1),
                    asked(503, secs),
                    &soon,
                    RetryJitter::default(),
                    NOW
                ),
                retry_in(secs)
            );
        }
        check(1, asked(503, 3600), retry_in(3600));
        check(1, asked(429, 5), retry_in(30));
        check(1, asked(503, 1_000_000), retry_in(12 * 3600));
        check(1, asked(500, 3600), retry_in(10));
    }

    /// Retry-After makes no event wait for longer than the time that is left to it.
    #[test]
    fn retry_after_never_makes_an_event_outlive_its_time_to_live() {
        let soon = RetryPolicy {
            schedule: vec![Duration::from_secs(1)],
            ..RetryPolicy::default()
        };
        let short = AttemptState {
            expires_at: NOW + Duration::from_mins(5),
            ..state(1)
        };
        let asked = AttemptOutcome::Answered {
            status: 503,
            retry_after: Some(Duration::from_hours(24)),
        };
        assert_eq!(
            judge_attempt(&short, asked, &soon, RetryJitter::default(), NOW),
            retry_in(300)
        );
        // The schedule and the floors are the subscription's own.
        let shorter = AttemptState {
            expires_at: NOW + Duration::from_secs(20),
            ..state(1)
        };
        assert_eq!(
            judge_attempt(&shorter, asked, &soon, RetryJitter::default(), NOW),
            retry_in(30)
        );
    }

    #[test]
    fn unacknowledged_event_is_retried_by_the_schedule() {
        let unacknowledged = AttemptOutcome::Unacknowledged { status: 200 };
        assert!(!unacknowledged.is_success());
        assert_eq!(
            (unacknowledged.name(), unacknowledged.status()),
            (Some(OutcomeName::GenericError), Some(200))
        );
        check(1, unacknowledged, retry_in(10));
        check(
            30,
            unacknowledged,
            give_up(DeadLetterReason::MaxDeliveryAttemptsExceeded),
        );
    }

    #[test]
    fn a_name_that_does_not_exist_gets_one_retry() {
        let unknown = AttemptOutcome::Failed(SendFailure::Resolution {
            does_not_exist: true,
        });
        check(1, unknown, retry_in(300));
        let again = AttemptState {
            name_was_unknown: true,
            ..state(2)
        };
        let verdict = judge_attempt(
            &again,
            unknown,
            &RetryPolicy::default(),
            RetryJitter::default(),
            NOW,
        );
        assert_eq!(
            verdict,
            give_up(DeadLetterReason::UndeliverableDueToClientError)
        );
    }

    #[test]
    fn the_last_failure_is_dead_lettered() {
        check(29, answered(500), retry_in(12 * 3600));
        check(
            30,
            answered(500),
            give_up(DeadLetterReason::MaxDeliveryAttemptsExceeded),
        );
    }

    #[test]
    fn a_failure_at_expiry_expires_at_once_and_a_success_counts() {
        let expired = AttemptState {
            expires_at: NOW,
            ..state(1)
        };
        let policy = RetryPolicy::default();
        let after =
            |outcome| judge_attempt(&expired, outcome, &policy, RetryJitter::default(), NOW);
        assert_eq!(
            after(answered(500)),
            give_up(DeadLetterReason::TimeToLiveExceeded)
        );
        assert_eq!(after(answered(204)), AttemptVerdict::Delivered);
    }

    #[test]
    fn the_smallest_time_to_live_wins() {
        let minutes = |n: u64| Duration::from_secs(n * 60);
        assert_eq!(expires_at(NOW, None, minutes(30), None), NOW + minutes(30));
        assert_eq!(
            expires_at(NOW, None, minutes(30), Some(minutes(5))),
            NOW + minutes(5)
        );
        assert_eq!(
            expires_at(NOW, Some(NOW + minutes(1)), minutes(30), Some(minutes(5))),
            NOW + minutes(1)
        );
        assert_eq!(
            expires_at(NOW, Some(NOW + minutes(90)), minutes(30), None),
            NOW + minutes(30)
        );
    }

    proptest! {
        #[test]
        fn every_outcome_ends_in_bounded_time(
            status in 100_u16..1000,
            attempt in 1_u16..=30,
            f in 0.0..1.0_f64,
        ) {
            let policy = RetryPolicy::default();
            let draw = DrawnJitter::new(f);
            let jitter = RetryJitter { queued: draw, parked: draw, step: Duration::ZERO };
            let longest_step = *policy.schedule.iter().max().unwrap();
            match judge_attempt(&state(attempt), answered(status), &policy, jitter, NOW) {
                AttemptVerdict::Retry { not_before } => {
                    prop_assert!(attempt < 30 && !(200..=204).contains(&status));
                    prop_assert!(not_before >= NOW + policy.wait_after_attempt(attempt));
                    prop_assert!(not_before <= NOW + longest_step + JITTER_MAX);
                }
                AttemptVerdict::Delivered => prop_assert!((200..=204).contains(&status)),
                AttemptVerdict::GiveUp { .. } => {
                    let is_permanent = status == 410 || policy.permanent_statuses.contains(&status);
                    prop_assert!(attempt == 30 || is_permanent);
                }
            }
        }
    }
}
