//! Writing: objects of letters, and messages kept as they are. What is not durable at the deadline
//! is handed back.

use std::error::Error;
use std::time::Duration;

use futures_util::future::ready;
use futures_util::stream::{self, StreamExt};
use posthaste_core::api::notice::LetterFate;
use posthaste_core::delivery_log::EventChange;
use posthaste_core::stored::dead_letter::dead_letter_record;
use posthaste_core::stored::{DeadLetterArray, layout};
use posthaste_ports::{
    Clock, Entropy, ErrorKind, MessageId, ObjectStore, PortError, Ports, PutCondition,
    ReceivedMessage,
};
use posthaste_services::catch_panic::catch_panic;

use crate::dead_letters::{DeadLetters, LEAVING_TIME, PUT_OFF_AT_ONCE_MAX};
use crate::delivery_log::{RecordedChange, events_of};
use crate::letter::{LoadedLetter, ReceivedLetter};

impl<P: Ports> DeadLetters<P> {
    /// Writes letters of one subscription into one object. Answers those for which nothing durable
    /// was done.
    pub(crate) async fn write_letters(
        &self,
        mut letters: Vec<LoadedLetter>,
        deadline: Duration,
    ) -> Vec<MessageId> {
        let Some(first) = letters.first() else {
            return Vec::new();
        };
        if first.letter.dead.asks_for_notices_only() {
            let object = first.letter.dead.object.clone();
            let fate = object
                .as_deref()
                .map_or(LetterFate::Dropped, LetterFate::Written);
            let is_marked = Box::pin(self.mark_outage(&mut letters, deadline)).await;
            return self
                .finish_or_defer(letters, fate, is_marked, deadline)
                .await;
        }
        let delivery = &first.letter.dead.delivery;
        let id = self.ports.entropy.uuid().to_string();
        let key = layout::dead_letter_key(
            &delivery.topic,
            &delivery.subscription,
            self.ports.clock.now(),
            &id,
        );
        let mut gathered = DeadLetterArray::default();
        for LoadedLetter {
            letter: ReceivedLetter { dead, .. },
            payloads,
        } in &letters
        {
            let events = dead.delivery.events.iter().zip(payloads);
            events.for_each(|(entry, payload)| {
                gathered.push(&dead_letter_record(dead, entry, payload));
            });
        }
        let events = gathered.count();
        let put = self
            .ports
            .bucket
            .put(&key, gathered.into_object(), PutCondition::Always);
        match self.in_time(deadline, put).await {
            Ok(_) => {
                count_written(&letters);
                for read in &letters {
                    self.unwritten.forget_letter(&read.letter.dead);
                }
                tracing::info!(%key, events, "dead letters written");
                let is_marked = Box::pin(self.mark_outage(&mut letters, deadline)).await;
                Box::pin(self.record_written(&letters, &key, deadline)).await;
                Box::pin(self.resolve_earlier(&mut letters, &key, deadline)).await;
                Box::pin(self.count_missed(&letters, deadline)).await;
                Box::pin(self.finish_or_defer(
                    letters,
                    LetterFate::Written(&key),
                    is_marked,
                    deadline,
                ))
                .await
            }
            Err(error) => {
                self.unwritten
                    .note_refused(&letters, self.ports.clock.now());
                tracing::error!(%key, events, error = &error as &dyn Error, "dead letters not written");
                Box::pin(self.put_off(letters, deadline)).await
            }
        }
    }

    /// Finishes letters, or leaves messages for what is still to be done about them.
    async fn finish_or_defer(
        &self,
        letters: Vec<LoadedLetter>,
        fate: LetterFate<'_>,
        is_marked: bool,
        deadline: Duration,
    ) -> Vec<MessageId> {
        if is_marked {
            self.finish_letters(letters, fate, deadline).await
        } else {
            self.send_later(letters, fate, deadline).await
        }
    }

    /// Records where letters lie. The notices have their time after it.
    async fn record_written(&self, letters: &[LoadedLetter], object: &str, deadline: Duration) {
        let change = |letter: &ReceivedLetter| EventChange::dead_lettered(letter.dead.reason);
        let recorded = RecordedChange {
            events: events_of(letters),
            change,
            object: Some(object),
        };
        self.record_change(recorded, deadline.saturating_sub(LEAVING_TIME))
            .await;
    }

    /// Puts letters off side by side, so that they can share requests to the queue. Answers those
    /// that could not be.
    async fn put_off(&self, letters: Vec<LoadedLetter>, deadline: Duration) -> Vec<MessageId> {
        let put_off = letters.into_iter().map(|read| async move {
            let id = read.letter.message.id.clone();
            let panicked = |panicked| Err(PortError::with_cause("put off", ErrorKind::Other, panicked));
            let later = async { catch_panic(self.try_later(read)).await.unwrap_or_else(panicked) };
            let error = self.in_time(deadline, later).await.err()?;
            tracing::error!(
                message_id = %id.0, error = &error as &dyn Error, "dead letter left to its visibility timeout"
            );
            Some(id)
        });
        stream::iter(put_off)
            .buffer_unordered(PUT_OFF_AT_ONCE_MAX)
            .filter_map(ready)
            .collect()
            .await
    }

    /// Keeps a message byte for byte. Answers it if that failed.
    pub(crate) async fn keep_raw(
        &self,
        message: ReceivedMessage,
        deadline: Duration,
    ) -> Option<MessageId> {
        let key = layout::malformed_message_key(
            self.ports.clock.now(),
            &self.ports.entropy.uuid().to_string(),
        );
        let put = self
            .ports
            .bucket
            .put(&key, message.body.clone(), PutCondition::Always);
        match self.in_time(deadline, put).await {
            Ok(_) => {
                metrics::counter!("DeadLetteredCount", "reason" => "MalformedMessage").increment(1);
                tracing::error!(%key, message_id = %message.id.0, "message not readable, kept as it is");
                self.acknowledge(&message).await;
                None
            }
            Err(error) => {
                self.unwritten.note_refused(&[], self.ports.clock.now());
                tracing::error!(%key, error = &error as &dyn Error, "unreadable message not written");
                Some(message.id)
            }
        }
    }
}

fn count_written(letters: &[LoadedLetter]) {
    for LoadedLetter { letter, payloads } in letters {
        let delivery = &letter.dead.delivery;
        let labels = [
            ("topic", delivery.topic.to_string()),
            ("subscription", delivery.subscription.to_string()),
            ("reason", letter.dead.reason.to_string()),
        ];
        metrics::counter!("DeadLetteredCount", &labels).increment(payloads.len() as u64);
    }
}
