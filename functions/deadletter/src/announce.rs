//! Notices about events that were given up: told once what became of them is durable, before their messages are
//! acknowledged.
//!
//! Notices that cannot be written yet leave a fresh message in the dead-letter queue that remembers the object, so that
//! the next time only the notices are made. Where that message cannot be sent either, the whole comes again, and the
//! events are written into a second object: at least once.

use std::time::Duration;

use futures_util::future::ready;
use futures_util::stream::{self, StreamExt};
use posthaste_core::delivery::DeadLetter;
use posthaste_core::notice::{Failed, Notice};
use posthaste_core::wire::render_dead_letter;
use posthaste_ports::{
    Clock, Entropy, FanOut, MessageId, NoticeError, Notifier, ObjectStore, OutgoingMessage, PortError,
    QueueName, QueueReceiver, QueueSender, Successor,
};

use crate::read::ReadLetter;
use crate::write::PUT_OFF_AT_ONCE_MAX;
use crate::{DeadLetters, Letter};

/// The wait after which notices are tried again, in seconds.
const AGAIN_SECS: u16 = 60;

impl<Q, S, D, C, E> DeadLetters<Q, S, D, C, E>
where
    Q: QueueReceiver + QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Ends letters of one subscription that lie in this object: tells of them, then acknowledges them. Answers those
    /// for which that failed and that come again as they are.
    pub(crate) async fn end_written(
        &self,
        letters: Vec<ReadLetter>,
        object: &str,
        deadline: Duration,
    ) -> Vec<MessageId> {
        let told = self.in_time(deadline, async { Ok(self.tell(&letters, Some(object)).await) }).await;
        let error: Box<dyn std::error::Error + Send + Sync> = match told {
            Ok(Ok(())) => {
                for ReadLetter { letter, .. } in &letters {
                    self.acknowledge(&letter.message).await;
                }
                return Vec::new();
            }
            Ok(Err(error)) => error.into(),
            Err(error) => error.into(),
        };
        tracing::error!(%object, letters = letters.len(), error = &*error as &dyn std::error::Error, "notices not sent yet");
        self.tell_later(letters, object, deadline).await
    }

    /// Tells of the events of letters of one subscription. There is no notice about a notice.
    pub(crate) async fn tell(&self, letters: &[ReadLetter], object: Option<&str>) -> Result<(), NoticeError> {
        let Some(about) = letters.first().map(|read| &read.letter.dead.delivery.topic) else { return Ok(()) };
        let notices = self.notices(letters, object);
        if notices.is_empty() {
            return Ok(());
        }
        let ports = &self.ports;
        let fan_out = FanOut {
            deliveries: &ports.deliveries,
            payloads: &ports.state,
            clock: &ports.clock,
            entropy: &ports.entropy,
        };
        Notifier { registry: &ports.registry, fan_out }.tell(about, &notices).await
    }

    fn notices<'a>(&self, letters: &'a [ReadLetter], object: Option<&'a str>) -> Vec<Notice<'a>> {
        let at = self.ports.clock.now();
        let of_letter = |read: &'a ReadLetter| {
            let letter = &read.letter.dead;
            let events = letter.delivery.events.iter().zip(&read.texts);
            events.filter(|(entry, _)| !entry.marks.notice).map(move |(entry, text)| {
                Notice::Failed(Failed { letter, entry, text: Some(text), object, at })
            })
        };
        letters.iter().flat_map(of_letter).collect()
    }

    /// Leaves a message of its own for each letter, side by side, that asks for the notices only.
    async fn tell_later(&self, letters: Vec<ReadLetter>, object: &str, deadline: Duration) -> Vec<MessageId> {
        let later = letters.into_iter().map(|read| async move {
            let (receipt, id) = (read.letter.message.receipt.clone(), read.letter.message.id.clone());
            let replaced = self.ports.queue.replace(&receipt, vec![notice_only(read.letter, object)]);
            let error: PortError = self.in_time(deadline, replaced).await.err()?;
            tracing::error!(message_id = %id.0, error = &error as &dyn std::error::Error, "written dead letter left to its visibility timeout");
            Some(id)
        });
        stream::iter(later).buffer_unordered(PUT_OFF_AT_ONCE_MAX).filter_map(ready).collect().await
    }
}

fn notice_only(letter: Letter, object: &str) -> Successor {
    let letter = DeadLetter { object: Some(object.to_owned()), ..letter.dead };
    let message = OutgoingMessage {
        body: render_dead_letter(&letter),
        group: Some(letter.delivery.group()),
        delay_secs: AGAIN_SECS,
    };
    Successor { to: QueueName::DeadLetters, message }
}
