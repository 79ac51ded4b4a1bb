//! This program continues with all that version 0.1.0 left. Each event that was accepted has
//! arrived, arrives or is a dead letter.
//!
//! `tests/former` made the files with the release build of 0.1.0: RELEASE.md says how. `folder` is
//! what its `serve` left, when it was killed; `aws.json` and `aws-log` are the buckets and messages
//! of its functions on the emulator.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use posthaste_core::model::Timestamp;
use posthaste_simulation::{Request, World, data_folder};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::moved::Left as Moved;
use super::{MINUTE, SECOND, all_gone, copy, dead_letters, ends_whole, ids};

const FIXTURES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/all/former_release/fixtures/0.1.0"
);

/// The subscriptions whose events become dead letters, with the reason.
const REASONS: [(&str, &str); 7] = [
    ("again", "SubscriptionDeleted"),
    ("buried", "UndeliverableDueToClientError"),
    ("deleted", "SubscriptionDeleted"),
    ("expiring", "TimeToLiveExceeded"),
    ("gone", "EndpointGone"),
    ("letters", "UndeliverableDueToClientError"),
    ("resolved", "UndeliverableDueToClientError"),
];

/// Those of them whose events arrive too: they were replayed.
const REPLAYED: &str = "buried";

/// Those that were paused.
const PAUSED: [(&str, &str); 4] = [
    ("orders", "held"),
    ("orders", "stored"),
    ("grid", "grid"),
    ("custom", "custom"),
];

/// The events that the killed program had accepted, and those that had arrived: ids by
/// subscription.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Left {
    killed_at: Timestamp,
    accepted: BTreeMap<String, BTreeSet<String>>,
    arrived: BTreeMap<String, BTreeSet<String>>,
}

impl Left {
    fn read(file: &str) -> Self {
        let text = fs::read(Path::new(FIXTURES).join(file)).expect("a fixture");
        serde_json::from_slice(&text).expect("what was left")
    }

    /// The events of subscriptions of which this is true.
    fn of(&self, is_meant: impl Fn(&str) -> bool) -> BTreeSet<String> {
        let meant = self.accepted.iter().filter(|(name, _)| is_meant(name));
        meant.flat_map(|(_, ids)| ids.clone()).collect()
    }
}

fn reason_of(subscription: &str) -> Option<&'static str> {
    let found = REASONS.iter().find(|(name, _)| *name == subscription);
    found.map(|(_, reason)| *reason)
}

/// A data folder with what is in a folder of the fixtures.
fn copied(from: &str, to: &str) -> TempDir {
    let folder = data_folder();
    copy(&Path::new(FIXTURES).join(from), &folder.path().join(to));
    folder
}

/// The folder that `serve` left, and the state of this program half a minute later.
fn of_serve() -> (World, Left) {
    let left = Left::read("left.json");
    let world = World::over(copied("folder", ""), left.killed_at + 30 * SECOND);
    (world, left)
}

/// The buckets and queues that the functions left.
async fn of_functions() -> (World, Left) {
    let text = fs::read(Path::new(FIXTURES).join("aws.json")).expect("a fixture");
    let moved: Moved = serde_json::from_slice(&text).expect("buckets and messages");
    let world = moved.world_over(copied("aws-log", "log")).await;
    (world, Left::read("aws-left.json"))
}

/// The ids of a request's events. In binary mode its header has the only one.
fn ids_of(request: &Request) -> Vec<String> {
    match request.headers.get("ce-id") {
        Some(id) => vec![id.to_str().expect("text").to_owned()],
        None => ids(&serde_json::from_str(&request.body).expect("events")),
    }
}

async fn resume_paused(world: &World) {
    for (topic, name) in PAUSED {
        let path = format!("/topics/{topic}/subscriptions/{name}/resume");
        let (status, answer) = world.api().ask("POST", &path, &json!({})).await;
        assert_eq!(status, 200, "{answer}");
    }
}

async fn ends_as_it_should(world: World, left: &Left) {
    resume_paused(&world).await;
    world.pass_by(10 * SECOND, 5 * MINUTE).await;
    world.pass_by(MINUTE, 120 * MINUTE).await;
    assert!(all_gone(&world).await);

    let mut arrived: BTreeSet<_> = world.endpoint.take().iter().flat_map(ids_of).collect();
    arrived.extend(left.arrived.values().flatten().cloned());
    let meant_to = left.of(|name| name == REPLAYED || reason_of(name).is_none());
    assert_eq!(arrived, meant_to);

    let (letters, malformed) = dead_letters(&world).await;
    let letters: BTreeSet<_> = letters.into_iter().collect();
    let expected = left.accepted.iter().flat_map(|(name, ids)| {
        let reason = reason_of(name);
        let letter = move |id: &String| reason.map(|reason| (id.clone(), reason.to_owned()));
        ids.iter().filter_map(letter)
    });
    assert_eq!((letters, malformed), (expected.collect(), 0));

    Box::pin(ends_whole(world)).await;
}

async fn log_and_settings_are_read(world: World, left: &Left) {
    for id in left.of(|name| name == "arrived") {
        let path = format!("/topics/orders/events/{id}");
        let (status, answer) = world.api().ask("GET", &path, &Value::Null).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["deliveries"][0]["state"], "delivered", "{answer}");
    }
    let (status, topic) = world.api().ask("GET", "/topics/orders", &Value::Null).await;
    let names = topic["subscriptions"].as_object().expect("subscriptions");
    assert_eq!((status, names.len()), (200, 16), "{topic}");
    assert_eq!(names["dressed"]["deliveryHeaders"][1]["fromEvent"], "/id");
    assert_eq!(names["gone"]["status"]["state"], "Disabled");
}

#[tokio::test]
async fn everything_that_serve_0_1_0_left_ends_as_it_should() {
    let (world, left) = of_serve();
    Box::pin(ends_as_it_should(world, &left)).await;
}

#[tokio::test]
async fn everything_in_buckets_and_queues_of_0_1_0_ends_as_it_should() {
    let (world, left) = of_functions().await;
    Box::pin(ends_as_it_should(world, &left)).await;
}

#[tokio::test]
async fn log_and_settings_of_serve_0_1_0_are_read() {
    let (world, left) = of_serve();
    Box::pin(log_and_settings_are_read(world, &left)).await;
}

#[tokio::test]
async fn log_and_settings_in_buckets_of_0_1_0_are_read() {
    let (world, left) = of_functions().await;
    world.record_some(1000).await;
    Box::pin(log_and_settings_are_read(world, &left)).await;
}
