//! Late answers: a request that was not answered in time goes on in the background for a while. If its endpoint says yes
//! after all, that is noted under each event's key, and a later attempt that finds the note need not be made.
//!
//! Best effort: nothing that was settled waits for it or is undone by it. Somebody must listen
//! ([`Deliver::hear_late_answers`]); else a request ends with its timeout.

use std::collections::BTreeSet;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, FuturesUnordered, StreamExt};
use parking_lot::Mutex;
use posthaste_core::attempt::partial::{Acknowledged, AnswerBody, BatchEvent, acknowledged};
use posthaste_core::model::delivery::Delivery;
use posthaste_core::model::limits::{LATE_ANSWER_MAX, LATE_ANSWERS_MAX, LATE_ANSWERS_PER_LINK_MAX};
use posthaste_core::model::topic::Subscription;
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, LateAnswer, ObjectStore, PortError, Ports, PutCondition, WebhookResponse};
use posthaste_services::catch_panic::catch_panic;
use posthaste_services::late_answers::answered_late;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::Deliver;
use crate::concurrency::{Bound, ConcurrencyLimits, Permit};
use crate::health::Route;
use crate::intake::Planned;
use crate::invocation::{Invocation, Job};
use crate::report;
use crate::texts::Loaded;

/// Notes written, or removed, at once.
const NOTES_AT_ONCE: usize = 8;

/// The requests that go on.
#[derive(Debug)]
pub(crate) struct LateAnswers {
    /// Bounds on their number, so that an endpoint that hangs cannot pile up connections.
    limits: ConcurrencyLimits,
    /// The way to whoever listens.
    listener: Mutex<Listener>,
}

#[derive(Debug, Default)]
struct Listener {
    sender: Option<UnboundedSender<Waiting>>,
    is_closed: bool,
}

/// One request that goes on.
#[derive(Debug)]
struct Waiting {
    answer: LateAnswer,
    subscription: Arc<Subscription>,
    events: Vec<LateEvent>,
    /// When it is given up, by the clock's `monotonic`.
    until: Duration,
    /// The right to go on.
    _permit: Permit,
}

/// An event of such a request.
#[derive(Debug)]
struct LateEvent {
    key: String,
    /// Its text, where the answer may name the events that failed.
    text: Bytes,
    /// The id of its envelope, where it is a custom event.
    envelope_id: Option<String>,
}

/// Stops handing requests to a listener that listens no more.
struct Listening<'a>(&'a LateAnswers);

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.0.listener.lock().sender = None;
    }
}

impl LateEvent {
    fn in_batch(&self) -> BatchEvent<'_> {
        BatchEvent { text: &self.text, envelope_id: self.envelope_id.as_deref() }
    }
}

impl LateAnswers {
    pub(crate) fn new() -> Self {
        let per_subscription = Bound::fixed(LATE_ANSWERS_PER_LINK_MAX);
        let limits = ConcurrencyLimits::new(LATE_ANSWERS_MAX, per_subscription, LATE_ANSWERS_PER_LINK_MAX);
        Self { limits, listener: Mutex::default() }
    }

    /// Ends what goes on, and lets nothing go on any more.
    pub(crate) fn close(&self) {
        *self.listener.lock() = Listener { sender: None, is_closed: true };
    }

    fn listen(&self) -> UnboundedReceiver<Waiting> {
        let (sender, receiver) = unbounded_channel();
        let mut listener = self.listener.lock();
        if !listener.is_closed {
            listener.sender = Some(sender);
        }
        receiver
    }
}

impl<P: Ports> Deliver<P> {
    /// Waits for the answers of requests that were not answered in time, each for [`LATE_ANSWER_MAX`] at most, until
    /// [`stop`](Self::stop) is called. Dropping it ends those requests. To be awaited once at a time, beside
    /// [`handle`](Self::handle).
    pub async fn hear_late_answers(&self) {
        let mut receiver = self.late.listen();
        let _listening = Listening(&self.late);
        let mut waiting = FuturesUnordered::new();
        loop {
            tokio::select! {
                next = receiver.recv() => match next {
                    Some(next) => waiting.push(catch_panic(self.hear(next))),
                    None => return,
                },
                Some(heard) = waiting.next(), if !waiting.is_empty() => {
                    if heard.is_err() {
                        tracing::error!("waiting for a late answer panicked");
                    }
                }
            }
        }
    }

    /// Lets a request go on that was not answered in time, if somebody listens and there is room.
    pub(crate) fn let_go_on(
        &self,
        invocation: &Invocation,
        planned: &Planned,
        route: &Route<'_>,
        run: &[Loaded],
        answer: LateAnswer,
    ) {
        let Some(sender) = self.late.listener.lock().sender.clone() else { return };
        let subscription = Arc::clone(&planned.subscription);
        let Some(permit) = self.late.limits.try_enter(&route.target) else {
            tracing::debug!(topic = %subscription.topic, subscription = %subscription.name, "a late answer is not waited for, there are too many");
            return;
        };
        let is_partial = subscription.batching.partial_acknowledgement;
        let event = |event: &Loaded| {
            let entry = invocation.entry(event.at);
            LateEvent {
                key: entry.key.clone(),
                text: if is_partial { event.text.clone() } else { Bytes::new() },
                envelope_id: entry.envelope.as_ref().map(|envelope| String::from(&*envelope.id)),
            }
        };
        let events = run.iter().map(event).collect();
        let until = self.ports.clock.monotonic() + LATE_ANSWER_MAX;
        // Whoever stopped listening in this moment has ended the request.
        let _ = sender.send(Waiting { answer, subscription, events, until, _permit: permit });
    }

    async fn hear(&self, waiting: Waiting) {
        let Waiting { answer, subscription, events, until, _permit } = waiting;
        let Some(answer) = self.before(until, answer).await else { return };
        let arrived = match &answer {
            Ok(response) if (200..=204).contains(&response.status.as_u16()) => {
                arrived(&subscription, events, response)
            }
            Ok(_) | Err(_) => Vec::new(),
        };
        if arrived.is_empty() {
            tracing::debug!(topic = %subscription.topic, subscription = %subscription.name, "a late answer was no success");
            return;
        }
        report::late(&subscription, arrived.len());
        // Owned, because futures that borrow from a stream's items are not known to be `Send`.
        let keys: Vec<_> =
            arrived.iter().map(|key| layout::late(&subscription.topic, &subscription.name, key)).collect();
        let notes = stream::iter(keys).map(|key| self.note_late(key)).buffer_unordered(NOTES_AT_ONCE);
        let failures: Vec<PortError> = notes.filter_map(|noted| ready(noted.err())).collect().await;
        if let Some(error) = failures.first() {
            tracing::warn!(
                failures = failures.len(),
                error = error as &dyn std::error::Error,
                "late answers not noted, their events are sent again"
            );
        }
    }

    async fn note_late(&self, key: String) -> Result<(), PortError> {
        self.ports.state.put(&key, Bytes::new(), PutCondition::Always).await.map(|_| ())
    }

    /// The events of a message whose endpoint said yes after their time. What cannot be looked up is sent again.
    pub(crate) async fn answered_late(&self, delivery: &Delivery) -> BTreeSet<String> {
        if !delivery.timed_out {
            return BTreeSet::new();
        }
        let keys = delivery.events.iter().map(|event| event.key.as_str()).collect();
        let (topic, subscription) = (&delivery.topic, &delivery.subscription);
        let found = answered_late(&self.ports.state, topic, subscription, &keys).await;
        found.unwrap_or_else(|error| {
            tracing::warn!(topic = %delivery.topic, subscription = %delivery.subscription, error = &error as &dyn std::error::Error, "late answers not looked up");
            BTreeSet::new()
        })
    }

    /// Removes the notes of a message that is settled. What stays is removed when it is old.
    pub(crate) async fn forget_late(&self, invocation: &Invocation, job: &Job) {
        let (topic, subscription) = (&job.delivery.topic, &job.delivery.subscription);
        let keys = job.late.iter().map(|key| layout::late(topic, subscription, key));
        let remove = |key: String| async move {
            let _ = self.ports.state.delete(&key).await;
        };
        if !job.late.is_empty() {
            let removed = stream::iter(keys).for_each_concurrent(NOTES_AT_ONCE, remove);
            self.before(invocation.deadline, removed).await;
        }
    }
}

/// The keys of the events that an answer of success says have arrived.
fn arrived(subscription: &Subscription, events: Vec<LateEvent>, response: &WebhookResponse) -> Vec<String> {
    let acknowledged = if subscription.batching.partial_acknowledgement {
        let batch: Vec<_> = events.iter().map(LateEvent::in_batch).collect();
        let body = AnswerBody::new(&response.headers, &response.body, response.body_is_whole);
        acknowledged(body, &batch)
    } else {
        Acknowledged::All
    };
    let arrived = events.into_iter().enumerate().filter(|(index, _)| acknowledged.includes(*index));
    arrived.map(|(_, event)| event.key).collect()
}
