//! The record that a verdict makes: its kind, its result and its reason.

use serde::Serialize;

use super::{LogResult, RecordKind};
use crate::attempt::settle::{EntryVerdict, is_dropped};
use crate::model::{DeadLetterPolicy, DeadLetterReason, LastAttempt, Timestamp};

/// The reason of the record of a scheduled event that its producer took back. It is none of a dead
/// letter: nothing failed.
pub const CANCELLED: &str = "Cancelled";

/// The part of a record that a verdict says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventChange {
    /// An attempt, or which change.
    pub kind: RecordKind,
    /// The state of the event after it.
    pub result: LogResult,
    /// The outcome's name for a retry, the dead letter's reason for an event that was given up.
    pub reason: Option<String>,
    /// The time at which the next attempt's delivery goes out.
    pub next_attempt_at: Option<Timestamp>,
}

/// The change that a verdict over an event is. `None` for an event that goes back as it came,
/// because no attempt was made: nothing became of it. `policy` is its subscription's, and `None` if
/// that is gone.
pub fn change_for_verdict(
    verdict: EntryVerdict,
    policy: Option<&DeadLetterPolicy>,
) -> Option<EventChange> {
    match verdict {
        EntryVerdict::Delivered => {
            Some(EventChange::new(RecordKind::Attempt, LogResult::Delivered))
        }
        EntryVerdict::Retry { not_before, last } => Some(EventChange::retry(not_before, last)),
        EntryVerdict::GiveUp { reason, last } => Some(EventChange::give_up(reason, last, policy)),
        EntryVerdict::Cancelled => Some(EventChange::dropped(CANCELLED)),
        EntryVerdict::Held => Some(EventChange::new(RecordKind::Held, LogResult::Held)),
        EntryVerdict::NotStarted | EntryVerdict::Postponed { .. } => None,
    }
}

impl EventChange {
    /// The change of an event that arrived by a late answer to an earlier attempt.
    pub fn answered_late() -> Self {
        Self::new(RecordKind::AnsweredLate, LogResult::Delivered)
    }

    /// The change of an event that goes back without its first attempt, which `not_before` is the
    /// time of.
    pub fn waiting_until(not_before: Timestamp) -> Self {
        Self {
            next_attempt_at: Some(not_before),
            ..Self::new(RecordKind::Waiting, LogResult::Retry)
        }
    }

    /// The change of an event that was written into a dead-letter object.
    pub fn dead_lettered(reason: DeadLetterReason) -> Self {
        Self {
            reason: closed_list_name(&reason),
            ..Self::new(RecordKind::DeadLettered, LogResult::DeadLettered)
        }
    }

    /// The change of an event whose dead letter was dropped for this reason.
    pub fn dropped(reason: &str) -> Self {
        Self {
            reason: Some(reason.to_owned()),
            ..Self::new(RecordKind::Dropped, LogResult::Dropped)
        }
    }

    fn new(kind: RecordKind, result: LogResult) -> Self {
        Self {
            kind,
            result,
            reason: None,
            next_attempt_at: None,
        }
    }

    fn retry(not_before: Timestamp, last: LastAttempt) -> Self {
        Self {
            reason: closed_list_name(&last.outcome),
            next_attempt_at: Some(not_before),
            ..Self::new(RecordKind::Attempt, LogResult::Retry)
        }
    }

    fn give_up(
        reason: DeadLetterReason,
        last: Option<LastAttempt>,
        policy: Option<&DeadLetterPolicy>,
    ) -> Self {
        let kind = match (last, reason) {
            (Some(_), _) => RecordKind::Attempt,
            (None, DeadLetterReason::TimeToLiveExceeded) => RecordKind::Expired,
            (None, _) => RecordKind::GivenUp,
        };
        let is_dropped = is_dropped(reason, policy);
        let result = if is_dropped {
            LogResult::Dropped
        } else {
            LogResult::DeadLettered
        };
        Self {
            reason: closed_list_name(&reason),
            ..Self::new(kind, result)
        }
    }
}

/// The name in a closed list, as dead letters have it.
fn closed_list_name(name: &impl Serialize) -> Option<String> {
    serde_json::to_value(name).ok()?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::OutcomeName;
    use std::time::Duration;

    const AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);
    const LAST: LastAttempt = LastAttempt {
        outcome: OutcomeName::Busy,
        status: Some(503),
        at: AT,
        name_was_unknown: false,
        was_unconnected: false,
        was_kept: false,
        was_connected: false,
    };
    const KEPT: DeadLetterPolicy = DeadLetterPolicy {
        enabled: true,
        on_expiry: true,
        delay: Duration::ZERO,
        give_up_after: None,
    };

    fn check(
        verdict: EntryVerdict,
        policy: Option<&DeadLetterPolicy>,
        expected: Option<[&str; 3]>,
    ) {
        let change = change_for_verdict(verdict, policy);
        let words = |change: &EventChange| {
            [
                change.kind.as_str(),
                change.result.as_str(),
                change.reason.as_deref().unwrap_or(""),
            ]
            .map(str::to_owned)
        };
        assert_eq!(
            change.as_ref().map(words),
            expected.map(|it| it.map(str::to_owned)),
            "{verdict:?}"
        );
    }

    #[test]
    fn every_verdict_makes_its_record() {
        let give_up = |reason, last| EntryVerdict::GiveUp { reason, last };
        let gone = DeadLetterReason::EndpointGone;
        let expired = DeadLetterReason::TimeToLiveExceeded;
        let deleted = DeadLetterReason::SubscriptionDeleted;
        let kept = Some(&KEPT);
        check(
            EntryVerdict::Delivered,
            kept,
            Some(["attempt", "delivered", ""]),
        );
        let retry = EntryVerdict::Retry {
            not_before: AT,
            last: LAST,
        };
        check(retry, kept, Some(["attempt", "retry", "Busy"]));
        check(
            give_up(gone, Some(LAST)),
            kept,
            Some(["attempt", "dead-lettered", "EndpointGone"]),
        );
        check(
            give_up(expired, None),
            kept,
            Some(["expired", "dead-lettered", "TimeToLiveExceeded"]),
        );
        check(
            give_up(deleted, None),
            None,
            Some(["given-up", "dead-lettered", "SubscriptionDeleted"]),
        );
        check(EntryVerdict::Held, kept, Some(["held", "held", ""]));
        check(EntryVerdict::NotStarted, kept, None);
        check(EntryVerdict::Postponed { not_before: AT }, kept, None);
    }

    /// Events that the subscription does not keep as dead letters are dropped.
    #[test]
    fn events_without_dead_letter_policy_match_are_dropped() {
        let expired = EntryVerdict::GiveUp {
            reason: DeadLetterReason::TimeToLiveExceeded,
            last: None,
        };
        let not_on_expiry = DeadLetterPolicy {
            on_expiry: false,
            ..KEPT
        };
        check(
            expired,
            Some(&not_on_expiry),
            Some(["expired", "dropped", "TimeToLiveExceeded"]),
        );
    }

    #[test]
    fn only_a_retry_has_a_next_attempt() {
        let next =
            |verdict| change_for_verdict(verdict, None).and_then(|change| change.next_attempt_at);
        assert_eq!(
            next(EntryVerdict::Retry {
                not_before: AT,
                last: LAST
            }),
            Some(AT)
        );
        assert_eq!(next(EntryVerdict::Held), None);
    }
}
