//! deliver and the topic's record where what is known may be seconds old, as on AWS, and where the
//! record is broken.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::api::IsoTimestamp;
use posthaste_core::stored::TOPICS;
use posthaste_ports::{Clock as _, ErrorKind, QueueName};
use posthaste_simulation::{Answer, Faults, World, event};
use posthaste_testkit::faulty::{CallFault, FaultPlan, PortEffect};
use posthaste_testkit::recorded::PortOperation;
use serde_json::json;

const DAY: Duration = Duration::from_hours(24);
const MAX_AGE: Duration = Duration::from_secs(5);

async fn publish(world: &World, count: usize) {
    for n in 0..count {
        world.publish(&[event(&format!("e{n}"))], DAY).await;
    }
}

/// The number of requests for the topic's record.
fn asked(world: &World) -> usize {
    let asks = [PortOperation::Get, PortOperation::GetIfChanged];
    let calls = world.calls.all();
    calls
        .iter()
        .filter(|call| asks.contains(&call.operation) && call.key.starts_with(TOPICS))
        .count()
}

#[tokio::test]
async fn topic_is_read_once_an_interval_and_not_once_an_event() {
    let world = World::remembering(&Faults::none(), MAX_AGE);
    world.subscribe(json!({})).await;
    for interval in 1..=3 {
        publish(&world, 40).await;
        world.deliver_all().await;
        assert_eq!((world.endpoint.take().len(), asked(&world)), (40, interval));
        world.clock.advance(MAX_AGE);
    }
}

/// A subscription made a moment ago is not taken for a deleted one.
#[tokio::test]
async fn new_subscription_is_not_taken_for_a_deleted_one() {
    let world = World::remembering(&Faults::none(), MAX_AGE);
    world.unsubscribe().await;
    publish(&world, 1).await;
    world.deliver().await;
    assert_eq!(world.delayed(QueueName::DeadLetters).await, 1);
    // publish reads the new record and sends; what deliver knows is a second old.
    world.clock.advance(Duration::from_secs(1));
    world.subscribe(json!({})).await;
    publish(&world, 1).await;
    world.deliver().await;
    assert_eq!(
        (
            world.endpoint.take().len(),
            world.delayed(QueueName::DeadLetters).await
        ),
        (1, 1)
    );
}

/// A subscription made active a moment ago is not taken for a gone one.
#[tokio::test]
async fn reactivated_subscription_is_not_taken_for_a_gone_one() {
    let world = World::remembering(&Faults::none(), MAX_AGE);
    world.subscribe(json!({})).await;
    world.endpoint.answer([Answer::Status(410)]);
    publish(&world, 1).await;
    world.deliver().await;
    world.clock.advance(MAX_AGE);
    publish(&world, 1).await;
    world.deliver().await;
    assert_eq!(
        (
            world.endpoint.take().len(),
            world.delayed(QueueName::DeadLetters).await
        ),
        (1, 2)
    );
    world.clock.advance(Duration::from_secs(1));
    world.endpoint.answer([Answer::Status(204)]);
    let since = IsoTimestamp(world.clock.now());
    world
        .subscribe(json!({ "status": { "state": "Active", "since": since } }))
        .await;
    publish(&world, 1).await;
    world.deliver().await;
    assert_eq!(
        (
            world.endpoint.take().len(),
            world.delayed(QueueName::DeadLetters).await
        ),
        (1, 2)
    );
}

#[tokio::test]
async fn deleted_subscription_is_looked_up_once_not_once_an_event() {
    let world = World::remembering(&Faults::none(), MAX_AGE);
    world.subscribe(json!({})).await;
    publish(&world, 40).await;
    world.clock.advance(Duration::from_mins(1));
    world.unsubscribe().await;
    world.deliver_all().await;
    assert_eq!((world.endpoint.take().len(), asked(&world)), (0, 1));
    assert_eq!(world.delayed(QueueName::DeadLetters).await, 40);
}

#[tokio::test]
async fn while_the_record_cannot_be_read_nobody_is_taken_for_deleted() {
    let denied = |effect: PortEffect<'_>| {
        let is_read_again =
            effect.operation == PortOperation::GetIfChanged && effect.key.starts_with(TOPICS);
        is_read_again.then_some(CallFault::Before(ErrorKind::Denied))
    };
    let world = World::remembering(&Faults::in_state(&FaultPlan::by(denied)), MAX_AGE);
    world.unsubscribe().await;
    publish(&world, 1).await;
    world.clock.advance(Duration::from_secs(2));
    assert_eq!(world.deliver().await.failures.len(), 0);
    world.clock.advance(Duration::from_secs(1));
    world.subscribe(json!({})).await;
    publish(&world, 1).await;
    assert_eq!(world.deliver().await.failures.len(), 1);
    assert_eq!(world.delayed(QueueName::DeadLetters).await, 1);
}

/// Everything that can be wrong with a record, given a good one.
fn broken(good: &str) -> Vec<Bytes> {
    let newer = good.replace("\"v\":1", "\"v\":3");
    assert_ne!(newer, good);
    [
        String::new(),
        good[..good.len() / 2].to_owned(),
        newer,
        "{}".to_owned(),
    ]
    .map(Bytes::from)
    .to_vec()
}

async fn good_record() -> String {
    let world = World::new();
    world.subscribe(json!({})).await;
    String::from_utf8(world.record().await.render().to_vec()).expect("text")
}

#[tokio::test]
async fn a_broken_record_does_not_stop_what_was_known_before() {
    for record in broken(&good_record().await) {
        let world = World::remembering(&Faults::none(), MAX_AGE);
        world.subscribe(json!({})).await;
        publish(&world, 1).await;
        world.deliver().await;
        world.write_record(record.clone()).await;
        world.clock.advance(MAX_AGE);
        publish(&world, 2).await;
        assert_eq!(world.deliver().await.failures, [], "{record:?}");
        assert_eq!(world.endpoint.take().len(), 3, "{record:?}");
    }
}

/// A broken record that was never known keeps its events waiting until it is mended.
#[tokio::test]
async fn unknown_broken_record_keeps_events_waiting_until_mended() {
    let good = good_record().await;
    for record in broken(&good) {
        let world = World::remembering(&Faults::none(), MAX_AGE);
        world.write_record(record.clone()).await;
        publish(&world, 3).await;
        for _ in 0..5 {
            assert_eq!(world.deliver().await.failures.len(), 3, "{record:?}");
            world.clock.advance(Duration::from_mins(6));
        }
        assert_eq!(
            (
                world.endpoint.take().len(),
                world.delayed(QueueName::DeadLetters).await
            ),
            (0, 0)
        );
        world.write_record(Bytes::from(good.clone())).await;
        world.deliver().await;
        assert_eq!(world.endpoint.take().len(), 3, "{record:?}");
    }
}

#[tokio::test]
async fn an_absent_record_is_a_deleted_topic() {
    let world = World::remembering(&Faults::none(), MAX_AGE);
    publish(&world, 1).await;
    world.deliver().await;
    assert_eq!(world.delayed(QueueName::DeadLetters).await, 1);
}
