//! After a wait the present state decides: the topic and its keys are looked at again after a slow
//! body, after the tarpit, and after a slow claim of the request's name.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::{FutureExt, stream};
use posthaste_core::model::{EventSchema, Timestamp};
use posthaste_ports::ObjectStore;
use posthaste_publish::{BodyBudget, router};
use posthaste_testkit::Faulty;
use posthaste_testkit::faulty::FaultPlan;
use posthaste_testkit::memory::MemoryStore;
use posthaste_testkit::recorded::PortOperation;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::pressure::{poll, put_pressure};
use crate::schemas::{CREATED, JSON, custom};
use crate::world::{Answer, KEY, MINIMAL, STRUCTURED, World, one, request, send, subscriptions};

const TOPIC: &str = "topics/orders.json";

/// The settings of the topic as they are after the wait, and its first key.
fn record(settings: &Value, key1: &str) -> Bytes {
    let at = Timestamp::parse(crate::world::START).unwrap();
    let record = json!({
        "v": 1, "name": "Orders", "key1": key1, "key2": "key-two",
        "createdAt": at, "updatedAt": at, "settings": settings,
    });
    record.to_string().into()
}

/// A change of the topic during a wait; `None` deletes it.
type Change = Option<Bytes>;

fn apply(store: &MemoryStore, change: &Change) {
    match change {
        Some(record) => store.write(TOPIC, record.clone()),
        None => store.delete(TOPIC).now_or_never().unwrap().unwrap(),
    }
}

/// Publishes with a body that arrives in two parts, and the change between them.
async fn after_slow_body(change: &Change) -> (Answer, Vec<(String, usize)>) {
    let world = World::new(one()).await;
    let (sender, parts) = mpsc::unbounded_channel::<&'static str>();
    let body = stream::unfold(parts, async |mut parts| {
        let part = parts.recv().await?;
        Some((Ok::<_, Infallible>(Bytes::from(part)), parts))
    });
    let (first, second) = MINIMAL.split_at(10);
    sender.send(first).unwrap();
    let answer = {
        let mut answer = pin!(world.post(&[STRUCTURED], Body::from_stream(body)));
        assert!(poll(answer.as_mut()).is_pending());
        apply(&world.store, change);
        sender.send(second).unwrap();
        drop(sender);
        answer.await
    };
    (answer, world.packed())
}

/// Publishes into the tarpit, and changes the topic there.
async fn after_tarpit(change: &Change) -> (Answer, Vec<(String, usize)>) {
    let world = World::new(one()).await;
    put_pressure(&world, Duration::from_secs(15), None, &[]).await;
    let answer = {
        let mut answer = pin!(world.post(&[STRUCTURED], MINIMAL));
        assert!(poll(answer.as_mut()).is_pending());
        apply(&world.store, change);
        world.clock.advance(Duration::from_secs(15));
        answer.await
    };
    (answer, world.packed())
}

/// Publishes under a name whose claim takes seconds, in which the topic changes.
async fn after_slow_claim(change: &Change) -> (Answer, Vec<(String, usize)>) {
    let world = World::new(one()).await;
    let store = world.store.clone();
    let clock = world.clock.clone();
    let changed = change.clone();
    let plan = FaultPlan::by(move |effect| {
        if effect.operation == PortOperation::Put && effect.key.starts_with("idempotency/") {
            clock.advance(Duration::from_secs(2));
            apply(&store, &changed);
        }
        None
    });
    let store = Faulty::new(world.store.clone(), "state", &plan);
    let app = router(world.publish_over(|queue| queue, store).into());
    let headers = [KEY, STRUCTURED, ("idempotency-key", "n-1")];
    let answer = send(app, request("/topics/orders/events", &headers, MINIMAL)).await;
    (answer, world.packed())
}

/// After each wait, the change leads to this status and these messages.
async fn check(change: Change, status: u16, messages: &[(&str, usize)]) {
    for (place, (answer, packed)) in [
        ("body", after_slow_body(&change).await),
        ("tarpit", after_tarpit(&change).await),
        ("claim", after_slow_claim(&change).await),
    ] {
        let packed: Vec<_> = packed.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        assert_eq!(
            (answer.status, &packed[..]),
            (status, messages),
            "{place}: {answer:?}"
        );
    }
}

#[tokio::test]
async fn unchanged_topic_takes_the_event() {
    check(Some(record(&one(), "key-one")), 200, &[("a", 1)]).await;
}

#[tokio::test]
async fn revoked_key_is_refused_after_a_wait() {
    check(Some(record(&one(), "another")), 401, &[]).await;
}

#[tokio::test]
async fn deleted_topic_is_unknown_after_a_wait() {
    check(None, 404, &[]).await;
}

#[tokio::test]
async fn subscriptions_match_as_they_are_after_a_wait() {
    let b = json!({ "filter": { "includedEventTypes": ["t"] } });
    let a = json!({ "filter": { "includedEventTypes": ["other"] } });
    let settings = subscriptions(&[("a", a), ("b", b)]);
    check(Some(record(&settings, "key-one")), 200, &[("b", 1)]).await;
    let none = json!({ "subscriptions": {} });
    check(Some(record(&none, "key-one")), 200, &[]).await;
}

#[tokio::test]
async fn events_are_parsed_as_the_topic_is_after_a_wait() {
    let mut settings = one();
    settings["inputSchema"] = json!("EventGrid");
    check(Some(record(&settings, "key-one")), 415, &[]).await;
}

/// Events that are parsed twice have room once.
#[tokio::test]
async fn request_that_is_parsed_again_takes_no_more_room() {
    let settings = custom(&[("custom", EventSchema::Custom)]);
    let body = format!("[{CREATED}]");
    let world = World::new(settings.clone()).await;
    assert_eq!(world.post(&[JSON], body.clone()).await.status, 200);
    let envelope = world.deliveries()[0].events[0].envelope.clone().unwrap();
    let room = body.len() + envelope.byte_len();
    let world = World::new(settings.clone()).await;
    let store = world.store.clone();
    let clock = world.clock.clone();
    let plan = FaultPlan::by(move |effect| {
        if effect.operation == PortOperation::Put && effect.key.starts_with("idempotency/") {
            clock.advance(Duration::from_secs(2));
            store.write(TOPIC, record(&settings, "key-one"));
        }
        None
    });
    let faulty = Faulty::new(world.store.clone(), "state", &plan);
    let mut publish = world.publish_over(|queue| queue, faulty);
    publish.bodies = BodyBudget::new(room);
    let headers = [KEY, JSON, ("idempotency-key", "n-1")];
    let asked = request("/topics/orders/events", &headers, body);
    assert_eq!(send(router(publish.into()), asked).await.status, 200);
}

/// A name whose request is refused after its claim is given back.
#[tokio::test]
async fn refused_request_gives_its_name_back() {
    let change = Some(record(&one(), "another"));
    let world = World::new(one()).await;
    let store = world.store.clone();
    let clock = world.clock.clone();
    let plan = FaultPlan::by(move |effect| {
        if effect.operation == PortOperation::Put && effect.key.starts_with("idempotency/") {
            clock.advance(Duration::from_secs(2));
            store.write(TOPIC, change.clone().unwrap());
        }
        None
    });
    let faulty = Faulty::new(world.store.clone(), "state", &plan);
    let app = router(world.publish_over(|queue| queue, faulty).into());
    let post = |key: &'static str| {
        let headers = [("aeg-sas-key", key), STRUCTURED, ("idempotency-key", "n-1")];
        send(
            app.clone(),
            request("/topics/orders/events", &headers, MINIMAL),
        )
    };
    assert_eq!(post("key-one").await.status, 401);
    assert_eq!(post("another").await.status, 200);
    assert_eq!(world.packed(), [("a".to_owned(), 1)]);
}
