//! Writing of letters into objects. What is not durable at the deadline is handed back.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::stored::dead_letter::dead_letter_record;
use posthaste_core::stored::{DeadLetterArray, layout};
use posthaste_ports::{Clock, Entropy, MessageId, ObjectStore, Ports, PutCondition};

use crate::deadlines::in_time;
use crate::follow_up::LetterFollowUp;
use crate::letter::{LoadedLetter, ReceivedLetter};
use crate::storage_retry::StorageRetry;
use crate::unwritten::UnwrittenLetters;

/// Writes letters.
pub(crate) struct LetterWriter<P: Ports> {
    /// The dead-letter bucket.
    pub(crate) bucket: Arc<P::DeadLetters>,
    pub(crate) clock: P::Clock,
    pub(crate) entropy: P::Entropy,
    pub(crate) follow_up: LetterFollowUp<P>,
    pub(crate) retry: StorageRetry<P>,
    pub(crate) unwritten: Arc<UnwrittenLetters>,
}

impl<P: Ports> LetterWriter<P> {
    /// Writes letters of one subscription into one object. Returns those for which nothing durable
    /// was done.
    pub(crate) async fn write_letters(
        &self,
        letters: Vec<LoadedLetter>,
        deadline: Duration,
    ) -> Vec<MessageId> {
        let Some(first) = letters.first() else {
            return Vec::new();
        };
        if first.letter.dead.asks_for_notices_only() {
            return Box::pin(self.follow_up.follow_up_again(letters, deadline)).await;
        }
        let delivery = &first.letter.dead.delivery;
        let id = self.entropy.uuid().to_string();
        let key = layout::dead_letter_key(
            &delivery.topic,
            &delivery.subscription,
            self.clock.now(),
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
            .bucket
            .put(&key, gathered.into_object(), PutCondition::Always);
        match in_time(&self.clock, deadline, put).await {
            Ok(_) => {
                count_written(&letters);
                for read in &letters {
                    self.unwritten.forget_letter(&read.letter.dead);
                }
                tracing::info!(%key, events, "dead letters written");
                Box::pin(self.follow_up.follow_up_written(letters, &key, deadline)).await
            }
            Err(error) => {
                self.unwritten.note_refused(&letters, self.clock.now());
                tracing::error!(%key, events, error = &error as &dyn Error, "dead letters not written");
                Box::pin(self.retry.put_off(letters, deadline)).await
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
