//! What one invocation works on: its messages, their verdicts, and what is to be parked at its end.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::attempt::settle::EntryVerdict;
use posthaste_core::circuit::{Failure, Observation, Sign, Tally, Target};
use posthaste_core::model::delivery::{Delivery, Entry};
use posthaste_core::model::payload::Payload;
use posthaste_core::model::time::Timestamp;
use posthaste_core::model::topic::{Status, Subscription};
use posthaste_ports::{BatchResponse, MessageId, Receipt, ReceivedMessage, Successor};

use crate::park::Place;

/// One invocation.
#[derive(Debug)]
pub(crate) struct Invocation {
    /// When it must have ended, by the clock's `monotonic`.
    pub(crate) deadline: Duration,
    /// When it began, by the same clock.
    pub(crate) began: Duration,
    /// The messages that were understood.
    pub(crate) jobs: Vec<Job>,
    /// All messages, understood or not.
    ids: Vec<MessageId>,
    settled: Mutex<HashSet<MessageId>>,
    parking: Mutex<Vec<Parking>>,
    tally: Mutex<Tally>,
}

/// A message that was understood.
#[derive(Debug)]
pub(crate) struct Job {
    /// Whose message it is.
    pub(crate) id: MessageId,
    /// The right to delete it.
    pub(crate) receipt: Receipt,
    /// What it says.
    pub(crate) delivery: Delivery,
    /// The subscription; `None` when it was deleted.
    pub(crate) subscription: Option<Arc<Subscription>>,
    /// The keys of the events whose endpoint said yes after an attempt had timed out.
    pub(crate) late: BTreeSet<String>,
    verdicts: Mutex<Vec<Option<EntryVerdict>>>,
}

/// One event of one message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryRef {
    /// Index into the invocation's jobs.
    pub(crate) job: usize,
    /// Index into the job's events.
    pub(crate) entry: usize,
}

/// A message some of whose events wait in the object store.
#[derive(Debug)]
pub(crate) struct Parking {
    /// Whose message it is.
    pub(crate) id: MessageId,
    /// The right to delete it.
    pub(crate) receipt: Receipt,
    /// What waits there, and where.
    pub(crate) deliveries: Vec<(Place, Delivery)>,
    /// What takes the message's place besides.
    pub(crate) successors: Vec<Successor>,
}

impl Invocation {
    pub(crate) fn new(began: Duration, deadline: Duration, batch: &[ReceivedMessage]) -> Self {
        Self {
            deadline,
            began,
            jobs: Vec::new(),
            ids: batch.iter().map(|message| message.id.clone()).collect(),
            settled: Mutex::default(),
            parking: Mutex::default(),
            tally: Mutex::default(),
        }
    }

    /// An event of one of the messages.
    pub(crate) fn entry(&self, at: EntryRef) -> &Entry {
        &self.jobs[at.job].delivery.events[at.entry]
    }

    /// Where an event's JSON is.
    pub(crate) fn payload(&self, at: EntryRef) -> &Payload {
        &self.entry(at).payload
    }

    /// Notes a message that is done with: it arrived, or what follows it is durable.
    pub(crate) fn settled(&self, id: &MessageId) {
        self.settled.lock().insert(id.clone());
    }

    /// Counts what a request said about a target that was begun at that time.
    pub(crate) fn tally(&self, target: &Target, sign: Sign, last: Option<Failure>, began: Timestamp) {
        let mut tally = self.tally.lock();
        match (sign, last) {
            (Sign::Good, _) => tally.succeeded(target),
            (Sign::Bad, Some(last)) => tally.failed(target, last, began),
            _ => {}
        }
    }

    /// What was counted of a target was told.
    pub(crate) fn end_tally(&self, target: &Target) {
        self.tally.lock().end(target);
    }

    /// What is to be told of the targets all of whose requests failed.
    pub(crate) fn all_failed(&self, least: u32) -> Vec<(Target, Observation)> {
        self.tally.lock().all_failed(least).map(|(target, seen)| (target.clone(), seen)).collect()
    }

    /// Notes a message that is settled at the invocation's end.
    pub(crate) fn park(&self, parking: Parking) {
        self.parking.lock().push(parking);
    }

    /// Takes what is to be parked.
    pub(crate) fn take_parking(&self) -> Vec<Parking> {
        std::mem::take(&mut self.parking.lock())
    }

    /// The answer: it names every message that is not done with, once, whatever it was that kept it.
    pub(crate) fn response(self) -> BatchResponse {
        let mut named = self.settled.into_inner();
        let failures = self.ids.into_iter().filter(|id| named.insert(id.clone()));
        BatchResponse { failures: failures.collect() }
    }
}

impl Job {
    pub(crate) fn new(
        id: MessageId,
        receipt: Receipt,
        delivery: Delivery,
        subscription: Option<Arc<Subscription>>,
        late: BTreeSet<String>,
    ) -> Self {
        let count = delivery.events.len();
        Self { id, receipt, delivery, subscription, late, verdicts: Mutex::new(vec![None; count]) }
    }

    /// Whether its events are delivered at this time; `None` when the subscription was deleted.
    pub(crate) fn status_at(&self, now: Timestamp) -> Option<Status> {
        self.subscription.as_ref().map(|subscription| subscription.status_at(now))
    }

    /// Notes an event's verdict. Answers all verdicts if this was the last one missing.
    pub(crate) fn judge(&self, entry: usize, verdict: EntryVerdict) -> Option<Vec<EntryVerdict>> {
        let mut verdicts = self.verdicts.lock();
        verdicts[entry] = Some(verdict.not_past(self.delivery.events[entry].expires_at));
        verdicts.iter().copied().collect()
    }

    /// Leaves the message alone: its events were being judged, or it was being settled, when something panicked. Nothing
    /// of it is tried any more. It is handed back, and what was tried already may be tried again.
    pub(crate) fn hand_back(&self) {
        let delivery = &self.delivery;
        tracing::error!(
            message_id = %self.id.0, topic = %delivery.topic, subscription = %delivery.subscription,
            "message handed back, settling it panicked"
        );
        for verdict in self.verdicts.lock().iter_mut() {
            verdict.get_or_insert(EntryVerdict::NotStarted);
        }
    }

    /// Whether an event still needs an attempt.
    pub(crate) fn is_open(&self, entry: usize) -> bool {
        self.verdicts.lock()[entry].is_none()
    }
}
