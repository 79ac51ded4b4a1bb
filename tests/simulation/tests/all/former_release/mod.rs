//! A data folder that the former release left full: this program goes on with all of it. And the
//! way back: a program that does not know these versions gives everything back as it is, for one
//! that does.
//!
//! The files under `fixtures` were written by the former release itself: see the README there.

mod downgrade;
mod first;
mod moved;
mod recovery;
mod versions;

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use posthaste_core::api::{ReplayState, StatusState, StatusView};
use posthaste_core::model::{CreationId, SubscriptionName, Timestamp};
use posthaste_core::stored::{TopicRecord, layout};
use posthaste_local::{CheckReport, LocalQueue, StateStore, check_folder};
use posthaste_ports::{Clock, QueueName};
use posthaste_publish::{BodyBudget, Publish, PublishSettings, TarpitTurns};
use posthaste_services::{ActivityNotes, PressureReader, TopicRegistry};
use posthaste_simulation::{Request, World, data_folder};
use posthaste_testkit::{ManualClock, SeededEntropy, TestPorts};
use serde_json::{Value, json};
use tempfile::TempDir;

const FORMER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/all/former_release/fixtures/folder"
);

/// The time at which the former release was killed.
const KILLED_AT: Timestamp = Timestamp::from_millis(1_700_000_722_000);

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);

/// The replay that the former release was in the middle of, 60 of 70 events.
const REPLAY: &str = "20231114T222520Z-0b8b9c5e6a0c";

/// An event with where it went or why it went nowhere.
type Seen = (String, String);

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("a copy");
        }
    }
}

/// The state that the former release left.
fn former() -> TempDir {
    let folder = data_folder();
    copy(Path::new(FORMER), folder.path());
    folder
}

/// The state of this program, half a minute later.
fn upgraded() -> World {
    World::over(former(), KILLED_AT + 30 * SECOND)
}

/// The ids of some events of a subscription, each with this.
fn each(subscription: &str, numbers: Range<usize>, with: &str) -> Vec<Seen> {
    numbers
        .map(|number| (format!("{subscription}-{number:02}"), with.to_owned()))
        .collect()
}

/// Some events of a subscription at its endpoint.
fn arrived(subscription: &str, numbers: Range<usize>) -> Vec<Seen> {
    each(
        subscription,
        numbers,
        &format!("https://{subscription}.example.com/hooks"),
    )
}

/// The ids of a request's events, or of dead letters. A custom event is itself the data.
fn ids(events: &Value) -> Vec<String> {
    let events = events
        .as_array()
        .map_or(std::slice::from_ref(events), Vec::as_slice);
    let id = |event: &Value| {
        let order = [&event["order"], &event["data"]["order"], &event["id"]];
        order
            .into_iter()
            .find_map(Value::as_str)
            .expect("an id")
            .to_owned()
    };
    events.iter().map(id).collect()
}

/// All that arrived since the last time, sorted.
fn received(world: &World) -> Vec<Seen> {
    seen_in(&world.endpoint.take())
}

fn seen_in(requests: &[Request]) -> Vec<Seen> {
    let mut received = Vec::new();
    for request in requests {
        let events = serde_json::from_str(&request.body).expect("events");
        received.extend(ids(&events).into_iter().map(|id| (id, request.url.clone())));
    }
    received.sort();
    received
}

/// All dead letters with their reasons, sorted, and how many messages were kept that are none of
/// ours.
async fn dead_letters(world: &World) -> (Vec<Seen>, usize) {
    while world.visible(QueueName::DeadLetters).await > 0 {
        world.bury().await;
    }
    let mut letters = Vec::new();
    let mut malformed = 0;
    for (key, bytes) in world.buried().await {
        if key.starts_with(layout::MALFORMED) {
            malformed += 1;
            continue;
        }
        for letter in
            serde_json::from_slice::<Vec<Value>>(&bytes).expect("an array of dead letters")
        {
            let reason = [&letter["deadletterreason"], &letter["deadLetterReason"]];
            let reason = reason
                .into_iter()
                .find_map(Value::as_str)
                .expect("a reason");
            letters.extend(ids(&letter).into_iter().map(|id| (id, reason.to_owned())));
        }
    }
    letters.sort();
    (letters, malformed)
}

/// True if nothing waits for a delivery any more.
async fn all_gone(world: &World) -> bool {
    world.is_at_rest().await && world.replaying().await.is_empty()
}

fn sorted(parts: impl IntoIterator<Item = Vec<Seen>>) -> Vec<Seen> {
    let mut all: Vec<_> = parts.into_iter().flatten().collect();
    all.sort();
    all
}

/// Writes the topic as manage does: what has no identity gets one.
async fn change(world: &World, change: impl FnOnce(&mut TopicRecord)) {
    let before = world.record().await;
    let mut record = before.clone();
    change(&mut record);
    let mut number =
        u8::try_from(world.clock.now().minute_rounded_down() % 200).expect("less than 256");
    let random = || {
        number += 1;
        CreationId::new([number; 6])
    };
    world
        .write_record(
            record
                .with_identities(Some(&before), world.clock.now(), random)
                .render(),
        )
        .await;
}

fn name(text: &str) -> SubscriptionName {
    SubscriptionName::parse(text).expect("a name")
}

/// Deletes a subscription and creates it again with another endpoint.
async fn create_again(world: &World, subscription: &str) {
    let again = name(subscription);
    let mut settings = None;
    change(world, |record| {
        settings = record.settings.subscriptions.remove(&again);
    })
    .await;
    let mut settings = settings.expect("the subscription");
    "https://other.example.com/".clone_into(&mut settings.endpoint.url);
    change(world, |record| {
        drop(record.settings.subscriptions.insert(again, settings));
    })
    .await;
}

async fn resume(world: &World, subscription: &str) {
    let active = StatusView::new(StatusState::Active, None, world.clock.now());
    change(world, |record| {
        let settings = record
            .settings
            .subscriptions
            .get_mut(&name(subscription))
            .expect("the subscription");
        settings.status = Some(active);
    })
    .await;
}

/// Publishes events of this type, which is the name of the subscription that they are for. The
/// former release knows the request for `named-00` by its name.
async fn publish(world: &World, subscription: &str, numbers: Range<usize>) {
    let event = |number| {
        let id = format!("{subscription}-{number:02}");
        json!({ "specversion": "1.0", "id": id, "source": "/shop", "type": subscription })
    };
    let events: Vec<_> = numbers.map(event).collect();
    publish_events(world, subscription, events).await;
}

async fn publish_events(world: &World, subscription: &str, events: Vec<Value>) {
    let (name, hops) = if events.len() == 1 {
        ("\"one\"", "0")
    } else {
        (subscription, "2")
    };
    let request = http::Request::post("/topics/orders/events")
        .header("aeg-sas-key", "k1")
        .header("content-type", "application/cloudevents-batch+json")
        .header("idempotency-key", name)
        .header("posthaste-hops", hops)
        .body(Body::from(Value::from(events).to_string()))
        .expect("a request");
    publisher(world)
        .publish("orders", request)
        .await
        .expect("published");
}

type Publisher = Publish<TestPorts<LocalQueue<ManualClock>, StateStore>>;

fn publisher(world: &World) -> Arc<Publisher> {
    let state = || world.local.state_store();
    let clock = world.clock.clone();
    Arc::new(Publish {
        deliveries: world.local.queue(QueueName::Deliveries),
        slow_lane: None,
        records: Some(world.local.queue(QueueName::Records)),
        registry: TopicRegistry::new(state(), clock.clone(), Duration::ZERO),
        payloads: state(),
        pressure: PressureReader::new(state(), clock.clone(), Duration::ZERO),
        entropy: SeededEntropy::new(clock.now().as_millis()),
        clock,
        activity: ActivityNotes::default(),
        bodies: BodyBudget::new(1_000_000),
        advice: TarpitTurns::default(),
        wrong_keys: posthaste_services::WrongKeys::default(),
        traces: posthaste_services::EventTraces::default(),
        settings: PublishSettings::default(),
    })
}

/// The events of the former release that arrive.
fn all_that_arrives() -> Vec<Seen> {
    sorted([
        arrived("waiting", 0..3),
        arrived("flight", 0..2),
        arrived("delayed", 0..2),
        arrived("parked", 0..3),
        arrived("held", 0..2),
        arrived("down", 0..15),
        // The former release had replayed three, and was refused.
        arrived("buried", 3..70),
        arrived("late", 1..2),
        arrived("stored", 0..2),
        arrived("named", 0..1),
        arrived("custom", 0..2),
        arrived("custom", 3..4),
    ])
}

/// The dead letters in the end, those of before included.
fn all_dead_letters() -> Vec<Seen> {
    let refused = "UndeliverableDueToClientError";
    sorted([
        each("buried", 0..70, refused),
        each("buried", 0..3, refused),
        each("letters", 0..2, refused),
        each("custom", 2..3, refused),
        each("expiring", 0..1, "TimeToLiveExceeded"),
        each("deleted", 0..2, "SubscriptionDeleted"),
        each("again", 0..1, "SubscriptionDeleted"),
        each("redriven", 0..1, "HandlerFailed"),
    ])
}

/// Everything is recorded, and nothing of the folder is left in a queue or damaged.
async fn ends_whole(world: World) {
    assert!(world.record_some(1000).await.failures.is_empty());
    let folder = world.end().await;
    let CheckReport {
        messages, damages, ..
    } = check_folder(folder.path()).expect("a check");
    assert_eq!((messages, damages), (0, 0));
}

#[tokio::test]
async fn everything_that_the_former_release_left_ends_as_it_should() {
    let world = upgraded();
    publish(&world, "named", 0..1).await;
    world.pass_by(10 * SECOND, 5 * MINUTE).await;
    create_again(&world, "again").await;
    resume(&world, "held").await;
    world.pass_by(MINUTE, 80 * MINUTE).await;
    world.bury_redriven().await;
    assert!(all_gone(&world).await);
    assert_eq!(received(&world), all_that_arrives());
    assert_eq!(dead_letters(&world).await, (all_dead_letters(), 1));
    let replay = world.replayed(REPLAY).await;
    let progress = (
        replay.v,
        replay.state,
        replay.progress.queued,
        replay.progress.failed,
    );
    assert_eq!(progress, (1, ReplayState::Done, 70, 0));
    Box::pin(ends_whole(world)).await;
}

/// manage of the former release asks wake for work without a signal.
#[tokio::test]
async fn force_of_the_former_release_works_within_a_quarter_hour() {
    let arrived_by = async |is_forced: bool| {
        let world = upgraded();
        world.pass_by(MINUTE, 2 * MINUTE).await;
        if is_forced {
            world
                .write_state("forcing/orders.parked", String::new())
                .await;
        }
        world.pass_by(MINUTE, 15 * MINUTE).await;
        let mut received = received(&world);
        received.retain(|(_, url)| url.contains("//parked."));
        (received, world.keys(layout::FORCING).await.len())
    };
    assert_eq!(arrived_by(false).await, (Vec::new(), 0));
    assert_eq!(arrived_by(true).await, (arrived("parked", 0..3), 0));
}
