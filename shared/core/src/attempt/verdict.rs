//! The verdict over an event, in the words of the log.

use crate::attempt::settle::{EntryVerdict, WaitPlace, choose_wait_place, is_dropped};
use crate::model::{DeadLetterPolicy, DeadLetterReason, Timestamp};

/// The next step of an event, in the words of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownVerdict {
    /// The verdict in a word or two.
    pub word: &'static str,
    /// The earliest time of the next attempt, if there is one.
    pub retry_at: Option<Timestamp>,
    /// The reason why the event is given up, if it is.
    pub reason: Option<DeadLetterReason>,
}

impl EntryVerdict {
    /// The verdict at `now`, over an event of a subscription with this policy.
    pub fn describe(self, policy: &DeadLetterPolicy, now: Timestamp) -> ShownVerdict {
        let word = self.log_word(policy, now);
        match self {
            Self::Retry { not_before, .. } | Self::Postponed { not_before } => ShownVerdict {
                word,
                retry_at: Some(not_before),
                reason: None,
            },
            Self::GiveUp { reason, .. } => ShownVerdict {
                word,
                retry_at: None,
                reason: Some(reason),
            },
            Self::Delivered | Self::NotStarted | Self::Cancelled | Self::Held => ShownVerdict {
                word,
                retry_at: None,
                reason: None,
            },
        }
    }

    fn log_word(self, policy: &DeadLetterPolicy, now: Timestamp) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Retry { not_before, .. }
                if choose_wait_place(not_before, now) == WaitPlace::Parked =>
            {
                "parked"
            }
            Self::Retry { .. } => "retry",
            Self::GiveUp { reason, .. } if is_dropped(reason, Some(policy)) => "dropped",
            Self::GiveUp { .. } => "dead letter",
            Self::NotStarted => "handed back",
            Self::Postponed { .. } => "postponed",
            Self::Cancelled => "cancelled",
            Self::Held => "held",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::{AttemptOutcome, LastAttempt};

    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000);
    const KEPT: DeadLetterPolicy = DeadLetterPolicy {
        enabled: true,
        on_expiry: false,
        delay: Duration::ZERO,
        give_up_after: None,
    };

    fn check(
        verdict: EntryVerdict,
        word: &str,
        retry_at: Option<Timestamp>,
        reason: Option<DeadLetterReason>,
    ) {
        let shown = verdict.describe(&KEPT, NOW);
        assert_eq!(
            (shown.word, shown.retry_at, shown.reason),
            (word, retry_at, reason),
            "{verdict:?}"
        );
    }

    #[test]
    fn a_retry_says_when_and_whether_it_is_parked_until_then() {
        let last = LastAttempt::from_outcome(
            AttemptOutcome::Answered {
                status: 503,
                retry_after: None,
            },
            NOW,
        )
        .unwrap();
        for (secs, word) in [(1, "retry"), (900, "retry"), (901, "parked")] {
            let not_before = NOW + Duration::from_secs(secs);
            check(
                EntryVerdict::Retry { not_before, last },
                word,
                Some(not_before),
                None,
            );
        }
        check(
            EntryVerdict::Postponed { not_before: NOW },
            "postponed",
            Some(NOW),
            None,
        );
    }

    #[test]
    fn an_event_that_is_given_up_says_why_and_whether_it_is_kept() {
        let given_up = |reason| EntryVerdict::GiveUp { reason, last: None };
        let check = |reason, word| check(given_up(reason), word, None, Some(reason));
        check(DeadLetterReason::EndpointGone, "dead letter");
        check(DeadLetterReason::TimeToLiveExceeded, "dropped");
    }

    #[test]
    fn the_other_verdicts_are_a_word_alone() {
        check(EntryVerdict::Delivered, "delivered", None, None);
        check(EntryVerdict::NotStarted, "handed back", None, None);
        check(EntryVerdict::Held, "held", None, None);
    }
}
