//! Metrics that are looked up, over a store and queues in memory.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::circuit::{HealthSettings, Observation, RequestFailure};
use posthaste_core::health::{SeenTry, SubscriptionTries, TryResult};
use posthaste_core::model::{EventPayload, OutcomeName, TopicName};
use posthaste_core::stored::HEALTH;
use posthaste_core::stored::delivery::render_delivery;
use posthaste_ports::{OutgoingMessage, QueueSender};
use posthaste_services::TopicRegistry;
use posthaste_testkit::ManualClock;
use posthaste_testkit::memory::{MemoryQueue, MemoryStore, message};
use posthaste_testkit::records::{delivery, subscription_name, topic_name};
use serde_json::{Value as Json, json};

use super::*;
use crate::metrics::exposition::render;
use crate::metrics::form::PageFormat;

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

struct World {
    store: MemoryStore,
    clock: ManualClock,
    standing: LookedUpMetrics<MemoryStore, MemoryQueue, ManualClock>,
}

impl World {
    fn new() -> Self {
        let store = MemoryStore::default();
        let clock = ManualClock::new(START);
        let standing = LookedUpMetrics {
            state: store.clone(),
            deliveries: MemoryQueue::default(),
            given_up: [MemoryQueue::default(), MemoryQueue::default()],
            records: MemoryQueue::default(),
            links: LinkHealth::new(store.clone(), clock.clone(), HealthSettings::default()),
            clock: clock.clone(),
        };
        Self {
            store,
            clock,
            standing,
        }
    }

    /// A topic with these subscriptions, each with more settings.
    async fn topic(&self, name: &str, subscriptions: &[(&str, Json)]) -> Arc<Topic> {
        let subscriptions: serde_json::Map<_, _> = subscriptions
            .iter()
            .map(|(name, settings)| ((*name).to_owned(), settings.clone()))
            .collect();
        let record = json!({
            "v": 1, "name": name, "key1": "one", "key2": "two", "createdAt": 0, "updatedAt": 0,
            "settings": { "subscriptions": subscriptions },
        });
        let key = format!("topics/{name}.json");
        self.store.write(&key, record.to_string().into_bytes());
        let registry = TopicRegistry::new(self.store.clone(), self.clock.clone(), Duration::ZERO);
        let name = TopicName::parse(name).unwrap();
        registry.topic(&name).await.unwrap().unwrap()
    }

    /// Queues a message of an event that was accepted now.
    async fn queue_up(&self, topic: &str, subscription: &str) {
        let names = (topic_name(topic), subscription_name(subscription));
        let payload = EventPayload::Inline(Bytes::from_static(b"{}"));
        let delivery = delivery(names, "k", [payload], self.clock.now());
        let message = OutgoingMessage {
            body: render_delivery(&delivery),
            group: Some(delivery.message_group_id()),
            delay: Duration::ZERO,
        };
        send(&self.standing.deliveries, message).await;
    }

    async fn failing(&self, target: DeliveryTarget) {
        let failing = Observation::Failing {
            failures: 10,
            last: RequestFailure {
                outcome: OutcomeName::TimedOut,
                status: None,
            },
            began: self.clock.now(),
        };
        self.standing
            .links
            .observe(&[(target, failing)])
            .await
            .unwrap();
    }

    /// The samples of metrics with this beginning.
    async fn samples(&self, by: SeriesBy, topics: &[Arc<Topic>], name: &str) -> Vec<String> {
        let mut lines = self.standing.read_lines(by, topics).await;
        lines.sort_by_key(|line| line.place);
        let text = String::from_utf8(render(&lines, PageFormat::Text).concat()).unwrap();
        text.lines()
            .filter(|line| line.starts_with(name))
            .map(str::to_owned)
            .collect()
    }
}

async fn send(queue: &MemoryQueue, message: OutgoingMessage) {
    let sent = queue.send_batch(vec![message]).await.unwrap();
    assert!(sent.iter().all(Result::is_ok));
}

fn at(url: &str) -> Json {
    json!({ "endpoint": { "url": url } })
}

#[tokio::test]
async fn waiting_events_are_shown_by_owner_and_in_sum() {
    let world = World::new();
    let orders = [
        ("a", at("https://a.example/")),
        ("b", at("https://b.example/")),
    ];
    let topics = [
        world
            .topic("bills", &[("a", at("https://a.example/"))])
            .await,
        world.topic("orders", &orders).await,
    ];
    for (topic, subscription) in [
        ("orders", "a"),
        ("orders", "b"),
        ("orders", "b"),
        ("unknown", "a"),
    ] {
        world.queue_up(topic, subscription).await;
        world.clock.advance(Duration::from_secs(10));
    }
    for (by, expected) in [
        (SeriesBy::Total, vec!["posthaste_waiting 4"]),
        (
            SeriesBy::FewTopics,
            vec![
                r#"posthaste_waiting{topic="bills"} 0"#,
                r#"posthaste_waiting{topic="orders"} 3"#,
                r#"posthaste_waiting{topic="_other"} 1"#,
            ],
        ),
        (
            SeriesBy::Subscription,
            vec![
                r#"posthaste_waiting{topic="bills",subscription="a"} 0"#,
                r#"posthaste_waiting{topic="orders",subscription="a"} 1"#,
                r#"posthaste_waiting{topic="orders",subscription="b"} 2"#,
                r#"posthaste_waiting{topic="_other",subscription="_other"} 1"#,
            ],
        ),
    ] {
        let of = if by == SeriesBy::Total {
            &[]
        } else {
            &topics[..]
        };
        assert_eq!(
            world.samples(by, of, "posthaste_waiting").await,
            expected,
            "{by:?}"
        );
    }
    let ages = world
        .samples(SeriesBy::FewTopics, &topics, "posthaste_oldest_")
        .await;
    let expected = [
        r#"posthaste_oldest_waiting_seconds{topic="bills"} 0"#,
        r#"posthaste_oldest_waiting_seconds{topic="orders"} 40"#,
        r#"posthaste_oldest_waiting_seconds{topic="_other"} 10"#,
    ];
    assert_eq!(ages, expected);
}

#[tokio::test]
async fn subscription_is_up_where_it_gets_requests() {
    let world = World::new();
    let down = at("https://down.example/");
    let mut paused = at("https://a.example/");
    paused["status"] = json!({ "state": "Paused", "since": "2023-01-01T00:00:00Z" });
    let settings = [
        ("well", at("https://a.example/")),
        ("paused", paused),
        ("on-a-dead-link", down),
        ("itself", at("https://a.example/itself")),
    ];
    let topics = [world.topic("orders", &settings).await];
    let subscription = |name: &str| {
        topics[0]
            .find_subscription(&subscription_name(name))
            .unwrap()
    };
    let link = subscription("on-a-dead-link").endpoint.link();
    world.failing(DeliveryTarget::Link(link)).await;
    world
        .failing(DeliveryTarget::for_subscription(subscription("itself")))
        .await;
    let samples = world
        .samples(SeriesBy::default(), &topics, "posthaste_subscription")
        .await;
    let mut up: Vec<_> = samples.iter().map(String::as_str).collect();
    up.sort_unstable();
    let expected = [
        r#"posthaste_subscription_up{topic="orders",subscription="itself"} 0"#,
        r#"posthaste_subscription_up{topic="orders",subscription="on-a-dead-link"} 0"#,
        r#"posthaste_subscription_up{topic="orders",subscription="paused"} 0"#,
        r#"posthaste_subscription_up{topic="orders",subscription="well"} 1"#,
        "posthaste_subscriptions_down 2",
    ];
    assert_eq!(up, expected);
    let links = world
        .samples(SeriesBy::default(), &topics, "posthaste_link")
        .await;
    let expected = [
        r#"posthaste_link_up{link="https://down.example:443"} 0"#,
        r#"posthaste_link_up{link="https://a.example:443"} 1"#,
        "posthaste_links_down 1",
    ];
    assert_eq!(links, expected);
    // Of topics without series of their own there is what fails.
    let links = world.samples(SeriesBy::Total, &[], "posthaste_link").await;
    let expected = [
        r#"posthaste_link_up{link="https://down.example:443"} 0"#,
        "posthaste_links_down 1",
    ];
    assert_eq!(links, expected);
}

/// Tries of a subscription, each of which its endpoint refused for a reason that no circuit counts.
fn refused(count: u64) -> SubscriptionTries {
    let mut tries = SubscriptionTries::default();
    for n in 0..count {
        tries.add_try(&SeenTry {
            key: "k",
            accepted_at: START,
            at: START + Duration::from_secs(n),
            is_first: true,
            result: TryResult::Failed {
                outcome: Some(OutcomeName::Unauthorized),
                status: Some(401),
                is_last: true,
            },
        });
    }
    tries
}

/// So many tries are refused, and as many arrive.
fn half_refused(count: u64) -> SubscriptionTries {
    let mut tries = refused(count);
    for n in 0..count {
        tries.add_try(&SeenTry {
            key: "another",
            accepted_at: START,
            at: START + Duration::from_secs(n),
            is_first: true,
            result: TryResult::Arrived,
        });
    }
    tries
}

/// The circuit knows nothing of what is refused for its content or its key. The book of health does.
#[tokio::test]
async fn subscription_without_arrivals_is_down_despite_its_circuit() {
    let world = World::new();
    let settings = [
        ("well", at("https://a.example/")),
        ("refused", at("https://a.example/refused")),
        ("once", at("https://a.example/once")),
        ("half", at("https://a.example/half")),
    ];
    let topics = [world.topic("orders", &settings).await];
    let tries = [
        ("orders.refused", refused(10)),
        ("orders.once", refused(1)),
        ("orders.half", half_refused(10)),
        ("without-series.all", refused(10)),
    ];
    let mut book = HealthBook::default();
    let tries = tries.map(|(key, tries)| (key.to_owned(), tries));
    assert!(book.add_tries(tries.into(), "run"));
    world.store.write(HEALTH, book.render());
    let name = "posthaste_subscription";
    let samples = world.samples(SeriesBy::default(), &topics, name).await;
    let mut up: Vec<_> = samples.iter().map(String::as_str).collect();
    up.sort_unstable();
    let expected = [
        r#"posthaste_subscription_up{topic="orders",subscription="half"} 0"#,
        r#"posthaste_subscription_up{topic="orders",subscription="once"} 1"#,
        r#"posthaste_subscription_up{topic="orders",subscription="refused"} 0"#,
        r#"posthaste_subscription_up{topic="orders",subscription="well"} 1"#,
        "posthaste_subscriptions_down 3",
    ];
    assert_eq!(up, expected);
    let total = world.samples(SeriesBy::Total, &[], name).await;
    assert_eq!(total, ["posthaste_subscriptions_down 3"]);
}

/// No series says that all is well because nothing is known.
#[tokio::test]
async fn health_that_cannot_be_read_is_left_out_beside_the_links() {
    let world = World::new();
    let topics = [world
        .topic("orders", &[("a", at("https://a.example/"))])
        .await];
    world.store.write(HEALTH, r#"{"v":99}"#);
    let by = SeriesBy::default();
    let up = world.samples(by, &topics, "posthaste_subscription").await;
    assert_eq!(up, [""; 0]);
    let links = world.samples(by, &topics, "posthaste_link").await;
    assert_eq!(links.len(), 2, "{links:?}");
}

#[tokio::test]
async fn queues_are_counted() {
    let world = World::new();
    for _ in 0..3 {
        send(&world.standing.records, message("one")).await;
    }
    for queue in &world.standing.given_up {
        send(queue, message("one")).await;
    }
    for (name, expected) in [
        ("posthaste_records_waiting", "posthaste_records_waiting 3"),
        ("posthaste_dead_letters", "posthaste_dead_letters_waiting 2"),
        ("posthaste_deliveries", "posthaste_deliveries_in_flight 0"),
    ] {
        assert_eq!(world.samples(SeriesBy::Total, &[], name).await, [expected]);
    }
    let info = world
        .samples(SeriesBy::Total, &[], "posthaste_build_info")
        .await;
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        info,
        [format!(r#"posthaste_build_info{{version="{version}"}} 1"#)]
    );
}

#[tokio::test]
async fn topics_that_are_slowed_have_levels_and_no_others() {
    let world = World::new();
    let none = world
        .samples(SeriesBy::default(), &[], "posthaste_topic")
        .await;
    assert_eq!(none, ["posthaste_topics_slowed 0"]);
    let topic = |name: &str, level: &str| {
        json!({
            "topic": name, "subscription": "a", "due": 5, "tarpitMs": 0,
            "drainTime": {
                "resource": "drain-time", "level": level, "since": 0, "reading": 70, "readAt": 0,
                "thresholds": { "normal": 30, "medium": 60, "high": 300 }, "acts": true, "polls": 1,
                "refusedFrom": null,
            },
        })
    };
    let mut state = PressureState::normal(START);
    for (name, level) in [("slow", "medium"), ("well", "normal")] {
        state
            .topics
            .push(serde_json::from_value(topic(name, level)).unwrap());
    }
    world.store.write(PRESSURE_KEY, state.render());
    let slowed = world
        .samples(SeriesBy::default(), &[], "posthaste_topic")
        .await;
    let expected = [
        "posthaste_topics_slowed 1",
        r#"posthaste_topic_pressure_level{topic="slow"} 1"#,
        r#"posthaste_topic_drain_seconds{topic="slow"} 70"#,
    ];
    assert_eq!(slowed, expected);
    let total = world.samples(SeriesBy::Total, &[], "posthaste_topic").await;
    assert_eq!(total, expected[..1]);
}

/// All subscriptions of a topic are shown, or none.
#[tokio::test]
async fn subscriptions_beyond_the_bound_are_in_the_sum() {
    let world = World::new();
    let names: Vec<_> = (0..400).map(|n| format!("s{n}")).collect();
    let settings: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), at("https://a.example/")))
        .collect();
    let topics = [
        world.topic("first", &settings).await,
        world.topic("second", &settings).await,
        world.topic("third", &settings[..300]).await,
        world.topic("fourth", &settings[..200]).await,
    ];
    world.queue_up("first", "s1").await;
    world.queue_up("third", "s2").await;
    let up = world
        .samples(SeriesBy::default(), &topics, "posthaste_subscription_up")
        .await;
    assert_eq!(up.len(), SUBSCRIPTIONS_MAX);
    let waiting = world
        .samples(SeriesBy::default(), &topics, "posthaste_waiting")
        .await;
    let expected = [
        r#"posthaste_waiting{topic="first"} 1"#,
        r#"posthaste_waiting{topic="second"} 0"#,
        r#"posthaste_waiting{topic="fourth"} 0"#,
        r#"posthaste_waiting{topic="_other"} 1"#,
    ];
    assert_eq!(waiting, expected);
}
