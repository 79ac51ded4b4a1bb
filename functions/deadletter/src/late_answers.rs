//! Late answers: events that arrived after all, because their endpoint answered after the request
//! had timed out. They count as delivered, and are taken out before anything is written.
//!
//! The notes of late answers stay, so that a letter that comes again finds them. Wake removes them
//! when they are old.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::delivery_log::EventChange;
use posthaste_core::model::{DeadLetter, DeliveryEntry, EventPayload};
use posthaste_ports::{Clock, MessageId, PortError, Ports, QueueName};
use posthaste_services::late_answers::answered_late;

use crate::deadlines::in_time;
use crate::delivery_log::{ChangeRecorder, RecordedChange, RecordedEntry};
use crate::letter::ReceivedLetter;
use crate::resolved::LetterResolver;
use crate::settle::MessageSettler;
use crate::unreadable::is_kept_unread;

/// Takes events that arrived late out of letters.
pub(crate) struct LateAnswerFilter<P: Ports> {
    /// The state bucket, which has the notes of late answers.
    pub(crate) state: Arc<P::Store>,
    pub(crate) clock: P::Clock,
    /// The queue that is emptied.
    pub(crate) source: QueueName,
    pub(crate) recorder: Arc<ChangeRecorder<P>>,
    pub(crate) resolver: Arc<LetterResolver<P>>,
    pub(crate) settler: Arc<MessageSettler<P>>,
}

impl<P: Ports> LateAnswerFilter<P> {
    /// Takes out of letters of one subscription the events that arrived late. Only a delivery that
    /// timed out costs a look. Letters that must come again, because the notes could not be
    /// read, go to `failures`.
    pub(crate) async fn without_late(
        &self,
        letters: Vec<ReceivedLetter>,
        until: Duration,
        failures: &mut Vec<MessageId>,
    ) -> Vec<ReceivedLetter> {
        let asked: BTreeSet<&str> = letters
            .iter()
            .filter(|it| may_have_arrived(&it.dead))
            .flat_map(event_keys)
            .collect();
        let Some(ReceivedLetter { dead, .. }) = letters.first().filter(|_| !asked.is_empty())
        else {
            return letters;
        };
        let topic = &dead.delivery.topic;
        let subscription = &dead.delivery.subscription;
        let look = answered_late(&*self.state, topic, subscription, &asked);
        match in_time(&self.clock, until, look).await {
            Ok(found) if found.is_empty() => letters,
            Ok(found) => self.remove_arrived(letters, &found, until, failures).await,
            Err(error) => self.hand_back_unread(letters, &error, failures),
        }
    }

    /// Removes the events that were found. The message of a letter that has none left is let go.
    async fn remove_arrived(
        &self,
        mut letters: Vec<ReceivedLetter>,
        found: &BTreeSet<String>,
        until: Duration,
        failures: &mut Vec<MessageId>,
    ) -> Vec<ReceivedLetter> {
        let arrived: Vec<_> = letters
            .iter_mut()
            .map(|letter| take_arrived(letter, found))
            .collect();
        Box::pin(self.note_arrived(&letters, &arrived, until)).await;
        Box::pin(self.resolver.resolve_arrived(&mut letters, &arrived, until)).await;
        let mut left = Vec::with_capacity(letters.len());
        for letter in letters {
            if letter.dead.delivery.events.is_empty() {
                let ReceivedLetter {
                    message,
                    unresolved,
                    ..
                } = letter;
                failures.extend(self.settler.release_message(&message, unresolved).await);
            } else {
                left.push(letter);
            }
        }
        left
    }

    /// Logs and records events that arrived, those of each letter.
    async fn note_arrived(
        &self,
        letters: &[ReceivedLetter],
        arrived: &[Vec<DeliveryEntry>],
        until: Duration,
    ) {
        let mut events = Vec::new();
        for (letter, entries) in letters.iter().zip(arrived) {
            events.extend(entries.iter().map(|entry| RecordedEntry {
                letter,
                entry,
                text: inline_text(&entry.payload),
            }));
        }
        let Some(first) = events.first() else {
            return;
        };
        let dead = &first.letter.dead;
        tracing::info!(
            topic = %dead.delivery.topic, subscription = %dead.delivery.subscription, events = events.len(),
            "not dead-lettered, the endpoint answered late"
        );
        let recorded = RecordedChange {
            events,
            change: |_| EventChange::answered_late(),
            object: None,
        };
        self.recorder.record_change(recorded, until).await;
    }

    /// Hands back the letters whose notes cannot be read. One that would be lost with its message
    /// is written.
    fn hand_back_unread(
        &self,
        letters: Vec<ReceivedLetter>,
        error: &PortError,
        failures: &mut Vec<MessageId>,
    ) -> Vec<ReceivedLetter> {
        tracing::error!(
            letters = letters.len(),
            error = error as &dyn Error,
            "late answers to the events of dead letters cannot be looked up"
        );
        let now = self.clock.now();
        let (written, handed_back): (Vec<_>, Vec<_>) = letters.into_iter().partition(|letter| {
            !may_have_arrived(&letter.dead)
                || is_kept_unread(self.source, letter.message.sent_at, now)
        });
        failures.extend(handed_back.into_iter().map(|letter| letter.message.id));
        written
    }
}

/// Tells whether an endpoint may have said yes to a request that timed out. A letter whose events
/// are written already stays as it is.
fn may_have_arrived(letter: &DeadLetter) -> bool {
    letter.delivery.timed_out && !letter.asks_for_notices_only()
}

/// Takes the events out of a letter that arrived.
fn take_arrived(letter: &mut ReceivedLetter, found: &BTreeSet<String>) -> Vec<DeliveryEntry> {
    if !may_have_arrived(&letter.dead) {
        return Vec::new();
    }
    letter
        .dead
        .delivery
        .events
        .extract_if(.., |event| found.contains(&event.key))
        .collect()
}

/// The payload, unless it is stored: it was not read.
fn inline_text(payload: &EventPayload) -> Option<&Bytes> {
    match payload {
        EventPayload::Inline(text) => Some(text),
        EventPayload::Stored { .. } => None,
    }
}

fn event_keys(letter: &ReceivedLetter) -> impl Iterator<Item = &str> {
    letter
        .dead
        .delivery
        .events
        .iter()
        .map(|event| event.key.as_str())
}
