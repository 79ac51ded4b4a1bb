//! The last steps for letters that are written or dropped: the notices, then the end of their
//! messages.
//!
//! Notices that cannot be sent yet leave a fresh message in the dead-letter queue that names the
//! object, so that only the notices are made the next time (deliver leaves the same for events it
//! drops). Each retry waits longer, and in the end the notices are given up. Where that message
//! cannot be sent either, the letters come again, and the events are written into a second object:
//! at least once.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::ready;
use futures_util::stream::{self, StreamExt};
use posthaste_core::api::notice::{LetterFate, notice_retry_letter};
use posthaste_core::model::{DeadLetter, Timestamp};
use posthaste_core::stored::dead_letter_message::render_dead_letter;
use posthaste_ports::{
    Clock, MessageId, OutgoingMessage, PortError, Ports, QueueName, ReceivedMessage, Successor,
};
use posthaste_services::notifier::count_not_sent;

use crate::deadlines::{LEAVING_TIME, in_time};
use crate::letter::{LoadedLetter, ReceivedLetter};
use crate::notices::{LetterNotices, noticed_events};
use crate::settle::{MessageSettler, PUT_OFF_AT_ONCE_MAX, resolved_successors};

/// Finishes letters.
pub(crate) struct LetterFinisher<P: Ports> {
    pub(crate) clock: P::Clock,
    pub(crate) notices: Arc<LetterNotices<P>>,
    pub(crate) settler: Arc<MessageSettler<P>>,
}

impl<P: Ports> LetterFinisher<P> {
    /// Finishes letters, or leaves messages for what is still to be done about them.
    pub(crate) async fn finish_or_defer(
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

    /// Finishes letters of one subscription whose events had this fate: sends the notices, then
    /// acknowledges. Returns the messages for which that failed, which come again as they are.
    async fn finish_letters(
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
        let sending = async { Ok(Box::pin(self.notices.send_notices(&letters, object)).await) };
        let sent = in_time(&self.clock, end, sending).await;
        let error: Box<dyn Error + Send + Sync> = match sent {
            Ok(Ok(())) => {
                let mut failed = Vec::new();
                for LoadedLetter { letter, .. } in letters {
                    let released = self
                        .settler
                        .release_message(&letter.message, letter.unresolved);
                    failed.extend(released.await);
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

    /// Leaves a message for each letter, side by side, that asks for the notices only, and for the
    /// mark of an outage that could not be written; none for a letter of which that was retried for
    /// long enough. Another one names letters that could not be resolved.
    async fn send_later(
        &self,
        letters: Vec<LoadedLetter>,
        fate: LetterFate<'_>,
        deadline: Duration,
    ) -> Vec<MessageId> {
        let now = self.clock.now();
        let later = letters
            .into_iter()
            .map(|read| self.send_one_later(read.letter, fate, now, deadline));
        stream::iter(later)
            .buffer_unordered(PUT_OFF_AT_ONCE_MAX)
            .filter_map(ready)
            .collect()
            .await
    }

    async fn send_one_later(
        &self,
        letter: ReceivedLetter,
        fate: LetterFate<'_>,
        now: Timestamp,
        deadline: Duration,
    ) -> Option<MessageId> {
        let ReceivedLetter {
            message,
            dead,
            unresolved,
        } = letter;
        let ReceivedMessage { receipt, id, .. } = message;
        let mut successors = resolved_successors(unresolved);
        successors.extend(notices_later(dead, fate, now));
        let replaced = self.settler.replace_in_time(&receipt, successors, deadline);
        let error: PortError = replaced.await.err()?;
        tracing::error!(
            message_id = %id.0, error = &error as &dyn Error,
            "written dead letter left to its visibility timeout"
        );
        Some(id)
    }
}

/// The successor of a letter whose notices could not be sent: none for a letter that has no notices
/// and is not to be counted in an outage.
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
