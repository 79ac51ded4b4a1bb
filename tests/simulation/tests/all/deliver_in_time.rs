//! deliver while something hangs: it answers by its deadline, the hang costs its own messages
//! alone, and messages that are not settled by then are handed back.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::stored::delivery::parse_delivery;
use posthaste_deliver::{DeliverSettings, QUEUE_TIME, RECEIVING_TIME, SETTLING_TIME};
use posthaste_ports::{BatchResponse, Clock, ObjectStore, PutCondition, QueueName};
use posthaste_simulation::{Answer, Faults, World, event};
use posthaste_testkit::faulty::{CallFault, FaultPlan, PortEffect};
use posthaste_testkit::recorded::PortOperation;
use serde_json::json;

const DAY: Duration = Duration::from_hours(24);

/// The time of an invocation.
const INVOCATION: Duration = Duration::from_mins(2);

/// The timeout of a subscription that says nothing.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// A plan in which calls for keys that contain this never end.
fn hanging_at(part: &'static str) -> FaultPlan {
    FaultPlan::at(CallFault::HangBefore, move |effect| {
        effect.key.contains(part)
    })
}

/// One invocation. Once so many calls hang, so much time passes; then it must end without any more.
async fn deliver_while(
    world: &World,
    hanging: &FaultPlan,
    calls: u64,
    passes: Duration,
) -> BatchResponse {
    let before = hanging.faults();
    let began = world.clock.monotonic();
    let time = async {
        while hanging.faults() < before + calls {
            tokio::task::yield_now().await;
        }
        world.rest().await;
        world.clock.advance(passes);
    };
    let (response, ()) = tokio::join!(world.deliver_within(INVOCATION), time);
    assert_eq!(world.clock.monotonic(), began + passes);
    response
}

async fn store(world: &World, name: &str) {
    let key = format!("payloads/20231114/{name}");
    let text = Bytes::from(event(name));
    world
        .local
        .state_store()
        .put(&key, text, PutCondition::Always)
        .await
        .expect("a write");
    world.publish_stored(&key, &event(name)).await;
}

/// The numbers of attempts that waiting messages have behind them, the smallest first.
async fn attempts(world: &World) -> Vec<u16> {
    let messages = world.receive(QueueName::Deliveries).await;
    let attempts = messages
        .iter()
        .map(|message| parse_delivery(&message.body).expect("a delivery").attempts);
    let mut attempts: Vec<_> = attempts.collect();
    attempts.sort_unstable();
    attempts
}

/// A payload that hangs is given up when its request could not end in time any more.
#[tokio::test]
async fn hanging_payload_is_given_up_when_its_request_could_not_end() {
    let hanging = hanging_at("payloads/");
    let world = World::with(&Faults::in_state(&hanging));
    world.subscribe(json!({})).await;
    store(&world, "stored").await;
    world.publish(&[event("inline")], DAY).await;
    let last_start = INVOCATION.saturating_sub(SETTLING_TIME + ATTEMPT_TIMEOUT);
    assert_eq!(
        deliver_while(&world, &hanging, 1, last_start)
            .await
            .failures,
        []
    );
    let requests = world.endpoint.take();
    assert!(
        requests.len() == 1 && requests[0].body.contains("inline"),
        "{requests:?}"
    );
    assert_eq!(world.delayed(QueueName::Deliveries).await, 1);
    world.clock.advance(Duration::from_secs(30));
    assert_eq!(attempts(&world).await, [0]);
}

/// Requests whose payloads exceed the budget are made one after the other.
#[tokio::test]
async fn requests_above_the_payload_budget_go_one_after_the_other() {
    let hanging = hanging_at("payloads/");
    let settings = DeliverSettings {
        payload_bytes_max: 10,
        ..DeliverSettings::default()
    };
    let world = World::bounded(&Faults::in_state(&hanging), settings);
    world.subscribe(json!({})).await;
    for name in ["one", "two", "three"] {
        store(&world, name).await;
    }
    let last_start = INVOCATION.saturating_sub(SETTLING_TIME + ATTEMPT_TIMEOUT);
    assert_eq!(
        deliver_while(&world, &hanging, 1, last_start)
            .await
            .failures,
        []
    );
    assert_eq!(hanging.faults(), 1);
    // The two that waited for the first are due at once.
    assert_eq!(world.visible(QueueName::Deliveries).await, 2);
    hanging.switch(false);
    world.clock.advance(Duration::from_secs(30));
    world.deliver_all().await;
    assert_eq!(world.endpoint.take().len(), 3);
}

#[tokio::test]
async fn payload_reads_at_once_are_bounded() {
    let hanging = hanging_at("payloads/");
    let settings = DeliverSettings {
        payload_reads_max: 2,
        ..DeliverSettings::default()
    };
    let world = World::bounded(&Faults::in_state(&hanging), settings);
    world.subscribe(json!({})).await;
    for name in ["one", "two", "three"] {
        store(&world, name).await;
    }
    let last_start = INVOCATION.saturating_sub(SETTLING_TIME + ATTEMPT_TIMEOUT);
    assert_eq!(
        deliver_while(&world, &hanging, 2, last_start)
            .await
            .failures,
        []
    );
    assert_eq!(hanging.faults(), 2);
}

#[tokio::test]
async fn hanging_queue_hands_messages_back_at_the_deadline() {
    let hanging = FaultPlan::at(CallFault::HangBefore, |effect| {
        effect.operation == PortOperation::Replace
    });
    let world = World::with(&Faults::in_queues(&hanging));
    world.subscribe(json!({})).await;
    world.endpoint.answer([Answer::By(
        |body, _| if body.contains("busy") { 503 } else { 204 },
    )]);
    world.publish(&[event("good")], DAY).await;
    world.publish(&[event("busy")], DAY).await;
    assert_eq!(
        deliver_while(&world, &hanging, 1, INVOCATION)
            .await
            .failures
            .len(),
        1
    );
    hanging.switch(false);
    world.endpoint.take();
    world.clock.advance(Duration::from_mins(6));
    world.deliver().await;
    let requests = world.endpoint.take();
    assert!(
        requests.len() == 1 && requests[0].body.contains("busy"),
        "{requests:?}"
    );
}

#[tokio::test]
async fn hanging_topic_does_not_stop_other_deliveries() {
    let hanging = hanging_at("poison");
    let world = World::remembering(&Faults::in_state(&hanging), DAY);
    world.subscribe(json!({})).await;
    world.publish(&[event("known by now")], DAY).await;
    world.deliver().await;
    world.endpoint.take();
    world.publish(&[event("poison")], DAY).await;
    let message = world
        .receive(QueueName::Deliveries)
        .await
        .pop()
        .expect("a message");
    let body = String::from_utf8(message.body.to_vec())
        .expect("text")
        .replace("orders", "poison");
    world.send(QueueName::Deliveries, Bytes::from(body)).await;
    world.publish(&[event("good")], DAY).await;
    assert_eq!(
        deliver_while(&world, &hanging, 1, RECEIVING_TIME)
            .await
            .failures
            .len(),
        1
    );
    let requests = world.endpoint.take();
    assert!(
        requests.len() == 1 && requests[0].body.contains("good"),
        "{requests:?}"
    );
}

#[tokio::test]
async fn a_store_that_hangs_leaves_what_was_to_be_parked_in_the_queue() {
    let is_parking =
        |e: PortEffect<'_>| e.operation == PortOperation::Put && e.key.starts_with("parked/");
    let hanging = FaultPlan::at(CallFault::HangBefore, is_parking);
    hanging.switch(false);
    let world = World::with(&Faults::in_state(&hanging));
    world
        .subscribe(json!({ "retryPolicy": { "schedule": ["PT1H", "PT2H"] } }))
        .await;
    world.endpoint.answer([Answer::Status(500)]);
    world.publish(&[event("second try")], DAY).await;
    world.deliver().await;
    world.clock.advance(Duration::from_mins(67));
    assert_eq!(world.wake().await.sent, 1);
    world.publish(&[event("first try")], DAY).await;
    hanging.switch(true);
    // The letters wait for different hours, so they are two objects, and both are written at once.
    let parking_ends = INVOCATION.saturating_sub(QUEUE_TIME);
    assert_eq!(
        deliver_while(&world, &hanging, 2, parking_ends)
            .await
            .failures,
        []
    );
    assert_eq!(world.parked().await, Vec::<String>::new());
    world.clock.advance(Duration::from_mins(15));
    assert_eq!(attempts(&world).await, [1, 2]);
}
