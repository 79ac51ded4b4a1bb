//! The ledger of one invocation: its messages, the verdicts over their events, and the deliveries
//! that are stored at its end.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use posthaste_core::attempt::{DrawnJitter, EntryVerdict};
use posthaste_core::circuit::{
    AllFailed, DeliveryTarget, HealthSignal, InvocationResults, RequestFailure,
};
use posthaste_core::delivery_log::RecordText;
use posthaste_core::lane::{DeliveryLane, SlowTargets};
use posthaste_core::model::{
    Delivery, DeliveryEntry, DeliveryLogMode, LastAttempt, Subscription, SubscriptionStatus,
    Timestamp,
};
use posthaste_ports::{BatchResponse, MessageId, ReceiptHandle, ReceivedMessage, Successor};

use crate::deadlines::InvocationDeadlines;
use crate::waiting_place::WaitingPlace;

/// One invocation.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) deadlines: InvocationDeadlines,
    /// The lane whose queue its messages came from.
    pub(crate) lane: DeliveryLane,
    /// The targets that are slow; `None` where nothing takes the slow lane.
    pub(crate) slow_targets: Option<Arc<SlowTargets>>,
    /// The number of late requests of each target.
    late: Mutex<BTreeMap<DeliveryTarget, u32>>,
    /// The messages that could be read.
    pub(crate) jobs: Vec<DeliveryJob>,
    /// All messages, also those that could not be read.
    ids: Vec<MessageId>,
    settled: Mutex<HashSet<MessageId>>,
    waiting: Mutex<Vec<WaitingMessage>>,
    results: Mutex<InvocationResults>,
    /// The jitter of each message of which an attempt failed, by its index.
    jitters: Mutex<BTreeMap<usize, DrawnJitter>>,
}

/// A message in the queue.
#[derive(Debug, Clone)]
pub(crate) struct MessageHandle {
    pub(crate) id: MessageId,
    /// The right to delete it.
    pub(crate) receipt: ReceiptHandle,
    /// The number of receives, this one included.
    pub(crate) receive_count: u32,
}

/// A message that could be read.
#[derive(Debug)]
pub(crate) struct DeliveryJob {
    pub(crate) message: MessageHandle,
    pub(crate) delivery: Delivery,
    /// The subscription; `None` when it was deleted.
    pub(crate) subscription: Option<Arc<Subscription>>,
    /// The keys of the events that a late answer of the endpoint acknowledged, after an attempt
    /// had timed out.
    pub(crate) acknowledged_late: BTreeSet<String>,
    /// One item for each event; `None` for those that still need an attempt.
    pub(crate) verdicts: Mutex<Vec<Option<EntryVerdict>>>,
    /// The part of it that the delivery log keeps.
    pub(crate) log: DeliveryLogMode,
    /// The records of the attempts at its events, by the index of the event.
    pub(crate) records: Mutex<BTreeMap<usize, RecordText>>,
    /// The places to which its events were redirected, by the index of the event.
    pub(crate) redirects: Mutex<BTreeMap<usize, String>>,
}

/// One event of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryRef {
    /// Index into the invocation's jobs.
    pub(crate) job: usize,
    /// Index into the job's events.
    pub(crate) entry: usize,
}

/// A message some of whose events wait in the object store.
#[derive(Debug)]
pub(crate) struct WaitingMessage {
    pub(crate) message: MessageHandle,
    /// The deliveries that wait there.
    pub(crate) deliveries: Vec<(WaitingPlace, Delivery)>,
    /// Other messages that take its place.
    pub(crate) successors: Vec<Successor>,
    /// The lane of deliveries that cannot be stored.
    pub(crate) lane: DeliveryLane,
}

impl MessageHandle {
    pub(crate) fn from_message(message: &ReceivedMessage) -> Self {
        let ReceivedMessage {
            id,
            receipt,
            receive_count,
            ..
        } = message;
        Self {
            id: id.clone(),
            receipt: receipt.clone(),
            receive_count: *receive_count,
        }
    }
}

impl Invocation {
    pub(crate) fn new(deadlines: InvocationDeadlines, batch: &[ReceivedMessage]) -> Self {
        Self {
            deadlines,
            lane: DeliveryLane::Quick,
            slow_targets: None,
            late: Mutex::default(),
            jobs: Vec::new(),
            ids: batch.iter().map(|message| message.id.clone()).collect(),
            settled: Mutex::default(),
            waiting: Mutex::default(),
            results: Mutex::default(),
            jitters: Mutex::default(),
        }
    }

    /// Whether it has more than one message, which all last as long as the slowest of their
    /// requests.
    pub(crate) fn has_several_messages(&self) -> bool {
        self.ids.len() > 1
    }

    /// Counts a late request of a target, and answers how many there are.
    pub(crate) fn count_late(&self, target: &DeliveryTarget) -> u32 {
        let mut late = self.late.lock();
        let count = late.entry(target.clone()).or_default();
        *count += 1;
        *count
    }

    /// Whether what drains is measured by its messages. A slow lane holds nobody else up, so that
    /// only the quick one's are counted.
    pub(crate) fn measures_drain(&self) -> bool {
        self.lane == DeliveryLane::Quick
    }

    /// The lane to which its messages go back.
    pub(crate) fn own_lane(&self) -> DeliveryLane {
        match self.slow_targets {
            Some(_) => self.lane,
            None => DeliveryLane::Quick,
        }
    }

    /// The lane of what takes a message's place: that of the message's target. Nothing goes from
    /// the slow lane to the quick one.
    pub(crate) fn lane_after(&self, job: &DeliveryJob, now: Timestamp) -> DeliveryLane {
        match (&self.slow_targets, &job.subscription) {
            (Some(targets), Some(subscription)) if self.lane == DeliveryLane::Quick => {
                targets.lane_of(subscription, now)
            }
            _ => self.own_lane(),
        }
    }

    pub(crate) fn entry(&self, at: EntryRef) -> &DeliveryEntry {
        &self.jobs[at.job].delivery.events[at.entry]
    }

    /// The last attempt at an event, before this invocation.
    pub(crate) fn last_attempt(&self, at: EntryRef) -> Option<LastAttempt> {
        self.jobs[at.job].delivery.last
    }

    /// Notes a settled message: its events arrived, or its successors are durable.
    pub(crate) fn note_settled(&self, id: &MessageId) {
        self.settled.lock().insert(id.clone());
    }

    /// Counts the result of a request of a subscription, about a target, that began at this time.
    pub(crate) fn count_result(
        &self,
        target: &DeliveryTarget,
        subscription: &DeliveryTarget,
        sign: HealthSignal,
        last: Option<RequestFailure>,
        began: Timestamp,
    ) {
        match (sign, last) {
            (HealthSignal::Good, _) => self.results.lock().note_success(target),
            (HealthSignal::Bad, Some(last)) => {
                self.results.lock().count_failure(target, last, began);
            }
            (HealthSignal::Suspect, Some(last)) => {
                let mut results = self.results.lock();
                results.count_suspected(target, subscription, last, began);
            }
            _ => {}
        }
    }

    /// The jitter of a message, drawn when an attempt at one of its events first failed.
    pub(crate) fn jitter_of(&self, job: usize, draw: impl FnOnce() -> DrawnJitter) -> DrawnJitter {
        *self.jitters.lock().entry(job).or_insert_with(draw)
    }

    /// Forgets the results of a target that was reported.
    pub(crate) fn forget_results(&self, target: &DeliveryTarget) {
        self.results.lock().forget_target(target);
    }

    /// The targets all of whose requests failed, if there were at least `least`.
    pub(crate) fn all_failed(&self, least: u32) -> Vec<AllFailed> {
        self.results.lock().all_failed(least).collect()
    }

    /// Keeps a message that is settled at the invocation's end.
    pub(crate) fn add_waiting(&self, message: WaitingMessage) {
        self.waiting.lock().push(message);
    }

    pub(crate) fn take_waiting(&self) -> Vec<WaitingMessage> {
        std::mem::take(&mut self.waiting.lock())
    }

    /// The answer, which names each message that is not settled once.
    pub(crate) fn into_response(self) -> BatchResponse {
        let mut named = self.settled.into_inner();
        let failures = self.ids.into_iter().filter(|id| named.insert(id.clone()));
        BatchResponse {
            failures: failures.collect(),
        }
    }
}

impl DeliveryJob {
    /// The status of the subscription; `None` when it was deleted.
    pub(crate) fn status_at(&self, now: Timestamp) -> Option<SubscriptionStatus> {
        self.subscription
            .as_ref()
            .map(|subscription| subscription.status_at(now))
    }

    /// Whether its message was made after the subscription came into the state that it has.
    pub(crate) fn was_disabled_before(&self) -> bool {
        let since = self.subscription.as_ref().and_then(|of| of.status_since);
        since.is_some_and(|since| self.delivery.published_at > since)
    }

    /// Notes an event's verdict. Answers all verdicts if this was the last one missing.
    pub(crate) fn note_verdict(
        &self,
        entry: usize,
        verdict: EntryVerdict,
    ) -> Option<Vec<EntryVerdict>> {
        let mut verdicts = self.verdicts.lock();
        verdicts[entry] = Some(verdict.capped_at(self.delivery.events[entry].expires_at));
        verdicts.iter().copied().collect()
    }

    /// Gives the message up for this invocation, because something panicked while it was judged or
    /// settled. None of its events is tried any more. The queue delivers it again, and events
    /// that were tried may be tried twice.
    pub(crate) fn hand_back(&self) {
        let delivery = &self.delivery;
        tracing::error!(
            message_id = %self.message.id.0, topic = %delivery.topic, subscription = %delivery.subscription,
            "message handed back, settling it panicked"
        );
        for verdict in self.verdicts.lock().iter_mut() {
            verdict.get_or_insert(EntryVerdict::NotStarted);
        }
    }

    /// All verdicts, if none is missing.
    pub(crate) fn all_verdicts(&self) -> Option<Vec<EntryVerdict>> {
        self.verdicts.lock().iter().copied().collect()
    }

    /// Whether an event still needs an attempt.
    pub(crate) fn is_open(&self, entry: usize) -> bool {
        self.verdicts.lock()[entry].is_none()
    }
}
