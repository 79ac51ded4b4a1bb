//! The state of an event is told truly from the 200 on: no subscription that it is meant for is
//! left out, and nothing is delivered before all is.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::Request;
use metrics_exporter_prometheus::PrometheusBuilder;
use posthaste_core::delivery_log::LogRecord;
use posthaste_core::stored::layout::PAYLOADS;
use posthaste_local::{LocalQueue, StateStore};
use posthaste_ports::{Clock, QueueName, QueueReceiver};
use posthaste_publish::{BodyBudget, Publish, PublishSettings, TarpitTurns};
use posthaste_services::{ActivityNotes, EventTraces, PressureReader, TopicRegistry, WrongKeys};
use posthaste_simulation::{Answer, Faults, World};
use posthaste_testkit::faulty::FaultPlan;
use posthaste_testkit::{Faulty, ManualClock, SeededEntropy, TestPorts};
use serde_json::{Value, json};

type Ports = TestPorts<Faulty<LocalQueue<ManualClock>>, StateStore>;

/// publish over the world's store, whose effects are counted.
fn publish(world: &World, plan: &FaultPlan) -> Arc<Publish<Ports>> {
    traced_publish(world, plan, EventTraces::default())
}

/// The same, with the spans of what it accepts.
pub(super) fn traced_publish(
    world: &World,
    plan: &FaultPlan,
    traces: EventTraces,
) -> Arc<Publish<Ports>> {
    let state = || world.local.state_store();
    let clock = world.clock.clone();
    let queue = |name, label| Faulty::new(world.local.queue(name), label, plan);
    Arc::new(Publish {
        deliveries: queue(QueueName::Deliveries, "deliveries"),
        slow_lane: None,
        records: Some(queue(QueueName::Records, "records")),
        registry: TopicRegistry::new(state(), clock.clone(), Duration::ZERO),
        payloads: state(),
        pressure: PressureReader::new(state(), clock.clone(), Duration::ZERO),
        entropy: SeededEntropy::new(clock.now().as_millis()),
        clock,
        activity: ActivityNotes::default(),
        bodies: BodyBudget::new(1_000_000),
        advice: TarpitTurns::default(),
        wrong_keys: WrongKeys::default(),
        traces,
        settings: PublishSettings {
            stores_for_log: true,
            ..PublishSettings::default()
        },
    })
}

/// Writes a topic with these subscriptions.
pub(super) async fn topic(world: &World, subscriptions: &[&str]) {
    let named = subscriptions.iter().map(|name| {
        let url = format!("https://{name}.example.com/");
        ((*name).to_owned(), json!({ "endpoint": { "url": url } }))
    });
    let topic = json!({ "subscriptions": named.collect::<serde_json::Map<_, _>>() });
    let (status, answer) = world.api().ask("PUT", "/topics/orders", &topic).await;
    assert_eq!(status, 201, "{answer}");
}

pub(super) async fn send(world: &World, plan: &FaultPlan, id: &str) {
    send_event(world, plan, id, String::new()).await;
}

/// Publishes an event with this data.
pub(super) async fn send_event(world: &World, plan: &FaultPlan, id: &str, data: String) {
    let event =
        json!({ "specversion": "1.0", "id": id, "source": "/s", "type": "t", "data": data });
    send_body(world, plan, "application/cloudevents+json", &event).await;
}

async fn send_body(world: &World, plan: &FaultPlan, content_type: &str, body: &Value) {
    let api = world.api();
    let (_, keys) = api.ask("GET", "/topics/orders/keys", &Value::Null).await;
    let request = Request::post("/")
        .header("content-type", content_type)
        .header("aeg-sas-key", keys["key1"].as_str().expect("a key"))
        .body(Body::from(body.to_string()))
        .expect("a request");
    let published = publish(world, plan).publish("orders", request).await;
    published.expect("published");
}

/// Writes the records that wait into the log, and tells the state of an event: as a whole, and of
/// each subscription.
pub(super) async fn shown(world: &World, id: &str) -> String {
    world.record_some(10).await;
    let path = format!("/topics/orders/events/{id}");
    let (status, event) = world.api().ask("GET", &path, &Value::Null).await;
    assert_eq!(status, 200, "{event}");
    let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    let deliveries = event["deliveries"].as_array().expect("deliveries");
    let mut of_each: Vec<_> = deliveries
        .iter()
        .map(|one| format!(" {}={}", text(&one["subscription"]), text(&one["state"])))
        .collect();
    of_each.sort();
    format!("{}:{}", text(&event["state"]), of_each.concat())
}

async fn pause(world: &World, subscription: &str, action: &str) {
    let path = format!("/topics/orders/subscriptions/{subscription}/{action}");
    let (status, answer) = world.api().ask("POST", &path, &Value::Null).await;
    assert_eq!(status, 200, "{answer}");
}

/// Delivers the messages of one subscription after the other, and looks after each.
#[tokio::test]
async fn subscriptions_are_pending_until_they_have_a_record() {
    let world = World::new();
    topic(&world, &["a", "b", "c"]).await;
    send(&world, &FaultPlan::none(), "e1").await;
    assert_eq!(shown(&world, "e1").await, "none:");
    world.endpoint.answer([
        Answer::Status(200),
        Answer::Status(503),
        Answer::Status(200),
        Answer::Status(200),
    ]);
    world.deliver().await;
    assert_eq!(
        shown(&world, "e1").await,
        "waiting: a=delivered b=waiting c=delivered"
    );
    world.clock.advance(Duration::from_mins(1));
    world.deliver().await;
    assert_eq!(
        shown(&world, "e1").await,
        "delivered: a=delivered b=delivered c=delivered"
    );
}

/// More than the messages name: the record is in the log before any attempt, and in the transaction
/// of the deliveries.
#[tokio::test]
async fn event_of_many_subscriptions_is_pending_at_once() {
    let world = World::new();
    let names: Vec<String> = (0..17).map(|n| format!("s{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    topic(&world, &names).await;
    let plan = FaultPlan::none();
    send(&world, &plan, "e1").await;
    assert_eq!(plan.effects(), 1);
    let pending: Vec<String> = names
        .iter()
        .map(|name| format!(" {name}=pending"))
        .collect();
    let pending = pending.concat();
    assert_eq!(shown(&world, "e1").await, format!("pending:{pending}"));
    world.endpoint.answer([Answer::Status(200)]);
    world.deliver().await;
    let some = shown(&world, "e1").await;
    assert!(
        some.starts_with("pending:") && some.contains("=delivered"),
        "{some}"
    );
    world.deliver_all().await;
    let delivered = pending.replace("pending", "delivered");
    assert_eq!(shown(&world, "e1").await, format!("delivered:{delivered}"));
}

#[tokio::test]
async fn event_of_a_paused_subscription_is_known_at_once() {
    let world = World::new();
    topic(&world, &["a", "b"]).await;
    pause(&world, "a", "pause").await;
    pause(&world, "b", "pause").await;
    send(&world, &FaultPlan::none(), "e1").await;
    assert_eq!(shown(&world, "e1").await, "pending: a=pending b=pending");
    world.deliver().await;
    assert_eq!(shown(&world, "e1").await, "held: a=held b=held");
}

/// The records of such an event are made without its text, which is stored beside its message.
#[tokio::test]
async fn large_event_that_was_in_no_request_is_known_by_its_id() {
    let world = World::new();
    topic(&world, &["a", "b"]).await;
    pause(&world, "a", "pause").await;
    pause(&world, "b", "pause").await;
    let data = "x".repeat(200_000);
    send_event(&world, &FaultPlan::none(), "e1", data).await;
    assert_eq!(world.all_keys(PAYLOADS).await.len(), 1);
    world.deliver().await;
    assert_eq!(shown(&world, "e1").await, "held: a=held b=held");
    world.clock.advance(Duration::from_hours(25));
    world.wake().await;
    world.deliver_all().await;
    let expired = "dead-lettered: a=dead-lettered b=dead-lettered";
    assert_eq!(shown(&world, "e1").await, expired);
}

/// An embedded queue that has no room for records takes the deliveries without them.
#[tokio::test]
async fn full_queue_of_records_refuses_no_event() {
    let world = World::with_records_bytes_max(&Faults::none(), 100);
    let names: Vec<String> = (0..17).map(|n| format!("s{n:02}")).collect();
    topic(
        &world,
        &names.iter().map(String::as_str).collect::<Vec<_>>(),
    )
    .await;
    let plan = FaultPlan::none();
    send(&world, &plan, "e1").await;
    let counts = world.local.queue(QueueName::Deliveries).counts().await;
    assert_eq!(counts.expect("counts").visible, 17);
    assert_eq!(plan.effects(), 2);
    assert_eq!(shown(&world, "e1").await, "none:");
}

/// The most records of acceptances in one request: each counts for 512 bytes of 4 MiB.
const ACCEPTANCES_MAX: usize = 8192;

/// Records beyond the room of a request are left out and counted. No event is refused for them.
#[test]
fn acceptances_beyond_the_room_of_a_request_are_counted_as_lost() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let beyond = 3;
    metrics::with_local_recorder(&recorder, || {
        runtime.block_on(async {
            let world = World::new();
            let topic = json!({ "recordUnmatched": true });
            let (status, answer) = world.api().ask("PUT", "/topics/orders", &topic).await;
            assert_eq!(status, 201, "{answer}");
            let event =
                |n: usize| json!({ "specversion": "1.0", "id": n.to_string(), "source": "/", "type": "t" });
            let events: Vec<Value> = (0..ACCEPTANCES_MAX + beyond).map(event).collect();
            let batch = "application/cloudevents-batch+json";
            send_body(&world, &FaultPlan::none(), batch, &json!(events)).await;
            let records = world.log_records().await;
            let id = |record: &LogRecord| record.event_id.as_ref()?.parse::<usize>().ok();
            let mut kept: Vec<_> = records.iter().filter_map(id).collect();
            kept.sort_unstable();
            assert_eq!(kept, (0..ACCEPTANCES_MAX).collect::<Vec<_>>());
        });
    });
    let text = recorder.handle().render();
    let lost: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("LogRecordsLostCount{"))
        .collect();
    let expected = format!(r#"LogRecordsLostCount{{topic="orders"}} {beyond}"#);
    assert_eq!(lost, [expected]);
}
