//! Notices about events that were given up: told once what became of them is durable, before their messages are
//! acknowledged.
//!
//! Notices that cannot be written yet leave a fresh message in the dead-letter queue that remembers the object, so that
//! the next time only the notices are made (deliver leaves the same for what it drops). They are asked for rarer each
//! time, and given up in the end. Where that message cannot be sent either, the whole comes again, and the events are
//! written into a second object: at least once.

use std::time::Duration;

use futures_util::future::ready;
use futures_util::stream::{self, StreamExt};
use posthaste_core::api::notice::{Failed, Fate, Notice, later};
use posthaste_core::model::delivery::Delivery;
use posthaste_core::model::time::Timestamp;
use posthaste_core::stored::dead_letter_message::render_dead_letter;
use posthaste_ports::{
    Clock, Entropy, MessageId, ObjectStore, OutgoingMessage, PortError, QueueName, QueueReceiver,
    QueueSender, Successor,
};
use posthaste_services::notifier::not_sent;
use posthaste_services::{FanOut, NoticeError, Notifier};

use crate::read::ReadLetter;
use crate::write::PUT_OFF_AT_ONCE_MAX;
use crate::{DeadLetterPorts, DeadLetters, Letter};

/// What is kept of the time for leaving such messages: telling may hang, and must not cost a second object.
const LEAVING_TIME: Duration = Duration::from_secs(10);

impl<Q, S, D, C, E> DeadLetters<Q, S, D, C, E>
where
    Q: QueueReceiver + QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Ends letters of one subscription whose events had this fate: tells of them, then acknowledges them. Answers those
    /// for which that failed and that come again as they are.
    pub(crate) async fn end_written(
        &self,
        letters: Vec<ReadLetter>,
        fate: Fate<'_>,
        deadline: Duration,
    ) -> Vec<MessageId> {
        let object = match fate {
            Fate::Written(object) => Some(object),
            Fate::Dropped => None,
        };
        let end = deadline.saturating_sub(LEAVING_TIME);
        let told = self.in_time(end, async { Ok(Box::pin(self.tell(&letters, object)).await) }).await;
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
        tracing::error!(
            object,
            letters = letters.len(),
            error = &*error as &dyn std::error::Error,
            "notices not sent yet"
        );
        self.tell_later(letters, fate, deadline).await
    }

    /// Tells of the events of letters of one subscription. There is no notice about a notice.
    pub(crate) async fn tell(&self, letters: &[ReadLetter], object: Option<&str>) -> Result<(), NoticeError> {
        let Some(about) = letters.first().map(|read| &read.letter.dead.delivery.topic) else { return Ok(()) };
        let notices = self.notices(letters, object);
        if notices.is_empty() {
            return Ok(());
        }
        let DeadLetterPorts { deliveries, state: payloads, registry, clock, entropy, .. } = &self.ports;
        let fan_out = FanOut { deliveries, payloads, clock, entropy };
        Notifier { registry, fan_out }.tell(about, &notices).await
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

    /// Leaves a message of its own for each letter, side by side, that asks for the notices only; nothing for one whose
    /// notices were asked for long enough.
    async fn tell_later(
        &self,
        letters: Vec<ReadLetter>,
        fate: Fate<'_>,
        deadline: Duration,
    ) -> Vec<MessageId> {
        let now = self.ports.clock.now();
        let later = letters.into_iter().map(|read| async move {
            let (receipt, id) = (read.letter.message.receipt.clone(), read.letter.message.id.clone());
            let replaced = self.ports.queue.replace(&receipt, notices_later(read.letter, fate, now));
            let error: PortError = self.in_time(deadline, replaced).await.err()?;
            tracing::error!(message_id = %id.0, error = &error as &dyn std::error::Error, "written dead letter left to its visibility timeout");
            Some(id)
        });
        stream::iter(later).buffer_unordered(PUT_OFF_AT_ONCE_MAX).filter_map(ready).collect().await
    }
}

/// What follows a letter whose notices could not be told: at most one message.
fn notices_later(letter: Letter, fate: Fate<'_>, now: Timestamp) -> Vec<Successor> {
    let events = told_of(&letter.dead.delivery);
    let topic = letter.dead.delivery.topic.clone();
    let Some((dead, delay_secs)) = later(letter.dead, fate, now) else {
        not_sent(&topic, events);
        tracing::error!(%topic, notices = events, "notices not sent: they were tried for long enough");
        return Vec::new();
    };
    let (body, group) = (render_dead_letter(&dead), Some(dead.delivery.group()));
    vec![Successor { to: QueueName::DeadLetters, message: OutgoingMessage { body, group, delay_secs } }]
}

/// How many of a delivery's events are told of.
fn told_of(delivery: &Delivery) -> usize {
    delivery.events.iter().filter(|entry| !entry.marks.notice).count()
}
