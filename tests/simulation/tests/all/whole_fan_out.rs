//! A fan-out that fails in its middle: embedded, nothing of it goes out.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::Request;
use posthaste_local::{LocalQueue, StateStore};
use posthaste_ports::{ErrorKind, QueueCounts, QueueName, QueueReceiver};
use posthaste_publish::{BodyBudget, Publish, PublishError, PublishSettings, TarpitTurns};
use posthaste_services::{ActivityNotes, PressureReader, TopicRegistry, WrongKeys};
use posthaste_simulation::World;
use posthaste_testkit::faulty::{CallFault, FaultPlan};
use posthaste_testkit::{Faulty, ManualClock, SeededEntropy, TestPorts};
use serde_json::json;

type Ports = TestPorts<Faulty<LocalQueue<ManualClock>>, StateStore>;

/// Subscriptions of the topic: with the events below, the messages take several waves.
const SUBSCRIPTIONS: usize = 60;

/// A world whose topic has many subscriptions.
async fn world() -> World {
    let world = World::new();
    let api = world.api();
    let subscription = |n: usize| {
        let url = format!("https://s{n}.example.com/");
        (format!("s{n}"), json!({ "endpoint": { "url": url } }))
    };
    let subscriptions: serde_json::Map<_, _> = (0..SUBSCRIPTIONS).map(subscription).collect();
    let topic = json!({ "subscriptions": subscriptions });
    let (status, answer) = api.ask("PUT", "/topics/orders", &topic).await;
    assert_eq!(status, 201, "{answer}");
    world
}

/// publish over the world's store, with a queue that fails by a plan.
fn publish(world: &World, plan: &FaultPlan) -> Arc<Publish<Ports>> {
    let state = || world.local.state_store();
    let clock = world.clock.clone();
    let queue = world.local.queue(QueueName::Deliveries);
    Arc::new(Publish {
        deliveries: Faulty::new(queue, "deliveries", plan),
        slow_lane: None,
        // A fault of records costs no delivery.
        records: Some(Faulty::new(
            world.local.queue(QueueName::Records),
            "records",
            &FaultPlan::none(),
        )),
        registry: TopicRegistry::new(state(), clock.clone(), Duration::ZERO),
        payloads: state(),
        pressure: PressureReader::new(state(), clock.clone(), Duration::ZERO),
        clock,
        entropy: SeededEntropy::new(3),
        activity: ActivityNotes::default(),
        bodies: BodyBudget::new(1_000_000),
        advice: TarpitTurns::default(),
        wrong_keys: WrongKeys::default(),
        traces: posthaste_services::EventTraces::default(),
        settings: PublishSettings::default(),
    })
}

/// Publishes so many events; the copies of each take some 6 KB with their envelopes.
async fn send(world: &World, plan: &FaultPlan, events: usize) -> Result<usize, PublishError> {
    let event = |n: usize| {
        let data = "x".repeat(100);
        json!({ "specversion": "1.0", "id": n.to_string(), "source": "/s", "type": "t", "data": data })
    };
    let events: Vec<_> = (0..events).map(event).collect();
    let (_, keys) = world
        .api()
        .ask("GET", "/topics/orders/keys", &serde_json::Value::Null)
        .await;
    let request = Request::post("/")
        .header("content-type", "application/cloudevents-batch+json")
        .header("aeg-sas-key", keys["key1"].as_str().expect("a key"))
        .body(Body::from(json!(events).to_string()))
        .expect("a request");
    let published = publish(world, plan).publish("orders", request).await?;
    Ok(published.answer.matched_subscriptions.unwrap_or_default())
}

async fn counts(world: &World) -> QueueCounts {
    let queue = world.local.queue(QueueName::Deliveries);
    queue.counts().await.expect("counts")
}

/// The disk is full at the first wave, at one in the middle, and at the last one.
#[tokio::test]
async fn fan_out_that_fails_in_its_middle_sends_nothing() {
    let world = world().await;
    let counted = FaultPlan::none();
    assert!(send(&world, &counted, 1_500).await.is_ok());
    let waves = counted.effects();
    assert!(waves > 2, "{waves} waves");
    let whole = counts(&world).await.visible;
    assert_eq!(whole, 60 * 150);
    for wave in [0, waves / 2, waves - 1] {
        let plan = FaultPlan::nth(wave, CallFault::Before(ErrorKind::Full));
        let error = send(&world, &plan, 1_500).await.expect_err("no room");
        let problem = error.problem();
        assert_eq!(problem.status.as_u16(), 507);
        assert_eq!(
            problem.detail.as_deref(),
            Some("the deliveries could not be stored; nothing was accepted")
        );
        assert_eq!(counts(&world).await.visible, whole, "wave {wave}");
    }
}

/// More than one batch, and less than a wave: one transaction.
#[tokio::test]
async fn fan_out_of_several_batches_is_one_call() {
    let world = world().await;
    let plan = FaultPlan::none();
    assert!(send(&world, &plan, 1).await.is_ok());
    assert_eq!((plan.effects(), counts(&world).await.visible), (1, 60));
}
