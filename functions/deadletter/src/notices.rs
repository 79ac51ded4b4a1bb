//! Notices of events that were given up. They are sent once the events are durable, before the
//! messages are acknowledged.
//!
//! Notices that cannot be sent yet leave a fresh message in the dead-letter queue that names the
//! object, so that only the notices are made the next time (deliver leaves the same for events it
//! drops). Each retry waits longer, and in the end the notices are given up. Where that message
//! cannot be sent either, the letters come again, and the events are written into a second object:
//! at least once.
//!
//! What a disabled subscription misses has none: `subscription.disabled` and
//! `subscription.skipping` say it once for all.

use std::error::Error;
use std::time::Duration;

use futures_util::future::ready;
use futures_util::stream::{self, StreamExt};
use posthaste_core::api::notice::{DeliveryFailedNotice, LetterFate, Notice, notice_retry_letter};
use posthaste_core::model::{DeadLetter, DeadLetterReason, DeliveryEntry, Timestamp};
use posthaste_core::stored::dead_letter_message::render_dead_letter;
use posthaste_ports::{
    Clock, MessageId, OutgoingMessage, PortError, Ports, QueueName, QueueReceiver, ReceivedMessage,
    Successor,
};
use posthaste_services::notifier::count_not_sent;
use posthaste_services::{FanOut, NoticeError, Notifier};

use crate::dead_letters::{DeadLetterPorts, DeadLetters, LEAVING_TIME, PUT_OFF_AT_ONCE_MAX};
use crate::letter::{LoadedLetter, ReceivedLetter};
use crate::resolved::resolved_successors;

impl<P: Ports> DeadLetters<P> {
    /// Finishes letters of one subscription whose events had this fate: sends the notices, then
    /// acknowledges. Answers the messages for which that failed, which come again as they are.
    pub(crate) async fn finish_letters(
        &self,
        letters: Vec<LoadedLetter>,
        fate: LetterFate<'_>,
        deadline: Duration,
    ) -> Vec<MessageId> {
        let object = match fate {
            LetterFate::Written(object) => Some(object),
            LetterFate::Dropped => None,
        };
        let end = deadline.saturating_sub(LEAVING_TIME);
        let sent = self
            .in_time(end, async {
                Ok(Box::pin(self.send_notices(&letters, object)).await)
            })
            .await;
        let error: Box<dyn Error + Send + Sync> = match sent {
            Ok(Ok(())) => {
                let mut failed = Vec::new();
                for LoadedLetter { letter, .. } in letters {
                    failed.extend(
                        self.release_message(&letter.message, letter.unresolved)
                            .await,
                    );
                }
                return failed;
            }
            Ok(Err(error)) => error.into(),
            Err(error) => error.into(),
        };
        tracing::error!(
            key = object,
            letters = letters.len(),
            error = &*error as &dyn Error,
            "notices not sent yet"
        );
        self.send_later(letters, fate, deadline).await
    }

    /// Sends notices of the events of letters of one subscription. There is no notice about a
    /// notice.
    pub(crate) async fn send_notices(
        &self,
        letters: &[LoadedLetter],
        object: Option<&str>,
    ) -> Result<(), NoticeError> {
        let Some(about) = letters.first().map(|read| &read.letter.dead.delivery.topic) else {
            return Ok(());
        };
        let notices = self.make_notices(letters, object);
        if notices.is_empty() {
            return Ok(());
        }
        let DeadLetterPorts {
            deliveries,
            state: payloads,
            registry,
            clock,
            entropy,
            ..
        } = &self.ports;
        let fan_out = FanOut {
            deliveries,
            slow: None,
            payloads,
            clock,
            entropy,
        };
        Notifier { registry, fan_out }
            .send_about_topic(about, &notices)
            .await
    }

    fn make_notices<'a>(
        &self,
        letters: &'a [LoadedLetter],
        object: Option<&'a str>,
    ) -> Vec<Notice<'a>> {
        let at = self.ports.clock.now();
        let of_letter = |read: &'a LoadedLetter| {
            let letter = &read.letter.dead;
            let events = letter.delivery.events.iter().zip(&read.payloads);
            events
                .filter(|(entry, _)| has_notice(letter, entry))
                .map(move |(entry, text)| {
                    Notice::Failed(DeliveryFailedNotice {
                        letter,
                        entry,
                        text: Some(text),
                        object,
                        at,
                    })
                })
        };
        letters.iter().flat_map(of_letter).collect()
    }

    /// Leaves a message for each letter, side by side, that asks for the notices only, and for the
    /// mark of an outage that could not be written; none for a letter of which that was retried for
    /// long enough. Another one names letters that could not be resolved.
    pub(crate) async fn send_later(
        &self,
        letters: Vec<LoadedLetter>,
        fate: LetterFate<'_>,
        deadline: Duration,
    ) -> Vec<MessageId> {
        let now = self.ports.clock.now();
        let later = letters.into_iter().map(|read| async move {
            let ReceivedLetter {
                message,
                dead,
                unresolved,
            } = read.letter;
            let ReceivedMessage { receipt, id, .. } = message;
            let mut successors = resolved_successors(unresolved);
            successors.extend(notices_later(dead, fate, now));
            let replaced = self.ports.queue.replace(&receipt, successors);
            let error: PortError = self.in_time(deadline, replaced).await.err()?;
            tracing::error!(
                message_id = %id.0, error = &error as &dyn Error,
                "written dead letter left to its visibility timeout"
            );
            Some(id)
        });
        stream::iter(later)
            .buffer_unordered(PUT_OFF_AT_ONCE_MAX)
            .filter_map(ready)
            .collect()
            .await
    }
}

/// The successor of a letter whose notices could not be sent: none for a letter that has no notices and is not to be counted in an outage.
fn notices_later(letter: DeadLetter, fate: LetterFate<'_>, now: Timestamp) -> Option<Successor> {
    let events = noticed_events(&letter);
    if events == 0 && letter.outage_since.is_none() {
        return None;
    }
    let topic = letter.delivery.topic.clone();
    let Some((dead, delay)) = notice_retry_letter(letter, fate, now) else {
        count_not_sent(Some(&topic), events);
        tracing::error!(%topic, notices = events, "notices not sent: they were tried for long enough");
        return None;
    };
    let body = render_dead_letter(&dead);
    let group = Some(dead.delivery.message_group_id());
    Some(Successor {
        to: QueueName::DeadLetters,
        message: OutgoingMessage { body, group, delay },
    })
}

/// The number of a letter's events that have notices.
fn noticed_events(letter: &DeadLetter) -> usize {
    let events = letter.delivery.events.iter();
    events.filter(|entry| has_notice(letter, entry)).count()
}

/// Whether an event of a letter has a notice.
fn has_notice(letter: &DeadLetter, entry: &DeliveryEntry) -> bool {
    !entry.marks.notice && letter.reason != DeadLetterReason::SubscriptionDisabled
}
