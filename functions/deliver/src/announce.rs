//! Notices that deliver makes: about events it drops, told before their message is deleted, and about a subscription
//! that it disabled.

use posthaste_core::api::notice::{Disabled, Failed, Notice};
use posthaste_core::attempt::settle::EntryVerdict;
use posthaste_core::model::delivery::{DeadLetter, Entry};
use posthaste_core::model::payload::Payload;
use posthaste_core::model::time::Timestamp;
use posthaste_core::model::topic::Subscription;
use posthaste_ports::{Clock, Ports};
use posthaste_services::{Addressee, FanOut, NoticeError, Notifier};

use crate::invocation::Invocation;
use crate::{Deliver, DeliverPorts};

/// Why dropped events were not told of.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnnounceError {
    #[error("failed to tell of dropped events")]
    Notice(#[from] NoticeError),
    #[error("failed to read the payload of a dropped event")]
    Payload,
}

impl<P: Ports> Deliver<P> {
    /// Tells of events that are dropped, and answers whether that was done, in a time that leaves enough for the queue.
    pub(crate) async fn is_announced(&self, invocation: &Invocation, letter: &DeadLetter) -> bool {
        let told = self.before(invocation.parking_ends(), self.announce_dropped(letter)).await;
        if let Some(Err(error)) = &told {
            tracing::error!(topic = %letter.delivery.topic, subscription = %letter.delivery.subscription, error = error as &dyn std::error::Error, "notices of dropped events not sent yet");
        }
        matches!(told, Some(Ok(())))
    }

    /// Tells of events that are dropped. There is no notice about a notice, and where none is asked for, nothing is read
    /// but the topic's record, which is known.
    async fn announce_dropped(&self, letter: &DeadLetter) -> Result<(), AnnounceError> {
        let told_of = |entry: &&Entry| !entry.marks.notice;
        let Some(_) = letter.delivery.events.iter().find(told_of) else { return Ok(()) };
        let to = self.notifier().addressee(&letter.delivery.topic).await?;
        if !to.is_named() {
            return Ok(());
        }
        let mut inline = Vec::new();
        for entry in letter.delivery.events.iter().filter(told_of) {
            match &entry.payload {
                Payload::Inline(_) => inline.push(entry),
                Payload::Stored { bytes, .. } => {
                    // One at a time and within the budget: a message may refer to a hundred megabytes.
                    let _held = self.payloads.hold(*bytes).await;
                    self.announce_entries(letter, &to, &[entry]).await?;
                }
            }
        }
        self.announce_entries(letter, &to, &inline).await
    }

    async fn announce_entries(
        &self,
        letter: &DeadLetter,
        to: &Addressee,
        entries: &[&Entry],
    ) -> Result<(), AnnounceError> {
        let (mut texts, at) = (Vec::with_capacity(entries.len()), self.ports.clock.now());
        for entry in entries {
            texts.push(match self.text(&entry.payload).await {
                Ok(text) => Some(text),
                Err(EntryVerdict::GiveUp { .. }) => None,
                Err(_) => return Err(AnnounceError::Payload),
            });
        }
        let texts = texts.iter().map(Option::as_ref);
        let failed =
            entries.iter().zip(texts).map(|(entry, text)| Failed { letter, entry, text, object: None, at });
        let notices: Vec<_> = failed.map(Notice::Failed).collect();
        Ok(self.notifier().send(&letter.delivery.topic, to, &notices).await?)
    }

    /// Tells that a subscription was disabled. The record says so already; a notice that cannot be written is not made
    /// again, because the next event of the subscription meets no answer any more.
    pub(crate) async fn announce_disabled(
        &self,
        subscription: &Subscription,
        reason: &str,
        since: Timestamp,
    ) {
        let (topic, name) = (&subscription.topic, &subscription.name);
        let disabled = Disabled { topic, subscription: name, reason, since };
        if let Err(error) = self.notifier().tell(topic, &[Notice::Disabled(disabled)]).await {
            tracing::error!(%topic, subscription = %name, error = &error as &dyn std::error::Error, "notice of a disabled subscription not sent");
        }
    }

    fn notifier(&self) -> Notifier<'_, P::Queue, P::Store, P::Clock, P::Entropy> {
        let DeliverPorts { queue: deliveries, state: payloads, registry, clock, entropy, .. } = &self.ports;
        Notifier { registry, fan_out: FanOut { deliveries, payloads, clock, entropy } }
    }
}
