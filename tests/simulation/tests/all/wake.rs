//! wake: parked deliveries come back once, in time, and burden no other.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::Timestamp;
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ErrorKind, ObjectStore, PutCondition, QueueName};
use posthaste_simulation::{Answer, Faults, World, event};
use posthaste_testkit::ManualClock;
use posthaste_testkit::faulty::{CallFault, EntryFault, FaultPlan, PortEffect};
use posthaste_testkit::recorded::PortOperation;
use serde_json::json;

const DAY: Duration = Duration::from_hours(24);

/// A world in which so many deliveries of one event are parked for an hour.
async fn parked(faults: &Faults, deliveries: usize) -> World {
    let world = World::with(faults);
    world
        .subscribe(json!({ "retryPolicy": { "schedule": ["PT1H"], "maxDeliveryAttempts": 3 } }))
        .await;
    // A status that says nothing about the endpoint: its deliveries do not pause after it.
    world.endpoint.answer([Answer::Status(422)]);
    for n in 0..deliveries {
        world.publish(&[event(&format!("e{n}"))], DAY).await;
    }
    world.deliver_all().await;
    world.endpoint.take();
    world
}

#[tokio::test]
async fn events_that_waited_for_wake_are_no_slow_drain() {
    let world = parked(&Faults::none(), 1).await;
    world.drained().await;
    world.clock.advance(Duration::from_hours(3));
    world.wake().await;
    world.deliver().await;
    let drained = world.drained().await;
    assert_eq!((drained.messages, drained.waited_max), (1, Duration::ZERO));
}

/// A delivery that cannot be parked waits in the queue and keeps its attempts.
#[tokio::test]
async fn delivery_that_cannot_be_parked_waits_and_keeps_its_attempts() {
    let no_parking = FaultPlan::by(|effect| {
        effect
            .key
            .starts_with(layout::PARKED)
            .then_some(CallFault::Before(ErrorKind::Denied))
    });
    let world = parked(&Faults::in_state(&no_parking), 1).await;
    for _ in 0..20 {
        world.clock.advance(Duration::from_mins(15));
        world.deliver().await;
    }
    assert_eq!(world.endpoint.take().len(), 2);
    assert_eq!(world.visible(QueueName::DeadLetters).await, 1);
}

#[tokio::test]
async fn sent_message_is_not_repeated_for_its_unsent_neighbour() {
    let third_fails = FaultPlan::by(|effect| {
        let entry = EntryFault {
            index: 2,
            is_sent: false,
            kind: ErrorKind::Throttled { retry_after: None },
        };
        (effect.operation == PortOperation::SendBatch).then(|| CallFault::Entries(vec![entry]))
    });
    let world = parked(&Faults::in_queues(&third_fails), 5).await;
    assert_eq!(world.parked().await.len(), 1);
    world.endpoint.answer([Answer::Status(204)]);
    world.clock.advance(Duration::from_mins(67));
    assert_eq!(world.wake().await.left, 1);
    assert_eq!(world.wake().await.released, 1);
    world.deliver_all().await;
    assert_eq!(world.endpoint.take().len(), 5);
}

#[tokio::test]
async fn a_lease_from_a_clock_that_was_ahead_keeps_nobody_out() {
    let world = parked(&Faults::none(), 1).await;
    world.clock.advance(Duration::from_mins(67));
    let ahead = (world.clock.now() + 365 * DAY).as_millis();
    let lease = Bytes::from(format!(r#"{{"lapsesAt":{ahead}}}"#));
    world
        .local
        .state_store()
        .put(layout::WAKE_LEASE, lease, PutCondition::Always)
        .await
        .expect("a write");
    assert_eq!(world.wake().await.sent, 1);
}

#[tokio::test]
async fn a_lease_that_is_held_keeps_a_second_run_out_until_it_lapses() {
    let world = parked(&Faults::none(), 1).await;
    world.clock.advance(Duration::from_mins(67));
    let soon = (world.clock.now() + Duration::from_mins(1)).as_millis();
    let lease = Bytes::from(format!(r#"{{"lapsesAt":{soon}}}"#));
    world
        .local
        .state_store()
        .put(layout::WAKE_LEASE, lease, PutCondition::Always)
        .await
        .expect("a write");
    assert!(world.wake().await.was_busy);
    world.clock.advance(Duration::from_mins(1));
    assert_eq!(world.wake().await.sent, 1);
}

#[tokio::test]
async fn killed_run_costs_the_next_run_and_loses_nothing() {
    let is_release =
        |e: PortEffect<'_>| e.operation == PortOperation::Get && e.key.starts_with(layout::PARKED);
    let plan = FaultPlan::nth_of(0, CallFault::HangBefore, is_release);
    let world = parked(&Faults::in_state(&plan), 1).await;
    world.clock.advance(Duration::from_mins(67));
    plan.kill(world.wake()).await;
    let mut reports = Vec::new();
    for _ in 0..3 {
        world.clock.advance(Duration::from_mins(1));
        let report = world.wake().await;
        reports.push((report.was_busy, report.sent));
    }
    assert_eq!(reports, [(true, 0), (false, 1), (false, 0)]);
}

#[tokio::test]
async fn a_run_ends_in_time_whatever_is_left_to_delete() {
    let clock: Arc<OnceLock<ManualClock>> = Arc::default();
    let slow = Arc::clone(&clock);
    let plan = FaultPlan::by(move |effect| {
        if let (PortOperation::Delete, Some(clock)) = (effect.operation, slow.get()) {
            clock.advance(Duration::from_millis(700));
        }
        None
    });
    let world = World::with(&Faults::in_state(&plan));
    let state = world.local.state_store();
    for n in 0..200 {
        let key = format!("payloads/20200101/{n:05}");
        state
            .put(&key, Bytes::from_static(b"{}"), PutCondition::Always)
            .await
            .expect("a write");
    }
    let minutes = world.clock.now().minute_rounded_down();
    world.clock.advance_to(Timestamp::from_millis(
        minutes.next_multiple_of(60) * 60_000,
    ));
    assert!(clock.set(world.clock.clone()).is_ok());
    world.wake().await;
    // 64 at once, 0.7 s each, are past the 42 s after which a run begins nothing new.
    let left = state
        .list(layout::PAYLOADS, None, 1000)
        .await
        .expect("a listing");
    assert_eq!(left.objects.len(), 200 - 64);
}

#[tokio::test]
async fn every_old_payload_is_deleted_and_no_young_one() {
    let world = World::new();
    let state = world.local.state_store();
    let old = (0..1_100).map(|n| format!("payloads/20200101/{n:05}"));
    for key in old.chain([layout::payload_key(world.clock.now(), "young")]) {
        state
            .put(&key, Bytes::from_static(b"{}"), PutCondition::Always)
            .await
            .expect("a write");
    }
    for _ in 0..61 {
        world.clock.advance(Duration::from_mins(1));
        world.wake().await;
    }
    let left = state
        .list(layout::PAYLOADS, None, 1000)
        .await
        .expect("a listing");
    assert_eq!(left.objects.len(), 1);
}
