//! Retries while the bucket refuses: a fresh message comes later, until the subscription says that
//! it was long enough.

use std::error::Error;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::ready;
use futures_util::stream::{self, StreamExt};
use posthaste_core::delivery_log::EventChange;
use posthaste_core::model::{DeadLetter, Delivery, StorageTrouble};
use posthaste_core::stored::dead_letter_message::render_dead_letter;
use posthaste_ports::{
    Clock, ErrorKind, MessageId, OutgoingMessage, PortError, Ports, QueueName, Successor,
};
use posthaste_services::TopicRegistry;
use posthaste_services::catch_panic::{CaughtPanic, catch_panic};

use crate::deadlines::in_time;
use crate::delivery_log::{ChangeRecorder, RecordedChange, events_of};
use crate::letter::{LoadedLetter, ReceivedLetter};
use crate::notices::LetterNotices;
use crate::retry_wait::wait_after_refusal;
use crate::settle::{MessageSettler, PUT_OFF_AT_ONCE_MAX, resolved_successors};
use crate::unwritten::UnwrittenLetters;

/// The reason for which letters are dropped whose bucket refused them for too long.
const UNAVAILABLE: &str = "DeadLetterStorageUnavailable";

/// Puts off or gives up letters that their bucket refuses.
pub(crate) struct StorageRetry<P: Ports> {
    /// Subscriptions, which say how long the bucket may refuse a letter.
    pub(crate) registry: Arc<TopicRegistry<P::Store, P::Clock>>,
    pub(crate) clock: P::Clock,
    pub(crate) notices: Arc<LetterNotices<P>>,
    pub(crate) recorder: Arc<ChangeRecorder<P>>,
    pub(crate) settler: Arc<MessageSettler<P>>,
    pub(crate) unwritten: Arc<UnwrittenLetters>,
}

impl<P: Ports> StorageRetry<P> {
    /// Puts letters off side by side, so that they can share requests to the queue. Returns those
    /// that could not be.
    pub(crate) async fn put_off(
        &self,
        letters: Vec<LoadedLetter>,
        deadline: Duration,
    ) -> Vec<MessageId> {
        let put_off = letters
            .into_iter()
            .map(|read| self.put_one_off(read, deadline));
        stream::iter(put_off)
            .buffer_unordered(PUT_OFF_AT_ONCE_MAX)
            .filter_map(ready)
            .collect()
            .await
    }

    async fn put_one_off(&self, read: LoadedLetter, deadline: Duration) -> Option<MessageId> {
        let id = read.letter.message.id.clone();
        let later = async {
            let put_off = catch_panic(self.try_later(read)).await;
            put_off.unwrap_or_else(put_off_panicked)
        };
        let error = in_time(&self.clock, deadline, later).await.err()?;
        tracing::error!(
            message_id = %id.0, error = &error as &dyn Error, "dead letter left to its visibility timeout"
        );
        Some(id)
    }

    /// Puts a letter off. Its fresh message has a receive count of its own, so that a long outage
    /// of the bucket never moves it to the redrive queue.
    async fn try_later(&self, read: LoadedLetter) -> Result<(), PortError> {
        let now = self.clock.now();
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
        self.settler.replace(&message.receipt, successors).await
    }

    /// Gives a letter up, once the notices about it are sent. Returns whether they are.
    async fn give_up(&self, read: &LoadedLetter) -> bool {
        let sent = Box::pin(self.notices.send_notices(slice::from_ref(read), None)).await;
        if let Err(error) = &sent {
            tracing::error!(
                error = error as &dyn Error,
                "dead letters not dropped yet, the notices were not sent"
            );
            return false;
        }
        self.unwritten.forget_letter(&read.letter.dead);
        let events = events_of(slice::from_ref(read));
        let given_up = RecordedChange {
            events,
            change: |_| EventChange::dropped(UNAVAILABLE),
            object: None,
        };
        Box::pin(self.recorder.record_change(given_up, Duration::MAX)).await;
        count_dropped(&read.letter.dead.delivery);
        true
    }

    /// Longest time for which the bucket may refuse a letter of the subscription. While that cannot
    /// be read, and for one that was deleted, nothing is given up.
    async fn give_up_after(&self, letter: &DeadLetter) -> Option<Duration> {
        let topic = self.registry.topic(&letter.delivery.topic).await.ok()??;
        let subscription = topic.find_subscription(&letter.delivery.subscription)?;
        subscription
            .dead_letter
            .give_up_after
            .filter(|_| letter.delivery.is_for(subscription))
    }
}

fn put_off_panicked(panicked: CaughtPanic) -> Result<(), PortError> {
    Err(PortError::with_cause("put off", ErrorKind::Other, panicked))
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
