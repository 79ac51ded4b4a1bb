//! The world of every test: a topic, a clock that is moved by hand, and the function over ports in
//! memory.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use posthaste_core::delivery_log::{LogRecord, parse_records};
use posthaste_core::model::{Delivery, Timestamp};
use posthaste_core::stored::delivery::parse_delivery;
use posthaste_ports::{ObjectStore, PutCondition, QueueReceiver, QueueSender};
use posthaste_publish::{BodyBudget, Publish, PublishSettings, TarpitTurns, router};
use posthaste_services::{ActivityNotes, PressureReader, TopicRegistry};
use posthaste_testkit::memory::{MemoryQueue, MemoryStore};
use posthaste_testkit::{ManualClock, SeededEntropy, TestPorts};
use serde_json::{Value, json};
use tower::ServiceExt;

/// When every test begins.
pub(crate) const START: &str = "2026-11-21T10:00:00Z";

/// The key requests carry unless they say otherwise.
pub(crate) const KEY: (&str, &str) = ("aeg-sas-key", "key-one");

pub(crate) const STRUCTURED: (&str, &str) = ("content-type", "application/cloudevents+json");
pub(crate) const BATCH: (&str, &str) = ("content-type", "application/cloudevents-batch+json");

/// The smallest CloudEvent.
pub(crate) const MINIMAL: &str = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#;

pub(crate) struct World {
    pub(crate) queue: MemoryQueue,
    pub(crate) records: MemoryQueue,
    pub(crate) store: MemoryStore,
    pub(crate) clock: ManualClock,
    pub(crate) settings: PublishSettings,
}

/// The answer that a producer gets.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl World {
    /// A world with the topic `Orders`, which has these settings.
    pub(crate) async fn new(settings: Value) -> Self {
        let clock = ManualClock::new(Timestamp::parse(START).unwrap());
        let world = Self {
            queue: MemoryQueue::default(),
            records: MemoryQueue::default(),
            store: MemoryStore::default(),
            clock,
            settings: PublishSettings::default(),
        };
        world.put_topic(settings, "key-one", "key-two").await;
        world
    }

    /// Writes the topic with keys of every tier: `key-one` and `key-two`, `key-internal` and
    /// `key-bulk`.
    pub(crate) async fn put_topic_with_tier_keys(&self, settings: Value) {
        let at = Timestamp::parse(START).unwrap();
        let record = json!({
            "v": 2, "name": "Orders", "key1": "key-one", "key2": "key-two",
            "tierKeys": { "internalKey1": "key-internal", "bulkKey2": "key-bulk" },
            "createdAt": at, "updatedAt": at, "settings": settings,
        });
        self.store
            .put(
                "topics/orders.json",
                record.to_string().into(),
                PutCondition::Always,
            )
            .await
            .unwrap();
    }

    /// Writes the topic as `manage` does.
    pub(crate) async fn put_topic(&self, settings: Value, key1: &str, key2: &str) {
        let at = Timestamp::parse(START).unwrap();
        let record = json!({
            "v": 1, "name": "Orders", "key1": key1, "key2": key2,
            "createdAt": at, "updatedAt": at, "settings": settings,
        });
        self.store
            .put(
                "topics/orders.json",
                record.to_string().into(),
                PutCondition::Always,
            )
            .await
            .unwrap();
    }

    /// The function over this world.
    pub(crate) fn publish(&self) -> Publish<TestPorts<MemoryQueue, MemoryStore>> {
        self.publish_over(|queue| queue, self.store.clone())
    }

    /// The function over this world, with what is made of its queues, and with this store.
    pub(crate) fn publish_over<
        Q: QueueSender + QueueReceiver + 'static,
        S: ObjectStore + Clone + 'static,
    >(
        &self,
        over: impl Fn(MemoryQueue) -> Q,
        store: S,
    ) -> Publish<TestPorts<Q, S>> {
        let clock = self.clock.clone();
        Publish {
            deliveries: over(self.queue.clone()),
            slow_lane: None,
            records: Some(over(self.records.clone())),
            registry: TopicRegistry::new(store.clone(), clock.clone(), Duration::ZERO),
            payloads: store.clone(),
            pressure: PressureReader::new(store, clock.clone(), Duration::ZERO),
            clock,
            entropy: SeededEntropy::new(1),
            activity: ActivityNotes::default(),
            bodies: BodyBudget::new(16_000_000),
            advice: TarpitTurns::default(),
            wrong_keys: posthaste_services::WrongKeys::default(),
            traces: posthaste_services::EventTraces::default(),
            settings: self.settings,
        }
    }

    /// Posts to the topic and answers what came back. Without a key among the headers, the first
    /// one is added.
    pub(crate) async fn post(&self, headers: &[(&str, &str)], body: impl Into<Body>) -> Answer {
        let mut all = headers.to_vec();
        if !headers
            .iter()
            .any(|(name, _)| ["aeg-sas-key", "authorization"].contains(name))
        {
            all.push(KEY);
        }
        send(
            router(Arc::new(self.publish())),
            request("/topics/orders/events", &all, body),
        )
        .await
    }

    /// The deliveries in the queue.
    pub(crate) fn deliveries(&self) -> Vec<Delivery> {
        self.queue
            .messages()
            .iter()
            .map(|message| parse_delivery(&message.body).unwrap())
            .collect()
    }

    /// The records of the delivery log in their queue, message by message.
    pub(crate) fn recorded(&self) -> Vec<Vec<LogRecord>> {
        let messages = self.records.messages();
        let records = messages.iter().map(|message| parse_records(&message.body));
        records.collect::<Result<_, _>>().unwrap()
    }

    /// For every message, its subscription and how many events it has.
    pub(crate) fn packed(&self) -> Vec<(String, usize)> {
        self.deliveries()
            .into_iter()
            .map(|d| (d.subscription.to_string(), d.events.len()))
            .collect()
    }

    /// Nothing was written but the topic.
    pub(crate) fn assert_untouched(&self) {
        assert_eq!(self.queue.messages(), vec![]);
        assert_eq!(self.store.objects_under("payloads/"), vec![]);
    }
}

pub(crate) fn request(
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Body>,
) -> Request<Body> {
    let mut request = Request::post(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body.into()).unwrap()
}

pub(crate) async fn send(app: Router, request: Request<Body>) -> Answer {
    let (head, body) = app.oneshot(request).await.unwrap().into_parts();
    let body: Bytes = body.collect().await.unwrap().to_bytes();
    let body = String::from_utf8(body.to_vec()).unwrap();
    Answer {
        status: head.status.as_u16(),
        headers: head.headers,
        body,
    }
}

/// Subscriptions of these names and settings, each with an endpoint of its own.
pub(crate) fn subscriptions(named: &[(&str, Value)]) -> Value {
    let with_endpoint = |(name, settings): &(&str, Value)| {
        let mut settings = settings.clone();
        settings["endpoint"] = json!({ "url": format!("https://{name}.example.com/") });
        ((*name).to_owned(), settings)
    };
    json!({ "subscriptions": named.iter().map(with_endpoint).collect::<serde_json::Map<_, _>>() })
}

/// One subscription, `a`, that receives everything.
pub(crate) fn one() -> Value {
    subscriptions(&[("a", json!({}))])
}

/// A batch of `count` events with ids from 0.
pub(crate) fn events(count: usize) -> String {
    let event = |id: usize| MINIMAL.replace("\"1\"", &format!("\"{id}\""));
    let events: Vec<_> = (0..count).map(event).collect();
    format!("[{}]", events.join(","))
}

/// An event of exactly this many bytes.
pub(crate) fn event_of(bytes: usize) -> String {
    let start = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t","data":""#;
    let end = "\"}";
    format!(
        "{start}{}{end}",
        "x".repeat(bytes - start.len() - end.len())
    )
}
