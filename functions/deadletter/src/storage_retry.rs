//! Retries while the bucket refuses: a fresh message comes later, until the subscription says that
//! it was long enough.

use std::error::Error;
use std::time::Duration;

use posthaste_core::delivery_log::EventChange;
use posthaste_core::model::{DeadLetter, Delivery, StorageTrouble};
use posthaste_core::stored::dead_letter_message::render_dead_letter;
use posthaste_ports::{
    Clock, OutgoingMessage, PortError, Ports, QueueName, QueueReceiver, Successor,
};

use crate::dead_letters::DeadLetters;
use crate::delivery_log::{RecordedChange, events_of};
use crate::letter::{LoadedLetter, ReceivedLetter};
use crate::resolved::resolved_successors;
use crate::retry_wait::wait_after_refusal;

/// The reason for which letters are dropped whose bucket refused them for too long.
const UNAVAILABLE: &str = "DeadLetterStorageUnavailable";

impl<P: Ports> DeadLetters<P> {
    /// Puts a letter off. Its fresh message has a receive count of its own, so that a long outage
    /// of the bucket never moves it to the redrive queue.
    pub(crate) async fn try_later(&self, read: LoadedLetter) -> Result<(), PortError> {
        let now = self.ports.clock.now();
        let trouble = StorageTrouble::once_more(read.letter.dead.storage, now);
        let give_up_after = self.give_up_after(&read.letter.dead).await;
        let is_over = give_up_after.is_some_and(|limit| now.since(trouble.since) >= limit);
        let is_given_up = is_over && self.give_up(&read).await;
        let ReceivedLetter {
            message,
            dead,
            unresolved,
        } = read.letter;
        let mut successors = resolved_successors(unresolved);
        if !is_given_up {
            successors.push(retry_successor(dead, trouble));
        }
        self.ports.queue.replace(&message.receipt, successors).await
    }

    /// Gives a letter up, once the notices about it are sent. Answers whether they are.
    async fn give_up(&self, read: &LoadedLetter) -> bool {
        let sent = Box::pin(self.send_notices(std::slice::from_ref(read), None)).await;
        if let Err(error) = &sent {
            tracing::error!(
                error = error as &dyn Error,
                "dead letters not dropped yet, the notices were not sent"
            );
            return false;
        }
        self.unwritten.forget_letter(&read.letter.dead);
        let events = events_of(std::slice::from_ref(read));
        let given_up = RecordedChange {
            events,
            change: |_| EventChange::dropped(UNAVAILABLE),
            object: None,
        };
        Box::pin(self.record_change(given_up, Duration::MAX)).await;
        count_dropped(&read.letter.dead.delivery);
        true
    }

    /// Longest time for which the bucket may refuse a letter of the subscription. While that cannot
    /// be read, and for one that was deleted, nothing is given up.
    async fn give_up_after(&self, letter: &DeadLetter) -> Option<Duration> {
        let topic = self
            .ports
            .registry
            .topic(&letter.delivery.topic)
            .await
            .ok()??;
        let subscription = topic.find_subscription(&letter.delivery.subscription)?;
        subscription
            .dead_letter
            .give_up_after
            .filter(|_| letter.delivery.is_for(subscription))
    }
}

fn retry_successor(letter: DeadLetter, trouble: StorageTrouble) -> Successor {
    let letter = DeadLetter {
        storage: Some(trouble),
        ..letter
    };
    let message = OutgoingMessage {
        body: render_dead_letter(&letter),
        group: Some(letter.delivery.message_group_id()),
        delay: wait_after_refusal(trouble),
    };
    Successor {
        to: QueueName::DeadLetters,
        message,
    }
}

fn count_dropped(delivery: &Delivery) {
    let labels = [
        ("topic", delivery.topic.to_string()),
        ("subscription", delivery.subscription.to_string()),
        ("reason", UNAVAILABLE.to_owned()),
    ];
    metrics::counter!("DroppedEventCount", &labels).increment(delivery.events.len() as u64);
    tracing::error!(
        topic = %delivery.topic, subscription = %delivery.subscription, events = delivery.events.len(),
        "dead letters dropped: the bucket has refused them for as long as the subscription allows"
    );
}
