//! The subscriptions that an event is meant for are known from the 200 on: its messages name those
//! that it matches, or a record of its acceptance does.

use std::time::Duration;

use posthaste_core::delivery_log::{LogRecord, LogResult, RecordKind};
use posthaste_core::model::{DISABLED_KEPT, DeliveryLogMode, MATCHED_IN_MESSAGES_MAX, Timestamp};
use posthaste_core::pressure::{
    LevelThresholds, PressureLevel, PressureState, Resource, ResourceState,
};
use posthaste_core::stored::PRESSURE_KEY;
use posthaste_ports::{ErrorKind, ObjectStore, PutCondition};
use posthaste_publish::PublishSettings;
use posthaste_testkit::Faulty;
use posthaste_testkit::faulty::{CallFault, FaultPlan};
use serde_json::{Value, json};

use crate::world::{BATCH, KEY, MINIMAL, START, STRUCTURED, World, request, send, subscriptions};

/// So many subscriptions `s00`, `s01` and so on with these settings.
fn many(count: usize, settings: &Value) -> Value {
    let names: Vec<String> = (0..count).map(|n| format!("s{n:02}")).collect();
    let all: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), settings.clone()))
        .collect();
    subscriptions(&all)
}

fn paused() -> Value {
    json!({ "status": { "state": "Paused", "since": "2026-11-21T09:00:00Z" } })
}

/// The names in the messages: for each of these its subscription, and the names of each event.
fn named(world: &World) -> Vec<(String, Vec<Option<String>>)> {
    let deliveries = world.deliveries().into_iter();
    let of = |matched: Option<std::sync::Arc<str>>| matched.map(|names| names.to_string());
    deliveries
        .map(|delivery| {
            let events = delivery.events.into_iter();
            let names = events.map(|event| of(event.marks.matched)).collect();
            (delivery.subscription.to_string(), names)
        })
        .collect()
}

/// Event, result and names of each record.
fn records(world: &World) -> Vec<(String, LogResult, Option<String>)> {
    let shown = |record: LogRecord| {
        assert_eq!(
            (record.kind, &*record.subscription),
            (RecordKind::Accepted, "")
        );
        (record.event_id.unwrap(), record.result, record.matched)
    };
    world.recorded().concat().into_iter().map(shown).collect()
}

fn pending(id: &str, names: &str) -> (String, LogResult, Option<String>) {
    (id.to_owned(), LogResult::Pending, Some(names.to_owned()))
}

async fn published(settings: Value, body: &str) -> World {
    let world = World::new(settings).await;
    assert_eq!(world.post(&[BATCH], body.to_owned()).await.status, 200);
    world
}

fn batch(types: &[&str]) -> String {
    let event = |(id, of_type): (usize, &&str)| json!({ "specversion": "1.0", "id": id.to_string(), "source": "/s", "type": of_type });
    let events: Vec<_> = types.iter().enumerate().map(event).collect();
    Value::from(events).to_string()
}

#[tokio::test]
async fn messages_name_all_subscriptions_of_their_events() {
    let of = |event_type: &str| json!({ "filter": { "includedEventTypes": [event_type] } });
    let settings = subscriptions(&[("All", json!({})), ("a", of("a")), ("b", of("b"))]);
    let world = published(settings, &batch(&["a", "b", "c", "b"])).await;
    let name = |text: &str| Some(text.to_owned());
    let expected = [
        ("a".to_owned(), vec![name("a,all")]),
        (
            "All".to_owned(),
            vec![name("a,all"), name("all,b"), None, name("all,b")],
        ),
        ("b".to_owned(), vec![name("all,b"), name("all,b")]),
    ];
    let mut actual = named(&world);
    actual.sort_by_key(|(subscription, _)| subscription.to_lowercase());
    assert_eq!(actual, expected);
    assert_eq!(records(&world), []);
}

#[tokio::test]
async fn event_of_one_subscription_needs_no_name() {
    let world = published(many(1, &json!({})), &batch(&["t", "t"])).await;
    assert_eq!(named(&world), [("s00".to_owned(), vec![None, None])]);
    assert_eq!(records(&world), []);
}

/// One record an event takes the place of the names in all of its messages.
#[tokio::test]
async fn event_of_many_subscriptions_has_a_record() {
    let names = |count: usize| (0..count).map(|n| format!("s{n:02}")).collect::<Vec<_>>();
    for (count, is_recorded) in [
        (MATCHED_IN_MESSAGES_MAX, false),
        (MATCHED_IN_MESSAGES_MAX + 1, true),
    ] {
        let world = published(many(count, &json!({})), &batch(&["t", "t"])).await;
        let all = names(count).join(",");
        let in_messages = (!is_recorded).then(|| all.clone());
        for (_, names) in named(&world) {
            assert_eq!(names, [in_messages.clone(), in_messages.clone()], "{count}");
        }
        let expected = [pending("0", &all), pending("1", &all)];
        let expected = expected.into_iter().filter(|_| is_recorded);
        assert_eq!(records(&world), expected.collect::<Vec<_>>(), "{count}");
        assert_eq!(world.recorded().len(), usize::from(is_recorded), "{count}");
    }
}

#[tokio::test]
async fn record_has_the_key_and_the_time_of_the_deliveries() {
    let world = published(many(17, &json!({})), &batch(&["t"])).await;
    let record = world.recorded().concat().remove(0);
    let delivery = world.deliveries().remove(0);
    assert_eq!(record.delivery_key, delivery.events[0].key);
    assert_eq!(record.accepted_at, delivery.published_at);
    assert_eq!((&*record.topic, record.payload), ("orders", None));
}

/// A subscription that is tried at once makes a record that names those that are not.
#[tokio::test]
async fn event_that_no_subscription_gets_at_once_has_a_record() {
    let world = published(subscriptions(&[("a", paused())]), &batch(&["t"])).await;
    assert_eq!(records(&world), [pending("0", "a")]);
    assert_eq!(named(&world), [("a".to_owned(), vec![None])]);
    let both = subscriptions(&[("a", paused()), ("b", paused())]);
    let world = published(both, &batch(&["t"])).await;
    assert_eq!(records(&world), [pending("0", "a,b")]);
    let one = subscriptions(&[("a", paused()), ("b", json!({}))]);
    let world = published(one, &batch(&["t"])).await;
    assert_eq!(records(&world), []);
    assert_eq!(named(&world)[0].1, [Some("a,b".to_owned())]);
}

#[tokio::test]
async fn event_that_has_expired_has_a_record() {
    let expiring = |at: &str| {
        let event = MINIMAL.replace('}', &format!(",\"expirytime\":\"{at}\"}}"));
        format!("[{event}]")
    };
    let world = published(many(1, &json!({})), &expiring(START)).await;
    assert_eq!(records(&world), [pending("1", "s00")]);
    let later = expiring("2026-11-21T10:00:01Z");
    assert_eq!(records(&published(many(1, &json!({})), &later).await), []);
}

/// Writes a state in which what is due takes so many seconds.
async fn put_drain_time(world: &World, seconds: u64) {
    let at = Timestamp::parse(START).unwrap();
    let mut state = PressureState::normal(at);
    state.resources = vec![ResourceState {
        resource: Resource::DrainTime,
        level: PressureLevel::Normal,
        since: at,
        reading: seconds,
        read_at: at,
        thresholds: LevelThresholds::new(30, 60, 300),
        acts: true,
        watched_only: false,
        tarpits: false,
        polls: 0,
        history_depth: Some(30),
        in_flight: false,
        refused_from: None,
        measures: std::collections::BTreeSet::new(),
    }];
    let put = world
        .store
        .put(PRESSURE_KEY, state.render().into(), PutCondition::Always);
    put.await.unwrap();
}

#[tokio::test]
async fn event_that_waits_for_others_has_a_record() {
    for (seconds, expected) in [(4, vec![]), (5, vec![pending("1", "s00,s01")])] {
        let world = World::new(many(2, &json!({}))).await;
        put_drain_time(&world, seconds).await;
        assert_eq!(world.post(&[STRUCTURED], MINIMAL).await.status, 200);
        assert_eq!(records(&world), expected, "{seconds} s");
    }
}

#[tokio::test]
async fn unmatched_event_has_a_record_where_its_topic_asks() {
    let none = json!({ "filter": { "includedEventTypes": ["none"] } });
    for (asks, expected) in [
        (false, vec![]),
        (true, vec![("1".to_owned(), LogResult::Unmatched, None)]),
    ] {
        let world = World::new(json!({})).await;
        let at = Timestamp::parse(START).unwrap();
        let record = json!({
            "v": 1, "name": "Orders", "key1": "key-one", "key2": "key-two",
            "createdAt": at, "updatedAt": at, "recordUnmatched": asks,
            "settings": subscriptions(&[("a", none.clone())]),
        });
        let put = world.store.put(
            "topics/orders.json",
            record.to_string().into(),
            PutCondition::Always,
        );
        put.await.unwrap();
        assert_eq!(world.post(&[STRUCTURED], MINIMAL).await.status, 200);
        assert_eq!(
            (records(&world), world.packed()),
            (expected, vec![]),
            "{asks}"
        );
    }
}

#[tokio::test]
async fn without_the_log_nothing_is_said() {
    let mut world = World::new(many(17, &json!({}))).await;
    world.settings = PublishSettings {
        delivery_log: DeliveryLogMode::Off,
        ..world.settings
    };
    assert_eq!(world.post(&[STRUCTURED], MINIMAL).await.status, 200);
    assert_eq!(records(&world), []);
    assert!(named(&world).iter().all(|(_, names)| *names == [None]));
}

/// The record is missing, and the event is accepted.
#[tokio::test]
async fn record_that_is_refused_harms_no_delivery() {
    for fault in [
        CallFault::Before(ErrorKind::Other),
        CallFault::After(ErrorKind::Other),
    ] {
        let world = World::new(many(17, &json!({}))).await;
        // After the two batches of deliveries.
        let plan = FaultPlan::nth(2, fault);
        let queue = |queue| Faulty::new(queue, "queue", &plan);
        let publish = world.publish_over(queue, world.store.clone());
        let asked = request("/topics/orders/events", &[KEY, STRUCTURED], MINIMAL);
        let answer = send(posthaste_publish::router(publish.into()), asked).await;
        assert_eq!((answer.status, world.packed().len()), (200, 17));
        assert_eq!(plan.faults(), 1);
    }
}

fn disabled(reason: &str, while_disabled: Option<&str>) -> Value {
    let since = "2026-11-21T09:00:00Z";
    let at = Timestamp::parse(since).unwrap();
    json!({
        "v": 1, "name": "Orders", "key1": "key-one", "key2": "key-two",
        "createdAt": at, "updatedAt": at,
        "whileDisabled": while_disabled.map(|choice| json!({ "a": choice })).unwrap_or(json!({})),
        "settings": subscriptions(&[
            ("a", json!({ "status": { "state": "Disabled", "since": since, "reason": reason } })),
        ]),
    })
}

const GONE: &str = "the endpoint answered 410 Gone";
const BY_HAND: &str = "disabled by an operator";

/// The messages and the records of an event that is published so much later.
async fn published_after(topic: &Value, later: Duration) -> (usize, Vec<(RecordKind, LogResult)>) {
    let world = World::new(json!({})).await;
    let put = world.store.put(
        "topics/orders.json",
        topic.to_string().into(),
        PutCondition::Always,
    );
    put.await.unwrap();
    world.clock.advance(later);
    assert_eq!(world.post(&[STRUCTURED], MINIMAL).await.status, 200);
    let records = world.recorded().concat().into_iter();
    let records = records.map(|record| (record.kind, record.result));
    (world.deliveries().len(), records.collect())
}

#[tokio::test]
async fn disabled_subscription_keeps_or_skips_what_it_misses() {
    let kept = (1, vec![(RecordKind::Accepted, LogResult::Pending)]);
    let skipped = (0, vec![(RecordKind::Dropped, LogResult::Dropped)]);
    // It was disabled an hour before.
    let over = DISABLED_KEPT.saturating_sub(Duration::from_hours(1));
    let nearly = over.saturating_sub(Duration::from_millis(1));
    for (reason, choice, later, expected) in [
        (GONE, None, Duration::ZERO, &kept),
        (GONE, None, nearly, &kept),
        (GONE, None, over, &skipped),
        (GONE, Some("skip"), Duration::ZERO, &skipped),
        (GONE, Some("deadLetter"), over, &kept),
        (BY_HAND, None, Duration::ZERO, &skipped),
        (BY_HAND, Some("deadLetter"), Duration::ZERO, &kept),
    ] {
        let actual = published_after(&disabled(reason, choice), later).await;
        assert_eq!(actual, *expected, "{reason} {choice:?} {later:?}");
    }
}

#[tokio::test]
async fn skipped_event_has_a_record_of_its_subscription() {
    let world = World::new(json!({})).await;
    let topic = disabled(BY_HAND, None);
    let put = world.store.put(
        "topics/orders.json",
        topic.to_string().into(),
        PutCondition::Always,
    );
    put.await.unwrap();
    assert_eq!(world.post(&[STRUCTURED], MINIMAL).await.status, 200);
    let record = world.recorded().concat().remove(0);
    let of = [&*record.subscription, record.event_id.as_deref().unwrap()];
    assert_eq!(of, ["a", "1"]);
    assert_eq!(record.reason.as_deref(), Some("SubscriptionDisabled"));
}

/// The event has matched: it is recorded as skipped, and not as one that matched nothing.
#[tokio::test]
async fn skipped_event_is_not_recorded_as_unmatched() {
    let world = World::new(json!({})).await;
    let mut topic = disabled(BY_HAND, None);
    topic["recordUnmatched"] = json!(true);
    let put = world.store.put(
        "topics/orders.json",
        topic.to_string().into(),
        PutCondition::Always,
    );
    put.await.unwrap();
    assert_eq!(world.post(&[STRUCTURED], MINIMAL).await.status, 200);
    let records = world.recorded().concat().into_iter();
    let kinds: Vec<_> = records.map(|record| record.kind).collect();
    assert_eq!(kinds, [RecordKind::Dropped]);
}

/// Other subscriptions get the event as ever.
#[tokio::test]
async fn skipping_takes_nothing_from_other_subscriptions() {
    let world = World::new(json!({})).await;
    let mut topic = disabled(BY_HAND, None);
    topic["settings"]["subscriptions"]["b"] =
        json!({ "endpoint": { "url": "https://b.example.com/" } });
    let put = world.store.put(
        "topics/orders.json",
        topic.to_string().into(),
        PutCondition::Always,
    );
    put.await.unwrap();
    assert_eq!(world.post(&[STRUCTURED], MINIMAL).await.status, 200);
    let deliveries = world.deliveries();
    let names: Vec<_> = deliveries
        .iter()
        .map(|it| it.subscription.to_string())
        .collect();
    assert_eq!(names, ["b"]);
    let records = world.recorded().concat().into_iter();
    let of: Vec<_> = records.map(|record| record.subscription).collect();
    assert_eq!(of, ["a"]);
}
