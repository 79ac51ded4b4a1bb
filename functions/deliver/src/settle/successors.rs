//! Successors: the messages, and the waiting deliveries, that take the place of a settled message.

use std::time::Duration;

use posthaste_core::api::notice::{LetterFate, notice_retry_letter};
use posthaste_core::attempt::WaitPlace;
use posthaste_core::attempt::settle::{choose_wait_place, dead_letter_delay};
use posthaste_core::lane::DeliveryLane;
use posthaste_core::model::{
    DEAD_LETTER_DELAY_DEFAULT, DeadLetter, DeadLetterPolicy, Delivery, LetterPlace, Timestamp,
};
use posthaste_core::stored::dead_letter_message::render_dead_letter;
use posthaste_core::stored::resolved_message::render_resolved;
use posthaste_ports::{OutgoingMessage, QueueName, Successor};

use crate::waiting_place::{WaitingPlace, due_again, retry_message};

/// The successors of one message.
#[derive(Debug, Default)]
pub(crate) struct MessageSuccessors {
    /// In a queue.
    pub(crate) messages: Vec<Successor>,
    /// The lane of deliveries that wait in a queue.
    lane: DeliveryLane,
    /// In the object store.
    pub(crate) stored: Vec<(WaitingPlace, Delivery)>,
}

impl MessageSuccessors {
    /// The successors of a message, those in the delivery queue in this lane.
    pub(crate) fn in_lane(lane: DeliveryLane) -> Self {
        Self {
            lane,
            ..Self::default()
        }
    }

    /// Adds a delivery that is tried again.
    pub(crate) fn add_retry(&mut self, mut delivery: Delivery, now: Timestamp) {
        delivery.not_before = due_again(delivery.not_before, now);
        match choose_wait_place(delivery.not_before, now) {
            WaitPlace::Queue { delay } => self
                .messages
                .push(retry_message(&delivery, self.lane, delay)),
            WaitPlace::Parked => self.stored.push((WaitingPlace::Parked, delivery)),
        }
    }

    /// Adds deliveries that are held.
    pub(crate) fn add_held(&mut self, held: Vec<Delivery>) {
        self.stored.extend(
            held.into_iter()
                .map(|delivery| (WaitingPlace::Held, delivery)),
        );
    }

    /// Adds a dead letter, which the deadletter function writes.
    pub(crate) fn add_dead_letter(
        &mut self,
        letter: &DeadLetter,
        policy: Option<&DeadLetterPolicy>,
    ) {
        let delivery = &letter.delivery;
        tracing::warn!(
            topic = %delivery.topic, subscription = %delivery.subscription, reason = %letter.reason,
            events = delivery.events.len(), attempts = delivery.attempts,
            "events on their way to the dead letters"
        );
        let delay = policy.map_or(DEAD_LETTER_DELAY_DEFAULT, |policy| policy.delay);
        self.messages
            .push(to_deadletter(letter, dead_letter_delay(delay)));
    }

    /// Adds a message that says which dead letters these delivered events were made of. Such a
    /// letter is resolved: it is left out of lists and of the next replay.
    pub(crate) fn add_resolved(&mut self, letters: Vec<LetterPlace>) {
        if !letters.is_empty() {
            let message = OutgoingMessage {
                body: render_resolved(letters),
                group: None,
                delay: Duration::ZERO,
            };
            self.messages.push(Successor {
                to: QueueName::DeadLetters,
                message,
            });
        }
    }

    /// Adds a request to the deadletter function for the notices about dropped events that could
    /// not be sent now.
    pub(crate) fn add_notice_request(&mut self, letter: DeadLetter, now: Timestamp) {
        if let Some((letter, delay)) = notice_retry_letter(letter, LetterFate::Dropped, now) {
            self.messages.push(to_deadletter(&letter, delay));
        }
    }
}

fn to_deadletter(letter: &DeadLetter, delay: Duration) -> Successor {
    let body = render_dead_letter(letter);
    let group = Some(letter.delivery.message_group_id());
    Successor {
        to: QueueName::DeadLetters,
        message: OutgoingMessage { body, group, delay },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use posthaste_core::model::DeadLetterReason;
    use posthaste_core::stored::delivery::parse_delivery;

    use super::*;
    use crate::testing::{START, delivery, secs};

    fn letter() -> DeadLetter {
        let reason = DeadLetterReason::TimeToLiveExceeded;
        DeadLetter::new(reason, delivery(1))
    }

    /// Deliveries due within a quarter of an hour wait in the queue, and the others are parked.
    #[test]
    fn deliveries_due_after_fifteen_minutes_are_parked() {
        let mut successors = MessageSuccessors::default();
        for wait in [0, 900, 901] {
            successors.add_retry(
                Delivery {
                    not_before: START + secs(wait),
                    ..delivery(1)
                },
                START,
            );
        }
        assert_eq!(
            successors
                .messages
                .iter()
                .map(|it| it.message.delay)
                .collect::<Vec<_>>(),
            [secs(0), secs(900)]
        );
        // The start is 20 seconds into its minute.
        let [(WaitingPlace::Parked, parked)] = successors.stored.as_slice() else {
            panic!("expected one parked delivery")
        };
        assert_eq!(parked.not_before, START + secs(940));
    }

    #[test]
    fn untried_deliveries_are_due_from_now_on() {
        let mut successors = MessageSuccessors::default();
        successors.add_retry(delivery(1), START + secs(5));
        let [again] = successors.messages.as_slice() else {
            panic!("expected one message")
        };
        assert_eq!(
            parse_delivery(&again.message.body).unwrap().not_before,
            START + secs(5)
        );
    }

    #[test]
    fn held_deliveries_are_stored() {
        let mut successors = MessageSuccessors::default();
        successors.add_held(vec![delivery(1), delivery(2)]);
        assert!(successors.messages.is_empty());
        assert!(
            successors
                .stored
                .iter()
                .all(|(place, _)| *place == WaitingPlace::Held)
        );
    }

    #[test]
    fn a_dead_letter_waits_for_as_long_as_its_subscription_says() {
        let delay = |policy: Option<&DeadLetterPolicy>| {
            let mut successors = MessageSuccessors::default();
            successors.add_dead_letter(&letter(), policy);
            assert_eq!(successors.messages[0].to, QueueName::DeadLetters);
            successors.messages[0].message.delay
        };
        let policy = |delay| DeadLetterPolicy {
            enabled: true,
            on_expiry: true,
            delay,
            give_up_after: None,
        };
        assert_eq!(delay(Some(&policy(Duration::ZERO))), Duration::ZERO);
        assert_eq!(delay(Some(&policy(secs(7)))), secs(7));
        assert_eq!(delay(None), dead_letter_delay(DEAD_LETTER_DELAY_DEFAULT));
    }

    #[test]
    fn notices_that_could_not_be_sent_are_asked_for() {
        let mut successors = MessageSuccessors::default();
        successors.add_notice_request(letter(), START);
        assert_eq!(successors.messages[0].to, QueueName::DeadLetters);
    }
}
