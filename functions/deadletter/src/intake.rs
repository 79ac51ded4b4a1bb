//! From messages to records: each is read by itself; what cannot be read is kept as it is.

use bytes::Bytes;
use posthaste_core::dead_letter::record;
use posthaste_core::decide::DeadLetterReason;
use posthaste_core::delivery::{DeadLetter, Payload};
use posthaste_core::layout;
use posthaste_core::limits::{MAX_RECEIVE_COUNT, SQS_DELAY_SECS_MAX};
use posthaste_core::wire::{WireError, parse_dead_letter, parse_delivery};
use posthaste_ports::guard::guarded;
use posthaste_ports::{
    Clock, Entropy, ObjectStore, OutgoingMessage, PortError, QueueName, QueueReceiver, ReceivedMessage,
    Successor,
};

use crate::{DeadLetters, Letter, Sorted};

impl<Q, S, D, C, E> DeadLetters<Q, S, D, C, E>
where
    Q: QueueReceiver,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Sorts a batch by what is to be done.
    pub(crate) async fn sort(&self, batch: Vec<ReceivedMessage>) -> Sorted {
        let mut sorted = Sorted::default();
        for message in batch {
            if guarded(self.sort_one(&mut sorted, message.clone())).await.is_err() {
                self.hand_back(&mut sorted, message);
            }
        }
        sorted
    }

    async fn sort_one(&self, sorted: &mut Sorted, message: ReceivedMessage) {
        match self.read(&message.body) {
            Ok(letter) => self.load(sorted, message, letter).await,
            Err(WireError::Newer(version)) => self.wait_for_newer(sorted, message, version).await,
            Err(WireError::Malformed(_) | WireError::Empty) => sorted.raw.push(message),
        }
    }

    /// A message that makes this function panic ends in the redrive queue, and there, where no queue comes after, it is
    /// kept as it is.
    fn hand_back(&self, sorted: &mut Sorted, message: ReceivedMessage) {
        tracing::error!(message_id = %message.id.0, source = %self.ports.source, "reading a dead letter panicked");
        match self.ports.source {
            QueueName::Redrive => sorted.raw.push(message),
            QueueName::Deliveries | QueueName::DeadLetters => sorted.failures.push(message.id),
        }
    }

    /// In the redrive queue lie messages of both other queues: a delivery there is one that a function failed on.
    fn read(&self, body: &Bytes) -> Result<DeadLetter, WireError> {
        match parse_dead_letter(body) {
            Err(WireError::Malformed(_)) if self.ports.source == QueueName::Redrive => {
                let delivery = parse_delivery(body)?;
                Ok(DeadLetter { reason: DeadLetterReason::HandlerFailed, delivery, storage: None })
            }
            read => read,
        }
    }

    async fn load(&self, sorted: &mut Sorted, message: ReceivedMessage, letter: DeadLetter) {
        match self.records(&letter).await {
            Ok(Some(records)) => {
                let place = layout::dead_letters_of(&letter.delivery.topic, &letter.delivery.subscription);
                let entry = Letter { id: message.id, receipt: message.receipt, dead: letter, records };
                sorted.letters.entry(place).or_default().push(entry);
            }
            // An event whose payload is gone or altered cannot be shown; what is known of it is kept as it is.
            Ok(None) => sorted.raw.push(message),
            Err(error) => {
                tracing::error!(message_id = %message.id.0, error = &error as &dyn std::error::Error, "payload of a dead letter not readable");
                if self.ports.source == QueueName::Redrive && message.receive_count >= MAX_RECEIVE_COUNT {
                    sorted.raw.push(message);
                } else {
                    sorted.failures.push(message.id);
                }
            }
        }
    }

    /// A stored payload; `None` if it is gone, or is not what was stored.
    async fn stored(&self, key: &str, payload: &Payload) -> Result<Option<Bytes>, PortError> {
        let Some(object) = self.ports.state.get(key).await? else { return Ok(None) };
        if !payload.is(&object.bytes) {
            tracing::error!(%key, "payload of a dead letter is not what was stored");
            return Ok(None);
        }
        Ok(Some(object.bytes))
    }

    /// The records of a letter's events; `None` if a payload is gone or altered.
    async fn records(&self, letter: &DeadLetter) -> Result<Option<Vec<Bytes>>, PortError> {
        let mut records = Vec::with_capacity(letter.delivery.events.len());
        for entry in &letter.delivery.events {
            let text = match &entry.payload {
                Payload::Inline(json) => Some(json.clone()),
                Payload::Stored { key, .. } => self.stored(key, &entry.payload).await?,
            };
            let Some(text) = text else { return Ok(None) };
            records.push(record(letter, &text));
        }
        Ok(Some(records))
    }

    async fn wait_for_newer(&self, sorted: &mut Sorted, message: ReceivedMessage, version: u32) {
        tracing::warn!(message_id = %message.id.0, version, "message of a newer version handed back as it is");
        let again = OutgoingMessage { body: message.body, group: None, delay_secs: SQS_DELAY_SECS_MAX };
        let successors = vec![Successor { to: self.ports.source, message: again }];
        if let Err(error) = self.ports.queue.replace(&message.receipt, successors).await {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "message of a newer version left to its visibility timeout"
            );
            sorted.failures.push(message.id);
        }
    }
}
