mod groups;

use std::sync::Arc;

use bytes::Bytes;
use posthaste_core::circuit::HealthSettings;
use posthaste_core::lane::DeliveryLane;
use posthaste_core::model::{
    AttemptOutcome, DeadLetterReason, LastAttempt, LetterPlace, Timestamp,
};
use posthaste_core::stored::layout;
use posthaste_core::stored::resolved_message::parse_resolved;
use posthaste_ports::{ErrorKind, ObjectStore, PutCondition, QueueName};
use posthaste_services::{ActivityNotes, DrainMeter, LinkHealth};
use posthaste_testkit::{CallFault, FaultPlan, PortOperation};
use serde_json::{Value, json};

use super::*;
use crate::invocation::{DeliveryJob, EntryRef, MessageHandle};
use crate::limits::{DeliverSettings, RecordsSettings};
use crate::notify::DroppedNotices;
use crate::outages::OutageLookup;
use crate::payloads::PayloadReader;
use crate::testing::{START, TestPorts, World, delivery, job, secs, subscription};
use crate::waiting_place::WaitingPlace;

fn settler(world: &World) -> MessageSettler<TestPorts> {
    let state = Arc::clone(&world.state);
    let clock = world.clock.clone();
    let payloads = PayloadReader::new(
        Arc::clone(&state),
        clock.clone(),
        &DeliverSettings::default(),
    );
    let notices = DroppedNotices::new(world.notice_ports(), Arc::new(payloads));
    let drain = DrainMeter::default();
    let activity = ActivityNotes::default();
    let settings = RecordsSettings::EMBEDDED;
    let records = RecordsQueue::new(Arc::clone(&world.records), clock.clone(), settings);
    MessageSettler {
        circuit: Arc::new(world.circuit()),
        ender: MessageEnder {
            queues: world.queues(),
            state,
            clock,
            drain,
            current: world.current(),
            activity,
            outages: OutageLookup::new(world.links(), world.clock.clone()),
            notices,
        },
        records,
        waiting: WaitingObjects {
            queues: world.queues(),
            state: Arc::clone(&world.state),
            clock: world.clock.clone(),
            entropy: world.entropy.clone(),
            wake: world.wake(),
        },
        links: world.links(),
        disabler: SubscriptionDisabler {
            ports: world.notice_ports(),
            wake: world.wake(),
            current: world.current(),
        },
    }
}

/// Settles messages by attempts, one after the other, after those that need none.
async fn settle(
    settler: &MessageSettler<TestPorts>,
    invocation: &Invocation,
    attempts: Vec<EndedAttempt>,
) {
    let (settling, recorded) = settler.begin_settling(invocation);
    let attempt = async move {
        settling.settle_unsent(invocation).await;
        for attempted in attempts {
            settling.settle_attempt(invocation, attempted).await;
        }
    };
    tokio::join!(attempt, settler.settle_recorded(invocation, recorded));
}

/// An invocation with a received message of `events` events.
async fn invocation(world: &World, events: usize, settings: Value) -> Invocation {
    let message = world.received().await;
    let mut invocation = world.invocation_of(std::slice::from_ref(&message));
    let message = MessageHandle::from_message(&message);
    invocation.jobs = vec![DeliveryJob {
        message,
        ..job(delivery(events), &subscription(settings))
    }];
    invocation
}

/// An attempt at the first events of the message, one for each verdict.
fn attempted(invocation: &Invocation, verdicts: &[EntryVerdict]) -> EndedAttempt {
    let at = |entry| EntryRef { job: 0, entry };
    EndedAttempt {
        subscription: Arc::clone(
            invocation.jobs[0]
                .subscription
                .as_ref()
                .expect("a subscription"),
        ),
        verdicts: verdicts
            .iter()
            .enumerate()
            .map(|(entry, verdict)| (at(entry), *verdict))
            .collect(),
        is_to_be_disabled: false,
    }
}

/// Settles a message of these verdicts. Answers whether it is reported as failed.
async fn is_failed(world: &World, settings: Value, verdicts: &[EntryVerdict]) -> bool {
    let invocation = invocation(world, verdicts.len(), settings).await;
    settle(
        &settler(world),
        &invocation,
        vec![attempted(&invocation, verdicts)],
    )
    .await;
    !invocation.into_response().failures.is_empty()
}

fn retry(not_before: Timestamp) -> EntryVerdict {
    let outcome = AttemptOutcome::Answered {
        status: 503,
        retry_after: None,
    };
    EntryVerdict::Retry {
        not_before,
        last: LastAttempt::from_outcome(outcome, START).unwrap(),
    }
}

fn give_up() -> EntryVerdict {
    EntryVerdict::GiveUp {
        reason: DeadLetterReason::MaxDeliveryAttemptsExceeded,
        last: None,
    }
}

#[tokio::test]
async fn a_delivered_message_is_acknowledged() {
    let world = World::new();
    assert!(!is_failed(&world, json!({}), &[EntryVerdict::Delivered; 2]).await);
    assert_eq!(world.calls.count(PortOperation::Acknowledge), 1);
}

/// A delivered message is settled even if the queue does not take its acknowledgement.
#[tokio::test]
async fn delivered_message_is_settled_though_the_queue_fails() {
    let world = World::with(
        &FaultPlan::none(),
        &FaultPlan::nth(0, CallFault::Before(ErrorKind::Other)),
    );
    assert!(!is_failed(&world, json!({}), &[EntryVerdict::Delivered]).await);
    // It is delivered again: at least once.
    assert_eq!(world.sent(QueueName::Deliveries).await.len(), 1);
}

/// A subscription that is deleted when it is idle is in use as long as something is sent to it.
#[tokio::test]
async fn attempt_notes_the_activity_of_an_idle_subscription() {
    let noted = async |settings: Value| {
        let world = World::new();
        let invocation = invocation(&world, 1, settings).await;
        let attempts = vec![attempted(&invocation, &[EntryVerdict::Delivered])];
        settle(&settler(&world), &invocation, attempts).await;
        let delivery = &invocation.jobs[0].delivery;
        let key = layout::subscription_activity_key(&delivery.topic, &delivery.subscription);
        world.state.get(&key).await.unwrap().is_some()
    };
    assert!(noted(json!({ "autoDeleteOnIdle": "P1D" })).await);
    assert!(!noted(json!({})).await);
}

/// The book of the subscriptions that fail begins with it.
#[tokio::test]
async fn failed_attempt_is_noted_as_a_try() {
    let world = World::new();
    let settings = HealthSettings::default();
    let links = LinkHealth::new(world.store("links"), world.clock.clone(), settings);
    let links = Arc::new(links.counting_arrivals());
    let settler = MessageSettler {
        links: links.clone(),
        ..settler(&world)
    };
    let invocation = invocation(&world, 1, json!({})).await;
    let attempts = vec![attempted(&invocation, &[retry(START)])];
    settle(&settler, &invocation, attempts).await;
    let book = links.arrivals().current_book().await.unwrap();
    let delivery = &invocation.jobs[0].delivery;
    let key = book_key(&delivery.topic, &delivery.subscription);
    assert!(book.subscription(&key).is_some());
}

/// The drain is measured by the messages that were tried, in the quick lane alone.
#[tokio::test]
async fn tried_message_of_the_quick_lane_counts_as_drained() {
    let check = async |lane: DeliveryLane, verdict: EntryVerdict, expected: usize| {
        let world = World::new();
        let mut invocation = invocation(&world, 1, json!({})).await;
        invocation.lane = lane;
        let settler = settler(&world);
        let attempts = vec![attempted(&invocation, &[verdict])];
        settle(&settler, &invocation, attempts).await;
        let meter = DrainMeter::default();
        for _ in 0..expected {
            meter.note_delivery_settled(&invocation.jobs[0].delivery);
        }
        let drained = format!("{:?}", settler.ender.drain);
        assert_eq!(drained, format!("{meter:?}"), "{lane:?}, {verdict:?}");
    };
    check(DeliveryLane::Quick, EntryVerdict::Delivered, 1).await;
    check(DeliveryLane::Quick, retry(START), 1).await;
    check(DeliveryLane::Quick, EntryVerdict::NotStarted, 0).await;
    check(DeliveryLane::Slow, EntryVerdict::Delivered, 0).await;
}

/// A message with an event made of each letter of an object, and the places of those that settling
/// it says are resolved.
async fn resolved(world: &World, verdicts: &[EntryVerdict]) -> Vec<usize> {
    let mut invocation = invocation(world, verdicts.len(), json!({})).await;
    for (index, event) in invocation.jobs[0].delivery.events.iter_mut().enumerate() {
        event.marks.letter = Some(LetterPlace {
            object: "ORDERS/BILLING/2026/3/7/4/x.json".to_owned(),
            index,
        });
    }
    settle(
        &settler(world),
        &invocation,
        vec![attempted(&invocation, verdicts)],
    )
    .await;
    assert_eq!(invocation.into_response().failures.len(), 0);
    let sent = world.sent(QueueName::DeadLetters).await;
    let resolved = sent
        .iter()
        .filter_map(|body| parse_resolved(body).ok())
        .flatten();
    resolved.map(|resolved| resolved.letter.index).collect()
}

#[tokio::test]
async fn dead_letters_that_are_delivered_again_are_resolved() {
    let delivered = EntryVerdict::Delivered;
    assert_eq!(
        resolved(&World::new(), &[delivered, delivered]).await,
        [0, 1]
    );
    assert_eq!(
        resolved(&World::new(), &[retry(START), delivered, give_up()]).await,
        [1]
    );
    assert!(
        resolved(&World::new(), &[retry(START), give_up()])
            .await
            .is_empty()
    );
}

/// A delivered message is settled even if the queue does not take which letters it resolves.
#[tokio::test]
async fn delivered_message_is_settled_though_its_letters_are_not() {
    let world = World::with(
        &FaultPlan::none(),
        &FaultPlan::nth(0, CallFault::Before(ErrorKind::Other)),
    );
    assert!(
        resolved(&world, &[EntryVerdict::Delivered])
            .await
            .is_empty()
    );
    assert_eq!(world.calls.count(PortOperation::Acknowledge), 1);
    assert!(world.sent(QueueName::Deliveries).await.is_empty());
}

#[tokio::test]
async fn message_is_not_settled_before_its_last_verdict() {
    let world = World::new();
    let invocation = invocation(&world, 2, json!({})).await;
    settle(
        &settler(&world),
        &invocation,
        vec![attempted(&invocation, &[EntryVerdict::Delivered])],
    )
    .await;
    assert!(invocation.jobs[0].is_open(1));
    assert_eq!(world.calls.all().len(), 0);
    assert_eq!(invocation.into_response().failures.len(), 1);
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
    let world = World::with(
        &FaultPlan::none(),
        &FaultPlan::nth(0, CallFault::Before(ErrorKind::Other)),
    );
    assert!(is_failed(&world, json!({}), &[retry(START)]).await);
}

/// Deliveries that wait for long or are held are left to the end of the invocation.
#[tokio::test]
async fn long_and_held_waits_are_settled_when_the_invocation_ends() {
    let world = World::new();
    let invocation = invocation(&world, 2, json!({})).await;
    let verdicts = [retry(START + secs(7200)), EntryVerdict::Held];
    settle(
        &settler(&world),
        &invocation,
        vec![attempted(&invocation, &verdicts)],
    )
    .await;
    let waiting = invocation.take_waiting();
    assert_eq!((waiting.len(), world.calls.all().len()), (1, 0));
    let mut places: Vec<_> = waiting[0]
        .deliveries
        .iter()
        .map(|(place, _)| *place)
        .collect();
    places.sort_by_key(|place| *place == WaitingPlace::Parked);
    assert_eq!(places, [WaitingPlace::Held, WaitingPlace::Parked]);
}

#[tokio::test]
async fn events_without_dead_letters_are_dropped() {
    let world = World::new();
    let settings = json!({ "deadLetter": { "enabled": false } });
    assert!(!is_failed(&world, settings, &[give_up()]).await);
    assert_eq!(world.sent(QueueName::DeadLetters).await.len(), 0);
    assert_eq!(world.calls.count(PortOperation::Acknowledge), 1);
}

/// Messages without an attempt are settled, and the notes of late answers are removed.
#[tokio::test]
async fn unattempted_messages_are_settled_and_late_notes_removed() {
    let world = World::new();
    let mut invocation = invocation(&world, 1, json!({})).await;
    let job = &mut invocation.jobs[0];
    let key = layout::late_answer_key(&job.delivery.topic, &job.delivery.subscription, "k-0");
    world
        .memory
        .put(&key, Bytes::new(), PutCondition::Always)
        .await
        .unwrap();
    job.acknowledged_late = ["k-0".to_owned()].into();
    job.note_verdict(0, EntryVerdict::Delivered);
    settle(&settler(&world), &invocation, Vec::new()).await;
    assert_eq!(invocation.into_response().failures.len(), 0);
    assert!(world.memory.get(&key).await.unwrap().is_none());
}

#[tokio::test]
async fn a_panic_while_settling_hands_the_message_back() {
    let panics = FaultPlan::by(|_| panic!("as the test wants it"));
    let world = World::with(&FaultPlan::none(), &panics);
    let invocation = invocation(&world, 2, json!({})).await;
    let job = &invocation.jobs[0];
    settle(
        &settler(&world),
        &invocation,
        vec![attempted(&invocation, &[retry(START); 2])],
    )
    .await;
    assert!(job.all_verdicts().is_some());
    assert_eq!(invocation.into_response().failures.len(), 1);
}
