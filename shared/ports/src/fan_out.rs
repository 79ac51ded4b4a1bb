//! Fanning events out: which subscription receives what, the shared payloads, then the messages that refer to them.
//!
//! Whoever brings events into the delivery queue does it here: publish, and what makes notices.

mod plan;

use futures_util::future::try_join_all;
use posthaste_core::delivery::{Marks, Payload, PayloadDigest};
use posthaste_core::event::Event;
use posthaste_core::layout;
use posthaste_core::limits::INLINE_FAN_OUT_BYTES_MAX;
use posthaste_core::time::Timestamp;
use posthaste_core::topic::Topic;

use crate::{Clock, Entropy, ObjectStore, OutgoingMessage, PortError, PutCondition, QueueSender, send_all};
use plan::{Plan, Request};

/// Most payloads of one request that are being stored at once.
const PAYLOAD_PUTS_AT_ONCE: usize = 8;

/// Bytes of rendered messages that are gathered before they are sent: what one request may hold of its fan-out. An
/// event that is not stored fits with all its copies, so that nearly every request is sent in one go.
const WAVE_BYTES_PREFERRED: usize = INLINE_FAN_OUT_BYTES_MAX;

/// What a fan-out needs from outside.
#[derive(Debug, Clone, Copy)]
pub struct FanOut<'a, Q, S, C, E> {
    /// The delivery queue.
    pub deliveries: &'a Q,
    /// The state bucket, for payloads that are stored once.
    pub payloads: &'a S,
    /// Time.
    pub clock: &'a C,
    /// Chance.
    pub entropy: &'a E,
}

/// A fan-out that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// How many of the events at least one subscription receives.
    pub matched: usize,
    /// How many messages they became.
    pub messages: usize,
}

/// Why not all of a fan-out was written. What was written is delivered; doing it again may duplicate that.
#[derive(Debug, thiserror::Error)]
pub enum FanOutError {
    /// A payload that several messages were to share.
    #[error("failed to store a payload")]
    Payload(#[source] PortError),
    /// A message.
    #[error("failed to queue a delivery")]
    Message(#[source] PortError),
}

impl FanOutError {
    /// What failed.
    pub fn port_error(&self) -> &PortError {
        let (Self::Payload(error) | Self::Message(error)) = self;
        error
    }
}

impl<Q, S, C, E> FanOut<'_, Q, S, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Fans events of one topic out to its subscriptions. When this returns `Ok`, every message is durable, and before
    /// it every payload was. With `dehydrate`, payloads are stored and referenced wherever that makes messages shorter.
    pub async fn write(
        &self,
        topic: &Topic,
        events: &[Event],
        dehydrate: bool,
        marks: Marks,
    ) -> Result<Written, FanOutError> {
        let plan = Plan::of(topic, events);
        let matched = plan.matched();
        if matched == 0 {
            return Ok(Written { matched, messages: 0 });
        }
        let at = self.clock.now();
        let payloads = self.place(&plan, events, dehydrate, at);
        self.store(events, &payloads).await.map_err(FanOutError::Payload)?;
        let id = self.entropy.uuid().simple().to_string();
        let request = Request { topic, events, payloads: &payloads, at, id: &id, marks };
        let messages = self.send(plan.messages(&request)).await.map_err(FanOutError::Message)?;
        Ok(Written { matched, messages })
    }

    /// Decides where the text of each event is to be.
    fn place(&self, plan: &Plan<'_>, events: &[Event], dehydrate: bool, at: Timestamp) -> Vec<Payload> {
        let payload = |(index, event): (usize, &Event)| {
            let bytes = event.json().len();
            if plan.stores(index, bytes, dehydrate) {
                let key = layout::payload(at, &self.entropy.uuid().to_string());
                Payload::Stored { key, bytes, digest: Some(PayloadDigest::of(event.json())) }
            } else {
                Payload::Inline(event.json().clone())
            }
        };
        events.iter().enumerate().map(payload).collect()
    }

    async fn store(&self, events: &[Event], payloads: &[Payload]) -> Result<(), PortError> {
        let stored = events.iter().zip(payloads).filter_map(|(event, payload)| match payload {
            Payload::Stored { key, .. } => Some((key.as_str(), event.json())),
            Payload::Inline(_) => None,
        });
        let stored: Vec<_> = stored.collect();
        for some in stored.chunks(PAYLOAD_PUTS_AT_ONCE) {
            let puts =
                some.iter().map(|&(key, json)| self.payloads.put(key, json.clone(), PutCondition::Always));
            try_join_all(puts).await?;
        }
        Ok(())
    }

    /// Sends the messages wave by wave and answers how many there were. A wave that fails is the last.
    async fn send(&self, messages: impl Iterator<Item = OutgoingMessage> + Send) -> Result<usize, PortError> {
        let (mut wave, mut bytes, mut sent) = (Vec::new(), 0, 0);
        for message in messages {
            bytes += message.body.len();
            wave.push(message);
            sent += 1;
            if bytes >= WAVE_BYTES_PREFERRED {
                self.send_wave(std::mem::take(&mut wave)).await?;
                bytes = 0;
            }
        }
        self.send_wave(wave).await?;
        Ok(sent)
    }

    async fn send_wave(&self, wave: Vec<OutgoingMessage>) -> Result<(), PortError> {
        send_all(self.deliveries, wave).await.into_iter().collect()
    }
}
