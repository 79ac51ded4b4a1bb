//! Notices about dropped events, sent before their message is deleted.

use std::sync::Arc;

use metrics::counter;
use posthaste_core::api::notice::{Failed, Notice};
use posthaste_core::attempt::EntryVerdict;
use posthaste_core::model::{DeadLetter, Entry, Payload};
use posthaste_ports::{Clock, Ports};
use posthaste_services::{Addressee, FanOut, NoticeError, Notifier, Registry, stop_at};

use crate::invocation::Invocation;
use crate::payloads::PayloadReader;

/// The way of notices: the fan-out that every event takes.
pub(crate) struct NoticePorts<P: Ports> {
    pub(crate) queue: Arc<P::Queue>,
    pub(crate) state: Arc<P::Store>,
    pub(crate) registry: Arc<Registry<P::Store, P::Clock>>,
    pub(crate) clock: P::Clock,
    pub(crate) entropy: P::Entropy,
}

/// Sends notices about dropped events.
pub(crate) struct DroppedNotices<P: Ports> {
    pub(crate) ports: Arc<NoticePorts<P>>,
    pub(crate) payloads: Arc<PayloadReader<P>>,
}

/// Reasons for which notices about dropped events were not sent.
#[derive(Debug, thiserror::Error)]
enum DroppedNoticeError {
    #[error("failed to tell of dropped events")]
    Notice(#[from] NoticeError),
    #[error("failed to read the payload of a dropped event")]
    Payload,
}

impl<P: Ports> NoticePorts<P> {
    pub(crate) fn notifier(&self) -> Notifier<'_, P::Queue, P::Store, P::Clock, P::Entropy> {
        let Self { queue, state, registry, clock, entropy } = self;
        Notifier { registry, fan_out: FanOut { deliveries: &**queue, payloads: &**state, clock, entropy } }
    }
}

impl<P: Ports> DroppedNotices<P> {
    /// Counts dropped events and sends notices about them. Answers whether the notices were sent in time, so
    /// that enough time is left for the queue.
    pub(crate) async fn drop_events(&self, invocation: &Invocation, letter: &DeadLetter) -> bool {
        report_dropped(letter);
        let end = invocation.deadlines.storing();
        let sent = stop_at(&self.ports.clock, end, self.send(invocation, letter)).await;
        if let Some(Err(error)) = &sent {
            tracing::error!(
                topic = %letter.delivery.topic, subscription = %letter.delivery.subscription,
                error = error as &dyn std::error::Error, "notices of dropped events not sent yet"
            );
        }
        matches!(sent, Some(Ok(())))
    }

    /// Sends the notices, except about events that are notices themselves. If the topic names no topic for
    /// notices, only the topic's record is read, which is known already.
    async fn send(&self, invocation: &Invocation, letter: &DeadLetter) -> Result<(), DroppedNoticeError> {
        let told_of = letter.delivery.events.iter().filter(|entry| !entry.marks.notice);
        let (inline, stored): (Vec<_>, Vec<_>) =
            told_of.partition(|entry| matches!(entry.payload, Payload::Inline(_)));
        if inline.is_empty() && stored.is_empty() {
            return Ok(());
        }
        let to = self.ports.notifier().addressee(&letter.delivery.topic).await?;
        if !to.is_named() {
            return Ok(());
        }
        for entry in stored {
            // One at a time and within the budget: a message may refer to a hundred megabytes.
            self.send_entries(invocation, letter, &to, &[entry]).await?;
        }
        self.send_entries(invocation, letter, &to, &inline).await
    }

    async fn send_entries(
        &self,
        invocation: &Invocation,
        letter: &DeadLetter,
        to: &Addressee,
        entries: &[&Entry],
    ) -> Result<(), DroppedNoticeError> {
        let at = self.ports.clock.now();
        let payloads: Vec<_> = entries.iter().map(|entry| &entry.payload).collect();
        let payloads = self.payloads.read(&payloads, invocation.deadlines.storing()).await;
        let mut notices = Vec::with_capacity(entries.len());
        for (entry, text) in entries.iter().zip(&payloads.texts) {
            let text = match text {
                Ok(text) => Some(text),
                Err(EntryVerdict::GiveUp { .. }) => None,
                Err(_) => return Err(DroppedNoticeError::Payload),
            };
            notices.push(Notice::Failed(Failed { letter, entry, text, object: None, at }));
        }
        Ok(self.ports.notifier().send(Some(&letter.delivery.topic), to, &notices).await?)
    }
}

/// Counts events that are dropped because their subscription does not keep dead letters like them.
fn report_dropped(letter: &DeadLetter) {
    let (delivery, reason, events) = (&letter.delivery, letter.reason, letter.delivery.events.len());
    let labels = [
        ("topic", delivery.topic.to_string()),
        ("subscription", delivery.subscription.to_string()),
        ("reason", format!("{reason:?}")),
    ];
    counter!("DroppedEventCount", &labels).increment(events as u64);
    tracing::warn!(
        topic = %delivery.topic, subscription = %delivery.subscription, ?reason, events, "events dropped"
    );
}
