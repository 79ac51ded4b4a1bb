//! The deliveries and dead letters that take a message's place once each of its events has a
//! verdict.

use std::time::Duration;

use crate::attempt::decide::AttemptVerdict;
use crate::model::{
    AttemptOutcome, DeadLetter, DeadLetterPolicy, DeadLetterReason, Delivery, DeliveryEntry,
    LastAttempt, SQS_DELAY_MAX, Timestamp,
};

/// The verdict over one event of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryVerdict {
    /// The event arrived.
    Delivered,
    /// An attempt failed and there will be another.
    Retry {
        /// The earliest next attempt.
        not_before: Timestamp,
        /// The attempt that just ended.
        last: LastAttempt,
    },
    /// The event is given up.
    GiveUp {
        /// The reason.
        reason: DeadLetterReason,
        /// The attempt that just ended, if one was made.
        last: Option<LastAttempt>,
    },
    /// The event's attempt was not begun; it goes back without delay.
    NotStarted,
    /// The event could not be tried, for a reason of ours and not of the endpoint. It waits, and no
    /// attempt is counted.
    Postponed {
        /// The earliest next attempt.
        not_before: Timestamp,
    },
    /// The event was published for later, and its producer took it back.
    Cancelled,
    /// Nothing may be sent to it now: it waits until its endpoint recovers or an operator resumes,
    /// or its time is over, without an attempt being counted.
    Held,
}

impl EntryVerdict {
    /// The verdict over an event whose attempt had this outcome and ended at `now`. The next
    /// attempt is at the time at which it goes out, so that all places show the true one.
    pub fn from_attempt(verdict: AttemptVerdict, outcome: AttemptOutcome, now: Timestamp) -> Self {
        let last = LastAttempt::from_outcome(outcome, now);
        match (verdict, last) {
            (AttemptVerdict::Retry { not_before }, Some(last)) => Self::Retry {
                not_before: goes_out_at(not_before, now),
                last,
            },
            (AttemptVerdict::GiveUp { reason }, last) => Self::GiveUp { reason, last },
            (AttemptVerdict::Delivered | AttemptVerdict::Retry { .. }, _) => Self::Delivered,
        }
    }

    /// Whether the event goes back as it came, because its attempt was not made.
    pub fn is_untried(&self) -> bool {
        matches!(self, Self::NotStarted | Self::Postponed { .. })
    }

    /// Whether the event is given up.
    pub fn is_given_up(&self) -> bool {
        matches!(self, Self::GiveUp { .. })
    }

    /// The same, but an event that only waits comes back at its end, so that it is not given up
    /// long after it.
    #[must_use]
    pub fn capped_at(self, expires_at: Timestamp) -> Self {
        match self {
            Self::Postponed { not_before } => Self::Postponed {
                not_before: not_before.min(expires_at),
            },
            verdict => verdict,
        }
    }

    /// Whether events of these two verdicts stay together: they end alike, and wait alike to the
    /// second, or until the same time, such as a minute of release. Requests that ended
    /// milliseconds apart do not make messages of their own.
    fn is_grouped_with(self, other: Self) -> bool {
        match (self, other) {
            (
                Self::Retry { not_before, last },
                Self::Retry {
                    not_before: other_time,
                    last: other,
                },
            ) => {
                let waits = [
                    not_before.since(last.at).as_secs(),
                    other_time.since(other.at).as_secs(),
                ];
                let is_alike = not_before == other_time || waits[0] == waits[1];
                last.without_time() == other.without_time() && is_alike
            }
            (
                Self::GiveUp { reason, last },
                Self::GiveUp {
                    reason: other_reason,
                    last: other,
                },
            ) => {
                reason == other_reason
                    && last.map(LastAttempt::without_time) == other.map(LastAttempt::without_time)
            }
            (one, other) => one == other,
        }
    }

    /// The one of two that go together whose times are later, so that nothing is tried too early.
    fn later_of_two(self, other: Self) -> Self {
        if other.effective_time() > self.effective_time() {
            other
        } else {
            self
        }
    }

    fn effective_time(self) -> Option<Timestamp> {
        match self {
            Self::Retry { not_before, .. } => Some(not_before),
            Self::GiveUp { last, .. } => last.map(|last| last.at),
            _ => None,
        }
    }
}

/// The deliveries and dead letters that take a message's place.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    /// Deliveries that are tried again, each at its own time.
    pub again: Vec<Delivery>,
    /// Deliveries that are held until they may be sent, or the first of their events expires.
    pub held: Vec<Delivery>,
    /// Dead letters.
    pub dead: Vec<DeadLetter>,
    /// Events dropped because the subscription keeps no such dead letters, as the dead letters
    /// they would have been.
    pub dropped: Vec<DeadLetter>,
}

/// The place where a delivery waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitPlace {
    /// In the queue, hidden for this long.
    Queue {
        /// At most 900 s.
        delay: Duration,
    },
    /// In the object store, under the minute in which it is due.
    Parked,
}

/// Gathers the events of a message by what became of them. `verdicts` has one item per event, in
/// order.
pub fn settle_message(
    delivery: &Delivery,
    verdicts: &[EntryVerdict],
    policy: Option<&DeadLetterPolicy>,
) -> Settlement {
    let mut kinds: Vec<(EntryVerdict, Vec<DeliveryEntry>)> = Vec::new();
    for (entry, verdict) in delivery.events.iter().zip(verdicts) {
        if matches!(verdict, EntryVerdict::Delivered | EntryVerdict::Cancelled) {
            continue;
        }
        match kinds
            .iter_mut()
            .find(|(kind, _)| kind.is_grouped_with(*verdict))
        {
            Some((kind, entries)) => {
                *kind = kind.later_of_two(*verdict);
                entries.push(entry.clone());
            }
            None => kinds.push((*verdict, vec![entry.clone()])),
        }
    }
    let mut settlement = Settlement::default();
    for (verdict, entries) in kinds {
        settlement.add_entries(delivery, verdict, entries, policy);
    }
    settlement
}

/// Chooses the place of a delivery that is not due before `not_before`.
pub fn choose_wait_place(not_before: Timestamp, now: Timestamp) -> WaitPlace {
    let delay = not_before.since(now);
    if delay <= SQS_DELAY_MAX {
        WaitPlace::Queue { delay }
    } else {
        WaitPlace::Parked
    }
}

/// The time at which a delivery goes out that is not due before `not_before`: a parked one goes out
/// with its minute.
pub fn goes_out_at(not_before: Timestamp, now: Timestamp) -> Timestamp {
    match choose_wait_place(not_before, now) {
        WaitPlace::Queue { .. } => not_before,
        WaitPlace::Parked => not_before.rounded_up_to_minute(),
    }
}

/// The delay of a dead-letter message, within what the queue can delay.
pub fn dead_letter_delay(delay: Duration) -> Duration {
    delay.min(SQS_DELAY_MAX)
}

impl Settlement {
    fn add_entries(
        &mut self,
        delivery: &Delivery,
        verdict: EntryVerdict,
        entries: Vec<DeliveryEntry>,
        policy: Option<&DeadLetterPolicy>,
    ) {
        match verdict {
            EntryVerdict::Delivered | EntryVerdict::Cancelled => {}
            EntryVerdict::NotStarted => self.again.push(delivery.with_events(entries)),
            EntryVerdict::Held => self.held.push(delivery.with_events(entries)),
            EntryVerdict::Postponed { not_before } => {
                self.again.push(Delivery {
                    not_before,
                    ..delivery.with_events(entries)
                });
            }
            EntryVerdict::Retry { not_before, last } => {
                self.again.push(Delivery {
                    not_before,
                    ..after_attempt(delivery, Some(last), entries)
                });
            }
            EntryVerdict::GiveUp { reason, last } => {
                let letters = if is_dropped(reason, policy) {
                    &mut self.dropped
                } else {
                    &mut self.dead
                };
                letters.push(DeadLetter::new(
                    reason,
                    after_attempt(delivery, last, entries),
                ));
            }
        }
    }
}

/// The delivery with one attempt more, if one was made.
fn after_attempt(
    delivery: &Delivery,
    last: Option<LastAttempt>,
    entries: Vec<DeliveryEntry>,
) -> Delivery {
    let mut tried = delivery.with_events(entries);
    if last.is_some() {
        tried.attempts = tried.attempts.saturating_add(1);
        tried.timed_out |= last.is_some_and(LastAttempt::had_no_answer_in_time);
        tried.last = last;
    }
    tried
}

/// Whether the event is dropped. If there is no policy, because the subscription is gone,
/// everything is kept.
pub(crate) fn is_dropped(reason: DeadLetterReason, policy: Option<&DeadLetterPolicy>) -> bool {
    policy.is_some_and(|policy| {
        !policy.enabled || (reason == DeadLetterReason::TimeToLiveExceeded && !policy.on_expiry)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        EventMarks, EventPayload, EventSchema, Hops, OutcomeName, SendFailure, SubscriptionName,
        TopicName,
    };
    use bytes::Bytes;
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000);
    const LAST: LastAttempt = LastAttempt {
        outcome: OutcomeName::Busy,
        status: Some(503),
        at: NOW,
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

    fn delivery(events: usize) -> Delivery {
        let entry = |index: usize| DeliveryEntry {
            key: format!("k-{index}"),
            expires_at: NOW,
            traceparent: None,
            marks: EventMarks::default(),
            envelope: None,
            payload: EventPayload::Inline(Bytes::from_static(b"{}")),
        };
        Delivery {
            topic: TopicName::parse("orders").unwrap(),
            subscription: SubscriptionName::parse("billing").unwrap(),
            schema: EventSchema::CloudEvents,
            published_at: NOW,
            not_before: NOW,
            attempts: 3,
            last: None,
            timed_out: false,
            identity: None,
            hops: Hops::default(),
            events: (0..events).map(entry).collect(),
        }
    }

    fn keys(delivery: &Delivery) -> Vec<&str> {
        delivery
            .events
            .iter()
            .map(|entry| entry.key.as_str())
            .collect()
    }

    fn give_up(reason: DeadLetterReason, last: Option<LastAttempt>) -> EntryVerdict {
        EntryVerdict::GiveUp { reason, last }
    }

    #[test]
    fn an_attempt_that_failed_is_remembered_in_its_verdict() {
        let refused = AttemptOutcome::Answered {
            status: 503,
            retry_after: None,
        };
        let success = AttemptOutcome::Answered {
            status: 200,
            retry_after: None,
        };
        let reason = DeadLetterReason::MaxDeliveryAttemptsExceeded;
        let check = |verdict, outcome, expected| {
            assert_eq!(EntryVerdict::from_attempt(verdict, outcome, NOW), expected);
        };
        check(AttemptVerdict::Delivered, success, EntryVerdict::Delivered);
        check(
            AttemptVerdict::Retry { not_before: NOW },
            refused,
            EntryVerdict::Retry {
                not_before: NOW,
                last: LAST,
            },
        );
        check(
            AttemptVerdict::GiveUp { reason },
            refused,
            give_up(reason, Some(LAST)),
        );
    }

    #[test]
    fn delivered_events_leave_nothing() {
        assert_eq!(
            settle_message(&delivery(2), &[EntryVerdict::Delivered; 2], Some(&KEPT)),
            Settlement::default()
        );
    }

    #[test]
    fn events_with_the_same_fate_stay_together() {
        let later = NOW + Duration::from_secs(30);
        let retry = EntryVerdict::Retry {
            not_before: later,
            last: LAST,
        };
        let verdicts = [
            retry,
            EntryVerdict::Delivered,
            retry,
            EntryVerdict::NotStarted,
        ];
        let settlement = settle_message(&delivery(4), &verdicts, Some(&KEPT));
        let [again, back] = settlement.again.as_slice() else {
            panic!("expected two deliveries")
        };
        assert_eq!(
            (keys(again), again.attempts, again.not_before),
            (vec!["k-0", "k-2"], 4, later)
        );
        assert_eq!(
            (keys(back), back.attempts, back.last),
            (vec!["k-3"], 3, None)
        );
    }

    #[test]
    fn answers_milliseconds_apart_make_one_message() {
        let retry = |ms: u64| EntryVerdict::Retry {
            not_before: NOW + Duration::from_millis(30_000 + ms),
            last: LastAttempt {
                at: NOW + Duration::from_millis(ms),
                ..LAST
            },
        };
        let settlement = settle_message(&delivery(3), &[retry(0), retry(7), retry(3)], Some(&KEPT));
        let [again] = settlement.again.as_slice() else {
            panic!("expected one delivery")
        };
        assert_eq!(
            (again.events.len(), again.not_before),
            (3, NOW + Duration::from_millis(30_007))
        );
    }

    /// All of a parked message go out with one minute, however long their requests took.
    #[test]
    fn answers_for_one_parking_minute_make_one_message() {
        let not_before = NOW + Duration::from_mins(20);
        let retry = |secs: u64| EntryVerdict::Retry {
            not_before,
            last: LastAttempt {
                at: NOW + Duration::from_secs(secs),
                ..LAST
            },
        };
        let settlement = settle_message(&delivery(3), &[retry(0), retry(2), retry(7)], Some(&KEPT));
        let [again] = settlement.again.as_slice() else {
            panic!("expected one delivery: {settlement:?}")
        };
        assert_eq!((again.events.len(), again.not_before), (3, not_before));
    }

    #[test]
    fn postponed_event_waits_without_an_attempt() {
        let not_before = NOW + Duration::from_secs(9);
        let settlement = settle_message(
            &delivery(1),
            &[EntryVerdict::Postponed { not_before }],
            Some(&KEPT),
        );
        assert_eq!(
            (settlement.again[0].not_before, settlement.again[0].attempts),
            (not_before, 3)
        );
    }

    #[test]
    fn only_what_was_sent_may_be_answered_late() {
        let check = |failure, expected| {
            let last = LastAttempt::from_outcome(AttemptOutcome::Failed(failure), NOW).unwrap();
            assert_eq!(last.outcome, OutcomeName::TimedOut);
            let settlement = settle_message(
                &delivery(1),
                &[EntryVerdict::Retry {
                    not_before: NOW,
                    last,
                }],
                Some(&KEPT),
            );
            assert_eq!(settlement.again[0].timed_out, expected, "{failure:?}");
        };
        check(SendFailure::TimedOut, true);
        check(SendFailure::ConnectTimedOut, false);
    }

    #[test]
    fn only_an_attempt_that_was_made_is_counted() {
        let verdicts = [
            give_up(DeadLetterReason::UndeliverableDueToClientError, Some(LAST)),
            give_up(DeadLetterReason::TimeToLiveExceeded, None),
        ];
        let attempts: Vec<_> = settle_message(&delivery(2), &verdicts, None)
            .dead
            .iter()
            .map(|dead| dead.delivery.attempts)
            .collect();
        assert_eq!(attempts, [4, 3]);
    }

    /// Events whose dead letters the subscription does not keep are dropped and counted.
    #[test]
    fn dead_letters_that_are_not_kept_are_dropped_and_counted() {
        let verdicts = [
            give_up(DeadLetterReason::TimeToLiveExceeded, None),
            give_up(DeadLetterReason::EndpointGone, Some(LAST)),
        ];
        let dropped = |policy| {
            let dropped = settle_message(&delivery(2), &verdicts, Some(&policy)).dropped;
            let event = |letter: &DeadLetter| (letter.reason, letter.delivery.events.len());
            dropped.iter().map(event).collect::<Vec<_>>()
        };
        let expired = (DeadLetterReason::TimeToLiveExceeded, 1);
        assert_eq!(dropped(KEPT), []);
        assert_eq!(
            dropped(DeadLetterPolicy {
                on_expiry: false,
                ..KEPT
            }),
            [expired]
        );
        let disabled = DeadLetterPolicy {
            enabled: false,
            ..KEPT
        };
        assert_eq!(
            dropped(disabled),
            [expired, (DeadLetterReason::EndpointGone, 1)]
        );
    }

    #[test]
    fn up_to_900_seconds_wait_in_the_queue() {
        let check = |ms, expected| {
            assert_eq!(
                choose_wait_place(NOW + Duration::from_millis(ms), NOW),
                expected
            );
        };
        let queue = |ms| WaitPlace::Queue {
            delay: Duration::from_millis(ms),
        };
        check(0, queue(0));
        check(1, queue(1));
        check(900_000, queue(900_000));
        check(900_001, WaitPlace::Parked);
        check(u64::MAX / 2, WaitPlace::Parked);
        assert_eq!(
            choose_wait_place(NOW, NOW + Duration::from_secs(5)),
            queue(0)
        );
    }

    /// An event that waits so long that it is parked goes out with a minute, as lists of what waits
    /// say.
    #[test]
    fn next_attempt_of_a_parked_event_is_the_beginning_of_a_minute() {
        let at = Timestamp::from_millis(1_700_000_000_000);
        let refused = AttemptOutcome::Answered {
            status: 503,
            retry_after: None,
        };
        let check = |wait: Duration, expected: Duration| {
            let verdict = AttemptVerdict::Retry {
                not_before: at + wait,
            };
            let expected = EntryVerdict::Retry {
                not_before: at + expected,
                last: LastAttempt { at, ..LAST },
            };
            assert_eq!(
                EntryVerdict::from_attempt(verdict, refused, at),
                expected,
                "{wait:?}"
            );
        };
        let second = Duration::from_secs(1);
        let minute = Duration::from_mins(1);
        // The attempt ends 20 s after the beginning of a minute.
        check(15 * minute, 15 * minute);
        check(15 * minute + second, 15 * minute + 40 * second);
        check(15 * minute + 40 * second, 15 * minute + 40 * second);
        check(15 * minute + 41 * second, 16 * minute + 40 * second);
    }

    #[test]
    fn held_events_wait_together_without_an_attempt() {
        let settlement = settle_message(
            &delivery(3),
            &[
                EntryVerdict::Held,
                EntryVerdict::NotStarted,
                EntryVerdict::Held,
            ],
            Some(&KEPT),
        );
        let [held] = settlement.held.as_slice() else {
            panic!("expected one delivery")
        };
        assert_eq!(
            (keys(held), held.attempts, held.last),
            (vec!["k-0", "k-2"], 3, None)
        );
        assert_eq!(settlement.again.len(), 1);
    }

    /// An event that only waits comes back at the end of the wait, and a retry at its own time.
    #[test]
    fn postponed_event_waits_no_longer_than_the_given_end() {
        let postponed = |secs| EntryVerdict::Postponed {
            not_before: NOW + Duration::from_secs(secs),
        };
        let end = NOW + Duration::from_mins(1);
        assert_eq!(postponed(90).capped_at(end), postponed(60));
        assert_eq!(postponed(30).capped_at(end), postponed(30));
        let retry = EntryVerdict::Retry {
            not_before: NOW + Duration::from_secs(90),
            last: LAST,
        };
        assert_eq!(retry.capped_at(end), retry);
    }

    proptest! {
        #[test]
        fn no_event_is_lost_or_doubled(choices in prop::collection::vec(0_u16..6, 1..20)) {
            let verdict = |choice: &u16| match choice {
                0 => EntryVerdict::Delivered,
                1 => EntryVerdict::Retry { not_before: NOW, last: LAST },
                2 => EntryVerdict::Retry { not_before: NOW + Duration::from_secs(9), last: LAST },
                3 => give_up(DeadLetterReason::EndpointGone, Some(LAST)),
                4 => EntryVerdict::Held,
                _ => EntryVerdict::NotStarted,
            };
            let verdicts: Vec<_> = choices.iter().map(verdict).collect();
            let delivered = choices.iter().filter(|choice| **choice == 0).count();
            let settlement = settle_message(&delivery(choices.len()), &verdicts, Some(&KEPT));
            let dead = settlement.dead.iter().map(|dead| &dead.delivery);
            let waiting = settlement.again.iter().chain(&settlement.held);
            let mut left: Vec<_> = waiting.chain(dead).flat_map(keys).collect();
            left.sort_unstable();
            left.dedup();
            prop_assert_eq!(left.len() + delivered, choices.len());
        }
    }
}
