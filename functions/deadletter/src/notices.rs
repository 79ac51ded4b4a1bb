//! Notices of events that were given up. They are sent once the events are durable, before the
//! messages are acknowledged.
//!
//! Events that a disabled subscription misses have none: `subscription.disabled` and
//! `subscription.skipping` say it once for all.

use std::sync::Arc;

use posthaste_core::api::notice::{DeliveryFailedNotice, Notice};
use posthaste_core::model::{DeadLetter, DeadLetterReason, DeliveryEntry};
use posthaste_ports::{Clock, Ports};
use posthaste_services::{FanOut, NoticeError, Notifier, TopicRegistry};

use crate::letter::LoadedLetter;

/// Sends notices the way that every event takes.
pub(crate) struct LetterNotices<P: Ports> {
    /// The delivery queue.
    pub(crate) deliveries: P::Queue,
    /// The state bucket, for payloads.
    pub(crate) state: Arc<P::Store>,
    /// Topics, which name the one that gets notices.
    pub(crate) registry: Arc<TopicRegistry<P::Store, P::Clock>>,
    pub(crate) clock: P::Clock,
    pub(crate) entropy: P::Entropy,
}

impl<P: Ports> LetterNotices<P> {
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
        let Self {
            deliveries,
            state,
            registry,
            clock,
            entropy,
        } = self;
        let fan_out = FanOut {
            deliveries,
            slow: None,
            payloads: &**state,
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
        let at = self.clock.now();
        let mut notices = Vec::new();
        for read in letters {
            let letter = &read.letter.dead;
            let events = letter.delivery.events.iter().zip(&read.payloads);
            let worth_telling = events.filter(|(entry, _)| has_notice(letter, entry));
            notices.extend(worth_telling.map(|(entry, text)| {
                Notice::Failed(DeliveryFailedNotice {
                    letter,
                    entry,
                    text: Some(text),
                    object,
                    at,
                })
            }));
        }
        notices
    }
}

/// The number of a letter's events that have notices.
pub(crate) fn noticed_events(letter: &DeadLetter) -> usize {
    let events = letter.delivery.events.iter();
    events.filter(|entry| has_notice(letter, entry)).count()
}

/// Whether an event of a letter has a notice.
fn has_notice(letter: &DeadLetter, entry: &DeliveryEntry) -> bool {
    !entry.marks.notice && letter.reason != DeadLetterReason::SubscriptionDisabled
}
