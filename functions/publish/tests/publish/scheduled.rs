//! Events that are published for later: what is parked for them, and what is refused.

use posthaste_core::model::{SCHEDULED_OBJECTS_PER_REQUEST_MAX, Timestamp};
use posthaste_core::stored::ActivityNote;
use posthaste_core::stored::delivery::parse_delivery;
use posthaste_core::stored::parked::parse_parked;
use posthaste_ports::{ObjectStore, PutCondition};
use serde_json::{Value, json};

use crate::world::{BATCH, MINIMAL, START, STRUCTURED, World, subscriptions};

const NOT_BEFORE: &str = "posthaste-not-before";
const SOON: &str = "2026-11-21T10:10:30Z";
const MONTH: &str = "2026-12-21T10:00:00Z";

fn parked(world: &World) -> Vec<String> {
    let found = world.store.objects_under("parked/");
    found.into_iter().map(|(key, _)| key).collect()
}

/// A world whose topic names the extension `later`, as manage stores it.
async fn world_with_an_extension() -> World {
    let world = World::new(json!({})).await;
    let at = Timestamp::parse(START).unwrap();
    let record = json!({
        "v": 1, "name": "Orders", "key1": "key-one", "key2": "key-two",
        "createdAt": at, "updatedAt": at, "notBeforeAttribute": "later",
        "settings": subscriptions(&[("a", json!({}))]),
    });
    let record = record.to_string().into();
    let put = world
        .store
        .put("topics/orders.json", record, PutCondition::Always);
    put.await.unwrap();
    world
}

fn problem(body: &str) -> [String; 2] {
    let problem: Value = serde_json::from_str(body).unwrap();
    [&problem["member"], &problem["detail"]].map(|it| it.as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn request_is_parked_for_each_subscription_that_matches_now() {
    let world = World::new(subscriptions(&[("a", json!({})), ("b", json!({}))])).await;
    let answer = world
        .post(&[STRUCTURED, (NOT_BEFORE, MONTH)], MINIMAL)
        .await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(world.deliveries(), []);
    let keys = parked(&world);
    let folders: Vec<_> = keys
        .iter()
        .map(|key| key.split('/').nth(2).unwrap())
        .collect();
    assert_eq!(folders, ["orders.a", "orders.b"]);
    assert!(
        keys.iter()
            .all(|key| key.starts_with("parked/20261221T1000Z/")),
        "{keys:?}"
    );
    let object = world.store.get(&keys[0]).await.unwrap().unwrap();
    let delivery = parse_delivery(&parse_parked(&object.bytes).unwrap()[0]).unwrap();
    let month = Timestamp::parse(MONTH).unwrap();
    assert_eq!(delivery.not_before, month);
    assert_eq!(
        delivery.events[0].expires_at.to_string(),
        "2026-12-22T10:00:00.000Z"
    );
    // wake looks at least every quarter of an hour.
    assert!(world.store.objects_under("signals/").is_empty());
}

#[tokio::test]
async fn wake_is_told_of_what_is_due_before_it_would_look() {
    let world = World::new(subscriptions(&[("a", json!({}))])).await;
    let answer = world.post(&[STRUCTURED, (NOT_BEFORE, SOON)], MINIMAL).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(parked(&world)[0].starts_with("parked/20261121T1011Z/"));
    assert_eq!(world.store.objects_under("signals/").len(), 1);
}

#[tokio::test]
async fn same_request_by_its_name_is_the_same_objects() {
    let world = World::new(subscriptions(&[("a", json!({}))])).await;
    let headers = [STRUCTURED, (NOT_BEFORE, SOON), ("idempotency-key", "k")];
    for _ in 0..2 {
        assert_eq!(world.post(&headers, MINIMAL).await.status, 200);
    }
    assert_eq!(parked(&world).len(), 1);
    let later = [STRUCTURED, (NOT_BEFORE, MONTH), ("idempotency-key", "k")];
    assert_eq!(world.post(&later, MINIMAL).await.status, 422);
}

#[tokio::test]
async fn times_that_are_none_are_refused_by_name() {
    let world = world_with_an_extension().await;
    for (wrong, detail) in [
        ("10m", "expected one RFC 3339 date-time"),
        (
            "2026-12-21T10:00:00.001Z",
            "expected a time at most 30 days ahead",
        ),
    ] {
        let answer = world
            .post(&[STRUCTURED, (NOT_BEFORE, wrong)], MINIMAL)
            .await;
        let [member, found] = problem(&answer.body);
        assert_eq!((answer.status, &*member), (400, NOT_BEFORE), "{wrong}");
        assert!(found.starts_with(detail), "{found}");
    }
    for (wrong, detail) in [
        ("10m", "expected an RFC 3339 date-time"),
        (
            "2026-12-21T10:00:00.001Z",
            "expected a time at most 30 days ahead",
        ),
    ] {
        let own = MINIMAL.replace('}', &format!(r#","later":"{wrong}"}}"#));
        let answer = world.post(&[BATCH], format!("[{MINIMAL},{own}]")).await;
        let [member, found] = problem(&answer.body);
        assert_eq!((answer.status, &*member), (400, "later"), "{wrong}");
        assert!(found.contains(detail), "{found}");
    }
    assert_eq!((world.deliveries().len(), parked(&world).len()), (0, 0));
}

#[tokio::test]
async fn request_of_too_many_minutes_is_refused_whole() {
    let world = world_with_an_extension().await;
    let start = Timestamp::parse("2026-11-22T00:00:00Z").unwrap();
    let events = |count: usize| {
        let at = |minute: usize| start + std::time::Duration::from_mins(minute as u64);
        let event = |minute| MINIMAL.replace('}', &format!(r#","later":"{}"}}"#, at(minute)));
        format!("[{}]", (0..count).map(event).collect::<Vec<_>>().join(","))
    };
    let answer = world
        .post(&[BATCH], events(SCHEDULED_OBJECTS_PER_REQUEST_MAX + 1))
        .await;
    assert_eq!(answer.status, 413, "{}", answer.body);
    assert_eq!(parked(&world).len(), 0);
    let answer = world
        .post(&[BATCH], events(SCHEDULED_OBJECTS_PER_REQUEST_MAX))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(parked(&world).len(), SCHEDULED_OBJECTS_PER_REQUEST_MAX);
}

/// So a repetition writes the same ones, also where a subscription has gone meanwhile.
#[tokio::test]
async fn objects_of_a_request_are_named_by_it_alone() {
    let world = World::new(subscriptions(&[("a", json!({})), ("b", json!({}))])).await;
    let answer = world
        .post(&[STRUCTURED, (NOT_BEFORE, MONTH)], MINIMAL)
        .await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let keys = parked(&world);
    let files: Vec<_> = keys.iter().map(|key| key.rsplit('/').next()).collect();
    assert_eq!((files.len(), files[0]), (2, files[1]));
}

#[tokio::test]
async fn topic_is_in_use_until_its_events_are_due() {
    let mut settings = subscriptions(&[("a", json!({}))]);
    settings["autoDeleteOnIdle"] = "PT1H".into();
    let world = World::new(settings).await;
    let answer = world
        .post(&[STRUCTURED, (NOT_BEFORE, MONTH)], MINIMAL)
        .await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let (_, note) = world.store.objects_under("activity/orders").remove(0);
    let note = ActivityNote::parse(&note).unwrap();
    assert!(note.at() >= Timestamp::parse(MONTH).unwrap());
}
