//! Room for what disabled subscriptions miss. Their dead letters have a bound together: what is
//! beyond it is skipped, counted and recorded.
//!
//! Only letters of the reason `SubscriptionDisabled` cost a look. They are counted when they are
//! written, so one that storage refuses is not counted again with each try. Objects that are
//! written side by side may go beyond the bound together, and a count that fails is missing in it.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::delivery_log::EventChange;
use posthaste_core::health::book_key;
use posthaste_core::model::DeadLetterReason;
use posthaste_core::stored::dead_letter::dead_letter_record;
use posthaste_ports::{Clock, ErrorKind, PortError, Ports};
use posthaste_services::{ArrivalTracker, HealthError, timeout_at};

use crate::deadlines::LEAVING_TIME;
use crate::delivery_log::{ChangeRecorder, RecordedChange, events_of};
use crate::letter::LoadedLetter;
use crate::settle::MessageSettler;
use crate::unwritten::UnwrittenLetters;

const REASON: DeadLetterReason = DeadLetterReason::SubscriptionDisabled;

/// The longest time that letters wait for the book: for the room, and for their count. Together
/// with `RECORDS_TIME` and `LEAVING_TIME`, a count takes less than the time that is reserved for
/// writing.
pub(crate) const BOOK_TIME: Duration = Duration::from_secs(5);

/// Skips what there is no room for, and counts what was kept.
pub(crate) struct MissedLetters<P: Ports> {
    /// The book that says how much of what disabled subscriptions miss was kept.
    pub(crate) book: ArrivalTracker<P::Store, P::Clock>,
    pub(crate) clock: P::Clock,
    /// Most bytes of dead letters of what disabled subscriptions miss; `None`: no bound.
    pub(crate) bytes_max: Option<u64>,
    pub(crate) recorder: Arc<ChangeRecorder<P>>,
    pub(crate) settler: Arc<MessageSettler<P>>,
    pub(crate) unwritten: Arc<UnwrittenLetters>,
}

/// Room that is left for letters that a disabled subscription misses.
struct MissedRoom {
    bytes: u64,
}

impl MissedRoom {
    /// Takes the room of a letter, if there is enough. A letter that is smaller than one before is
    /// not kept in its place.
    fn take(&mut self, read: &LoadedLetter) -> bool {
        let left = self.bytes.checked_sub(bytes_of(read));
        self.bytes = left.unwrap_or_default();
        left.is_some()
    }
}

impl<P: Ports> MissedLetters<P> {
    /// Skips letters of what a disabled subscription misses for which there is no room, and returns
    /// the others. While the count cannot be read there is room.
    pub(crate) async fn without_skipped(
        &self,
        letters: Vec<LoadedLetter>,
        until: Duration,
    ) -> Vec<LoadedLetter> {
        let Some(first) = letters.iter().find(|read| is_missed(read)) else {
            return letters;
        };
        let delivery = &first.letter.dead.delivery;
        let key = book_key(&delivery.topic, &delivery.subscription);
        let mut book = match self.ask_book(until, self.book.stored_book()).await {
            Ok(book) => book,
            Err(error) => {
                let error = &*error as &dyn Error;
                tracing::warn!(
                    error,
                    "room for dead letters of disabled subscriptions not known"
                );
                return letters;
            }
        };
        let mut room = MissedRoom {
            bytes: book.room_for_missed(&key, self.bytes_max),
        };
        let (kept, skipped): (Vec<_>, Vec<_>) = letters
            .into_iter()
            .partition(|read| !is_missed(read) || room.take(read));
        if !skipped.is_empty() && book.note_skipped(&key) {
            Box::pin(self.note_skipped(&key, &skipped, until)).await;
        }
        Box::pin(self.skip_letters(skipped, until)).await;
        kept
    }

    /// Notes in the book that there is no room for a subscription, so that an operator is told. If
    /// that fails, it is noted with the next letter that is skipped.
    async fn note_skipped(&self, key: &str, skipped: &[LoadedLetter], until: Duration) {
        let change = self.book.change_book(|book| {
            book.note_skipped(key);
        });
        if let Err(error) = self.ask_book(until, change).await {
            let of = skipped.first().map(|read| &read.letter.dead.delivery);
            let topic = of.map(|of| tracing::field::display(&of.topic));
            let subscription = of.map(|of| tracing::field::display(&of.subscription));
            let error = &*error as &dyn Error;
            tracing::warn!(
                topic,
                subscription,
                error,
                "want of room for what a disabled subscription misses not noted"
            );
        }
    }

    /// Counts letters that were written. What cannot be counted leaves the bound too much room.
    /// A count that hangs leaves the time in which the letters are finished: they would be written
    /// again otherwise.
    pub(crate) async fn count_missed(&self, letters: &[LoadedLetter], deadline: Duration) {
        let missed: Vec<_> = letters.iter().filter(|read| is_missed(read)).collect();
        let Some(first) = missed.first() else {
            return;
        };
        let delivery = &first.letter.dead.delivery;
        let key = book_key(&delivery.topic, &delivery.subscription);
        let events: usize = missed.iter().map(|read| read.payloads.len()).sum();
        let bytes = missed.iter().map(|read| bytes_of(read)).sum();
        let max = self.bytes_max;
        let change = self
            .book
            .change_book(|book| book.add_missed(&key, events as u64, bytes, max));
        let until = deadline.saturating_sub(LEAVING_TIME);
        if let Err(error) = self.ask_book(until, change).await {
            let error = &*error as &dyn Error;
            tracing::warn!(
                events,
                bytes,
                error,
                "dead letters of a disabled subscription not counted"
            );
        }
    }

    /// Asks the book, within [`BOOK_TIME`] and before `until`.
    async fn ask_book<T>(
        &self,
        until: Duration,
        call: impl Future<Output = Result<T, HealthError>>,
    ) -> Result<T, Box<dyn Error + Send + Sync>> {
        let clock = &self.clock;
        let until = until.min(clock.monotonic() + BOOK_TIME);
        match timeout_at(clock, until, Box::pin(call)).await {
            Some(answer) => Ok(answer?),
            None => Err(PortError::new("get an answer in time", ErrorKind::TimedOut).into()),
        }
    }

    async fn skip_letters(&self, letters: Vec<LoadedLetter>, until: Duration) {
        let Some(first) = letters.first() else {
            return;
        };
        let delivery = &first.letter.dead.delivery;
        let events: usize = letters.iter().map(|read| read.payloads.len()).sum();
        let labels = [
            ("topic", delivery.topic.to_string()),
            ("subscription", delivery.subscription.to_string()),
        ];
        metrics::counter!("SkippedEventCount", &labels).increment(events as u64);
        tracing::warn!(
            topic = %delivery.topic, subscription = %delivery.subscription, events,
            "events skipped: dead letters of disabled subscriptions have no more room"
        );
        let skipped = RecordedChange {
            events: events_of(&letters),
            change: |_| EventChange::dropped(REASON.as_str()),
            object: None,
        };
        Box::pin(self.recorder.record_change(skipped, until)).await;
        for read in &letters {
            self.unwritten.forget_letter(&read.letter.dead);
            let letter = &read.letter;
            // What is left of it comes again, and is skipped again.
            self.settler
                .release_message(&letter.message, letter.unresolved.clone())
                .await;
        }
    }
}

/// Whether it has yet to be written, and is of an event that a disabled subscription misses.
fn is_missed(read: &LoadedLetter) -> bool {
    let dead = &read.letter.dead;
    dead.reason == REASON && !dead.asks_for_notices_only()
}

/// Bytes that it takes in an object.
fn bytes_of(read: &LoadedLetter) -> u64 {
    let LoadedLetter { letter, payloads } = read;
    let events = letter.dead.delivery.events.iter().zip(payloads);
    events
        .map(|(entry, payload)| dead_letter_record(&letter.dead, entry, payload).len() as u64)
        .sum()
}
