//! A message that makes a port panic costs itself alone: it is handed back, its neighbours go on,
//! nothing is lost.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::DeliveryLogMode;
use posthaste_deliver::DeliverSettings;
use posthaste_ports::{BatchResponse, MessageId, QueueName};
use posthaste_simulation::{Answer, Faults, World, event};
use posthaste_testkit::faulty::{FaultPlan, PortEffect};
use posthaste_testkit::recorded::PortOperation;
use serde_json::json;

const DAY: Duration = Duration::from_hours(24);

/// Panics at every call on a key that contains this.
fn at_key(part: &'static str) -> FaultPlan {
    FaultPlan::by(move |effect: PortEffect<'_>| {
        assert!(!effect.key.contains(part), "as the test wants it");
        None
    })
}

/// Panics at the first call of this operation.
fn at_first(operation: PortOperation) -> FaultPlan {
    let calls = AtomicUsize::new(0);
    FaultPlan::by(move |effect: PortEffect<'_>| {
        let is_first = effect.operation == operation && calls.fetch_add(1, Ordering::Relaxed) == 0;
        assert!(!is_first, "as the test wants it");
        None
    })
}

async fn world(faults: Faults) -> World {
    // With the log, a message whose records make its end panic is ended without them.
    let settings = DeliverSettings {
        delivery_log: DeliveryLogMode::Off,
        ..DeliverSettings::default()
    };
    let world = World::bounded(&faults, settings);
    world
        .subscribe(json!({ "retryPolicy": { "schedule": ["PT1H"] } }))
        .await;
    world
}

async fn publish(world: &World, ids: &[&str]) {
    for id in ids {
        world.publish(&[event(id)], DAY).await;
    }
}

/// A delivery of the topic `poison`, whose record is under a key of its own.
async fn publish_poison(world: &World) {
    publish(world, &["poison"]).await;
    let message = world
        .receive(QueueName::Deliveries)
        .await
        .pop()
        .expect("a message");
    let body = String::from_utf8(message.body.to_vec())
        .expect("text")
        .replace("orders", "poison");
    world.send(QueueName::Deliveries, Bytes::from(body)).await;
}

fn one(response: &BatchResponse) -> &MessageId {
    assert_eq!(response.failures.len(), 1, "{response:?}");
    &response.failures[0]
}

/// The ids of the events that arrived.
fn arrived(world: &World, ids: &[&'static str]) -> Vec<&'static str> {
    let requests = world.endpoint.take();
    let has = |id: &&'static str| {
        requests
            .iter()
            .any(|request| request.body.contains(&format!("\"{id}\"")))
    };
    ids.iter().copied().filter(has).collect()
}

#[tokio::test]
async fn deliver_hands_back_the_message_whose_topic_makes_it_panic() {
    let world = world(Faults::in_state(&at_key("poison"))).await;
    publish_poison(&world).await;
    publish(&world, &["a", "b"]).await;
    let response = world.deliver().await;
    assert!(!one(&response).0.is_empty());
    assert_eq!(arrived(&world, &["a", "b", "poison"]), ["a", "b"]);
    assert_eq!(world.visible(QueueName::Deliveries).await, 0);
}

#[tokio::test]
async fn deliver_hands_back_the_message_whose_payload_makes_it_panic() {
    let world = world(Faults::in_state(&at_key("payloads/poison"))).await;
    world
        .publish_stored("payloads/poison", &event("stored"))
        .await;
    publish(&world, &["a"]).await;
    one(&world.deliver().await);
    assert_eq!(arrived(&world, &["a"]), ["a"]);
}

#[tokio::test]
async fn deliver_hands_back_a_message_that_panics_while_settled() {
    let world = world(Faults::in_queues(&at_first(PortOperation::Replace))).await;
    world.endpoint.answer([Answer::Status(400)]);
    publish(&world, &["a", "b", "c"]).await;
    one(&world.deliver().await);
    // Two of the three are dead letters, and the third one is still there.
    assert_eq!(world.delayed(QueueName::DeadLetters).await, 2);
    world.clock.advance(Duration::from_mins(6));
    assert_eq!(world.deliver().await.failures, []);
    assert_eq!(
        world.delayed(QueueName::DeadLetters).await + world.visible(QueueName::DeadLetters).await,
        3
    );
}

#[tokio::test]
async fn deliver_hands_back_a_message_that_panics_while_judged() {
    let world = world(Faults::in_queues(&at_first(PortOperation::Replace))).await;
    for id in ["a", "b"] {
        world.publish(&[event(id)], Duration::from_secs(1)).await;
    }
    publish(&world, &["c"]).await;
    world.clock.advance(Duration::from_secs(2));
    one(&world.deliver().await);
    assert_eq!(arrived(&world, &["a", "b", "c"]), ["c"]);
    assert_eq!(world.delayed(QueueName::DeadLetters).await, 1);
}

#[tokio::test]
async fn deliver_keeps_in_the_queue_what_panics_while_it_is_parked() {
    let world = world(Faults::in_state(&at_key("parked/"))).await;
    world.endpoint.answer([Answer::Status(500)]);
    publish(&world, &["a"]).await;
    assert_eq!(world.deliver().await.failures, []);
    assert_eq!(
        (
            world.parked().await,
            world.delayed(QueueName::Deliveries).await
        ),
        (vec![], 1)
    );
}

/// Lets these events become dead letters that are due.
async fn refuse(world: &World, ids: &[&str]) {
    world.endpoint.answer([Answer::Status(400)]);
    publish(world, ids).await;
    world.deliver_all().await;
    world.clock.advance(Duration::from_mins(5));
}

async fn buried_under(world: &World, prefix: &str) -> usize {
    world
        .buried()
        .await
        .iter()
        .filter(|(key, _)| key.starts_with(prefix))
        .count()
}

/// deadletter hands back the message whose payload makes it panic.
#[tokio::test]
async fn deadletter_hands_back_a_message_with_a_panicking_payload() {
    let world = world(Faults::in_state(&at_key("payloads/poison"))).await;
    // The event expires before it is tried, so that deliver never reads its payload.
    world
        .publish_stored("payloads/poison", &event("stored"))
        .await;
    world.clock.advance(DAY);
    refuse(&world, &["a", "b"]).await;
    one(&world.bury().await);
    assert_eq!(buried_under(&world, "ORDERS/BILLING/").await, 1);
    let (_, object) = world.buried().await.pop().expect("an object");
    let events: Vec<serde_json::Value> = serde_json::from_slice(&object).expect("an array");
    assert_eq!(events.len(), 2);
}

/// A message that makes deadletter panic again and again is kept as it is.
#[tokio::test]
async fn message_that_makes_deadletter_panic_again_is_kept_as_it_is() {
    let world = world(Faults::in_state(&at_key("payloads/poison"))).await;
    world
        .publish_stored("payloads/poison", &event("stored"))
        .await;
    world.clock.advance(DAY);
    world.deliver().await;
    world.clock.advance(Duration::from_mins(5));
    let body = world
        .receive(QueueName::DeadLetters)
        .await
        .pop()
        .expect("a dead letter")
        .body;
    world.send(QueueName::Redrive, body.clone()).await;
    assert_eq!(world.bury_redriven().await.failures, []);
    let (key, object) = world.buried().await.pop().expect("an object");
    assert!(key.starts_with("MALFORMED/") && object == body, "{key}");
}

/// The object that makes the bucket panic is handed back, and the others are written.
#[tokio::test]
async fn deadletter_writes_other_objects_when_one_makes_it_panic() {
    let world = world(Faults::in_bucket(&at_key("ORDERS/"))).await;
    refuse(&world, &["a", "b"]).await;
    world
        .send(QueueName::DeadLetters, Bytes::from_static(b"not ours"))
        .await;
    assert_eq!(world.bury().await.failures.len(), 2);
    assert_eq!(
        (
            buried_under(&world, "ORDERS/").await,
            buried_under(&world, "MALFORMED/").await
        ),
        (0, 1)
    );
}

#[tokio::test]
async fn deadletter_hands_back_a_message_that_panics_while_kept() {
    let world = world(Faults::in_bucket(&at_first(PortOperation::Put))).await;
    for body in ["one", "other"] {
        world
            .send(QueueName::DeadLetters, Bytes::from_static(body.as_bytes()))
            .await;
    }
    refuse(&world, &["a"]).await;
    one(&world.bury().await);
    assert_eq!(
        (
            buried_under(&world, "ORDERS/").await,
            buried_under(&world, "MALFORMED/").await
        ),
        (1, 1)
    );
}

#[tokio::test]
async fn wake_leaves_an_object_that_panics_and_releases_the_others() {
    let gets = AtomicUsize::new(0);
    let plan = FaultPlan::by(move |effect: PortEffect<'_>| {
        let is_parked = effect.operation == PortOperation::Get && effect.key.starts_with("parked/");
        assert!(
            !is_parked || gets.fetch_add(1, Ordering::Relaxed) > 0,
            "as the test wants it"
        );
        None
    });
    let world = world(Faults::in_state(&plan)).await;
    world.endpoint.answer([Answer::Status(500)]);
    for id in ["a", "b"] {
        publish(&world, &[id]).await;
        world.deliver().await;
    }
    assert_eq!(world.parked().await.len(), 2);
    world.clock.advance(Duration::from_hours(3));
    let report = world.wake().await;
    assert_eq!((report.released, report.left), (1, 1));
    let report = world.wake().await;
    assert_eq!(
        (
            report.released,
            report.left,
            world.visible(QueueName::Deliveries).await
        ),
        (1, 0, 2)
    );
}
