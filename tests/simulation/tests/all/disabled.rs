//! Events that a disabled subscription misses are kept as dead letters and can be replayed, or they
//! are skipped and counted.

use std::time::Duration;

use metrics_exporter_prometheus::PrometheusBuilder;
use posthaste_core::health::{HealthBook, MissedEvents};
use posthaste_core::model::{DISABLED_KEPT, MISSED_TOLD_BEFORE};
use posthaste_core::stored::HEALTH;
use posthaste_ports::{Clock, ErrorKind, ObjectStore, QueueName};
use posthaste_simulation::{Answer, Faults, MISSED_BYTES_MAX, World};
use posthaste_testkit::faulty::{CallFault, FaultPlan};
use serde_json::{Value, json};

use super::pending::{send, send_event, shown, topic};

const MILLISECOND: Duration = Duration::from_millis(1);
/// More messages of records than any test makes.
const RECORDS_MAX: usize = 1000;
const HOUR: Duration = Duration::from_hours(1);

async fn ask(world: &World, method: &str, path: &str, body: Value) -> Value {
    let path = format!("/topics/orders/subscriptions/billing{path}");
    let (status, answer) = world.api().ask(method, &path, &body).await;
    assert!(status < 300, "{status} {answer}");
    answer
}

/// A world whose only subscription was disabled by the endpoint, which answered 410 to one event.
async fn gone(faults: &Faults) -> World {
    let world = World::with(faults);
    topic(&world, &["billing"]).await;
    world.endpoint.answer([Answer::Status(410)]);
    send(&world, &FaultPlan::none(), "first").await;
    world.deliver_all().await;
    world.endpoint.take();
    world
}

async fn disabled_by_hand() -> World {
    let world = World::new();
    topic(&world, &["billing"]).await;
    ask(&world, "POST", "/disable", Value::Null).await;
    world
}

/// Publishes an event of this id.
async fn miss(world: &World, id: &str) {
    world.clock.advance(MILLISECOND);
    send(world, &FaultPlan::none(), id).await;
}

/// The ids and reasons of all dead letters but that of the first event.
async fn missed(world: &World) -> Vec<(String, String)> {
    world.deliver_all().await;
    let letters = world.letters().await.into_iter();
    letters
        .filter(|letter| letter.id != "first")
        .map(|letter| (letter.id, letter.reason))
        .collect()
}

async fn book(world: &World) -> Option<MissedEvents> {
    let object = world.local.state_store().get(HEALTH).await.unwrap()?;
    let book = HealthBook::parse(&object.bytes).unwrap();
    book.missed_by("orders.billing").copied()
}

/// The notices that arrived since the last time.
fn notices(world: &World) -> Vec<Value> {
    let requests = world.endpoint.take().into_iter();
    requests
        .map(|request| serde_json::from_str(&request.body).unwrap())
        .collect()
}

/// The state of an event and of its delivery, once everything is in the log.
async fn state_of(world: &World, id: &str) -> String {
    world.record_some(RECORDS_MAX).await;
    shown(world, id).await
}

fn ids(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("e{n:03}")).collect()
}

/// Runs what `work` makes, and answers the sum of a metric afterwards.
fn counted(metric: &str, work: impl AsyncFnOnce()) -> Option<u64> {
    let recorder = PrometheusBuilder::new().build_recorder();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    metrics::with_local_recorder(&recorder, || runtime.block_on(work()));
    let text = recorder.handle().render();
    let line = format!("{metric}{{topic=\"orders\",subscription=\"billing\"}} ");
    text.lines()
        .find_map(|shown| shown.strip_prefix(&line))
        .map(|value| value.parse().unwrap())
}

#[tokio::test]
async fn events_missed_by_a_gone_endpoint_arrive_by_a_replay() {
    let world = gone(&Faults::none()).await;
    let all = ids(100);
    for id in &all {
        miss(&world, id).await;
    }
    let expected: Vec<_> = all
        .iter()
        .map(|id| (id.clone(), "SubscriptionDisabled".to_owned()))
        .collect();
    assert_eq!(missed(&world).await, expected);
    assert_eq!(world.endpoint.take().len(), 0);
    assert_eq!(book(&world).await.unwrap().events, 100);
    assert_eq!(
        state_of(&world, "e007").await,
        "dead-lettered: billing=dead-lettered"
    );
    ask(&world, "POST", "/enable", Value::Null).await;
    let replay = json!({ "reason": "SubscriptionDisabled", "ratePerSecond": 1000 });
    ask(&world, "POST", "/dead-letters/replay", replay).await;
    world.endpoint.answer([Answer::Status(204)]);
    world.wake().await;
    world.clock.advance(Duration::from_secs(1));
    world.deliver_all().await;
    let mut arrived: Vec<_> = world
        .endpoint
        .take()
        .iter()
        .map(|request| serde_json::from_str::<Value>(&request.body).unwrap()["id"].clone())
        .map(|id| id.as_str().unwrap().to_owned())
        .collect();
    arrived.sort();
    assert_eq!(arrived, all);
    assert_eq!(
        state_of(&world, "e007").await,
        "delivered: billing=dead-lettered billing=delivered"
    );
    // wake has seen that it is enabled.
    assert_eq!(book(&world).await, None);
}

#[test]
fn subscription_disabled_by_hand_skips_and_counts() {
    let skipped = counted("SkippedEventCount", async || {
        let world = disabled_by_hand().await;
        for id in ids(3) {
            miss(&world, &id).await;
        }
        assert_eq!(missed(&world).await, []);
        assert_eq!(state_of(&world, "e001").await, "dropped: billing=dropped");
        assert_eq!(book(&world).await, None);
    });
    assert_eq!(skipped, Some(3));
}

#[test]
fn endpoint_that_is_gone_for_a_week_skips_and_counts() {
    let skipped = counted("SkippedEventCount", async || {
        let world = gone(&Faults::none()).await;
        world
            .clock
            .advance(DISABLED_KEPT.saturating_sub(2 * MILLISECOND));
        miss(&world, "kept").await;
        miss(&world, "skipped").await;
        let kept = ("kept".to_owned(), "SubscriptionDisabled".to_owned());
        assert_eq!(missed(&world).await, [kept]);
        assert_eq!(
            state_of(&world, "skipped").await,
            "dropped: billing=dropped"
        );
    });
    assert_eq!(skipped, Some(1));
}

#[tokio::test]
async fn end_of_the_week_is_told_a_day_before_and_once() {
    let world = gone(&Faults::none()).await;
    world.tell_ops(json!({})).await;
    world.endpoint.answer([Answer::Status(204)]);
    let disabled_at = world.clock.now();
    miss(&world, "kept").await;
    let mut told = Vec::new();
    let mut told_after = None;
    while world.clock.now().since(disabled_at) < DISABLED_KEPT + HOUR {
        world.clock.advance(HOUR);
        world.deliver_all().await;
        world.bury().await;
        world.wake().await;
        world.deliver_all().await;
        let skipping = notices(&world)
            .into_iter()
            .filter(|notice| notice["type"] == "dev.posthaste.subscription.skipping");
        told.extend(skipping);
        if told_after.is_none() && !told.is_empty() {
            told_after = Some(world.clock.now().since(disabled_at));
        }
    }
    assert_eq!(told.len(), 1);
    let before = DISABLED_KEPT.saturating_sub(MISSED_TOLD_BEFORE);
    // The first look after that.
    assert_eq!(told_after, Some(before + MILLISECOND));
    let end = (disabled_at + DISABLED_KEPT).to_string();
    assert_eq!(told[0]["data"]["skippedFrom"], end);
    assert_eq!(told[0]["data"]["keptEvents"], 1);
    miss(&world, "skipped").await;
    assert_eq!(
        state_of(&world, "skipped").await,
        "dropped: billing=dropped"
    );
}

#[test]
fn dead_letters_beyond_the_bound_are_skipped_and_counted() {
    let skipped = counted("SkippedEventCount", async || {
        let world = gone(&Faults::none()).await;
        for id in ids(100) {
            world.clock.advance(MILLISECOND);
            send_event(&world, &FaultPlan::none(), &id, "x".repeat(1 << 10)).await;
        }
        let kept = missed(&world).await.len();
        let counted = book(&world).await.unwrap();
        assert_eq!((kept, counted.events), (48, 48));
        assert!(counted.bytes <= MISSED_BYTES_MAX && counted.has_little_room);
        let sizes = world.buried().await.into_iter();
        let sizes = sizes.map(|(_, bytes)| bytes.len() as u64);
        assert!(sizes.sum::<u64>() < MISSED_BYTES_MAX + 2048);
        assert_eq!(
            state_of(&world, "e000").await,
            "dead-lettered: billing=dead-lettered"
        );
        assert_eq!(state_of(&world, "e099").await, "dropped: billing=dropped");
        assert_eq!(world.visible(QueueName::DeadLetters).await, 0);
    });
    assert_eq!(skipped, Some(52));
}

/// An operator is told, although nothing was kept. The book is written once.
#[tokio::test]
async fn subscription_without_room_for_its_first_event_is_told_of() {
    let world = gone(&Faults::none()).await;
    world.tell_ops(json!({})).await;
    world.endpoint.answer([Answer::Status(204)]);
    let mut tags = Vec::new();
    for id in ids(2) {
        world.clock.advance(MILLISECOND);
        let data = "x".repeat(usize::try_from(MISSED_BYTES_MAX).unwrap());
        send_event(&world, &FaultPlan::none(), &id, data).await;
        assert_eq!(missed(&world).await, []);
        tags.push(
            world
                .local
                .state_store()
                .get(HEALTH)
                .await
                .unwrap()
                .unwrap()
                .etag,
        );
    }
    assert_eq!(tags[0], tags[1]);
    let noted = book(&world).await.unwrap();
    let expected = MissedEvents {
        was_skipped: true,
        ..MissedEvents::default()
    };
    assert_eq!(noted, expected);
    world.endpoint.take();
    world.wake().await;
    world.deliver_all().await;
    let told = notices(&world);
    let types: Vec<_> = told.iter().map(|notice| &notice["type"]).collect();
    assert_eq!(types, ["dev.posthaste.subscription.skipping"]);
    assert_eq!(told[0]["data"]["keptEvents"], 0);
}

/// A dead letter that storage refuses is counted when it is written, however often it was tried.
#[tokio::test]
async fn dead_letter_that_is_refused_is_counted_once() {
    let plan = FaultPlan::nth(1, CallFault::Before(ErrorKind::TimedOut));
    let world = gone(&Faults::in_bucket(&plan)).await;
    // The first letter is that of the event that was answered with 410.
    assert_eq!(missed(&world).await, []);
    miss(&world, "a").await;
    assert_eq!(missed(&world).await, []);
    world.clock.advance(HOUR);
    assert_eq!(missed(&world).await.len(), 1);
    assert_eq!(book(&world).await.unwrap().events, 1);
}

/// Other notices tell an operator: one for each event would be a flood.
#[tokio::test]
async fn event_that_is_missed_has_no_notice_of_its_own() {
    let world = World::new();
    topic(&world, &["billing"]).await;
    world.tell_ops(json!({})).await;
    let mut record = world.record().await;
    record.settings.delivery_failed_notices = Some(true);
    world.write_record(record.render()).await;
    let endpoint = json!({ "url": "https://billing.example.com/" });
    let kept = json!({ "endpoint": endpoint, "whileDisabled": "deadLetter" });
    ask(&world, "PUT", "", kept).await;
    miss(&world, "waited").await;
    world.clock.advance(MILLISECOND);
    ask(&world, "POST", "/disable", Value::Null).await;
    miss(&world, "missed").await;
    assert_eq!(missed(&world).await.len(), 2);
    world.endpoint.answer([Answer::Status(204)]);
    world.deliver_all().await;
    let failed = "dev.posthaste.delivery.failed";
    let told = notices(&world);
    let told = told.iter().filter(|notice| notice["type"] == failed);
    let ids: Vec<_> = told.map(|notice| &notice["data"]["id"]).collect();
    assert_eq!(ids, ["waited"]);
}

/// Events that were published before the subscription was disabled keep their reason.
#[tokio::test]
async fn waiting_events_are_told_apart_from_missed_ones() {
    let world = World::new();
    topic(&world, &["billing"]).await;
    let endpoint = json!({ "url": "https://billing.example.com/" });
    let kept = json!({ "endpoint": endpoint, "whileDisabled": "deadLetter" });
    ask(&world, "PUT", "", kept).await;
    miss(&world, "waited").await;
    world.clock.advance(MILLISECOND);
    ask(&world, "POST", "/disable", Value::Null).await;
    miss(&world, "missed").await;
    let reasons = [
        ("missed", "SubscriptionDisabled"),
        ("waited", "EndpointGone"),
    ];
    let expected = reasons.map(|(id, reason)| (id.to_owned(), reason.to_owned()));
    assert_eq!(missed(&world).await, expected);
}
