//! Topics and subscriptions that go by themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::{Timestamp, TopicName};
use posthaste_core::stored::parked::render_parked;
use posthaste_core::stored::{ActivityNote, TopicRecord, layout};
use posthaste_ports::{Clock, ErrorKind, ObjectStore};
use posthaste_testkit::faulty::PortEffect;
use posthaste_testkit::{CallFault, FaultPlan, ManualClock, PortOperation, records};
use serde_json::{Value, json};

use crate::world::World;
use posthaste_testkit::memory::MemoryStore;

const MINUTE: Duration = Duration::from_mins(1);
const TOPIC: &str = "topics/orders.json";
const NAME: &str = "temporary/orders";

/// A topic with these members, written now, and known as temporary.
fn record(now: Timestamp, settings: Value) -> TopicRecord {
    records::topic_record(
        records::topic_name("Orders"),
        records::topic_settings(settings),
        now,
    )
}

/// A subscription of these members, active since now.
fn subscription(now: Timestamp, members: &Value) -> Value {
    let mut settings = json!({
        "endpoint": { "url": "https://a.example/" },
        "status": { "state": "Active", "since": now.to_string() },
    });
    settings
        .as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    settings
}

async fn with_subscription(world: &World, members: Value) {
    let now = world.clock.now();
    let settings = json!({ "subscriptions": { "Billing": subscription(now, &members) } });
    world.write(TOPIC, record(now, settings).render()).await;
    world.write(NAME, "".into()).await;
}

async fn with_idle_topic_named(world: &World, name: &str) {
    let now = world.clock.now();
    let record = record(now, json!({ "autoDeleteOnIdle": "PT8M" }));
    let topic = TopicName::parse(name).unwrap();
    world
        .write(&layout::temporary_mark_key(&topic), "".into())
        .await;
    world
        .write(
            &layout::topic_record_key(&topic),
            TopicRecord {
                name: topic,
                ..record
            }
            .render(),
        )
        .await;
}

async fn with_idle_topic(world: &World) {
    let now = world.clock.now();
    let settings = json!({
        "autoDeleteOnIdle": "PT8M",
        "subscriptions": { "billing": subscription(now, &json!({})) },
    });
    world.write(TOPIC, record(now, settings).render()).await;
    world.write(NAME, "".into()).await;
}

/// Has the subscription been in this state since the topic was made.
async fn set_state(world: &World, state: &str) {
    let object = world.store.get(TOPIC).await.unwrap().unwrap();
    let mut record: Value = serde_json::from_slice(&object.bytes).unwrap();
    record["settings"]["subscriptions"]["Billing"]["status"]["state"] = json!(state);
    world.write(TOPIC, record.to_string().into()).await;
}

async fn note(world: &World, key: &str, at: Timestamp) {
    world.write(key, ActivityNote::new(at).render()).await;
}

/// The names of the topic's subscriptions; `None` if there is no topic.
async fn subscriptions(store: &MemoryStore) -> Option<Vec<String>> {
    let object = store.get(TOPIC).await.unwrap()?;
    let record = TopicRecord::parse(&object.bytes).unwrap();
    if record.deleted_at.is_some() {
        return None;
    }
    Some(
        record
            .settings
            .subscriptions
            .keys()
            .map(ToString::to_string)
            .collect(),
    )
}

/// The topics and subscriptions that a run deletes which begins `later`.
async fn deleted_after(world: &World, later: Duration) -> (usize, usize) {
    let report = world.run_after(later).await;
    (report.deleted_topics, report.deleted_subscriptions)
}

#[tokio::test]
async fn a_subscription_is_deleted_when_its_time_has_come() {
    let world = World::new();
    with_subscription(
        &world,
        json!({ "expirationTimeUtc": "2026-03-07T04:07:00Z" }),
    )
    .await;
    assert_eq!(deleted_after(&world, MINUTE).await, (0, 0));
    assert_eq!(deleted_after(&world, MINUTE).await, (0, 1));
    assert_eq!(subscriptions(&world.store).await, Some(vec![]));
    // The topic is not temporary any more, and is not looked at again.
    assert_eq!(deleted_after(&world, MINUTE).await, (0, 0));
    assert_eq!(world.store.keys("temporary/"), Vec::<String>::new());
}

#[tokio::test]
async fn a_subscription_is_deleted_when_it_is_idle_and_not_before() {
    let world = World::new();
    with_subscription(&world, json!({ "autoDeleteOnIdle": "PT8M" })).await;
    note(
        &world,
        "activity/orders.billing",
        world.clock.now() + 5 * MINUTE,
    )
    .await;
    // Idle for 8 minutes since its note, and for 2 more, the most that is not noted.
    assert_eq!(deleted_after(&world, 14 * MINUTE).await, (0, 0));
    assert_eq!(deleted_after(&world, MINUTE).await, (0, 1));
    assert_eq!(subscriptions(&world.store).await, Some(vec![]));
    assert_eq!(world.store.keys("activity/"), Vec::<String>::new());
}

#[tokio::test]
async fn a_subscription_is_not_idle_while_an_event_waits_for_it() {
    for prefix in [
        "held/orders.billing/20260308T0405Z/",
        "parked/20260307T1605Z/orders.billing/",
    ] {
        let world = World::new();
        with_subscription(&world, json!({ "autoDeleteOnIdle": "PT5M" })).await;
        let key = format!("{prefix}x.json");
        world
            .write(&key, render_parked(&[Bytes::from_static(b"\"x\"")]))
            .await;
        // Of others, in front of it: the pages are short.
        for n in 0..5 {
            world
                .write(
                    &format!("parked/20260307T1600Z/other.s{n}/x.json"),
                    Bytes::new(),
                )
                .await;
        }
        set_state(&world, "Paused").await;
        for _ in 0..6 {
            assert_eq!(deleted_after(&world, 10 * MINUTE).await, (0, 0), "{key}");
        }
        world.store.delete(&key).await.unwrap();
        let mut deleted = 0;
        for _ in 0..3 {
            deleted += deleted_after(&world, 10 * MINUTE).await.1;
        }
        assert_eq!(deleted, 1, "{key}");
    }
}

/// A subscription stays for a while after deliveries held for it were released.
#[tokio::test]
async fn subscription_stays_a_while_after_its_held_were_released() {
    let world = World::new();
    with_subscription(&world, json!({ "autoDeleteOnIdle": "PT5M" })).await;
    let held = "held/orders.billing/20260308T0405Z/x.json";
    world
        .write(held, render_parked(&[Bytes::from_static(b"\"x\"")]))
        .await;
    // The first run after an hour of nothing: it releases what is held beside its sweep.
    let report = world.run_after(60 * MINUTE).await;
    assert_eq!((report.held_sent, report.deleted_subscriptions), (1, 0));
    for _ in 0..2 {
        assert_eq!(deleted_after(&world, 10 * MINUTE).await, (0, 0));
    }
    assert_eq!(deleted_after(&world, 2 * MINUTE).await, (0, 1));
}

#[tokio::test]
async fn outage_time_does_not_count_as_idle() {
    let world = World::new();
    with_subscription(&world, json!({ "autoDeleteOnIdle": "PT8M" })).await;
    with_idle_topic_named(&world, "Idle").await;
    assert_eq!(deleted_after(&world, MINUTE).await, (0, 0));
    for outage in [60 * MINUTE, 11 * MINUTE] {
        assert_eq!(deleted_after(&world, outage).await, (0, 0));
    }
    // The queue has a quarter of an hour for what was due in the outage.
    for minutes in [10, 10, 4] {
        assert_eq!(deleted_after(&world, minutes * MINUTE).await, (0, 0));
    }
    assert_eq!(deleted_after(&world, MINUTE).await, (1, 1));
}

/// A subscription stays for a while after parked deliveries were released late.
#[tokio::test]
async fn subscription_stays_a_while_after_a_late_parked_release() {
    let queue = FaultPlan::at(
        CallFault::Before(ErrorKind::Throttled { retry_after: None }),
        |_| true,
    );
    let world = World::with(&FaultPlan::none(), &queue);
    with_subscription(&world, json!({ "autoDeleteOnIdle": "PT5M" })).await;
    world.park(5 * MINUTE, "x", 1).await;
    for _ in 0..6 {
        assert_eq!(deleted_after(&world, 10 * MINUTE).await, (0, 0));
    }
    // The queue takes it again: it is released beside the sweep, and waits there for a while.
    queue.switch(false);
    let report = world.run_after(10 * MINUTE).await;
    assert_eq!((report.sent, report.deleted_subscriptions), (1, 0));
    for _ in 0..2 {
        assert_eq!(deleted_after(&world, 10 * MINUTE).await, (0, 0));
    }
    assert_eq!(deleted_after(&world, 2 * MINUTE).await, (0, 1));
}

#[tokio::test]
async fn parked_objects_are_not_listed_without_an_idle_subscription() {
    let world = World::new();
    with_subscription(&world, json!({ "autoDeleteOnIdle": "PT8M" })).await;
    assert_eq!(world.begun_after(MINUTE).await.len(), 1);
}

#[tokio::test]
async fn a_subscription_that_was_never_used_is_idle_since_it_was_made() {
    let world = World::new();
    with_subscription(&world, json!({ "autoDeleteOnIdle": "PT8M" })).await;
    assert_eq!(deleted_after(&world, 9 * MINUTE).await, (0, 0));
    assert_eq!(deleted_after(&world, MINUTE).await, (0, 1));
}

/// A subscription whose note was lost counts as used when its topic was written.
#[tokio::test]
async fn lost_activity_note_counts_use_from_the_topic_write() {
    let world = World::new();
    let settings = subscription(world.clock.now(), &json!({ "autoDeleteOnIdle": "PT8M" }));
    let written = world.clock.now() + 60 * MINUTE;
    world
        .write(
            TOPIC,
            record(written, json!({ "subscriptions": { "Billing": settings } })).render(),
        )
        .await;
    world.write(NAME, "".into()).await;
    assert_eq!(deleted_after(&world, 69 * MINUTE).await, (0, 0));
    assert_eq!(deleted_after(&world, MINUTE).await, (0, 1));
}

#[tokio::test]
async fn a_topic_that_is_idle_goes_with_its_subscriptions() {
    let world = World::new();
    with_idle_topic(&world).await;
    note(&world, "activity/orders", world.clock.now() + MINUTE).await;
    assert_eq!(deleted_after(&world, 10 * MINUTE).await, (0, 0));
    assert_eq!(deleted_after(&world, MINUTE).await, (1, 0));
    assert_eq!(world.store.keys("topics/"), Vec::<String>::new());
    world.run_after(MINUTE).await;
    for prefix in ["temporary/", "activity/"] {
        assert_eq!(world.store.keys(prefix), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_topic_waits_for_a_retry_that_is_scheduled() {
    let world = World::new();
    with_idle_topic(&world).await;
    note(&world, "activity/orders", world.clock.now() + 60 * MINUTE).await;
    assert_eq!(deleted_after(&world, 69 * MINUTE).await, (0, 0));
    assert_eq!(deleted_after(&world, MINUTE).await, (1, 0));
}

/// A world in which somebody writes these bytes at the moment of the `nth` call that matches.
fn raced(
    operation: PortOperation,
    key: &'static str,
    nth: usize,
    write: impl Fn(&MemoryStore) + Send + Sync + 'static,
) -> World {
    let shared: Arc<std::sync::OnceLock<MemoryStore>> = Arc::default();
    let seen = AtomicUsize::new(0);
    let store = shared.clone();
    let plan = FaultPlan::by(move |effect| {
        let is_it = effect.operation == operation && effect.key == key;
        if is_it && seen.fetch_add(1, Ordering::SeqCst) == nth {
            write(store.get().expect("a store"));
        }
        None
    });
    let world = World::with(&plan, &FaultPlan::none());
    shared.set(world.store.clone()).expect("set once");
    world
}

#[tokio::test]
async fn entity_used_between_the_two_looks_stays() {
    let world = raced(PortOperation::Get, "activity/orders", 1, |store| {
        let used = Timestamp::parse("2026-03-07T05:00:00Z").unwrap();
        store.write("activity/orders", ActivityNote::new(used).render());
    });
    with_idle_topic(&world).await;
    assert_eq!(deleted_after(&world, 60 * MINUTE).await, (0, 0));
    assert_eq!(
        subscriptions(&world.store).await,
        Some(vec!["billing".to_owned()])
    );
}

#[tokio::test]
async fn a_write_that_comes_before_the_deletion_wins() {
    let world = raced(PortOperation::Put, TOPIC, 0, |store| {
        let now = Timestamp::parse("2026-03-07T05:00:00Z").unwrap();
        let settings = json!({ "autoDeleteOnIdle": "P1D" });
        store.write(TOPIC, record(now, settings).render());
    });
    with_idle_topic(&world).await;
    assert_eq!(deleted_after(&world, 60 * MINUTE).await, (0, 0));
    assert_eq!(subscriptions(&world.store).await, Some(vec![]));
}

#[tokio::test]
async fn a_deletion_that_was_cut_short_is_finished_later() {
    let is_it =
        |effect: PortEffect<'_>| effect.operation == PortOperation::Delete && effect.key == TOPIC;
    let plan = FaultPlan::nth_of(0, CallFault::Before(ErrorKind::TimedOut), is_it);
    let world = World::with(&plan, &FaultPlan::none());
    with_idle_topic(&world).await;
    assert_eq!(deleted_after(&world, 10 * MINUTE).await, (1, 0));
    assert_eq!(
        (
            subscriptions(&world.store).await,
            world.store.keys("topics/").len()
        ),
        (None, 1)
    );
    world.run_after(MINUTE / 2).await;
    assert_eq!(
        world.store.keys("topics/").len(),
        1,
        "somebody may still be about to remove it"
    );
    world.run_after(MINUTE).await;
    assert_eq!(world.store.keys("topics/"), Vec::<String>::new());
}

#[tokio::test]
async fn a_topic_made_anew_while_an_old_deletion_is_finished_stays() {
    let world = raced(PortOperation::Put, TOPIC, 0, |store| {
        let now = Timestamp::parse("2026-03-07T05:00:00Z").unwrap();
        store.write(
            TOPIC,
            record(now, json!({ "autoDeleteOnIdle": "P1D" })).render(),
        );
    });
    with_idle_topic(&world).await;
    let now = world.clock.now();
    world
        .write(TOPIC, record(now, json!({})).into_tombstone(now).render())
        .await;
    world.run_after(2 * MINUTE).await;
    assert_eq!(subscriptions(&world.store).await, Some(vec![]));
}

#[tokio::test]
async fn a_run_goes_on_where_the_last_one_had_no_time_left() {
    let clock: Arc<std::sync::OnceLock<ManualClock>> = Arc::default();
    let slow = clock.clone();
    let plan = FaultPlan::by(move |effect| {
        if effect.operation == PortOperation::Get && effect.key == "topics/first.json" {
            slow.get()
                .expect("a clock")
                .advance(Duration::from_secs(50));
        }
        None
    });
    let world = World::with(&plan, &FaultPlan::none());
    clock.set(world.clock.clone()).expect("set once");
    let now = world.clock.now();
    let ended = subscription(now, &json!({ "expirationTimeUtc": "2026-03-07T04:05:00Z" }));
    let [first, second] = [
        json!({ "autoDeleteOnIdle": "P1D" }),
        json!({ "subscriptions": { "a": ended } }),
    ];
    for (name, settings) in [("first", first), ("second", second)] {
        let record = TopicRecord {
            name: TopicName::parse(name).unwrap(),
            ..record(now, settings)
        };
        world
            .write(&format!("topics/{name}.json"), record.render())
            .await;
        world.write(&format!("temporary/{name}"), "".into()).await;
    }
    assert_eq!(deleted_after(&world, MINUTE).await, (0, 0));
    assert_eq!(world.lease().await["sweptTo"], "temporary/first");
    assert_eq!(deleted_after(&world, MINUTE).await, (0, 1));
    // It came to the end, so the next one begins at the start.
    assert_eq!(world.lease().await.get("sweptTo"), None);
    world.run_after(MINUTE).await;
    assert_eq!(world.lease().await["sweptTo"], "temporary/first");
}

#[tokio::test]
async fn unreadable_topic_or_note_prevents_deletion() {
    let check = async |key: &str| {
        let world = World::new();
        with_idle_topic(&world).await;
        world.write(key, "?".into()).await;
        assert_eq!(deleted_after(&world, 60 * MINUTE).await, (0, 0), "{key}");
        assert_eq!(world.store.keys("topics/").len(), 1, "{key}");
    };
    check("activity/orders").await;
    check(TOPIC).await;
}

#[tokio::test]
async fn a_topic_that_is_temporary_again_keeps_its_name_on_the_list() {
    let world = raced(PortOperation::Delete, NAME, 0, |store| {
        let now = Timestamp::parse("2026-03-07T05:00:00Z").unwrap();
        store.write(
            TOPIC,
            record(now, json!({ "autoDeleteOnIdle": "P1D" })).render(),
        );
    });
    let now = world.clock.now();
    world.write(TOPIC, record(now, json!({})).render()).await;
    world.write(NAME, "".into()).await;
    world.run_after(MINUTE).await;
    assert_eq!(world.store.keys("temporary/"), [NAME]);
}
