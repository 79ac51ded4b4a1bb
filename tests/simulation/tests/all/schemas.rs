//! Custom events from the queue to the endpoint and to their dead letter: sent as their producer
//! wrote them, kept in Event Grid's envelope.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::{Delivery, EventEnvelope, EventPayload, EventSchema};
use posthaste_core::stored::delivery::render_delivery;
use posthaste_ports::{Clock, QueueName};
use posthaste_simulation::{Answer, World};
use posthaste_testkit::records;
use serde_json::{Value, json};

const EVENT: &str = r#"{ "prop1":"my property","n": 12345678901234567890 }"#;

fn envelope() -> EventEnvelope {
    EventEnvelope {
        id: "8bc07e6f".into(),
        event_time: "2020-08-13T18:11:29.4121391Z".into(),
        event_type: "myEventType".into(),
        data_version: "1.0".into(),
        topic: "/topics/orders".into(),
        subject: "subjectDefault".into(),
    }
}

/// A world whose topic takes custom events.
async fn world(settings: Value) -> World {
    let world = World::new();
    world.subscribe(settings).await;
    let mut record = world.record().await;
    record.settings.input_schema = EventSchema::Custom;
    world.write_record(record.render()).await;
    world
}

/// Puts one delivery of these texts into the queue, as publish does.
async fn publish(world: &World, texts: &[&'static str]) {
    let now = world.clock.now();
    let payloads = texts
        .iter()
        .map(|text| EventPayload::Inline(Bytes::from_static(text.as_bytes())));
    let to = (
        records::topic_name("orders"),
        records::subscription_name("billing"),
    );
    let mut delivery = Delivery {
        schema: EventSchema::Custom,
        ..records::delivery(to, "k", payloads, now)
    };
    for entry in &mut delivery.events {
        entry.envelope = Some(Arc::new(envelope()));
    }
    world
        .send(QueueName::Deliveries, render_delivery(&delivery))
        .await;
}

#[tokio::test]
async fn a_custom_event_is_sent_as_it_was_written_in_an_array() {
    let world = world(json!({})).await;
    publish(&world, &[EVENT, EVENT]).await;
    world.deliver_all().await;
    let requests = world.endpoint.take();
    assert_eq!(
        requests.len(),
        2,
        "a batch is only sent where one was asked for"
    );
    for request in requests {
        assert_eq!(
            request.headers["content-type"],
            "application/json; charset=utf-8"
        );
        assert_eq!(request.body, format!("[{EVENT}]"));
    }
}

#[tokio::test]
async fn custom_events_share_a_request_where_batches_were_asked_for() {
    let world = world(json!({ "batching": { "maxEventsPerBatch": 10 } })).await;
    publish(&world, &[EVENT, "{}"]).await;
    world.deliver_all().await;
    let [request] = world.endpoint.take().try_into().expect("one request");
    assert_eq!(request.body, format!("[{EVENT},{{}}]"));
}

/// A custom event's dead letter is in Event Grid's envelope, also after retries.
#[tokio::test]
async fn custom_dead_letter_has_the_event_grid_envelope() {
    let world = world(json!({ "retryPolicy": { "maxDeliveryAttempts": 2 } })).await;
    world
        .endpoint
        .answer([Answer::Status(500), Answer::Status(500)]);
    publish(&world, &[EVENT]).await;
    world.deliver_all().await;
    world.clock.advance(Duration::from_mins(1));
    world.deliver_all().await;
    world.clock.advance(Duration::from_mins(5));
    assert_eq!(world.bury().await.failures, []);
    let [(_, object)] = world.buried().await.try_into().expect("one object");
    let text = String::from_utf8(object.to_vec()).expect("text");
    let head = concat!(
        r#"[{"id":"8bc07e6f","eventTime":"2020-08-13T18:11:29.4121391Z","eventType":"myEventType","#,
        r#""dataVersion":"1.0","metadataVersion":"1","topic":"/topics/orders","subject":"subjectDefault","#,
        r#""deadLetterReason":"MaxDeliveryAttemptsExceeded","deliveryAttempts":2,"#,
        r#""lastDeliveryOutcome":"GenericError","lastHttpStatusCode":500,"#,
        r#""publishTime":"2023-11-14T22:13:20.0000000Z","#,
    );
    assert!(text.starts_with(head), "{text}");
    assert!(text.ends_with(&format!(",\"data\":{EVENT}}}]")), "{text}");
}
