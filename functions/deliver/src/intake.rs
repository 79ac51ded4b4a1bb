//! From messages to work: each is read by itself, looked up, and its events judged that need no attempt.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use indexmap::IndexMap;
use posthaste_core::attempt::batch::Pack;
use posthaste_core::attempt::decide::{DeadLetterReason, is_expired};
use posthaste_core::attempt::retry::Jitter;
use posthaste_core::attempt::settle::EntryVerdict;
use posthaste_core::model::delivery::Delivery;
use posthaste_core::model::hops::Hops;
use posthaste_core::model::identity::Identity;
use posthaste_core::model::limits::SQS_DELAY_SECS_MAX;
use posthaste_core::model::name::{SubscriptionName, TopicName};
use posthaste_core::model::schema::Schema;
use posthaste_core::model::time::Timestamp;
use posthaste_core::model::topic::{Status, Subscription, Topic};
use posthaste_core::stored::delivery::parse_delivery;
use posthaste_core::stored::format::FormatError;
use posthaste_ports::{Clock, Entropy, OutgoingMessage, Ports, QueueName, ReceivedMessage, Successor};
use posthaste_services::RegistryError;
use posthaste_services::catch_panic::{catch_panic, catch_panic_now};

use crate::Deliver;
use crate::invocation::{EntryRef, Invocation, Job};
use crate::settle::SETTLED_AT_ONCE_MAX;
use crate::times::TAKING_IN_TIME;

/// How long an event waits that could not be tried because of us (its payload object could not be read, no socket was
/// left), so that an outage of ours is not a busy loop.
pub(crate) const OUR_FAULT_WAIT: Duration = Duration::from_secs(30);

/// Messages that are read side by side: as many topics are looked up at once.
const READ_AT_ONCE_MAX: usize = 32;

/// A problem event travels alone.
const ALONE: Pack = Pack { items_max: 1, bytes_preferred: usize::MAX };

/// A request to be made: events of one subscription with the same number of attempts behind them.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each says another thing of the events")]
pub(crate) struct Planned {
    pub(crate) subscription: Arc<Subscription>,
    pub(crate) schema: Schema,
    pub(crate) attempts_before: u16,
    pub(crate) replayed: bool,
    pub(crate) hops: Hops,
    pub(crate) name_was_unknown: bool,
    pub(crate) jitter: Jitter,
    /// Its event fails where others succeed: it travels alone, after the rest.
    pub(crate) is_problem: bool,
    /// One of its events was tried before, or waited for something: its endpoint may not be well.
    pub(crate) has_waited: bool,
    pub(crate) entries: Vec<EntryRef>,
}

/// What the events of one request have in common.
type GroupKey<'a> = (Owner<'a>, Schema, Hops, u16, bool, bool, bool);

/// The creation of a subscription that events were accepted for.
type Owner<'a> = (&'a TopicName, &'a SubscriptionName, Option<Identity>);

impl<P: Ports> Deliver<P> {
    /// Reads every message. One that cannot be read, or not yet, is put elsewhere at once; its neighbours do not
    /// notice.
    pub(crate) async fn take_in(&self, invocation: &mut Invocation, batch: Vec<ReceivedMessage>) {
        let end = (self.ports.clock.monotonic() + TAKING_IN_TIME).min(invocation.parking_ends());
        invocation.jobs = self.read_all(invocation, batch, end).await;
        let invocation = &*invocation;
        let judge = |job| {
            catch_panic_now(|| self.judge_without_attempt(job)).unwrap_or_else(|_| {
                job.hand_back();
                None
            })
        };
        let judged: Vec<_> = invocation.jobs.iter().filter_map(|job| Some((job, judge(job)?))).collect();
        // Side by side, so that what is given up together shares requests to the queue.
        let settle = |(job, verdicts): (_, Vec<_>)| async move {
            if catch_panic(self.settle(invocation, job, &verdicts)).await.is_err() {
                job.hand_back();
            }
        };
        let settled = stream::iter(judged).for_each_concurrent(SETTLED_AT_ONCE_MAX, settle);
        if self.before(end, settled).await.is_none() {
            tracing::error!("messages handed back, the queue did not take what follows them in time");
        }
    }

    /// Reads the messages side by side, so that a cold topic is not waited for by the others. The order stays.
    async fn read_all(
        &self,
        invocation: &Invocation,
        batch: Vec<ReceivedMessage>,
        end: Duration,
    ) -> Vec<Job> {
        let read = |(index, message): (usize, ReceivedMessage)| async move {
            let id = message.id.clone();
            let job = match self.before(end, catch_panic(self.take_in_one(invocation, message))).await {
                Some(Ok(job)) => job?,
                Some(Err(_)) => {
                    tracing::error!(message_id = %id.0, "message handed back, reading it panicked");
                    return None;
                }
                None => {
                    tracing::error!(message_id = %id.0, "message handed back, it was not looked up in time");
                    return None;
                }
            };
            Some((index, job))
        };
        let read = stream::iter(batch.into_iter().enumerate()).map(read).buffer_unordered(READ_AT_ONCE_MAX);
        let mut jobs: Vec<_> = read.filter_map(ready).collect().await;
        jobs.sort_unstable_by_key(|(index, _)| *index);
        jobs.into_iter().map(|(_, job)| job).collect()
    }

    /// What is to be done for a message, unless it was put elsewhere or is handed back.
    async fn take_in_one(&self, invocation: &Invocation, message: ReceivedMessage) -> Option<Job> {
        match parse_delivery(&message.body) {
            Ok(delivery) => self.look_up(invocation, message, delivery).await,
            Err(error) => {
                self.put_elsewhere(invocation, message, &error).await;
                None
            }
        }
    }

    /// Packs what is left to try into requests, merging messages of the same subscription and attempt. The subscription
    /// whose message came first is served first.
    pub(crate) fn plan(&self, invocation: &Invocation) -> Vec<Planned> {
        let mut groups: IndexMap<GroupKey<'_>, Vec<EntryRef>> = IndexMap::new();
        for (index, job) in invocation.jobs.iter().enumerate() {
            let delivery = &job.delivery;
            let unknown = delivery.last.is_some_and(|last| last.name_was_unknown);
            let problem = self.is_problem(job);
            let (topic, subscription, schema) = (&delivery.topic, &delivery.subscription, delivery.schema);
            let own = (topic, subscription, delivery.identity);
            for (entry, event) in delivery.events.iter().enumerate().filter(|(entry, _)| job.is_open(*entry))
            {
                // What is replayed travels under a header of its own, and so do the hops: events that came round a
                // loop are refused for it, and their neighbours must not be refused with them.
                let (hops, replayed) = (delivery.hops, event.marks.replayed);
                let key = (own, schema, hops, delivery.attempts, unknown, replayed, problem);
                groups.entry(key).or_default().push(EntryRef { job: index, entry });
            }
        }
        // Requests that cannot be planned are not made, and their messages end without a verdict.
        let cut =
            |entries: Vec<EntryRef>| catch_panic_now(|| self.cut(invocation, &entries)).unwrap_or_default();
        in_turn(groups.into_values().map(cut).collect())
    }

    fn cut(&self, invocation: &Invocation, entries: &[EntryRef]) -> Vec<Planned> {
        let Some(first) = entries.first().map(|entry| &invocation.jobs[entry.job]) else { return Vec::new() };
        let Some(subscription) = &first.subscription else { return Vec::new() };
        let is_problem = self.is_problem(first);
        let pack = if is_problem { ALONE } else { subscription.batching.request() };
        // Drawn once for the invocation, the subscription and the step: what waits together is stored together.
        let jitter = Jitter::new(self.ports.entropy.fraction());
        let sizes = entries.iter().map(|at| invocation.payload(*at).len());
        let planned = |run: std::ops::Range<usize>| Planned {
            subscription: Arc::clone(subscription),
            schema: first.delivery.schema,
            attempts_before: first.delivery.attempts,
            replayed: entries.first().is_some_and(|at| invocation.entry(*at).marks.replayed),
            hops: first.delivery.hops,
            name_was_unknown: first.delivery.last.is_some_and(|last| last.name_was_unknown),
            jitter,
            is_problem,
            has_waited: entries[run.clone()].iter().any(|at| invocation.jobs[at.job].delivery.has_waited()),
            entries: entries[run].to_vec(),
        };
        pack.cut(sizes).into_iter().map(planned).collect()
    }

    /// Whether a message's events fail where others of their subscription succeed.
    fn is_problem(&self, job: &Job) -> bool {
        let Some(subscription) = job.subscription.as_deref().filter(|_| job.delivery.attempts > 0) else {
            return false;
        };
        self.health.is_problem(&job.delivery, subscription, self.ports.links.settings())
    }

    async fn look_up(
        &self,
        invocation: &Invocation,
        message: ReceivedMessage,
        delivery: Delivery,
    ) -> Option<Job> {
        self.note_wait(message.receive_count, &delivery);
        match self.receiver(&delivery, invocation.began).await {
            Ok(subscription) => {
                let late = self.answered_late(&delivery).await;
                Some(Job::new(message.id, message.receipt, delivery, subscription, late))
            }
            Err(error) => {
                tracing::error!(topic = %delivery.topic, error = &error as &dyn std::error::Error, "delivery handed back: its topic cannot be read");
                None
            }
        }
    }

    /// Notes how long a message had been due. One that was received before was hidden meanwhile, because it failed
    /// here: that wait was ours, and must not read as a slow drain.
    fn note_wait(&self, receive_count: u32, delivery: &Delivery) {
        let clock = &self.ports.clock;
        let waited = if receive_count > 1 { Duration::ZERO } else { clock.now().since(delivery.not_before) };
        self.ports.drain.received(waited, clock.monotonic());
    }

    /// Who receives a message's events; `None` if the subscription or its topic was deleted.
    ///
    /// Nobody is found missing, gone or waiting by what was known before the message was published, or was released: a
    /// subscription made, or made active again, in the seconds between is not in it.
    ///
    /// A subscription of another identity is looked up again, past every cache: perhaps this process does not know yet
    /// that it was created again, or has a record of before there were identities. `began` is when the invocation did,
    /// by the clock's `monotonic`.
    async fn receiver(
        &self,
        delivery: &Delivery,
        began: Duration,
    ) -> Result<Option<Arc<Subscription>>, RegistryError> {
        let (registry, topic) = (&self.ports.registry, &delivery.topic);
        let now = self.ports.clock.now();
        let is_surely_for = |subscription: &Arc<Subscription>| delivery.is_surely_for(subscription);
        let known = subscription(registry.topic(topic).await?, delivery, now);
        if known.as_ref().is_some_and(|it| it.status == Status::Active && is_surely_for(it)) {
            return Ok(known);
        }
        let sent = delivery.published_at.max(delivery.not_before.min(now));
        let seen = subscription(registry.topic_seen_after(topic, sent).await?, delivery, now);
        if seen.as_ref().is_none_or(is_surely_for) {
            return Ok(seen);
        }
        let found = subscription(registry.topic_asked_after(topic, began).await?, delivery, now);
        Ok(found.filter(|it| delivery.is_for(it)))
    }

    /// A newer message waits for a newer reader; what is not ours goes, byte for byte, where it is kept.
    async fn put_elsewhere(&self, invocation: &Invocation, message: ReceivedMessage, error: &FormatError) {
        let (to, delay_secs) = match error {
            FormatError::Newer(_) => (QueueName::Deliveries, SQS_DELAY_SECS_MAX),
            FormatError::Malformed(..) => (QueueName::DeadLetters, 0),
        };
        tracing::warn!(message_id = %message.id.0, %to, error = error as &dyn std::error::Error, "message not readable, moved as it is");
        let moved = OutgoingMessage { body: message.body, group: None, delay_secs };
        let successors = vec![Successor { to, message: moved }];
        self.replace(invocation, &message.id, &message.receipt, successors).await;
    }

    /// Judges the events of one message that are not tried now. Answers all verdicts if none is to be tried.
    fn judge_without_attempt(&self, job: &Job) -> Option<Vec<EntryVerdict>> {
        let now = self.ports.clock.now();
        let mut complete = None;
        for (index, entry) in job.delivery.events.iter().enumerate() {
            // It arrived, whatever has become of it or its subscription since.
            if job.late.contains(&entry.key) {
                complete = job.judge(index, EntryVerdict::Delivered);
                continue;
            }
            let expired = is_expired(entry.expires_at, now).then_some(DeadLetterReason::TimeToLiveExceeded);
            if let Some(reason) = unsendable(job, now).or(expired) {
                complete = job.judge(index, EntryVerdict::GiveUp { reason, last: None });
            } else if job.status_at(now).is_some_and(Status::waits) {
                complete = job.judge(index, EntryVerdict::Held);
            }
        }
        complete
    }
}

/// Whose time is over is gone, also while it still is in its topic's record.
fn subscription(topic: Option<Arc<Topic>>, delivery: &Delivery, now: Timestamp) -> Option<Arc<Subscription>> {
    topic?.subscription(&delivery.subscription).filter(|it| !it.lifetime.is_over(now)).cloned()
}

/// The requests of all groups in turn: the first of each, then the second of each. Problem events come after the rest.
fn in_turn(groups: Vec<Vec<Planned>>) -> Vec<Planned> {
    let mut turns: Vec<_> = groups.into_iter().flat_map(|group| group.into_iter().enumerate()).collect();
    turns.sort_by_key(|(turn, planned)| (planned.is_problem, *turn));
    turns.into_iter().map(|(_, planned)| planned).collect()
}

/// Why none of a message's events can be sent, if so.
fn unsendable(job: &Job, now: Timestamp) -> Option<DeadLetterReason> {
    match job.status_at(now) {
        None => Some(DeadLetterReason::SubscriptionDeleted),
        Some(Status::Disabled) => Some(DeadLetterReason::EndpointGone),
        Some(Status::Active | Status::Pending | Status::Paused | Status::Failed) => None,
    }
}
