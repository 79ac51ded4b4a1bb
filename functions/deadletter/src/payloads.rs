//! Payloads of letters that were stored once: loaded side by side, a few at a time, until the time
//! is over.

use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use posthaste_core::model::EventPayload;
use posthaste_ports::{
    Clock, ErrorKind, MessageId, ObjectStore, PortError, Ports, QueueName, ReceivedMessage,
};
use posthaste_services::catch_panic::catch_panic;
use posthaste_services::timeout_at;

use crate::letter::{LoadedLetter, ReceivedLetter};
use crate::receive::is_kept_after_panic;
use crate::unreadable::is_kept_unread;

/// Payloads of one object that are read side by side.
pub(crate) const READS_PER_OBJECT_MAX: usize = 8;

/// Loads payloads.
pub(crate) struct PayloadLoader<P: Ports> {
    /// The state bucket, for payloads that were stored once.
    pub(crate) state: Arc<P::Store>,
    pub(crate) clock: P::Clock,
    /// The queue that is emptied.
    pub(crate) source: QueueName,
}

/// The letters of one object, with their payloads as far as those could be loaded.
#[derive(Debug, Default)]
pub(crate) struct LoadedObjectLetters {
    /// To be written.
    pub(crate) letters: Vec<LoadedLetter>,
    /// To be kept byte for byte.
    pub(crate) raw: Vec<ReceivedMessage>,
    /// To come again.
    pub(crate) failures: Vec<MessageId>,
}

/// The payloads of one letter so far.
#[derive(Debug)]
struct LetterPayloads {
    /// By event; `None` is not loaded yet.
    payloads: Vec<Option<Bytes>>,
    failure: Option<PayloadFailure>,
}

/// Reasons for which a payload is not loaded.
#[derive(Debug)]
enum PayloadFailure {
    /// The payload is gone, or is not what was stored: it cannot be shown any more.
    Gone,
    Failed(PortError),
    Panicked,
}

impl LetterPayloads {
    /// Nothing of the letter is loaded yet.
    fn not_loaded(letter: &ReceivedLetter) -> Self {
        Self {
            payloads: vec![None; letter.dead.delivery.events.len()],
            failure: None,
        }
    }

    fn note_payload(&mut self, event: usize, payload: Result<Bytes, PayloadFailure>) {
        match payload {
            Ok(payload) => self.payloads[event] = Some(payload),
            Err(failure) => self.failure = self.failure.take().or(Some(failure)),
        }
    }
}

impl<P: Ports> PayloadLoader<P> {
    pub(crate) fn new(state: Arc<P::Store>, clock: P::Clock, source: QueueName) -> Self {
        Self {
            state,
            clock,
            source,
        }
    }

    /// Loads the payloads of one object. Reads begin in order, so that when the time is over the
    /// first letters are whole and can be written: however slow the bucket is, some letters are
    /// finished every time.
    pub(crate) async fn load_payloads(
        &self,
        letters: Vec<ReceivedLetter>,
        until: Duration,
    ) -> LoadedObjectLetters {
        let mut progress: Vec<_> = letters.iter().map(LetterPayloads::not_loaded).collect();
        self.read_payloads(&letters, &mut progress, until).await;
        let mut loaded = LoadedObjectLetters::default();
        for (letter, progress) in letters.into_iter().zip(progress) {
            self.judge_letter(&mut loaded, letter, progress);
        }
        loaded
    }

    async fn read_payloads(
        &self,
        letters: &[ReceivedLetter],
        progress: &mut [LetterPayloads],
        until: Duration,
    ) {
        // Numbers and not references: the compiler cannot tell that a stream of closures over
        // references may be sent.
        let events = letters.iter().enumerate().flat_map(|(index, letter)| {
            (0..letter.dead.delivery.events.len()).map(move |event| (index, event))
        });
        let events: Vec<_> = events.collect();
        let reads = events.into_iter().map(|(index, event)| async move {
            let entry = &letters[index].dead.delivery.events[event];
            let payload = catch_panic(self.read_payload(&entry.payload)).await;
            (
                index,
                event,
                payload.unwrap_or(Err(PayloadFailure::Panicked)),
            )
        });
        let mut payloads = pin!(stream::iter(reads).buffer_unordered(READS_PER_OBJECT_MAX));
        let all = async {
            while let Some((index, event, payload)) = payloads.next().await {
                progress[index].note_payload(event, payload);
            }
        };
        // A letter that is not whole by then was not read in time.
        let _ = timeout_at(&self.clock, until, all).await;
    }

    async fn read_payload(&self, payload: &EventPayload) -> Result<Bytes, PayloadFailure> {
        let key = match payload {
            EventPayload::Inline(json) => return Ok(json.clone()),
            EventPayload::Stored { key, .. } => key,
        };
        match self.state.get(key).await {
            Ok(Some(object)) if payload.matches_text(&object.bytes) => Ok(object.bytes),
            Ok(Some(_)) => {
                tracing::error!(%key, "payload of a dead letter is not what was stored");
                Err(PayloadFailure::Gone)
            }
            Ok(None) => Err(PayloadFailure::Gone),
            Err(error) => Err(PayloadFailure::Failed(error)),
        }
    }

    fn judge_letter(
        &self,
        loaded: &mut LoadedObjectLetters,
        letter: ReceivedLetter,
        progress: LetterPayloads,
    ) {
        match progress.failure {
            None => {
                let Some(payloads) = progress.payloads.into_iter().collect() else {
                    let operation = "read the payloads of a dead letter in time";
                    let late = PortError::new(operation, ErrorKind::TimedOut);
                    return self.judge_unreadable(loaded, letter.message, &late);
                };
                loaded.letters.push(LoadedLetter { letter, payloads });
            }
            Some(PayloadFailure::Failed(error)) => {
                self.judge_unreadable(loaded, letter.message, &error);
            }
            // An event whose payload is gone or altered cannot be shown, so its message is kept as
            // it is.
            Some(PayloadFailure::Gone) => loaded.raw.push(letter.message),
            Some(PayloadFailure::Panicked) if is_kept_after_panic(self.source, &letter.message) => {
                loaded.raw.push(letter.message);
            }
            Some(PayloadFailure::Panicked) => loaded.failures.push(letter.message.id),
        }
    }

    fn judge_unreadable(
        &self,
        loaded: &mut LoadedObjectLetters,
        message: ReceivedMessage,
        error: &PortError,
    ) {
        let error = error as &dyn Error;
        tracing::error!(message_id = %message.id.0, error, "payload of a dead letter not readable");
        if is_kept_unread(self.source, message.sent_at, self.clock.now()) {
            loaded.raw.push(message);
        } else {
            loaded.failures.push(message.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{MemoryPorts, clock, deadline, finish, letter, port, stored};
    use posthaste_testkit::memory::MemoryStore;
    use posthaste_testkit::{CallFault, FaultPlan};

    /// Loads a letter of an inline event, one of a stored event, and one whose payload is gone.
    fn load(plan: &FaultPlan) -> LoadedObjectLetters {
        let store = MemoryStore::like_s3(7);
        store.write("payloads/there", "{}");
        let loader: PayloadLoader<MemoryPorts> = PayloadLoader {
            state: port(&store, plan),
            clock: clock(),
            source: QueueName::DeadLetters,
        };
        let letters = vec![
            letter(
                "inline",
                vec![EventPayload::Inline(Bytes::from_static(b"{}"))],
            ),
            letter("stored", vec![stored("payloads/there", 2)]),
            letter("gone", vec![stored("payloads/gone", 2)]),
        ];
        finish(loader.load_payloads(letters, deadline()))
    }

    #[test]
    fn letter_whose_payload_is_gone_is_kept_as_it_is() {
        let loaded = load(&FaultPlan::none());
        let ids = loaded.letters.iter().map(|it| &*it.letter.message.id.0);
        assert_eq!(ids.collect::<Vec<_>>(), ["inline", "stored"]);
        assert!(loaded.letters.iter().all(|it| it.payloads == ["{}"]));
        assert_eq!(&*loaded.raw[0].id.0, "gone");
        assert_eq!(loaded.failures, []);
    }

    #[test]
    fn letters_whose_payloads_cannot_be_read_come_again() {
        let plan = FaultPlan::by(|_| Some(CallFault::Before(ErrorKind::Other)));
        let loaded = load(&plan);
        assert_eq!(loaded.letters.len(), 1);
        assert!(loaded.raw.is_empty());
        let ids = loaded.failures.iter().map(|id| &*id.0);
        assert_eq!(ids.collect::<Vec<_>>(), ["stored", "gone"]);
    }
}
