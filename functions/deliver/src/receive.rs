//! Receives messages: each becomes a job of its own or is moved, and events that need no attempt
//! are judged.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use parking_lot::Mutex;
use posthaste_core::attempt::EntryVerdict;
use posthaste_core::lane::DeliveryLane;
use posthaste_core::model::{
    DeadLetterReason, Delivery, DeliveryLogMode, FormatError, SQS_DELAY_MAX, Subscription,
    SubscriptionStatus, Timestamp, Topic, is_expired,
};
use posthaste_core::stored::delivery::parse_delivery;
use posthaste_ports::{Clock, OutgoingMessage, Ports, QueueName, ReceivedMessage, Successor};
use posthaste_services::busy::run_off_worker_if_large;
use posthaste_services::catch_panic::catch_panic;
use posthaste_services::late_answers::answered_late;
use posthaste_services::{DrainMeter, RegistryError, TopicRegistry, stop_at};

use crate::invocation::{DeliveryJob, Invocation, MessageHandle};
use crate::lanes::DeliveryQueues;
use crate::replace::replace_message;

/// Messages that are read side by side: as many topics are looked up at once. Up to this number
/// `join_all` keeps them in one piece of memory, and a batch has ten.
const READ_AT_ONCE_MAX: usize = 30;

/// Receives messages.
pub(crate) struct MessageReceiver<P: Ports> {
    pub(crate) queues: DeliveryQueues<P::Queue>,
    pub(crate) registry: Arc<TopicRegistry<P::Store, P::Clock>>,
    pub(crate) state: Arc<P::Store>,
    pub(crate) clock: P::Clock,
    pub(crate) drain: DrainMeter,
    /// The part that the delivery log keeps of topics that do not say it.
    pub(crate) delivery_log: DeliveryLogMode,
}

/// The time at which a batch is read.
#[derive(Debug, Clone, Copy)]
struct ReadTime {
    now: Timestamp,
    /// The start of the invocation, by the clock's `monotonic`.
    began: Duration,
}

impl<P: Ports> MessageReceiver<P> {
    /// Reads every message. A message that cannot be read, or not yet, is moved at once, without
    /// effect on its neighbours. Messages are read side by side, so that a topic that is not
    /// cached does not delay the others. The order stays.
    pub(crate) async fn receive_batch(
        &self,
        invocation: &Invocation,
        batch: Vec<ReceivedMessage>,
    ) -> Vec<DeliveryJob> {
        let mut jobs = Vec::with_capacity(batch.len());
        let mut messages = batch.into_iter();
        while messages.len() > 0 {
            let now = self.clock.now();
            let some = messages.by_ref().take(READ_AT_ONCE_MAX);
            let read =
                join_all(some.map(|message| self.receive_one(invocation, message, now))).await;
            jobs.extend(read.into_iter().flatten());
        }
        jobs
    }

    /// The job of a message, unless it was moved or is handed back. `now` is the time at which its
    /// batch is read.
    async fn receive_one(
        &self,
        invocation: &Invocation,
        message: ReceivedMessage,
        now: Timestamp,
    ) -> Option<DeliveryJob> {
        let id = message.id.clone();
        let read = catch_panic(self.read_message(invocation, message, now));
        match stop_at(&self.clock, invocation.deadlines.receiving_end(), read).await {
            Some(Ok(job)) => return job,
            Some(Err(_)) => {
                tracing::error!(message_id = %id.0, "message handed back, reading it panicked");
            }
            None => {
                tracing::error!(message_id = %id.0, "message handed back, it was not looked up in time");
            }
        }
        None
    }

    async fn read_message(
        &self,
        invocation: &Invocation,
        message: ReceivedMessage,
        now: Timestamp,
    ) -> Option<DeliveryJob> {
        let body = &message.body;
        match run_off_worker_if_large(body.len(), || parse_delivery(body)) {
            Ok(delivery) => self.look_up(invocation, message, delivery, now).await,
            Err(error) => {
                self.move_unreadable(invocation, message, &error).await;
                None
            }
        }
    }

    /// The job of a delivery, in which events that need no attempt are judged.
    async fn look_up(
        &self,
        invocation: &Invocation,
        message: ReceivedMessage,
        delivery: Delivery,
        now: Timestamp,
    ) -> Option<DeliveryJob> {
        let read_at = ReadTime {
            now,
            began: invocation.deadlines.began,
        };
        if invocation.measures_drain() {
            self.note_wait(message.receive_count, &delivery, read_at);
        }
        let subscription = match self.find_subscription(&delivery, read_at).await {
            Ok(subscription) => subscription,
            Err(error) => {
                tracing::error!(
                    topic = %delivery.topic, error = &error as &dyn std::error::Error,
                    "delivery handed back: its topic cannot be read"
                );
                return None;
            }
        };
        let acknowledged_late = self.acknowledged_late(&delivery).await;
        let ReceivedMessage { body, .. } = &message;
        let body = body.clone();
        let message = MessageHandle::from_message(&message);
        let verdicts = Mutex::new(vec![None; delivery.events.len()]);
        let log = delivery.log_mode(subscription.as_deref(), self.delivery_log);
        let job = DeliveryJob {
            message,
            delivery,
            subscription,
            acknowledged_late,
            verdicts,
            log,
            records: Mutex::default(),
            redirects: Mutex::default(),
        };
        let now = self.clock.now();
        judge_unsent(&job, now);
        let is_for_the_slow_lane = invocation.lane == DeliveryLane::Quick
            && invocation.lane_after(&job, now) == DeliveryLane::Slow;
        if is_for_the_slow_lane && job.all_verdicts().is_none() {
            Box::pin(self.hand_over(invocation, &job, body)).await;
            return None;
        }
        Some(job)
    }

    /// Moves a message whose target is slow to the slow lane, as it is.
    async fn hand_over(&self, invocation: &Invocation, job: &DeliveryJob, body: Bytes) {
        let moved = Successor {
            to: QueueName::SlowDeliveries,
            message: OutgoingMessage {
                body,
                group: Some(job.delivery.message_group_id()),
                delay: Duration::ZERO,
            },
        };
        let queue = self.queues.for_invocation(invocation);
        if replace_message(queue, invocation, &job.message, vec![moved]).await {
            self.drain.note_delivery_settled(&job.delivery);
        }
    }

    /// Notes how long a message had been due. If it was received before, it was hidden since
    /// because it failed here. That wait was ours, and does not count as a slow drain.
    fn note_wait(&self, receive_count: u32, delivery: &Delivery, read_at: ReadTime) {
        let waited = if receive_count > 1 {
            Duration::ZERO
        } else {
            read_at.now.since(delivery.not_before)
        };
        self.drain
            .note_delivery_received(delivery, waited, read_at.began);
    }

    /// The subscription that receives a message's events; `None` if it or its topic was deleted.
    ///
    /// A subscription counts as missing, disabled or waiting only if the topic was read after the
    /// message was published or released: an older view lacks a subscription that was made or
    /// resumed in the seconds between.
    ///
    /// A subscription of another identity is looked up again, past every cache: this process may
    /// not know yet that it was created again, or may have a record from before identities
    /// existed.
    async fn find_subscription(
        &self,
        delivery: &Delivery,
        read_at: ReadTime,
    ) -> Result<Option<Arc<Subscription>>, RegistryError> {
        let ReadTime { now, began } = read_at;
        let registry = &self.registry;
        let topic = &delivery.topic;
        let known = registry.topic(topic).await?;
        if let Some(known) = &known {
            self.drain
                .note_subscriptions(topic, || known.taking_deliveries(now).count());
        }
        let known = live_subscription(known, delivery, now);
        if known
            .as_ref()
            .is_some_and(|it| it.status == SubscriptionStatus::Active && delivery.is_surely_for(it))
        {
            return Ok(known);
        }
        let sent = delivery.published_at.max(delivery.not_before.min(now));
        let seen = live_subscription(registry.topic_seen_after(topic, sent).await?, delivery, now);
        if seen.as_ref().is_none_or(|it| delivery.is_surely_for(it)) {
            return Ok(seen);
        }
        let found = live_subscription(
            registry.topic_asked_after(topic, began).await?,
            delivery,
            now,
        );
        Ok(found.filter(|it| delivery.is_for(it)))
    }

    /// The keys of the events that a late answer acknowledged. If they cannot be looked up, the
    /// events are sent again.
    async fn acknowledged_late(&self, delivery: &Delivery) -> BTreeSet<String> {
        if !delivery.timed_out {
            return BTreeSet::new();
        }
        let keys = delivery
            .events
            .iter()
            .map(|event| event.key.as_str())
            .collect();
        let topic = &delivery.topic;
        let subscription = &delivery.subscription;
        answered_late(&*self.state, topic, subscription, &keys)
            .await
            .unwrap_or_else(|error| {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(%topic, %subscription, error, "late answers not looked up");
                BTreeSet::new()
            })
    }

    /// Moves a message byte for byte: one of a newer version back to the queue, where a newer
    /// reader may get it, and any other to the dead letters, which keep it.
    async fn move_unreadable(
        &self,
        invocation: &Invocation,
        message: ReceivedMessage,
        error: &FormatError,
    ) {
        let (to, delay) = match error {
            FormatError::Newer(_) => (QueueName::from(invocation.own_lane()), SQS_DELAY_MAX),
            FormatError::Malformed(..) => (QueueName::DeadLetters, Duration::ZERO),
        };
        let handle = MessageHandle::from_message(&message);
        tracing::warn!(
            message_id = %handle.id.0, queue = %to, error = error as &dyn std::error::Error,
            "message not readable, moved as it is"
        );
        let moved = Successor {
            to,
            message: OutgoingMessage {
                body: message.body,
                group: None,
                delay,
            },
        };
        replace_message(
            self.queues.for_invocation(invocation),
            invocation,
            &handle,
            vec![moved],
        )
        .await;
    }
}

/// The subscription of a delivery. If its time is over it counts as deleted, even while it is in
/// the record.
fn live_subscription(
    topic: Option<Arc<Topic>>,
    delivery: &Delivery,
    now: Timestamp,
) -> Option<Arc<Subscription>> {
    topic?
        .find_subscription(&delivery.subscription)
        .filter(|it| !it.lifetime.is_over(now))
        .cloned()
}

/// Judges the events of one message that need no attempt.
fn judge_unsent(job: &DeliveryJob, now: Timestamp) {
    let state = job.status_at(now);
    let was_disabled = job.was_disabled_before();
    for (index, entry) in job.delivery.events.iter().enumerate() {
        let verdict = if job.acknowledged_late.contains(&entry.key) {
            // It arrived; the state of its subscription does not matter any more.
            Some(EntryVerdict::Delivered)
        } else if entry.marks.is_cancelled() {
            Some(EntryVerdict::Cancelled)
        } else {
            // What is sent again was kept once: it is no new event that the subscription misses,
            // for which there may be no room.
            let was_disabled = was_disabled && !entry.marks.replayed;
            unsent_verdict(state, was_disabled, is_expired(entry.expires_at, now))
        };
        if let Some(verdict) = verdict {
            job.note_verdict(index, verdict);
        }
    }
}

/// The verdict over an event that is not sent now, because of the status of its subscription
/// (`None` for a deleted one) or because it has expired. `was_disabled` says that it was published
/// after its subscription was disabled.
fn unsent_verdict(
    status: Option<SubscriptionStatus>,
    was_disabled: bool,
    is_expired: bool,
) -> Option<EntryVerdict> {
    let reason = match status {
        None => DeadLetterReason::SubscriptionDeleted,
        Some(SubscriptionStatus::Disabled) if was_disabled => {
            DeadLetterReason::SubscriptionDisabled
        }
        Some(SubscriptionStatus::Disabled) => DeadLetterReason::EndpointGone,
        Some(_) if is_expired => DeadLetterReason::TimeToLiveExceeded,
        Some(status) => return status.is_waiting().then_some(EntryVerdict::Held),
    };
    Some(EntryVerdict::GiveUp { reason, last: None })
}

#[cfg(test)]
mod tests {
    use posthaste_core::model::{
        CREATION_ID_BYTES, CreationId, CreationRecord, Identity, TopicCreations,
    };
    use posthaste_core::stored::delivery::render_delivery;
    use posthaste_core::stored::{TopicRecord, layout};
    use posthaste_ports::{ObjectStore, PutCondition};
    use posthaste_testkit::PortOperation;
    use serde_json::json;

    use super::*;
    use crate::testing::{
        START, TestPorts, World, delivery, job, secs, subscription, topic_record, topic_settings,
    };

    /// The status of the subscription decides before the end of the event does.
    #[test]
    fn subscription_status_comes_before_event_expiry() {
        let give_up = |reason| Some(EntryVerdict::GiveUp { reason, last: None });
        let check = |status, is_expired, expected| {
            assert_eq!(
                unsent_verdict(status, false, is_expired),
                expected,
                "{status:?}, {is_expired}"
            );
        };
        for is_expired in [false, true] {
            check(
                None,
                is_expired,
                give_up(DeadLetterReason::SubscriptionDeleted),
            );
            check(
                Some(SubscriptionStatus::Disabled),
                is_expired,
                give_up(DeadLetterReason::EndpointGone),
            );
        }
        let disabled = unsent_verdict(Some(SubscriptionStatus::Disabled), true, false);
        assert_eq!(disabled, give_up(DeadLetterReason::SubscriptionDisabled));
        check(Some(SubscriptionStatus::Active), false, None);
        for status in [
            SubscriptionStatus::Pending,
            SubscriptionStatus::Paused,
            SubscriptionStatus::Failed,
        ] {
            check(Some(status), false, Some(EntryVerdict::Held));
            check(
                Some(status),
                true,
                give_up(DeadLetterReason::TimeToLiveExceeded),
            );
        }
        check(
            Some(SubscriptionStatus::Active),
            true,
            give_up(DeadLetterReason::TimeToLiveExceeded),
        );
    }

    /// Those that waited when it was disabled have another reason.
    #[test]
    fn disabled_subscription_events_get_reasons_by_their_time() {
        let since = START.to_string();
        let disabled = json!({ "status": { "state": "Disabled", "since": since } });
        let check = |published_at, expected| {
            let mut delivery = delivery(1);
            delivery.published_at = published_at;
            let job = job(delivery, &subscription(disabled.clone()));
            judge_unsent(&job, START + secs(9));
            let reason = EntryVerdict::GiveUp {
                reason: expected,
                last: None,
            };
            assert_eq!(job.all_verdicts(), Some(vec![reason]));
        };
        check(START, DeadLetterReason::EndpointGone);
        check(START + secs(1), DeadLetterReason::SubscriptionDisabled);
    }

    /// It may be skipped for want of room otherwise, although it was kept before.
    #[test]
    fn event_that_is_sent_again_is_not_missed() {
        let disabled = json!({ "status": { "state": "Disabled", "since": START.to_string() } });
        let mut delivery = delivery(2);
        delivery.published_at = START + secs(1);
        delivery.events[1].marks.replayed = true;
        let job = job(delivery, &subscription(disabled));
        judge_unsent(&job, START + secs(9));
        let reasons = [
            DeadLetterReason::SubscriptionDisabled,
            DeadLetterReason::EndpointGone,
        ];
        let expected = reasons.map(|reason| EntryVerdict::GiveUp { reason, last: None });
        assert_eq!(job.all_verdicts(), Some(expected.to_vec()));
    }

    /// Events that arrived late are delivered, whatever became of their subscription.
    #[test]
    fn late_arrivals_are_delivered_though_the_subscription_is_gone() {
        let mut job = DeliveryJob {
            subscription: None,
            ..job(delivery(2), &subscription(json!({})))
        };
        job.acknowledged_late = ["k-1".to_owned()].into();
        judge_unsent(&job, START);
        let deleted = EntryVerdict::GiveUp {
            reason: DeadLetterReason::SubscriptionDeleted,
            last: None,
        };
        assert_eq!(
            job.all_verdicts(),
            Some(vec![deleted, EntryVerdict::Delivered])
        );
    }

    #[test]
    fn expired_events_are_judged_and_the_others_are_sent() {
        let mut delivery = delivery(2);
        delivery.events[0].expires_at = START;
        let job = job(delivery, &subscription(json!({})));
        judge_unsent(&job, START + secs(1));
        assert_eq!(
            (job.all_verdicts(), job.is_open(0), job.is_open(1)),
            (None, false, true)
        );
    }

    /// Receives messages with these bodies, in a world without topics.
    async fn received(
        world: &World,
        bodies: Vec<Bytes>,
    ) -> (Vec<DeliveryJob>, Vec<posthaste_ports::MessageId>) {
        let registry =
            TopicRegistry::new(world.store("topics"), world.clock.clone(), Duration::ZERO);
        let receiver: MessageReceiver<TestPorts> = MessageReceiver {
            queues: world.queues(),
            registry: Arc::new(registry),
            state: Arc::clone(&world.state),
            clock: world.clock.clone(),
            drain: DrainMeter::default(),
            delivery_log: DeliveryLogMode::default(),
        };
        let mut batch = Vec::new();
        for body in bodies {
            batch.push(ReceivedMessage {
                body,
                ..world.received().await
            });
        }
        let invocation = world.invocation_of(&batch);
        let jobs = receiver.receive_batch(&invocation, batch).await;
        (jobs, invocation.into_response().failures)
    }

    #[tokio::test]
    async fn messages_that_cannot_be_read_are_moved_as_they_are() {
        let world = World::new();
        let bodies = ["not ours", r#"{"v":99}"#].map(|body| Bytes::from_static(body.as_bytes()));
        let (jobs, failures) = received(&world, bodies.to_vec()).await;
        assert_eq!((jobs.len(), failures.len()), (0, 0));
        assert_eq!(
            world.sent(QueueName::DeadLetters).await,
            [bodies[0].clone()]
        );
        assert_eq!(world.sent(QueueName::Deliveries).await, [bodies[1].clone()]);
    }

    /// A delivery whose topic is gone has no subscription, and the order of messages stays.
    #[tokio::test]
    async fn delivery_without_its_topic_has_no_subscription() {
        let world = World::new();
        let bodies = [1, 2, 3].map(|events| render_delivery(&delivery(events)));
        let (jobs, _) = received(&world, bodies.to_vec()).await;
        assert_eq!(
            jobs.iter()
                .map(|job| job.delivery.events.len())
                .collect::<Vec<_>>(),
            [1, 2, 3]
        );
        assert!(
            jobs.iter()
                .all(|job| job.subscription.is_none() && job.all_verdicts().is_some())
        );
    }

    /// The name is in use again, by an active subscription.
    #[tokio::test]
    async fn event_of_a_former_subscription_has_none() {
        let creation = |byte, at| CreationRecord {
            id: CreationId::new([byte; CREATION_ID_BYTES]),
            at: Some(at),
        };
        let topic = creation(1, START);
        let former = creation(2, START);
        let own = creation(3, START + secs(1));
        let world = World::new();
        let subscriptions = [(delivery(1).subscription, own)].into();
        let record = TopicRecord {
            creations: TopicCreations {
                topic: Some(topic),
                subscriptions,
            },
            ..topic_record(topic_settings(&json!({})))
        };
        world
            .memory
            .write(&layout::topic_record_key(&record.name), record.render());
        for (accepted_for, has_one) in [(own, true), (former, false)] {
            let delivery = Delivery {
                identity: Some(Identity {
                    topic: topic.id,
                    subscription: accepted_for.id,
                }),
                ..delivery(1)
            };
            let (jobs, _) = received(&world, vec![render_delivery(&delivery)]).await;
            assert_eq!(jobs[0].subscription.is_some(), has_one);
        }
    }

    #[tokio::test]
    async fn notes_of_late_answers_are_looked_up_only_after_a_timeout() {
        let world = World::new();
        let key = layout::late_answer_key(&delivery(1).topic, &delivery(1).subscription, "k-0");
        world
            .memory
            .put(&key, Bytes::new(), PutCondition::Always)
            .await
            .unwrap();
        let (jobs, _) = received(&world, vec![render_delivery(&delivery(1))]).await;
        assert!(jobs[0].acknowledged_late.is_empty());
        let before = world.calls.count(PortOperation::Get);
        let timed_out = Delivery {
            timed_out: true,
            ..delivery(1)
        };
        let (jobs, _) = received(&world, vec![render_delivery(&timed_out)]).await;
        assert_eq!(jobs[0].all_verdicts(), Some(vec![EntryVerdict::Delivered]));
        assert_eq!(world.calls.count(PortOperation::Get) - before, 3);
    }
}
