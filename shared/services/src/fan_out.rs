//! Fans events out: finds the subscriptions that receive them, stores the shared payloads, then
//! sends the messages that refer to them.
//!
//! Every function that puts events into the delivery queue does it here: publish, and those that
//! send notices.

mod acceptance;
mod convert;
mod plan;
mod schedule;

use std::iter::Peekable;

use posthaste_core::events::Event;
use posthaste_core::model::{
    INLINE_FAN_OUT_BYTES_MAX, MatchCounts, SCHEDULED_OBJECTS_PER_REQUEST_MAX,
    SQS_BATCH_ENTRIES_MAX, SQS_MESSAGE_BYTES_MAX, Topic,
};
use posthaste_ports::{
    Clock, Entropy, ErrorKind, ObjectStore, OutgoingMessage, PortError, QueueSender,
    WithheldMessages,
};

use acceptance::{AcceptanceRecords, FirstAttempts, MeantSubscriptions, RECORD_BYTES_USUAL};
use convert::EventConverter;
use plan::{FanOutPlan, FanOutRequest};

pub use acceptance::AcceptanceLogging;
pub use convert::FanOutError;
pub use plan::{EventOrigin, InlineEvents, event_key};
pub use schedule::EventSchedule;

use crate::busy::{BUSY_BYTES_MIN, run_off_worker, run_off_worker_if_large};
use crate::lanes::{SlowGroups, send_by_lane};

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
    /// The queue of the slow lane, and the groups whose messages take it.
    pub slow: Option<(&'a Q, &'a SlowGroups)>,
    /// The state bucket, for payloads that are stored once.
    pub payloads: &'a S,
    /// Time.
    pub clock: &'a C,
    /// Chance.
    pub entropy: &'a E,
}

/// A fan-out that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FanOutSummary {
    /// The events and the subscriptions that match.
    pub matched: MatchCounts,
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
    /// returns `Ok`, every message is durable, and every payload was durable before. Messages of
    /// events that are scheduled are parked until their minute. Events
    /// that are not `inline` are stored once, and their messages refer to them. An error says
    /// whether a part of it was sent.
    pub async fn write_events(
        &self,
        topic: &Topic,
        events: &[Event],
        inline: InlineEvents,
        origin: EventOrigin,
    ) -> Result<FanOutSummary, FanOutError> {
        self.accept_events(topic, events, inline, origin, None)
            .await
    }

    /// The same, with the `acceptance` of each event: its messages or its record in the delivery
    /// log name the subscriptions that it is meant for. That record is sent with the messages where
    /// the queue sends them whole, and after them elsewhere. If it is not taken, it is lost.
    pub async fn accept_events(
        &self,
        topic: &Topic,
        events: &[Event],
        inline: InlineEvents,
        origin: EventOrigin,
        acceptance: Option<AcceptanceLogging<'_, Q>>,
    ) -> Result<FanOutSummary, FanOutError> {
        let at = self.clock.now();
        let tests = events.len().saturating_mul(topic.subscriptions.len());
        let plan = if tests < BUSY_TESTS {
            FanOutPlan::match_events(topic, events, at)
        } else {
            run_off_worker(|| FanOutPlan::match_events(topic, events, at))
        };
        let matched = plan.matched_counts();
        let meant = acceptance.as_ref().map(|acceptance| {
            let first = FirstAttempts {
                schedule: &origin.schedule,
                at,
                wait: acceptance.first_attempts_wait,
            };
            MeantSubscriptions::from_receivers(plan.receivers(), topic, events, first)
        });
        let mut meant = meant.unwrap_or_default();
        // A skipped event has matched: it has a record that says so.
        meant
            .recorded
            .retain(|(index, names)| !names.is_empty() || !plan.is_skipped(*index));
        if matched.events == 0 && meant.recorded.is_empty() && !plan.has_skipped() {
            return Ok(FanOutSummary {
                matched,
                messages: 0,
            });
        }
        let converter = EventConverter {
            store: self.payloads,
            entropy: self.entropy,
            at,
            inline,
            schedule: &origin.schedule,
        };
        let objects = plan.scheduled_objects(&origin.schedule, at);
        if objects > SCHEDULED_OBJECTS_PER_REQUEST_MAX {
            return Err(FanOutError::TooManyScheduled { objects });
        }
        let payloads = converter.convert_all(&plan, events).await?;
        let id = origin
            .request_id
            .clone()
            .unwrap_or_else(|| self.entropy.uuid_at(at).simple().to_string());
        let request = FanOutRequest {
            topic,
            events,
            payloads: &payloads,
            at,
            id: &id,
            origin,
            meant: &meant,
        };
        let records = acceptance.and_then(|acceptance| {
            let rendered_bytes = meant.record_bytes() + plan.skipped_count() * RECORD_BYTES_USUAL;
            let records =
                run_off_worker_if_large(rendered_bytes, || request.acceptance_records(&plan));
            let left_out = meant.recorded.len() + plan.skipped_count() - records.len();
            AcceptanceRecords::from_texts(acceptance.records, &topic.name, &records, left_out)
        });
        let mut parked = 0;
        if !request.origin.schedule.is_empty() {
            let written =
                schedule::park_objects(self.payloads, plan.render_scheduled(&request)).await;
            parked = written.map_err(FanOutError::Scheduled)?;
        }
        let sent = self
            .send_messages(plan.render_messages(&request), records)
            .await;
        // The parked messages are stored, whatever the queue refuses.
        let sent = sent.map_err(|error| {
            if parked > 0 {
                error.into_partial()
            } else {
                error
            }
        })?;
        plan.report_skipped();
        Ok(FanOutSummary {
            matched,
            messages: parked + sent,
        })
    }

    /// Sends the messages and returns their number: all or none of them, where the queue can.
    async fn send_messages(
        &self,
        messages: impl Iterator<Item = OutgoingMessage> + Send,
        records: Option<AcceptanceRecords<'_, Q>>,
    ) -> Result<usize, FanOutError> {
        let mut messages = messages.peekable();
        if self.deliveries.sends_whole() && messages.peek().is_some() {
            let sent = self.send_whole(messages, records).await;
            return sent.map_err(FanOutError::Whole);
        }
        let sent = self.send_apart(messages).await;
        let sent = sent.map_err(FanOutError::Message)?;
        if let Some(records) = records {
            records.send_alone(self.clock).await;
        }
        Ok(sent)
    }

    /// Sends all messages or none. One wave is one transaction. More are made durable one after the
    /// other, and are shown once the last one is: a wave that fails takes those before it away.
    async fn send_whole(
        &self,
        mut messages: Peekable<impl Iterator<Item = OutgoingMessage> + Send>,
        records: Option<AcceptanceRecords<'_, Q>>,
    ) -> Result<usize, PortError> {
        let first = next_wave(&mut messages);
        let mut sent = first.messages.len();
        if messages.peek().is_none() {
            match records {
                None => self.send_one_wave(first).await?,
                Some(records) => self.send_with_records(first, &records).await?,
            }
            return Ok(sent);
        }
        let mut withheld = Vec::new();
        if let Some(records) = records {
            withheld.extend(records.withhold().await);
        }
        withheld.push(self.deliveries.withhold(first.messages).await?);
        while messages.peek().is_some() {
            let wave = next_wave(&mut messages);
            sent += wave.messages.len();
            withheld.push(self.deliveries.withhold(wave.messages).await?);
        }
        show_withheld(withheld);
        Ok(sent)
    }

    async fn send_one_wave(&self, wave: MessageWave) -> Result<(), PortError> {
        let MessageWave { messages, bytes } = wave;
        // One batch is one transaction too.
        if messages.len() <= SQS_BATCH_ENTRIES_MAX && bytes <= SQS_MESSAGE_BYTES_MAX {
            return self.send_wave(messages).await;
        }
        self.deliveries.send_whole(messages, Vec::new()).await
    }

    /// Sends a wave and records in one transaction. Where there is no room for records, the wave is
    /// sent without them.
    async fn send_with_records(
        &self,
        wave: MessageWave,
        records: &AcceptanceRecords<'_, Q>,
    ) -> Result<(), PortError> {
        let messages = wave.messages.clone();
        let sent = self
            .deliveries
            .send_whole(messages, records.as_successors())
            .await;
        let Err(error) = sent else {
            return Ok(());
        };
        if error.kind != ErrorKind::Full {
            return Err(error);
        }
        self.send_one_wave(wave).await?;
        records.report_lost(&error);
        Ok(())
    }

    /// Sends the messages wave by wave and returns their number. A wave that fails is the last.
    async fn send_apart(
        &self,
        mut messages: Peekable<impl Iterator<Item = OutgoingMessage> + Send>,
    ) -> Result<usize, PortError> {
        let mut sent = 0;
        while messages.peek().is_some() {
            let wave = next_wave(&mut messages).messages;
            sent += wave.len();
            self.send_wave(wave).await?;
        }
        Ok(sent)
    }

    async fn send_wave(&self, wave: Vec<OutgoingMessage>) -> Result<(), PortError> {
        let sent = send_by_lane(self.deliveries, self.slow, wave).await;
        sent.into_iter().collect()
    }
}

/// Shows many messages in one go: those that are dropped before they are shown are deleted.
fn show_withheld(withheld: Vec<WithheldMessages>) {
    run_off_worker(|| withheld.into_iter().for_each(WithheldMessages::show));
}

/// Messages that are sent together.
#[derive(Default)]
struct MessageWave {
    messages: Vec<OutgoingMessage>,
    /// Bytes of their bodies.
    bytes: usize,
}

impl MessageWave {
    /// Takes messages until it has so many bytes.
    fn fill_to(&mut self, bytes: usize, messages: &mut impl Iterator<Item = OutgoingMessage>) {
        while self.bytes < bytes {
            let Some(message) = messages.next() else {
                return;
            };
            self.bytes += message.body.len();
            self.messages.push(message);
        }
    }
}

/// The next wave of messages, which are rendered as they are taken.
fn next_wave(messages: &mut Peekable<impl Iterator<Item = OutgoingMessage>>) -> MessageWave {
    let mut wave = MessageWave::default();
    wave.fill_to(BUSY_BYTES_MIN, messages);
    if wave.bytes >= BUSY_BYTES_MIN {
        run_off_worker(|| wave.fill_to(WAVE_BYTES_PREFERRED, messages));
    }
    wave
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use bytes::Bytes;
    use posthaste_ports::WithheldFate;

    use super::*;

    /// Longest wait for what must happen. It only ends a test that fails.
    const PATIENCE: Duration = Duration::from_secs(20);

    fn message(bytes: usize) -> OutgoingMessage {
        OutgoingMessage {
            body: Bytes::from(vec![b'x'; bytes]),
            delay: Duration::ZERO,
            group: None,
        }
    }

    /// A sign that another task of this runtime has run since now.
    fn another_task() -> Receiver<()> {
        let (other, ran) = channel();
        tokio::spawn(async move { other.send(()) });
        ran
    }

    /// The only worker continues with other tasks while many messages are shown.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn messages_are_shown_off_the_worker() {
        let (shown, fates) = channel();
        let showing = tokio::spawn(async {
            let ran = another_task();
            let withheld = WithheldMessages::new(move |fate| {
                let has_run = ran.recv_timeout(PATIENCE).is_ok();
                shown.send((fate, has_run)).unwrap();
            });
            show_withheld(vec![withheld]);
        });
        showing.await.unwrap();
        assert_eq!(fates.recv().unwrap(), (WithheldFate::Shown, true));
    }

    #[test]
    fn waves_are_full_and_none_is_empty() {
        let mut messages = (0..10)
            .map(|_| message(WAVE_BYTES_PREFERRED / 4))
            .peekable();
        let mut sizes = Vec::new();
        while messages.peek().is_some() {
            sizes.push(next_wave(&mut messages).messages.len());
        }
        assert_eq!(sizes, [4, 4, 2]);
    }

    /// The only worker continues with other tasks while a large wave is rendered.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn large_wave_is_rendered_off_the_worker() {
        let rendering = tokio::spawn(async {
            let ran = another_task();
            let mut messages = (0..3).map(move |number| {
                let is_late = number == 2;
                assert!(!is_late || ran.recv_timeout(PATIENCE).is_ok());
                message(BUSY_BYTES_MIN / 2)
            });
            next_wave(&mut messages.by_ref().peekable()).messages.len()
        });
        assert_eq!(rendering.await.unwrap(), 3);
    }
}
