//! Fans events out: finds the subscriptions that receive them, stores the shared payloads, then
//! sends the messages that refer to them.
//!
//! Every function that puts events into the delivery queue does it here: publish, and those that
//! send notices.

mod convert;
mod plan;

use posthaste_core::events::Event;
use posthaste_core::model::{
    INLINE_FAN_OUT_BYTES_MAX, Matched, SQS_BATCH_ENTRIES_MAX, SQS_MESSAGE_BYTES_MAX, Topic,
};
use posthaste_ports::{
    Clock, Entropy, ObjectStore, OutgoingMessage, PortError, QueueSender, Withheld,
};

use convert::Converter;
use plan::{Plan, Request};

pub use convert::FanOutError;
pub use plan::{Inline, Origin};

use crate::busy::off_the_worker;
use crate::send_all::send_all;

/// Bytes of rendered messages that are gathered before they are sent: the most that one event takes
/// with all its copies if it is not stored. So nearly every request is sent in one go.
const WAVE_BYTES_PREFERRED: usize = INLINE_FAN_OUT_BYTES_MAX;

/// Tests of events by filters above which they are made off the worker: so many take some
/// milliseconds.
const BUSY_TESTS: usize = 50_000;

/// The ports of a fan-out.
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
    /// The events and the subscriptions that match.
    pub matched: Matched,
    /// The number of messages they became.
    pub messages: usize,
}

impl<Q, S, C, E> FanOut<'_, Q, S, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Fans events of one topic, all of the same schema, out to its subscriptions. When this
    /// returns `Ok`, every message is durable, and every payload was durable before. Events
    /// that are not `inline` are stored once, and their messages refer to them. An error says
    /// whether a part of it was sent.
    pub async fn write(
        &self,
        topic: &Topic,
        events: &[Event],
        inline: Inline,
        origin: Origin,
    ) -> Result<Written, FanOutError> {
        let at = self.clock.now();
        let tests = events.len().saturating_mul(topic.subscriptions.len());
        let plan = if tests < BUSY_TESTS {
            Plan::of(topic, events, at)
        } else {
            off_the_worker(|| Plan::of(topic, events, at))
        };
        let matched = plan.matched();
        if matched.events == 0 {
            return Ok(Written {
                matched,
                messages: 0,
            });
        }
        let converter = Converter {
            store: self.payloads,
            entropy: self.entropy,
            at,
            inline,
        };
        let payloads = converter.payloads(&plan, events).await?;
        let id = origin
            .request_id
            .clone()
            .unwrap_or_else(|| self.entropy.uuid().simple().to_string());
        let request = Request {
            topic,
            events,
            payloads: &payloads,
            at,
            id: &id,
            origin,
        };
        let messages = self.send(plan.messages(&request)).await?;
        Ok(Written { matched, messages })
    }

    /// Sends the messages and answers how many there were: all or none of them, where the queue can.
    async fn send(
        &self,
        messages: impl Iterator<Item = OutgoingMessage> + Send,
    ) -> Result<usize, FanOutError> {
        if self.deliveries.sends_whole() {
            self.send_whole(messages).await.map_err(FanOutError::Whole)
        } else {
            self.send_apart(messages)
                .await
                .map_err(FanOutError::Message)
        }
    }

    /// Sends all messages or none. One wave is one transaction. More are made durable one after the
    /// other, and are shown once the last one is: a wave that fails takes those before it away.
    async fn send_whole(
        &self,
        messages: impl Iterator<Item = OutgoingMessage> + Send,
    ) -> Result<usize, PortError> {
        let (mut wave, mut bytes, mut sent) = (Vec::new(), 0, 0);
        let mut withheld = Vec::new();
        for message in messages {
            if bytes >= WAVE_BYTES_PREFERRED {
                let full = std::mem::take(&mut wave);
                withheld.push(self.deliveries.withhold(full).await?);
                bytes = 0;
            }
            bytes += message.body.len();
            wave.push(message);
            sent += 1;
        }
        if withheld.is_empty() {
            self.send_one_wave(wave, bytes).await?;
        } else {
            withheld.push(self.deliveries.withhold(wave).await?);
        }
        withheld.into_iter().for_each(Withheld::show);
        Ok(sent)
    }

    async fn send_one_wave(
        &self,
        wave: Vec<OutgoingMessage>,
        bytes: usize,
    ) -> Result<(), PortError> {
        // One batch is one transaction too.
        if wave.len() <= SQS_BATCH_ENTRIES_MAX && bytes <= SQS_MESSAGE_BYTES_MAX {
            return self.send_wave(wave).await;
        }
        self.deliveries.send_whole(wave).await
    }

    /// Sends the messages wave by wave and answers how many there were. A wave that fails is the
    /// last.
    async fn send_apart(
        &self,
        messages: impl Iterator<Item = OutgoingMessage> + Send,
    ) -> Result<usize, PortError> {
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
