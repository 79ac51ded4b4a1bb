//! Every form of input that is accepted, and the messages it becomes.

use bytes::Bytes;
use posthaste_core::model::{DeliveryEntry, EventPayload, EventSchema, Timestamp};
use serde_json::{Value, json};

use crate::world::{
    Answer, BATCH, KEY, MINIMAL, START, STRUCTURED, World, one, request, send, subscriptions,
};

const GRID: &str = concat!(
    r#"{"id":"1","eventType":"t","subject":"/s","eventTime":"2026-11-21T10:00:00Z","#,
    r#""data":{},"dataVersion":"1"}"#,
);
const PUSH: &str = include_str!("../../../../samples/cloudevents/github-push.json");
const PAID: &str = include_str!("../../../../samples/cloudevents/order-paid.json");
const ORDERS: &str = include_str!("../../../../samples/cloudevents/order-batch.json");
const BLOB: &str = include_str!("../../../../samples/eventgrid/blob-created.json");

fn inline(entry: &DeliveryEntry) -> &Bytes {
    match &entry.payload {
        EventPayload::Inline(json) => json,
        EventPayload::Stored { key, .. } => {
            panic!("expected the event itself, found it under {key}")
        }
    }
}

fn assert_ok(answer: &Answer) {
    let content_type = answer
        .headers
        .get("content-type")
        .map(http::HeaderValue::as_bytes);
    assert_eq!(
        (answer.status, content_type),
        (200, Some(&b"application/json"[..]))
    );
}

/// The answer to a request with so many events, that many of which no subscription takes.
fn assert_counts(answer: &Answer, accepted: usize, subscriptions: usize, unmatched: usize) {
    assert_ok(answer);
    let expected = format!(
        r#"{{"acceptedEvents":{accepted},"matchedSubscriptions":{subscriptions},"unmatchedEvents":{unmatched}}}"#
    );
    assert_eq!(answer.body, expected);
}

/// Publishes to a topic of this schema and answers the texts in the one message that it became.
async fn published(schema: &str, headers: &[(&str, &str)], body: &str) -> Vec<String> {
    let mut settings = one();
    settings["inputSchema"] = schema.into();
    let world = World::new(settings).await;
    assert_ok(&world.post(headers, body.to_owned()).await);
    let [delivery] = world.deliveries().try_into().unwrap();
    delivery
        .events
        .iter()
        .map(|entry| String::from_utf8(inline(entry).to_vec()).unwrap())
        .collect()
}

#[tokio::test]
async fn a_structured_event_is_kept_byte_for_byte() {
    for sample in [PUSH, PAID, MINIMAL] {
        assert_eq!(
            published("CloudEvents", &[STRUCTURED], sample).await,
            [sample.trim_end()]
        );
    }
}

#[tokio::test]
async fn a_batch_keeps_each_of_its_events() {
    let kept = published("CloudEvents", &[BATCH], ORDERS).await;
    let kept: Vec<Value> = kept
        .iter()
        .map(|json| serde_json::from_str(json).unwrap())
        .collect();
    assert_eq!(
        Value::Array(kept),
        serde_json::from_str::<Value>(ORDERS).unwrap()
    );
}

#[tokio::test]
async fn an_event_in_binary_mode_is_rendered_once() {
    let headers = [
        ("content-type", "application/json"),
        ("ce-specversion", "1.0"),
        ("ce-id", "1"),
        ("ce-source", "/s"),
        ("ce-type", "t"),
        ("ce-tenant", "acme"),
    ];
    let [kept] = published("CloudEvents", &headers, r#"{ "n": 1.00 }"#)
        .await
        .try_into()
        .unwrap();
    assert!(kept.contains(r#""data":{ "n": 1.00 }"#), "{kept}");
    let expected = json!({
        "specversion": "1.0", "id": "1", "source": "/s", "type": "t", "tenant": "acme",
        "datacontenttype": "application/json", "data": { "n": 1.0 },
    });
    assert_eq!(serde_json::from_str::<Value>(&kept).unwrap(), expected);
}

#[tokio::test]
async fn event_grid_events_come_alone_or_in_an_array() {
    let json = ("content-type", "application/json; charset=utf-8");
    let expected: Value = serde_json::from_str(GRID).unwrap();
    for body in [GRID.to_owned(), format!("[{GRID}]")] {
        let [kept] = published("EventGrid", &[json], &body)
            .await
            .try_into()
            .unwrap();
        let kept: Value = serde_json::from_str(&kept).unwrap();
        for (member, value) in expected.as_object().unwrap() {
            assert_eq!(kept[member], *value, "{member}");
        }
    }
    assert_eq!(published("EventGrid", &[json], BLOB).await.len(), 1);
}

#[tokio::test]
async fn a_message_says_all_that_deliver_needs() {
    let world = World::new(one()).await;
    assert_ok(&world.post(&[STRUCTURED], PAID).await);
    let [message] = world.queue.messages().try_into().unwrap();
    assert_eq!(
        (message.group.as_deref(), message.delay.as_secs()),
        (Some("orders.a"), 0)
    );
    let [delivery] = world.deliveries().try_into().unwrap();
    let start = Timestamp::parse(START).unwrap();
    assert_eq!(
        (delivery.topic.as_str(), delivery.subscription.as_str()),
        ("Orders", "a")
    );
    assert_eq!((delivery.published_at, delivery.not_before), (start, start));
    assert_eq!(
        (delivery.schema, delivery.attempts, delivery.last),
        (EventSchema::CloudEvents, 0, None)
    );
    let [entry] = delivery.events.try_into().unwrap();
    assert_eq!(
        entry.traceparent.as_deref(),
        Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    );
}

/// An event has one key towards all subscriptions, and another one in every request.
#[tokio::test]
async fn event_key_is_shared_by_subscriptions_and_new_per_request() {
    let world = World::new(subscriptions(&[("a", json!({})), ("b", json!({}))])).await;
    let app = posthaste_publish::router(world.publish().into());
    for _ in 0..2 {
        let request = request(
            "/topics/orders/events",
            &[KEY, BATCH],
            format!("[{MINIMAL},{MINIMAL}]"),
        );
        assert_ok(&send(app.clone(), request).await);
    }
    let keys: Vec<Vec<String>> = world
        .deliveries()
        .into_iter()
        .map(|delivery| delivery.events.into_iter().map(|entry| entry.key).collect())
        .collect();
    let [a1, b1, a2, b2] = keys.try_into().unwrap();
    assert_eq!((&a1, &a2), (&b1, &b2));
    let (id, index) = a1[1].split_once('-').unwrap();
    assert_eq!((id.len(), index), (32, "1"));
    assert_eq!(a1[0], format!("{id}-0"));
    assert!(!a2.contains(&a1[0]) && !a2.contains(&a1[1]));
}

#[tokio::test]
async fn both_paths_take_events_and_ignore_the_query() {
    let world = World::new(one()).await;
    let app = posthaste_publish::router(world.publish().into());
    for path in [
        "/topics/orders/events?api-version=2018-01-01",
        "/topics/orders/api/events?api-version=2018-01-01",
        "/topics/ORDERS/events",
        "/topics/%6Frders/events",
    ] {
        assert_ok(&send(app.clone(), request(path, &[KEY, STRUCTURED], MINIMAL)).await);
    }
    assert_eq!(world.packed(), vec![("a".to_owned(), 1); 4]);
}

/// Events that no subscription matches are accepted, and nothing is written for them.
#[tokio::test]
async fn events_without_a_matching_subscription_are_accepted() {
    let other = subscriptions(&[(
        "a",
        json!({ "filter": { "includedEventTypes": ["other"] } }),
    )]);
    for settings in [json!({}), other] {
        let world = World::new(settings).await;
        assert_counts(&world.post(&[STRUCTURED], MINIMAL).await, 1, 0, 1);
        world.assert_untouched();
    }
}

/// The response counts each subscription once, and the events that none takes.
#[tokio::test]
async fn response_counts_each_subscription_once_and_unmatched_events() {
    let by_type = |event_type: &str| json!({ "filter": { "includedEventTypes": [event_type] } });
    let gone = json!({ "status": { "state": "Disabled", "since": "2026-11-21T09:00:00Z" } });
    let of_type = |it: &&str| MINIMAL.replace("\"t\"", &format!("\"{it}\""));
    let world = World::new(subscriptions(&[
        ("t", by_type("t")),
        ("u", by_type("u")),
        ("other", by_type("other")),
        ("gone", gone),
    ]))
    .await;
    let check = async |types: &[&str], subscriptions, unmatched| {
        let batch = format!(
            "[{}]",
            types.iter().map(of_type).collect::<Vec<_>>().join(",")
        );
        assert_counts(
            &world.post(&[BATCH], batch).await,
            types.len(),
            subscriptions,
            unmatched,
        );
    };
    check(&["t", "t", "u", "v"], 2, 1).await;
    check(&["t"], 1, 0).await;
    check(&["v", "v"], 0, 2).await;
}

/// An expired event has an end like any other: its subscription gets a dead letter.
#[tokio::test]
async fn an_event_that_has_expired_counts_as_matched() {
    let world = World::new(one()).await;
    let expired = MINIMAL.replace('}', r#","expirytime":"2026-11-21T09:00:00Z"}"#);
    assert_counts(&world.post(&[STRUCTURED], expired).await, 1, 1, 0);
    assert_eq!(world.packed(), [("a".to_owned(), 1)]);
}

#[tokio::test]
async fn a_subscription_whose_time_is_over_does_not_count() {
    let ended = json!({ "expirationTimeUtc": "2026-11-21T09:00:00Z" });
    let world = World::new(subscriptions(&[("a", ended)])).await;
    assert_counts(&world.post(&[STRUCTURED], MINIMAL).await, 1, 0, 1);
}

#[tokio::test]
async fn an_empty_batch_is_accepted() {
    let world = World::new(one()).await;
    assert_counts(&world.post(&[BATCH], "[]").await, 0, 0, 0);
    world.assert_untouched();
}

#[tokio::test]
async fn every_message_has_the_most_hops_that_its_request_says() {
    let cases: [(&[&str], u8); 4] = [(&[], 0), (&["0"], 0), (&["7"], 7), (&["2", "5", "1"], 5)];
    for (values, expected) in cases {
        let world = World::new(subscriptions(&[("a", json!({})), ("b", json!({}))])).await;
        let mut headers = vec![BATCH];
        headers.extend(values.iter().map(|value| ("posthaste-hops", *value)));
        assert_ok(&world.post(&headers, ORDERS).await);
        let hops: Vec<_> = world
            .deliveries()
            .iter()
            .map(|delivery| delivery.hops.get())
            .collect();
        assert_eq!(hops, [expected; 2], "{values:?}");
    }
}
