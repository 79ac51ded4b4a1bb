//! Payloads of letters that were stored once: read side by side, a few at a time, until the time is over.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use posthaste_core::model::payload::Payload;
use posthaste_ports::{
    Clock, Entropy, ErrorKind, MessageId, ObjectStore, PortError, QueueReceiver, QueueSender, ReceivedMessage,
};
use posthaste_services::catch_panic::catch_panic;
use posthaste_services::timeout_at;

use crate::intake::is_kept_after_panic;
use crate::unreadable::{Unreadable, unreadable};
use crate::{DeadLetters, Letter};

/// Payloads of one object that are read side by side.
pub(crate) const READS_PER_OBJECT_MAX: usize = 8;

/// A letter with its events' texts.
#[derive(Debug)]
pub(crate) struct ReadLetter {
    pub(crate) letter: Letter,
    pub(crate) texts: Vec<Bytes>,
}

/// What the letters of one object became.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    /// To be written.
    pub(crate) letters: Vec<ReadLetter>,
    /// To be kept byte for byte.
    pub(crate) raw: Vec<ReceivedMessage>,
    /// To come again.
    pub(crate) failures: Vec<MessageId>,
}

/// What has been read of one letter.
#[derive(Debug)]
struct Reading {
    /// By event; `None` is not read yet.
    texts: Vec<Option<Bytes>>,
    trouble: Option<Trouble>,
}

/// Why a payload was not read.
#[derive(Debug)]
enum Trouble {
    /// It is gone, or is not what was stored: it cannot be shown any more.
    Gone,
    Failed(PortError),
    Panicked,
}

impl Reading {
    fn of(letter: &Letter) -> Self {
        Self { texts: vec![None; letter.dead.delivery.events.len()], trouble: None }
    }
}

fn late() -> PortError {
    PortError::new("read the payloads of a dead letter in time", ErrorKind::TimedOut)
}

impl<Q, S, D, C, E> DeadLetters<Q, S, D, C, E>
where
    Q: QueueReceiver + QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Reads the letters of one object. Reads begin in order, so that when the time is over the first letters are whole
    /// and can be written: however slow the bucket is, an object's letters are never all begun and none finished for
    /// ever.
    pub(crate) async fn read_letters(&self, letters: Vec<Letter>, until: Duration) -> Readings {
        let mut readings: Vec<Reading> = letters.iter().map(Reading::of).collect();
        self.read_texts(&letters, &mut readings, until).await;
        let mut answer = Readings::default();
        for (letter, reading) in letters.into_iter().zip(readings) {
            self.judge(&mut answer, letter, reading);
        }
        answer
    }

    async fn read_texts(&self, letters: &[Letter], readings: &mut [Reading], until: Duration) {
        // Numbers and not references: the compiler cannot tell that a stream of closures over those may be sent.
        let count = |letter: &Letter| letter.dead.delivery.events.len();
        let events = letters
            .iter()
            .enumerate()
            .flat_map(|(index, letter)| (0..count(letter)).map(move |e| (index, e)));
        let events: Vec<(usize, usize)> = events.collect();
        let reads = events.into_iter().map(|(index, event)| async move {
            let entry = &letters[index].dead.delivery.events[event];
            let text = catch_panic(self.text(&entry.payload)).await;
            (index, event, text.unwrap_or(Err(Trouble::Panicked)))
        });
        let mut texts = pin!(stream::iter(reads).buffer_unordered(READS_PER_OBJECT_MAX));
        let read = async {
            while let Some((index, event, text)) = texts.next().await {
                let reading = &mut readings[index];
                match text {
                    Ok(text) => reading.texts[event] = Some(text),
                    Err(trouble) => reading.trouble = reading.trouble.take().or(Some(trouble)),
                }
            }
        };
        timeout_at(&self.ports.clock, until, read).await;
    }

    async fn text(&self, payload: &Payload) -> Result<Bytes, Trouble> {
        let key = match payload {
            Payload::Inline(json) => return Ok(json.clone()),
            Payload::Stored { key, .. } => key,
        };
        match self.ports.state.get(key).await {
            Ok(Some(object)) if payload.is(&object.bytes) => Ok(object.bytes),
            Ok(Some(_)) => {
                tracing::error!(%key, "payload of a dead letter is not what was stored");
                Err(Trouble::Gone)
            }
            Ok(None) => Err(Trouble::Gone),
            Err(error) => Err(Trouble::Failed(error)),
        }
    }

    fn judge(&self, answer: &mut Readings, letter: Letter, reading: Reading) {
        let Reading { texts, trouble } = reading;
        match trouble {
            None => match texts.into_iter().collect() {
                Some(texts) => answer.letters.push(ReadLetter { letter, texts }),
                None => self.judge_unreadable(answer, letter.message, &late()),
            },
            Some(Trouble::Failed(error)) => self.judge_unreadable(answer, letter.message, &error),
            // An event whose payload is gone or altered cannot be shown; what is known of it is kept as it is.
            Some(Trouble::Gone) => answer.raw.push(letter.message),
            Some(Trouble::Panicked) if is_kept_after_panic(self.ports.source, &letter.message) => {
                answer.raw.push(letter.message);
            }
            Some(Trouble::Panicked) => answer.failures.push(letter.message.id),
        }
    }

    fn judge_unreadable(&self, answer: &mut Readings, message: ReceivedMessage, error: &PortError) {
        tracing::error!(message_id = %message.id.0, error = error as &dyn std::error::Error, "payload of a dead letter not readable");
        match unreadable(self.ports.source, message.sent_at, self.ports.clock.now()) {
            Unreadable::HandBack => answer.failures.push(message.id),
            Unreadable::KeepAsItIs => answer.raw.push(message),
        }
    }
}
