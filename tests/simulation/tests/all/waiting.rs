//! An outage, in which everything that shows what waits shows the same, minute by minute.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::api::SubscriptionSettings;
use posthaste_core::delivery_log::DeliveryState;
use posthaste_core::model::{
    DeliveryLogMode, EventPayload, SendFailure, SubscriptionName, Timestamp, TopicName,
};
use posthaste_core::stored::delivery::render_delivery;
use posthaste_core::stored::layout;
use posthaste_deliver::DeliverSettings;
use posthaste_ports::{Clock, ObjectStore, OutgoingMessage, QueueName, QueueReceiver, QueueSender};
use posthaste_services::{AllWaiting, WaitingEvents, WaitingNumbers};
use posthaste_simulation::{Answer, Faults, World, event, start};
use posthaste_testkit::records::delivery;
use serde_json::{Value, json};

const MINUTE: Duration = Duration::from_mins(1);

/// The subscriptions, each with a host of its own, and what their endpoints answer while they are
/// down.
const ENDPOINTS: [(&str, Answer); 8] = [
    ("healthy", Answer::Status(204)),
    ("busy", Answer::Status(503)),
    ("refusing", Answer::Status(400)),
    ("unauthorized", Answer::Status(401)),
    ("flapping", Answer::By(flapping)),
    ("hanging", Answer::Failure(SendFailure::TimedOut)),
    ("nobody", Answer::Failure(SendFailure::Refused)),
    ("redirecting", Answer::Status(302)),
];

/// Minutes of the outage, in which events are published in the first ten.
const OUTAGE_MINUTES: u64 = 45;

fn flapping(_: &str, at: Timestamp) -> u16 {
    if at.minute_rounded_down().is_multiple_of(2) {
        503
    } else {
        204
    }
}

fn topic() -> TopicName {
    TopicName::parse("orders").unwrap()
}

fn name(of: &str) -> SubscriptionName {
    SubscriptionName::parse(of).unwrap()
}

/// The test's own knowledge of each subscription: what was accepted, and what has ended.
#[derive(Default)]
struct Book {
    accepted: BTreeMap<String, BTreeSet<String>>,
    ended: BTreeMap<String, BTreeSet<String>>,
}

impl Book {
    /// Sends events to every subscription, some in one message, as publish does.
    async fn publish(&mut self, world: &World, round: u64, events: usize) {
        for (of, _) in &ENDPOINTS {
            let key = format!("k{round}");
            let payload = |n| EventPayload::Inline(Bytes::from(event(&format!("{round}-{n}"))));
            let to = (topic(), name(of));
            let delivery = delivery(to, &key, (0..events).map(payload), world.clock.now());
            let keys = delivery.events.iter().map(|entry| entry.key.clone());
            self.accepted
                .entry((*of).to_owned())
                .or_default()
                .extend(keys);
            let message = OutgoingMessage {
                body: render_delivery(&delivery),
                group: Some(delivery.message_group_id()),
                delay: Duration::ZERO,
            };
            let queue = world.local.queue(QueueName::Deliveries);
            queue.send_whole(vec![message], Vec::new()).await.unwrap();
        }
    }

    /// Reads the records of what deliver did.
    async fn read(&mut self, world: &World) {
        for record in world.log_records().await {
            let state = record.result.delivery_state();
            if !matches!(state, DeliveryState::Waiting | DeliveryState::Held) {
                self.ended
                    .entry(record.subscription)
                    .or_default()
                    .insert(record.delivery_key);
            }
        }
    }

    fn waiting(&self, of: &str) -> u64 {
        let count =
            |book: &BTreeMap<String, BTreeSet<String>>| book.get(of).map_or(0, BTreeSet::len);
        (count(&self.accepted) - count(&self.ended)) as u64
    }
}

async fn subscribe(world: &World) {
    world.subscribe(json!({})).await;
    let mut record = world.record().await;
    record.settings.subscriptions.clear();
    for (of, _) in &ENDPOINTS {
        let settings = json!({ "endpoint": { "url": format!("https://{of}.example.com/hooks") } });
        let settings: SubscriptionSettings = serde_json::from_value(settings).unwrap();
        record.settings.subscriptions.insert(name(of), settings);
    }
    world.write_record(record.render()).await;
}

async fn all(world: &World) -> AllWaiting {
    let events = WaitingEvents {
        deliveries: &world.local.queue(QueueName::Deliveries),
        slow_deliveries: None,
        state: &world.local.state_store(),
        clock: &world.clock,
        recorded_until: None,
    };
    events.count_all().await.unwrap()
}

/// Asks everything that shows what waits, and compares it with what the test knows.
async fn compare(world: &World, book: &Book) {
    let minute = (world.clock.now().since(start())).as_secs() / 60;
    let all = all(world).await;
    let api = world.api();
    let get = async |path: &str| api.ask("GET", path, &Value::Null).await.1;
    let listed = get("/topics/orders/subscriptions").await;
    let links = get("/links").await;
    let mut sum = 0;
    for shown in listed["subscriptions"].as_array().unwrap() {
        let of = shown["name"].as_str().unwrap();
        let context = format!("{of} in minute {minute}");
        let expected = book.waiting(of);
        assert_eq!(shown["waiting"]["count"], expected, "{context}: {shown}");
        assert_eq!(shown["waiting"].get("atLeast"), None, "{context}");
        let one = get(&format!("/topics/orders/subscriptions/{of}")).await;
        assert_eq!(one["waiting"], shown["waiting"], "{context}");
        assert_eq!(
            all.for_subscription(&topic(), &name(of)).total(),
            expected,
            "{context}"
        );
        let link = format!("https://{of}.example.com:443");
        let rows = links["links"].as_array().unwrap().iter();
        for row in rows.filter(|row| row["link"] == link.as_str()) {
            assert_eq!(row["waiting"]["count"], expected, "{context}: {row}");
            let probe = &row["nextProbe"];
            if probe.is_string() && row["waiting"]["held"] != 0 {
                assert_eq!(shown["waiting"]["nextAttemptAt"], *probe, "{context}");
            }
        }
        sum += expected;
    }
    assert_eq!(all.total().total(), sum, "in minute {minute}");
}

#[tokio::test]
async fn all_figures_of_what_waits_agree_in_every_minute_of_an_outage() {
    let world = World::new();
    subscribe(&world).await;
    for (of, answer) in ENDPOINTS {
        world
            .endpoint
            .answer_at(format!("{of}.example.com"), answer);
    }
    let mut book = Book::default();
    let mut most = 0;
    let mut were_held = 0;
    for minute in 0..OUTAGE_MINUTES {
        if minute < 10 {
            book.publish(&world, minute, 1 + usize::try_from(minute % 4).unwrap())
                .await;
        }
        compare(&world, &book).await;
        world.deliver_all().await;
        book.read(&world).await;
        compare(&world, &book).await;
        world.clock.advance(MINUTE);
        world.wake().await;
        compare(&world, &book).await;
        let sum = all(&world).await.total();
        most = most.max(sum.total());
        were_held = were_held.max(sum.held);
    }
    assert!(most > 50 && were_held > 50, "{most} {were_held}");
    assert_eq!(book.waiting("healthy"), 0);
    for (of, _) in &ENDPOINTS {
        let answer = Answer::Status(204);
        world
            .endpoint
            .answer_at(format!("{of}.example.com"), answer);
    }
    for _ in 0..24 * 60 {
        world.clock.advance(MINUTE);
        world.wake().await;
        world.deliver_all().await;
        if world.is_at_rest().await {
            break;
        }
    }
    book.read(&world).await;
    compare(&world, &book).await;
    assert_eq!(all(&world).await.total().total(), 0);
}

/// Lets record add up all records, and compares its numbers with those of the queue and the store.
async fn compare_numbers(world: &World) -> u64 {
    let records = world.local.queue(QueueName::Records);
    while records.counts().await.unwrap().visible > 0 {
        assert_eq!(world.record_some(1_000).await.failures, []);
    }
    let numbers = WaitingNumbers::read_all(&world.local.state_store(), world.clock.now())
        .await
        .unwrap();
    let of_records: BTreeMap<_, _> = numbers.counts_by_key().collect();
    let all = all(world).await;
    let waits = |(_, events): &(&str, u64)| *events > 0;
    let of_queue = all
        .by_group
        .iter()
        .map(|(group, count)| (&**group, count.total()));
    let of_queue: BTreeMap<_, _> = of_queue.filter(waits).collect();
    let minute = world.clock.now().since(start()).as_secs() / 60;
    assert_eq!(of_records, of_queue, "in minute {minute}");
    all.total().total()
}

/// Once each event was received, the numbers are those of the queue and the store.
#[tokio::test]
async fn numbers_of_records_are_those_of_the_queue_in_an_outage() {
    let world = World::new().counting_what_waits_from_records();
    subscribe(&world).await;
    for (of, answer) in ENDPOINTS {
        world
            .endpoint
            .answer_at(format!("{of}.example.com"), answer);
    }
    let mut book = Book::default();
    let mut most = 0;
    for minute in 0..OUTAGE_MINUTES {
        if minute < 10 {
            book.publish(&world, minute, 1 + usize::try_from(minute % 4).unwrap())
                .await;
        }
        world.deliver_all().await;
        most = most.max(compare_numbers(&world).await);
        world.clock.advance(MINUTE);
        world.wake().await;
        compare_numbers(&world).await;
    }
    assert!(most > 50, "{most}");
    for (of, _) in &ENDPOINTS {
        let answer = Answer::Status(204);
        world
            .endpoint
            .answer_at(format!("{of}.example.com"), answer);
    }
    for _ in 0..24 * 60 {
        world.clock.advance(MINUTE);
        world.wake().await;
        world.deliver_all().await;
        compare_numbers(&world).await;
        if world.is_at_rest().await {
            break;
        }
    }
    assert_eq!(compare_numbers(&world).await, 0);
}

/// The delivery log is on for the topic alone, and what it said goes with the subscription, or with
/// the topic itself.
#[tokio::test]
async fn deleted_subscription_has_no_waiting_events() {
    for topic_goes_too in [false, true] {
        let settings = DeliverSettings {
            delivery_log: DeliveryLogMode::Off,
            ..DeliverSettings::default()
        };
        let world = World::bounded(&Faults::none(), settings).counting_what_waits_from_records();
        world.subscribe(json!({})).await;
        world.log(DeliveryLogMode::Payloads).await;
        world.endpoint.answer([Answer::Status(503)]);
        let events: Vec<_> = (0..3).map(|n| event(&n.to_string())).collect();
        world.publish(&events, 60 * MINUTE).await;
        world.deliver_all().await;
        assert_eq!(compare_numbers(&world).await, 3);
        let mut record = world.record().await;
        record.settings.subscriptions.clear();
        if topic_goes_too {
            let key = layout::topic_record_key(&topic());
            world.local.state_store().delete(&key).await.unwrap();
        } else {
            world.write_record(record.render()).await;
        }
        world.clock.advance(MINUTE);
        world.deliver_all().await;
        assert_eq!(compare_numbers(&world).await, 0, "{topic_goes_too}");
    }
}

/// An event that was never logged is not logged because its subscription is gone.
#[tokio::test]
async fn deleted_subscription_without_a_log_has_no_records() {
    let settings = DeliverSettings {
        delivery_log: DeliveryLogMode::Off,
        ..DeliverSettings::default()
    };
    let world = World::bounded(&Faults::none(), settings);
    world.subscribe(json!({})).await;
    world.endpoint.answer([Answer::Status(503)]);
    world.publish(&[event("1")], 60 * MINUTE).await;
    world.deliver_all().await;
    let mut record = world.record().await;
    record.settings.subscriptions.clear();
    world.write_record(record.render()).await;
    world.clock.advance(MINUTE);
    world.deliver_all().await;
    let records = world.local.queue(QueueName::Records).counts().await;
    assert_eq!(records.unwrap().total(), 0);
    let letters = world.local.queue(QueueName::DeadLetters).counts().await;
    assert_eq!(letters.unwrap().total(), 1);
}

/// A start rebuilds the figure from the disk.
#[tokio::test]
async fn waiting_figure_is_the_same_after_a_restart() {
    let world = World::new();
    subscribe(&world).await;
    for (of, answer) in ENDPOINTS {
        world
            .endpoint
            .answer_at(format!("{of}.example.com"), answer);
    }
    let mut book = Book::default();
    for minute in 0..12 {
        book.publish(&world, minute, 3).await;
        world.deliver_all().await;
        world.clock.advance(MINUTE);
        world.wake().await;
    }
    let before = all(&world).await;
    let now = world.clock.now();
    assert!(
        before.total().held > 0 && before.total().queued() > 0,
        "{before:?}"
    );
    let world = World::over(world.end().await, now);
    assert_eq!(all(&world).await, before);
}
