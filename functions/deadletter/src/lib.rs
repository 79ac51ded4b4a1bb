//! deadletter: writes what was given up into the dead-letter bucket, gathered into few objects, and empties the
//! redrive queue the same way.
//!
//! An object is durable before the messages in it are acknowledged. A bucket that refuses is tried again and again,
//! by fresh messages that remember since when; nothing is dropped unless its subscription says after how long.

mod gather;
mod intake;
mod trouble;

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::future::ready;
use futures_util::stream::{self, StreamExt};
use posthaste_core::delivery::DeadLetter;
use posthaste_core::layout;
use posthaste_ports::guard::{Panicked, guarded};
use posthaste_ports::{
    BatchResponse, Clock, Entropy, ErrorKind, MessageId, ObjectStore, PortError, PutCondition, QueueName,
    QueueReceiver, Receipt, ReceivedMessage, Registry,
};

use gather::{Object, gather};

/// Letters that are put off side by side.
const PUT_OFF_AT_ONCE_MAX: usize = 100;

/// What deadletter needs from outside.
#[derive(Debug)]
pub struct DeadLetterPorts<Q, S, D, C, E> {
    /// The queue that is emptied.
    pub queue: Q,
    /// Which queue that is: the dead-letter queue or the redrive queue.
    pub source: QueueName,
    /// The state bucket, for payloads that were stored once.
    pub state: S,
    /// The dead-letter bucket.
    pub bucket: D,
    /// Topics and subscriptions, asked only when the bucket refuses.
    pub registry: Registry<S, C>,
    /// Time.
    pub clock: C,
    /// Chance.
    pub entropy: E,
}

/// The function.
#[derive(Debug)]
pub struct DeadLetters<Q, S, D, C, E> {
    ports: DeadLetterPorts<Q, S, D, C, E>,
}

/// A message that was understood, with its events' records.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) id: MessageId,
    pub(crate) receipt: Receipt,
    pub(crate) dead: DeadLetter,
    pub(crate) records: Vec<Bytes>,
}

/// What a batch became.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    /// By topic and subscription, as the object's key has them.
    pub(crate) letters: BTreeMap<String, Vec<Letter>>,
    /// Kept byte for byte.
    pub(crate) raw: Vec<ReceivedMessage>,
    /// Nothing durable done.
    pub(crate) failures: Vec<MessageId>,
}

impl<Q, S, D, C, E> DeadLetters<Q, S, D, C, E>
where
    Q: QueueReceiver,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Wires the function up.
    pub fn new(ports: DeadLetterPorts<Q, S, D, C, E>) -> Self {
        Self { ports }
    }

    /// Works on a batch. The answer names the messages for which nothing durable could be done.
    pub async fn handle(&self, batch: Vec<ReceivedMessage>) -> BatchResponse {
        let Sorted { letters, raw, mut failures } = self.sort(batch).await;
        for message in raw {
            let id = message.id.clone();
            let kept = guarded(self.keep_raw(message, &mut failures)).await;
            hand_back(kept, &[id], &mut failures);
        }
        for letters in letters.into_values() {
            let ids: Vec<_> = letters.iter().map(|letter| letter.id.clone()).collect();
            let written = guarded(self.write_all(letters, &mut failures)).await;
            hand_back(written, &ids, &mut failures);
        }
        BatchResponse { failures }
    }

    /// Writes the letters of one subscription.
    async fn write_all(&self, letters: Vec<Letter>, failures: &mut Vec<MessageId>) {
        for object in gather(letters) {
            let ids: Vec<_> = object.letters.iter().map(|letter| letter.id.clone()).collect();
            let written = guarded(self.write(object, failures)).await;
            hand_back(written, &ids, failures);
        }
    }

    async fn write(&self, object: Object, failures: &mut Vec<MessageId>) {
        let Some(first) = object.letters.first() else { return };
        let delivery = &first.dead.delivery;
        let id = self.ports.entropy.uuid().to_string();
        let key = layout::dead_letter(&delivery.topic, &delivery.subscription, self.ports.clock.now(), &id);
        match self.ports.bucket.put(&key, object.json, PutCondition::Always).await {
            Ok(_) => {
                count(&object.letters);
                tracing::info!(%key, events = object.events, "dead letters written");
                for letter in &object.letters {
                    self.acknowledge(&letter.id, &letter.receipt).await;
                }
            }
            Err(error) => {
                tracing::error!(%key, events = object.events, error = &error as &dyn std::error::Error, "dead letters not written");
                failures.extend(self.put_off(object.letters).await);
            }
        }
    }

    /// Puts letters off side by side, so that they can share requests to the queue. Answers those that could not be.
    async fn put_off(&self, letters: Vec<Letter>) -> Vec<MessageId> {
        let put_off = letters.into_iter().map(|letter| async {
            let id = letter.id.clone();
            let is_put_off = guarded(self.try_later(letter)).await.unwrap_or_else(|_| {
                tracing::error!(message_id = %id.0, "dead letter handed back, putting it off panicked");
                false
            });
            (!is_put_off).then_some(id)
        });
        stream::iter(put_off).buffer_unordered(PUT_OFF_AT_ONCE_MAX).filter_map(ready).collect().await
    }

    async fn keep_raw(&self, message: ReceivedMessage, failures: &mut Vec<MessageId>) {
        let key = layout::malformed(self.ports.clock.now(), &self.ports.entropy.uuid().to_string());
        match self.ports.bucket.put(&key, message.body, PutCondition::Always).await {
            Ok(_) => {
                metrics::counter!("DeadLetteredCount", "reason" => "MalformedMessage").increment(1);
                tracing::error!(%key, message_id = %message.id.0, "message not readable, kept as it is");
                self.acknowledge(&message.id, &message.receipt).await;
            }
            Err(error) => {
                tracing::error!(%key, error = &error as &dyn std::error::Error, "unreadable message not written");
                failures.push(message.id);
            }
        }
    }

    /// A failure leaves a copy to be written again: at least once.
    async fn acknowledge(&self, id: &MessageId, receipt: &Receipt) {
        let acknowledged = guarded(self.ports.queue.acknowledge(receipt)).await;
        let panicked = |panicked| Err(PortError::caused("acknowledge", ErrorKind::Other, panicked));
        if let Err(error) = acknowledged.unwrap_or_else(panicked) {
            tracing::error!(message_id = %id.0, error = &error as &dyn std::error::Error, "written dead letter not acknowledged");
        }
    }
}

/// Hands messages back that were being worked on when something panicked.
fn hand_back(worked: Result<(), Panicked>, ids: &[MessageId], failures: &mut Vec<MessageId>) {
    if worked.is_err() {
        tracing::error!(messages = ids.len(), "dead letters handed back, writing them panicked");
        failures.extend(ids.iter().filter(|id| !failures.contains(id)).cloned().collect::<Vec<_>>());
    }
}

fn count(letters: &[Letter]) {
    for letter in letters {
        let delivery = &letter.dead.delivery;
        let labels = [
            ("topic", delivery.topic.to_string()),
            ("subscription", delivery.subscription.to_string()),
            ("reason", format!("{:?}", letter.dead.reason)),
        ];
        metrics::counter!("DeadLetteredCount", &labels).increment(letter.records.len() as u64);
    }
}
