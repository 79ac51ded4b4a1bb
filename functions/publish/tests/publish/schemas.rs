//! Custom events, and events that are received in another schema than the one they came in: every
//! text is made once, and stored once where it is stored.

use std::sync::Arc;

use posthaste_core::model::{EventPayload, EventSchema, SQS_MESSAGE_BYTES_MAX};
use posthaste_publish::{BodyBudget, router};
use serde_json::{Value, json};

use crate::world::{KEY, World, request, send, subscriptions};

pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");

/// The event of Event Grid's page on mappings.
pub(crate) const CREATED: &str = concat!(
    r#"{"myEventTypeField":"Created","resource":"Users/example/Messages/1000","#,
    r#""resourceData":{"n":12345678901234567890}}"#,
);

const GRID: &str = concat!(
    r#"{"id":"1","eventType":"t","subject":"/s","eventTime":"2026-11-21T10:00:00Z","dataVersion":"1","#,
    r#""metadataVersion":"1","topic":"/t","data":{"n": 12345678901234567890 }}"#,
);

/// A topic of this schema with a subscription for each of these.
fn topic(input: EventSchema, outputs: &[(&str, EventSchema)]) -> Value {
    let settings = |schema: &EventSchema| json!({ "deliverySchema": schema });
    let named: Vec<_> = outputs
        .iter()
        .map(|(name, schema)| (*name, settings(schema)))
        .collect();
    let mut topic = subscriptions(&named);
    topic["inputSchema"] = json!(input);
    topic
}

/// A topic of custom events, mapped as on Event Grid's page.
pub(crate) fn custom(outputs: &[(&str, EventSchema)]) -> Value {
    let mut topic = topic(EventSchema::Custom, outputs);
    topic["inputMapping"] = json!({
        "eventType": { "sourceField": "myEventTypeField" },
        "subject": { "defaultValue": "DefaultSubject" },
        "dataVersion": { "defaultValue": "1.0" },
    });
    topic
}

const ALL: [(&str, EventSchema); 3] = [
    ("cloud", EventSchema::CloudEvents),
    ("custom", EventSchema::Custom),
    ("grid", EventSchema::EventGrid),
];

fn text(payload: &EventPayload) -> String {
    match payload {
        EventPayload::Inline(json) => String::from_utf8(json.to_vec()).unwrap(),
        EventPayload::Stored { key, .. } => panic!("{key} was stored"),
    }
}

/// The name, schema and text of every delivery of one event.
fn received(world: &World) -> Vec<(String, EventSchema, String)> {
    let deliveries = world.deliveries().into_iter();
    deliveries
        .map(|d| {
            (
                d.subscription.to_string(),
                d.schema,
                text(&d.events[0].payload),
            )
        })
        .collect()
}

#[tokio::test]
async fn a_custom_event_is_received_in_every_schema_with_the_same_id() {
    let world = World::new(custom(&ALL)).await;
    assert_eq!(
        world.post(&[JSON], format!("[{CREATED}]")).await.status,
        200
    );
    let [cloud, custom, grid] = received(&world).try_into().unwrap();
    assert_eq!(
        custom,
        ("custom".to_owned(), EventSchema::Custom, CREATED.to_owned())
    );
    let envelope = world.deliveries()[1].events[0].envelope.clone().unwrap();
    let id = &envelope.id;
    assert_eq!(
        cloud.2,
        format!(
            r#"{{"id":"{id}","source":"/topics/Orders","specversion":"1.0","dataversion":"1.0","subject":"DefaultSubject","type":"Created","time":"2026-11-21T10:00:00.0000000Z","datacontenttype":"application/json","data":{CREATED}}}"#
        )
    );
    assert_eq!(
        grid.2,
        format!(
            r#"{{"id":"{id}","eventTime":"2026-11-21T10:00:00.0000000Z","eventType":"Created","dataVersion":"1.0","metadataVersion":"1","topic":"/topics/Orders","subject":"DefaultSubject","data":{CREATED}}}"#
        )
    );
    assert_eq!(
        (cloud.1, grid.1),
        (EventSchema::CloudEvents, EventSchema::EventGrid)
    );
    assert!(
        world
            .deliveries()
            .iter()
            .all(|d| d.events[0].envelope.is_some() == (d.schema == EventSchema::Custom))
    );
}

#[tokio::test]
async fn an_event_grid_event_is_received_as_a_cloud_event_too() {
    let outputs = [
        ("cloud", EventSchema::CloudEvents),
        ("grid", EventSchema::EventGrid),
    ];
    let world = World::new(topic(EventSchema::EventGrid, &outputs)).await;
    assert_eq!(world.post(&[JSON], GRID).await.status, 200);
    let [cloud, grid] = received(&world).try_into().unwrap();
    assert_eq!(
        grid,
        ("grid".to_owned(), EventSchema::EventGrid, GRID.to_owned())
    );
    assert_eq!(
        cloud.2,
        concat!(
            r#"{"id":"1","source":"/t","specversion":"1.0","dataversion":"1","subject":"/s","type":"t","#,
            r#""time":"2026-11-21T10:00:00Z","datacontenttype":"application/json","#,
            r#""data":{"n": 12345678901234567890 }}"#,
        )
    );
}

/// Every event of a request has an id of its own, and filters see the mapped members.
#[tokio::test]
async fn each_custom_event_has_its_id_and_is_filtered_as_mapped() {
    let mut settings = custom(&[("custom", EventSchema::Custom)]);
    settings["subscriptions"]["custom"]["filter"] =
        json!({ "includedEventTypes": ["Created"], "subjectBeginsWith": "default" });
    let world = World::new(settings).await;
    let other = CREATED.replace("Created", "Deleted");
    assert_eq!(
        world
            .post(&[JSON], format!("[{CREATED},{other},{CREATED}]"))
            .await
            .status,
        200
    );
    let [delivery] = world.deliveries().try_into().unwrap();
    let ids: Vec<_> = delivery
        .events
        .iter()
        .map(|e| e.envelope.clone().unwrap().id.clone())
        .collect();
    assert_eq!(ids.len(), 2);
    assert_ne!(ids[0], ids[1]);
}

/// A custom event that cannot be mapped is refused by index and member.
#[tokio::test]
async fn unmappable_custom_event_is_refused_by_index_and_member() {
    let world = World::new(custom(&ALL)).await;
    let body = format!(
        "[{CREATED},{}]",
        CREATED.replace("myEventTypeField", "type")
    );
    let answer = world.post(&[JSON], body).await;
    assert_eq!(answer.status, 400);
    let problem: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(
        (&problem["index"], &problem["member"]),
        (&json!(1), &json!("myEventTypeField"))
    );
    assert_eq!(
        problem["detail"],
        "events[1].myEventTypeField: expected a non-empty string"
    );
    let many = world
        .post(&[JSON], format!("[{}]", vec!["{}"; 10_001].join(",")))
        .await;
    assert_eq!(many.status, 413);
    world.assert_untouched();
}

#[tokio::test]
async fn stored_events_are_stored_once_for_each_schema() {
    let outputs = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"].map(|name| {
        (
            name,
            if name < "f" {
                EventSchema::Custom
            } else {
                EventSchema::CloudEvents
            },
        )
    });
    let world = World::new(custom(&outputs)).await;
    let large = CREATED.replace("Users", &"u".repeat(900_000));
    assert_eq!(
        world
            .post(&[JSON], format!("[{large},{CREATED}]"))
            .await
            .status,
        200
    );
    let stored = world.store.objects_under("payloads/");
    assert_eq!(stored.len(), 2);
    assert!(stored.iter().any(|(_, text)| *text == large));
    assert!(
        stored
            .iter()
            .any(|(_, text)| text.ends_with(format!("\"data\":{large}}}").as_bytes()))
    );
    for delivery in world.deliveries() {
        let [first, second] = delivery.events.try_into().unwrap();
        let EventPayload::Stored {
            key,
            bytes,
            digest: Some(_),
            names,
            ..
        } = first.payload
        else {
            panic!("not stored")
        };
        // A custom event's envelope has them.
        assert_eq!(names.is_some(), delivery.schema != EventSchema::Custom);
        let (_, text) = stored.iter().find(|(stored, _)| *stored == key).unwrap();
        assert_eq!(text.len(), bytes);
        assert_eq!(
            text.len() > large.len(),
            delivery.schema == EventSchema::CloudEvents
        );
        assert!(matches!(second.payload, EventPayload::Inline(_)));
    }
}

#[tokio::test]
async fn messages_of_custom_events_are_never_too_large_for_sqs() {
    let mut settings = custom(&[("a", EventSchema::Custom)]);
    settings["inputMapping"]["subject"] = json!({ "sourceField": "s" });
    settings["subscriptions"]["a"]["batching"] =
        json!({ "maxEventsPerBatch": 5000, "preferredBatchSizeInKilobytes": 1024 });
    let world = World::new(settings).await;
    // Every byte of the subject takes six in the envelope.
    let event = json!({ "myEventTypeField": "t", "s": "\u{1}".repeat(1000) }).to_string();
    let count = 990_000 / (event.len() + 1);
    assert_eq!(
        world
            .post(&[JSON], format!("[{}]", vec![event; count].join(",")))
            .await
            .status,
        200
    );
    let largest = world
        .queue
        .messages()
        .iter()
        .map(|message| message.body.len())
        .max();
    assert!(largest <= Some(SQS_MESSAGE_BYTES_MAX), "{largest:?}");
    assert_eq!(
        world
            .deliveries()
            .iter()
            .map(|d| d.events.len())
            .sum::<usize>(),
        count
    );
    let large =
        json!({ "myEventTypeField": "t", "s": "\u{1}".repeat(1024), "x": "x".repeat(990_000) });
    assert_eq!(world.post(&[JSON], large.to_string()).await.status, 200);
    assert!(
        world
            .queue
            .messages()
            .iter()
            .all(|message| message.body.len() <= SQS_MESSAGE_BYTES_MAX)
    );
    assert_eq!(world.store.objects_under("payloads/"), vec![]);
}

/// The size that a mapping gives to small events is bounded, and counts as memory.
#[tokio::test]
async fn mapped_size_of_small_events_is_bounded_and_counted() {
    let mut topic = custom(&ALL[1..2]);
    for member in ["eventType", "subject", "dataVersion"] {
        topic["inputMapping"][member] = json!({ "defaultValue": "x".repeat(1024) });
    }
    let world = World::new(topic).await;
    let body = |events: usize| format!("[{}]", vec!["{}"; events].join(","));
    // An event's envelope takes three constants of 1,024 bytes and some.
    let refused = world.post(&[JSON], body(4_000_000 / 3 / 1024)).await;
    assert_eq!(refused.status, 413, "{}", refused.body);
    world.assert_untouched();
    let most = body(1000);
    let app = |budget| {
        let mut publish = world.publish();
        publish.bodies = BodyBudget::new(budget);
        router(Arc::new(publish))
    };
    let post = |budget| {
        send(
            app(budget),
            request("/topics/orders/events", &[KEY, JSON], most.clone()),
        )
    };
    assert_eq!(post(100_000).await.status, 503);
    world.assert_untouched();
    assert_eq!(post(1_000_000).await.status, 200);
}
