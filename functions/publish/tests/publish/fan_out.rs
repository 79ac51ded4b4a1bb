//! Fan-out: the subscriptions that receive an event, how it is packed, when it expires, and what is
//! stored once.

use posthaste_core::delivery_log::names_to_keep;
use posthaste_core::model::{
    DeliveryLogMode, EventPayload, EventSchema, LOG_PAYLOAD_BYTES_MAX, PayloadDigest,
    SQS_MESSAGE_BYTES_MAX, Timestamp,
};
use posthaste_publish::PublishSettings;
use serde_json::{Value, json};

use crate::world::{BATCH, MINIMAL, STRUCTURED, World, event_of, events, one, subscriptions};

/// Publishes `count` small events and answers the messages they became.
async fn packed(settings: Value, count: usize) -> Vec<(String, usize)> {
    let world = World::new(settings).await;
    assert_eq!(world.post(&[BATCH], events(count)).await.status, 200);
    world.packed()
}

fn messages(subscription: &str, sizes: &[usize]) -> Vec<(String, usize)> {
    sizes
        .iter()
        .map(|&size| (subscription.to_owned(), size))
        .collect()
}

/// So many subscriptions that receive everything.
fn many(count: usize, settings: &Value) -> Value {
    let names: Vec<String> = (0..count).map(|n| format!("s{n:03}")).collect();
    let all: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), settings.clone()))
        .collect();
    subscriptions(&all)
}

#[tokio::test]
async fn every_event_goes_where_a_filter_lets_it() {
    let by_type = |event_type: &str| json!({ "filter": { "includedEventTypes": [event_type] } });
    let world = World::new(subscriptions(&[
        ("all", json!({})),
        (
            "gone",
            json!({ "status": { "state": "Disabled", "since": "2026-11-21T09:00:00Z" } }),
        ),
        ("none", by_type("other")),
        ("u", by_type("u")),
    ]))
    .await;
    let body = format!("[{MINIMAL},{}]", MINIMAL.replace("\"t\"", "\"u\""));
    assert_eq!(world.post(&[BATCH], body).await.status, 200);
    assert_eq!(world.packed(), [("all".to_owned(), 2), ("u".to_owned(), 1)]);
    assert!(world.deliveries()[1].events[0].key.ends_with("-1"));
}

/// An event that no message may hold is stored byte for byte.
#[tokio::test]
async fn event_no_message_may_hold_is_stored_as_written() {
    let world = World::new(one()).await;
    let event = MINIMAL.replace('}', ",\"data\":\"\u{fffe}\u{ffff}\\uffff\"}");
    assert_eq!(world.post(&[STRUCTURED], event.clone()).await.status, 200);
    let deliveries = world.deliveries();
    let [(key, stored)] = world.store.objects_under("payloads/").try_into().unwrap();
    assert_eq!(stored, event);
    let digest = Some(PayloadDigest::for_json(event.as_bytes()));
    assert_eq!(
        deliveries[0].events[0].payload,
        EventPayload::Stored {
            key,
            bytes: event.len(),
            digest,
            names: names_to_keep(EventSchema::CloudEvents, &event.into()),
        }
    );
}

#[tokio::test]
async fn an_event_that_the_log_only_refers_to_is_stored() {
    let check = async |delivery_log, stores_for_log, bytes, stored| {
        let settings = PublishSettings {
            delivery_log,
            stores_for_log,
            ..PublishSettings::default()
        };
        let world = World {
            settings,
            ..World::new(one()).await
        };
        assert_eq!(world.post(&[STRUCTURED], event_of(bytes)).await.status, 200);
        assert_eq!(
            world.store.objects_under("payloads/").len(),
            stored,
            "{delivery_log} {bytes}"
        );
    };
    let payloads = DeliveryLogMode::Payloads;
    let attempts = DeliveryLogMode::Attempts;
    check(payloads, true, LOG_PAYLOAD_BYTES_MAX, 0).await;
    check(payloads, true, LOG_PAYLOAD_BYTES_MAX + 1, 1).await;
    check(payloads, false, LOG_PAYLOAD_BYTES_MAX + 1, 0).await;
    check(attempts, true, LOG_PAYLOAD_BYTES_MAX + 1, 0).await;
}

#[tokio::test]
async fn without_batching_ten_events_share_a_message() {
    assert_eq!(packed(one(), 100).await, messages("a", &[10; 10]));
    assert_eq!(packed(one(), 11).await, messages("a", &[10, 1]));
}

#[tokio::test]
async fn a_message_holds_as_many_events_as_the_subscription_s_batch() {
    let batching = |events: usize| json!({ "batching": { "maxEventsPerBatch": events } });
    let settings = subscriptions(&[("large", batching(5000)), ("small", batching(40))]);
    let expected = [messages("large", &[100]), messages("small", &[40, 40, 20])].concat();
    assert_eq!(packed(settings, 100).await, expected);
}

#[tokio::test]
async fn a_batch_also_ends_at_its_preferred_size() {
    let batching = json!({ "maxEventsPerBatch": 2, "preferredBatchSizeInKilobytes": 1 });
    let world = World::new(subscriptions(&[("a", json!({ "batching": batching }))])).await;
    let body = format!("[{},{},{MINIMAL}]", event_of(5000), event_of(5000));
    assert_eq!(world.post(&[BATCH], body).await.status, 200);
    assert_eq!(world.packed(), messages("a", &[1, 1, 1]));
}

#[tokio::test]
async fn five_hundred_subscriptions_each_receive_every_event() {
    let world = World::new(many(500, &json!({}))).await;
    assert_eq!(world.post(&[BATCH], events(3)).await.status, 200);
    let expected: Vec<_> = (0..500).map(|n| (format!("s{n:03}"), 3)).collect();
    assert_eq!(world.packed(), expected);
    assert_eq!(world.store.objects_under("payloads/"), vec![]);
}

#[tokio::test]
async fn a_fan_out_of_several_waves_arrives_whole() {
    let world = World::new(many(500, &json!({}))).await;
    assert_eq!(world.post(&[BATCH], events(100)).await.status, 200);
    let expected: Vec<_> = (0..500)
        .flat_map(|n| messages(&format!("s{n:03}"), &[10; 10]))
        .collect();
    assert_eq!(world.packed(), expected);
    assert!(
        world
            .queue
            .messages()
            .iter()
            .map(|message| message.body.len())
            .sum::<usize>()
            > 4_194_304
    );
}

/// An event with many large copies is stored once, and its messages refer to it.
#[tokio::test]
async fn event_with_many_large_copies_is_stored_once() {
    let world = World::new(many(5, &json!({}))).await;
    let large = event_of(900_000);
    assert_eq!(
        world
            .post(&[BATCH], format!("[{large},{MINIMAL}]"))
            .await
            .status,
        200
    );
    let [(key, stored)] = world.store.objects_under("payloads/").try_into().unwrap();
    assert_eq!(stored, large);
    assert!(key.starts_with("payloads/20261121/"));
    let digest = Some(PayloadDigest::for_json(large.as_bytes()));
    let payload = EventPayload::Stored {
        key,
        bytes: large.len(),
        digest,
        names: names_to_keep(EventSchema::CloudEvents, &large.into()),
    };
    let deliveries = world.deliveries();
    assert_eq!(deliveries.len(), 5);
    for delivery in deliveries {
        let payloads: Vec<_> = delivery
            .events
            .into_iter()
            .map(|entry| entry.payload)
            .collect();
        assert_eq!(
            payloads,
            [payload.clone(), EventPayload::Inline(MINIMAL.into())]
        );
    }
}

#[tokio::test]
async fn an_event_with_few_large_copies_travels_in_its_messages() {
    for subscriptions in [1, 4] {
        let world = World::new(many(subscriptions, &json!({}))).await;
        assert_eq!(
            world.post(&[STRUCTURED], event_of(1_000_000)).await.status,
            200
        );
        assert_eq!(world.deliveries().len(), subscriptions);
        assert_eq!(world.store.objects_under("payloads/"), vec![]);
    }
}

#[tokio::test]
async fn messages_are_never_larger_than_sqs_takes() {
    let trace = r#","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}"#;
    let batching = json!({ "maxEventsPerBatch": 5000, "preferredBatchSizeInKilobytes": 1024 });
    for (size, subscribers) in [(140, 3), (2_000, 3), (9_000, 500)] {
        let event = event_of(size - trace.len()).replace('}', trace);
        let body = format!("[{}]", vec![event; 990_000 / size].join(","));
        let world = World::new(many(subscribers, &json!({ "batching": batching }))).await;
        let first = posthaste_core::model::SubscriptionName::parse("s000").unwrap();
        assert_eq!(world.post(&[BATCH], body).await.status, 200);
        let largest = world
            .queue
            .messages()
            .iter()
            .map(|message| message.body.len())
            .max();
        assert!(
            largest <= Some(SQS_MESSAGE_BYTES_MAX),
            "{size}: {largest:?}"
        );
        let received: usize = world
            .deliveries()
            .iter()
            .filter(|d| d.subscription == first)
            .map(|d| d.events.len())
            .sum();
        assert_eq!(990_000 / size, received);
    }
}

#[tokio::test]
async fn an_event_expires_at_the_earliest_of_three_times() {
    let minutes = |ttl: u32| json!({ "retryPolicy": { "eventTimeToLiveInMinutes": ttl } });
    let mut settings = subscriptions(&[("a", minutes(60)), ("b", json!({}))]);
    settings["defaultTimeToLive"] = "PT2H".into();
    let world = World::new(settings).await;
    let own = |time: &str| MINIMAL.replace('}', &format!(r#","expirytime":"{time}"}}"#));
    let soon = "2026-11-21T10:30:00Z";
    let late = "2026-11-22T10:00:00+01:00";
    let past = "2020-01-01T00:00:00Z";
    let body = format!("[{MINIMAL},{},{},{}]", own(soon), own(late), own(past));
    assert_eq!(world.post(&[BATCH], body).await.status, 200);
    let expire = |n: usize| {
        world.deliveries()[n]
            .events
            .iter()
            .map(|e| e.expires_at)
            .collect::<Vec<_>>()
    };
    let times = |texts: [&str; 4]| texts.map(|text| Timestamp::parse(text).unwrap()).to_vec();
    let hour = "2026-11-21T11:00:00Z";
    let two = "2026-11-21T12:00:00Z";
    assert_eq!(expire(0), times([hour, soon, hour, past]));
    assert_eq!(expire(1), times([two, soon, two, past]));
}

const TIME_TO_LIVE: &str = "posthaste-time-to-live";

/// A request gives all its events a time to live, in every schema.
#[tokio::test]
async fn time_to_live_of_a_request_applies_in_every_schema() {
    let topics = [
        (json!({}), STRUCTURED, MINIMAL),
        (
            json!({ "inputSchema": "EventGrid" }),
            ("content-type", "application/json"),
            concat!(
                r#"[{"id":"1","eventType":"t","subject":"/s","eventTime":"2026-11-21T10:00:00Z","#,
                r#""data":1,"dataVersion":"1"}]"#,
            ),
        ),
        (
            json!({ "inputSchema": "Custom" }),
            ("content-type", "application/json"),
            r#"{"n":1}"#,
        ),
    ];
    for (topic, content_type, body) in topics {
        let mut settings = subscriptions(&[("a", json!({}))]);
        settings
            .as_object_mut()
            .unwrap()
            .extend(topic.as_object().unwrap().clone());
        let world = World::new(settings).await;
        let answer = world
            .post(&[content_type, (TIME_TO_LIVE, "PT10M")], body)
            .await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let expires_at = world.deliveries()[0].events[0].expires_at;
        assert_eq!(
            expires_at,
            Timestamp::parse("2026-11-21T10:10:00Z").unwrap(),
            "{topic}"
        );
    }
}

/// A request's time to live is bounded by the event's own and by the topic's.
#[tokio::test]
async fn time_to_live_of_a_request_is_bounded_by_event_and_topic() {
    let mut settings = subscriptions(&[("a", json!({}))]);
    settings["defaultTimeToLive"] = "PT2H".into();
    let world = World::new(settings).await;
    let own = MINIMAL.replace('}', r#","expirytime":"2026-11-21T10:30:00Z"}"#);
    let body = format!("[{MINIMAL},{own}]");
    let answer = world.post(&[BATCH, (TIME_TO_LIVE, "P1D")], body).await;
    assert_eq!(answer.status, 200);
    let expire: Vec<_> = world.deliveries()[0]
        .events
        .iter()
        .map(|e| e.expires_at.to_string())
        .collect();
    assert_eq!(
        expire,
        ["2026-11-21T12:00:00.000Z", "2026-11-21T10:30:00.000Z"]
    );
}

#[tokio::test]
async fn a_time_to_live_that_is_none_refuses_the_request_by_name() {
    let world = World::new(subscriptions(&[("a", json!({}))])).await;
    for wrong in ["60", "PT0S", "soon"] {
        let answer = world
            .post(&[STRUCTURED, (TIME_TO_LIVE, wrong)], MINIMAL)
            .await;
        let problem: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(
            (answer.status, &problem["member"]),
            (400, &json!(TIME_TO_LIVE)),
            "{wrong}"
        );
    }
    assert_eq!(world.deliveries(), []);
}
