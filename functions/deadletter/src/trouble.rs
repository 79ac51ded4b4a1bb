//! When the bucket refuses: try again later with a fresh message, or give up where the subscription says so.

use std::time::Duration;

use posthaste_core::delivery::{DeadLetter, StorageTrouble};
use posthaste_core::settle::dead_letter_delay_secs;
use posthaste_core::time::Timestamp;
use posthaste_core::wire::render_dead_letter;
use posthaste_ports::{
    Clock, Entropy, ObjectStore, OutgoingMessage, PortError, QueueName, QueueReceiver, Successor,
};

use crate::{DeadLetters, Letter};

/// The wait after the first refusal; it doubles up to what the queue can delay (15 minutes).
const WAIT_FIRST: Duration = Duration::from_secs(10);

/// After so many doublings the wait is past what the queue can delay.
const DOUBLINGS_MAX: u32 = 8;

impl<Q, S, D, C, E> DeadLetters<Q, S, D, C, E>
where
    Q: QueueReceiver,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Puts a letter off. Its fresh message starts its receive count anew, so that a long outage of the bucket never
    /// moves it to the redrive queue.
    pub(crate) async fn try_later(&self, letter: Letter) -> Result<(), PortError> {
        let now = self.ports.clock.now();
        let trouble = again(letter.dead.storage, now);
        let give_up_after = self.give_up_after(&letter.dead).await;
        let successors = if give_up_after.is_some_and(|limit| now.since(trouble.since) >= limit) {
            give_up(&letter);
            Vec::new()
        } else {
            vec![later(letter.dead, trouble)]
        };
        self.ports.queue.replace(&letter.message.receipt, successors).await
    }

    /// How long the subscription lets its bucket refuse. While that cannot be read, and for one that was deleted,
    /// nothing is given up.
    async fn give_up_after(&self, letter: &DeadLetter) -> Option<Duration> {
        let topic = self.ports.registry.topic(&letter.delivery.topic).await.ok()??;
        topic.subscription(&letter.delivery.subscription)?.dead_letter.give_up_after
    }
}

fn again(before: Option<StorageTrouble>, now: Timestamp) -> StorageTrouble {
    let before = before.unwrap_or(StorageTrouble { since: now, failures: 0 });
    StorageTrouble { failures: before.failures.saturating_add(1), ..before }
}

fn later(letter: DeadLetter, trouble: StorageTrouble) -> Successor {
    let wait = WAIT_FIRST * 2_u32.pow(trouble.failures.saturating_sub(1).min(DOUBLINGS_MAX));
    let letter = DeadLetter { storage: Some(trouble), ..letter };
    let message = OutgoingMessage {
        body: render_dead_letter(&letter),
        group: Some(letter.delivery.group()),
        delay_secs: dead_letter_delay_secs(wait),
    };
    Successor { to: QueueName::DeadLetters, message }
}

fn give_up(letter: &Letter) {
    let delivery = &letter.dead.delivery;
    let labels = [
        ("topic", delivery.topic.to_string()),
        ("subscription", delivery.subscription.to_string()),
        ("reason", "DeadLetterStorageUnavailable".to_owned()),
    ];
    metrics::counter!("DroppedEventCount", &labels).increment(delivery.events.len() as u64);
    tracing::error!(
        topic = %delivery.topic, subscription = %delivery.subscription, events = delivery.events.len(),
        "dead letters dropped: the bucket has refused them for as long as the subscription allows"
    );
}
