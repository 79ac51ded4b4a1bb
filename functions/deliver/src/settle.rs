//! Settles messages: one whose events all have a verdict is ended, after its successors are durable.

pub(crate) mod place;
pub(crate) mod replace;
mod successors;
pub(crate) mod waiting;

use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use posthaste_core::attempt::settle::settle;
use posthaste_core::attempt::{EntryVerdict, Settlement};
use posthaste_core::model::idle::wait_noted_at;
use posthaste_core::model::{Delivery, Subscription};
use posthaste_ports::{Clock, Ports, QueueReceiver};
use posthaste_services::catch_panic::catch_panic;
use posthaste_services::late_answers::forget_late;
use posthaste_services::{Activity, DrainMeter, stop_at};

use crate::disable::Disabler;
use crate::invocation::{Invocation, Job, WaitingMessage};
use crate::limits::SETTLED_AT_ONCE_MAX;
use crate::notify::DroppedNotices;
use crate::send::{Attempted, Settle};
use replace::replace;
use successors::Successors;

/// Settles messages.
pub(crate) struct Settler<P: Ports> {
    pub(crate) queue: Arc<P::Queue>,
    pub(crate) state: Arc<P::Store>,
    pub(crate) clock: P::Clock,
    pub(crate) drain: DrainMeter,
    pub(crate) activity: Activity,
    pub(crate) disabler: Disabler<P>,
    pub(crate) notices: DroppedNotices<P>,
}

impl<P: Ports> Settle for Settler<P> {
    /// Disables the subscription if its endpoint is gone, notes the verdicts, and settles the messages that
    /// are complete with them.
    async fn attempted(&self, invocation: &Invocation, attempted: Attempted) {
        let Attempted { subscription, verdicts, is_to_be_disabled } = attempted;
        if is_to_be_disabled {
            self.disabler.disable_subscription(invocation, &subscription).await;
        }
        if verdicts.iter().any(|(_, verdict)| *verdict != EntryVerdict::NotStarted) {
            // If that takes too long, the next attempt is noted.
            let noted = self.activity.of_subscription(&*self.state, &subscription, self.clock.now());
            stop_at(&self.clock, invocation.deadlines.storing(), noted).await;
        }
        for (at, verdict) in verdicts {
            if let Some(complete) = invocation.jobs[at.job].judge(at.entry, verdict) {
                self.settle_or_hand_back(invocation, at.job, complete).await;
            }
        }
    }
}

impl<P: Ports> Settler<P> {
    /// Settles messages that need no attempt, side by side, so that messages that are given up together share
    /// requests to the queue.
    pub(crate) async fn settle_unsent(&self, invocation: &Invocation) {
        let jobs = invocation.jobs.iter().enumerate();
        let judged: Vec<_> = jobs.filter_map(|(index, job)| Some((index, job.complete()?))).collect();
        let settle =
            |(index, verdicts): (usize, Vec<_>)| self.settle_or_hand_back(invocation, index, verdicts);
        let settled = stream::iter(judged).for_each_concurrent(SETTLED_AT_ONCE_MAX, settle);
        if stop_at(&self.clock, invocation.deadlines.receiving(), settled).await.is_none() {
            tracing::error!("messages handed back, the queue did not take what follows them in time");
        }
    }

    async fn settle_or_hand_back(&self, invocation: &Invocation, index: usize, verdicts: Vec<EntryVerdict>) {
        let job = &invocation.jobs[index];
        if catch_panic(self.settle(invocation, job, &verdicts)).await.is_err() {
            job.hand_back();
        }
    }

    /// Settles a message whose events all have a verdict.
    async fn settle(&self, invocation: &Invocation, job: &Job, verdicts: &[EntryVerdict]) {
        let now = self.clock.now();
        if !verdicts.iter().all(EntryVerdict::is_untried) {
            self.drain.settled(1);
        }
        let policy = job.subscription.as_ref().map(|subscription| &subscription.dead_letter);
        let Settlement { again, held, dead, dropped } = settle(&job.delivery, verdicts, policy);
        if let Some(subscription) = &job.subscription {
            self.note_scheduled(invocation, subscription, &again, &held).await;
        }
        let mut successors = Successors::default();
        for letter in &dead {
            successors.dead(letter, policy);
        }
        for letter in dropped {
            if !self.notices.drop_events(invocation, &letter).await {
                successors.notices(letter, now);
            }
        }
        successors.held(held);
        for delivery in again {
            successors.again(delivery, now);
        }
        let Successors { messages: successors, stored: deliveries } = successors;
        if !deliveries.is_empty() {
            return invocation.wait(WaitingMessage { message: job.message.clone(), deliveries, successors });
        }
        // A message that comes again must find its late answers still noted.
        if successors.is_empty() {
            invocation.settled(&job.message.id);
            if let Err(error) = self.queue.acknowledge(&job.message.receipt).await {
                let error = &error as &dyn std::error::Error;
                return tracing::error!(error, "delivered message not acknowledged");
            }
        } else if !replace(&*self.queue, invocation, &job.message, successors).await {
            return;
        }
        if !job.acknowledged_late.is_empty() {
            let (topic, subscription) = (&job.delivery.topic, &job.delivery.subscription);
            let forgotten = forget_late(&*self.state, topic, subscription, &job.acknowledged_late);
            stop_at(&self.clock, invocation.deadlines.end, forgotten).await;
        }
    }

    /// Notes when deliveries that are tried again are due, and when held ones expire, for entities that are
    /// deleted when they are idle: until then neither the subscription nor its topic is idle. wake sees
    /// deliveries in the object store, but not those it has just sent to the queue, so the subscription's
    /// note lasts a while longer. For all other entities nothing is read or written.
    async fn note_scheduled(
        &self,
        invocation: &Invocation,
        subscription: &Subscription,
        again: &[Delivery],
        held: &[Delivery],
    ) {
        let due = again.iter().map(|delivery| delivery.not_before).max();
        let Some(latest) = due.into_iter().chain(held.iter().map(Delivery::expires_first)).max() else {
            return;
        };
        let now = self.clock.now();
        let waits_until = wait_noted_at(due.map_or(now, |due| due.max(now)));
        let noted = async {
            self.activity.of_its_topic(&*self.state, subscription, latest).await;
            self.activity.of_subscription(&*self.state, subscription, waits_until).await;
        };
        stop_at(&self.clock, invocation.deadlines.storing(), noted).await;
    }
}

#[cfg(test)]
mod tests {
    use posthaste_core::attempt::{DeadLetterReason, Outcome};
    use posthaste_core::model::{LastAttempt, Timestamp};
    use posthaste_core::stored::layout;
    use posthaste_ports::{ErrorKind, ObjectStore, PutCondition, QueueName};
    use posthaste_testkit::{Fault, Operation, Plan};
    use serde_json::{Value, json};

    use super::*;
    use crate::invocation::{EntryRef, MessageHandle};
    use crate::limits::DeliverSettings;
    use crate::payloads::PayloadReader;
    use crate::testing::{START, TestPorts, World, delivery, job, secs, subscription};

    fn settler(world: &World) -> Settler<TestPorts> {
        let (state, clock) = (Arc::clone(&world.state), world.clock.clone());
        let payloads = PayloadReader::new(Arc::clone(&state), clock.clone(), &DeliverSettings::default());
        let notices = DroppedNotices { ports: world.notice_ports(), payloads: Arc::new(payloads) };
        Settler {
            queue: Arc::clone(&world.queue),
            state,
            clock,
            drain: DrainMeter::default(),
            activity: Activity::default(),
            disabler: Disabler { ports: world.notice_ports() },
            notices,
        }
    }

    /// An invocation with a received message of `events` events.
    async fn invocation(world: &World, events: usize, settings: Value) -> Invocation {
        let message = world.received().await;
        let mut invocation = world.invocation_of(std::slice::from_ref(&message));
        let message = MessageHandle { id: message.id, receipt: message.receipt };
        invocation.jobs = vec![Job { message, ..job(delivery(events), &subscription(settings)) }];
        invocation
    }

    /// An attempt at the first events of the message, one for each verdict.
    fn attempted(invocation: &Invocation, verdicts: &[EntryVerdict]) -> Attempted {
        let at = |entry| EntryRef { job: 0, entry };
        Attempted {
            subscription: Arc::clone(invocation.jobs[0].subscription.as_ref().expect("a subscription")),
            verdicts: verdicts.iter().enumerate().map(|(entry, verdict)| (at(entry), *verdict)).collect(),
            is_to_be_disabled: false,
        }
    }

    /// Settles a message of these verdicts. Answers whether it is reported as failed.
    async fn is_failed(world: &World, settings: Value, verdicts: &[EntryVerdict]) -> bool {
        let invocation = invocation(world, verdicts.len(), settings).await;
        settler(world).attempted(&invocation, attempted(&invocation, verdicts)).await;
        !invocation.response().failures.is_empty()
    }

    fn retry(not_before: Timestamp) -> EntryVerdict {
        let outcome = Outcome::Answered { status: 503, retry_after: None };
        EntryVerdict::Retry { not_before, last: LastAttempt::of(outcome, START).unwrap() }
    }

    fn give_up() -> EntryVerdict {
        EntryVerdict::GiveUp { reason: DeadLetterReason::MaxDeliveryAttemptsExceeded, last: None }
    }

    #[tokio::test]
    async fn a_delivered_message_is_acknowledged() {
        let world = World::new();
        assert!(!is_failed(&world, json!({}), &[EntryVerdict::Delivered; 2]).await);
        assert_eq!(world.calls.count(Operation::Acknowledge), 1);
    }

    #[tokio::test]
    async fn a_delivered_message_is_settled_though_the_queue_does_not_take_it() {
        let world = World::with(&Plan::none(), &Plan::nth(0, Fault::Before(ErrorKind::Other)));
        assert!(!is_failed(&world, json!({}), &[EntryVerdict::Delivered]).await);
        // It is delivered again: at least once.
        assert_eq!(world.sent(QueueName::Deliveries).await.len(), 1);
    }

    #[tokio::test]
    async fn nothing_is_settled_before_the_last_verdict() {
        let world = World::new();
        let invocation = invocation(&world, 2, json!({})).await;
        settler(&world).attempted(&invocation, attempted(&invocation, &[EntryVerdict::Delivered])).await;
        assert!(invocation.jobs[0].is_open(1));
        assert_eq!(world.calls.all().len(), 0);
        assert_eq!(invocation.response().failures.len(), 1);
    }

    #[tokio::test]
    async fn events_that_fail_are_tried_again_or_are_dead_letters() {
        let world = World::new();
        let verdicts = [EntryVerdict::Delivered, retry(START + secs(60)), give_up()];
        assert!(!is_failed(&world, json!({}), &verdicts).await);
        assert_eq!(world.sent(QueueName::Deliveries).await.len(), 1);
        assert_eq!(world.sent(QueueName::DeadLetters).await.len(), 1);
    }

    #[tokio::test]
    async fn a_message_whose_successors_are_refused_is_handed_back() {
        let world = World::with(&Plan::none(), &Plan::nth(0, Fault::Before(ErrorKind::Other)));
        assert!(is_failed(&world, json!({}), &[retry(START)]).await);
    }

    #[tokio::test]
    async fn what_waits_for_long_or_is_held_is_left_to_the_end_of_the_invocation() {
        let world = World::new();
        let invocation = invocation(&world, 2, json!({})).await;
        let verdicts = [retry(START + secs(7200)), EntryVerdict::Held];
        settler(&world).attempted(&invocation, attempted(&invocation, &verdicts)).await;
        let waiting = invocation.take_waiting();
        assert_eq!((waiting.len(), world.calls.all().len()), (1, 0));
        let mut places: Vec<_> = waiting[0].deliveries.iter().map(|(place, _)| *place).collect();
        places.sort_by_key(|place| *place == place::Place::Parked);
        assert_eq!(places, [place::Place::Held, place::Place::Parked]);
    }

    #[tokio::test]
    async fn events_without_dead_letters_are_dropped() {
        let world = World::new();
        let settings = json!({ "deadLetter": { "enabled": false } });
        assert!(!is_failed(&world, settings, &[give_up()]).await);
        assert_eq!(world.sent(QueueName::DeadLetters).await.len(), 0);
        assert_eq!(world.calls.count(Operation::Acknowledge), 1);
    }

    #[tokio::test]
    async fn messages_without_an_attempt_are_settled_and_the_notes_of_late_answers_removed() {
        let world = World::new();
        let mut invocation = invocation(&world, 1, json!({})).await;
        let job = &mut invocation.jobs[0];
        let key = layout::late(&job.delivery.topic, &job.delivery.subscription, "k-0");
        world.memory.put(&key, bytes::Bytes::new(), PutCondition::Always).await.unwrap();
        job.acknowledged_late = ["k-0".to_owned()].into();
        job.judge(0, EntryVerdict::Delivered);
        settler(&world).settle_unsent(&invocation).await;
        assert_eq!(invocation.response().failures.len(), 0);
        assert!(world.memory.get(&key).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_panic_while_settling_hands_the_message_back() {
        let panics = Plan::by(|_| panic!("as the test wants it"));
        let world = World::with(&Plan::none(), &panics);
        let invocation = invocation(&world, 2, json!({})).await;
        let job = &invocation.jobs[0];
        settler(&world).attempted(&invocation, attempted(&invocation, &[retry(START); 2])).await;
        assert!(job.complete().is_some());
        assert_eq!(invocation.response().failures.len(), 1);
    }
}
