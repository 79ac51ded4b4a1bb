//! Disks that are full: that of the dead letters, and that of the database in the middle of a large
//! fan-out.

use std::collections::HashSet;
use std::fs;

use posthaste_tests::api::{CLOUD_EVENT, CLOUD_EVENTS_BATCH, Topic};
use posthaste_tests::disk::SmallDisk;
use posthaste_tests::endpoint::Endpoint;
use posthaste_tests::events::{cloud_event, subscription};
use posthaste_tests::home::Home;
use posthaste_tests::patience::wait_until;
use posthaste_tests::server::Server;
use serde_json::{Map, Value, json};

const MIB: u64 = 1024 * 1024;

/// Letters from which on the backlog is Medium.
const MEDIUM: u64 = 2_000;

/// More than these, of which some are looked at again at any time.
const LETTERS: usize = 2_200;

/// Polls follow each other quickly, so that a level ends with its cause.
const QUICK_POLLS: &str = "\
ResourceMonitoringInterval: 00:00:00.100
DeadLetterBacklogHistoryDepth: 1
DrainTimeHighThreshold: 100000
DrainTimeMediumThreshold: 100000
DrainTimeNormalThreshold: 100000
";

/// A small disk may fill up to its end.
const UP_TO_THE_END: &str = "\
ResourceMonitoringInterval: 00:00:00.100
PercentageDatabaseDiskSpaceUsedHighThreshold: 98
DatabaseCheckPointDepthMax: 1 MB
";

/// The reading and the level of the backlog of dead letters.
fn backlog(server: &Server) -> (u64, String) {
    let shown = server.api().show("/pressure");
    let all = shown["resources"].as_array().expect("resources");
    let found = all
        .iter()
        .find(|it| it["resource"] == "dead-letter-backlog");
    let of = found.map(|it| {
        (
            it["reading"].as_u64().unwrap_or_default(),
            it["level"].as_str().unwrap_or_default().to_owned(),
        )
    });
    of.unwrap_or_default()
}

/// Letters that a full disk refuses are a backlog until it has room.
#[test]
fn letters_refused_by_a_full_disk_wait_until_it_has_room() {
    let home = Home::new();
    let settings = Home::new();
    let endpoint = Endpoint::start();
    let [pressure, links] = ["pressure.yaml", "links.yaml"].map(|it| settings.path().join(it));
    fs::write(&pressure, QUICK_POLLS).unwrap();
    fs::write(&links, "refusalsInRow: 0\n").unwrap();
    let folder = home.path().join("dead-letters");
    fs::create_dir(&folder).unwrap();
    // Twice what the letters take.
    let disk = SmallDisk::mount(&folder, 3 * MIB);
    let arguments = [
        "--pressure-settings",
        pressure.to_str().unwrap(),
        "--link-settings",
        links.to_str().unwrap(),
    ];
    let server = Server::start(home.path(), &arguments);
    disk.fill();
    let settings = subscription(&endpoint.on("/a", &[400]));
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    // Messages count, and the events of one request share them.
    for number in 0..LETTERS {
        topic.publish(&cloud_event(&number.to_string()));
    }
    wait_until("the letters to be counted", || {
        let (letters, level) = backlog(&server);
        (letters >= MEDIUM && level == "medium").then_some(())
    });
    assert_eq!(home.dead_letters("orders", "billing").len(), 0);
    assert_eq!(server.api().show("/pressure")["level"], "medium");
    disk.free();
    wait_until("the backlog to end", || {
        (backlog(&server) == (0, "normal".to_owned())).then_some(())
    });
    // Those that are being written count no more.
    wait_until("all letters to be stored", || {
        let letters = home.dead_letters("orders", "billing");
        let ids: HashSet<_> = letters.iter().map(|it| it["id"].to_string()).collect();
        (ids.len() == LETTERS).then_some(())
    });
    server.stop();
}

/// Publishes an event until the disk takes it, and waits until each of the paths has it, and nothing
/// else but the event before it: one that was delivered right before a `kill -9` may come again.
fn publish_alone(topic: &Topic, endpoint: &Endpoint, before: &str, id: &str) {
    let event = cloud_event(id).to_string();
    wait_until("an event to be accepted", || {
        let answer = topic.send(CLOUD_EVENT, event.as_bytes()).ok()?;
        (answer.status == 200).then_some(())
    });
    for n in 0..SUBSCRIPTIONS {
        let path = format!("/{n}");
        let ids = || endpoint.received(&path).into_iter().flat_map(|it| it.ids());
        wait_until("the event", || ids().any(|it| it == id).then_some(()));
        let others: Vec<_> = ids().filter(|it| it != id && it != before).collect();
        assert_eq!(others, [""; 0]);
    }
}

const SUBSCRIPTIONS: usize = 150;

/// With the subscriptions, 135 MB in messages.
const EVENTS: usize = 150;

/// Bytes of an event: few enough that it travels in its messages.
const DATA_BYTES: usize = 6_000;

#[test]
fn fan_out_that_does_not_fit_on_the_disk_delivers_nothing() {
    let home = Home::new();
    let folder = Home::new();
    let endpoint = Endpoint::start();
    let settings = folder.path().join("pressure.yaml");
    fs::write(&settings, UP_TO_THE_END).unwrap();
    let disk = SmallDisk::mount(home.path(), 96 * MIB);
    let arguments = ["--pressure-settings", settings.to_str().unwrap()];
    let server = Server::start(home.path(), &arguments);
    let subscriptions: Map<String, Value> = (0..SUBSCRIPTIONS)
        .map(|n| {
            (
                format!("s{n}"),
                subscription(&endpoint.url(&format!("/{n}"))),
            )
        })
        .collect();
    let settings = json!({ "subscriptions": subscriptions });
    let topic = server.api().create_topic("orders", &settings);
    disk.fill_to(50);
    let event = |n: usize| {
        let mut event = cloud_event(&format!("large-{n}"));
        event["data"] = json!("x".repeat(DATA_BYTES));
        event
    };
    let batch = Value::from((0..EVENTS).map(event).collect::<Vec<_>>()).to_string();
    let answer = topic.send(CLOUD_EVENTS_BATCH, batch.as_bytes());
    let problem = answer.expect("the server answers").problem(507);
    assert_eq!(problem["type"], "urn:posthaste:problem:storage-full");
    assert_eq!(endpoint.all().len(), 0, "{problem}");
    disk.free();
    publish_alone(&topic, &endpoint, "", "first");
    server.kill();
    let server = Server::start(home.path(), &arguments);
    let topic = server.api().topic("orders");
    publish_alone(&topic, &endpoint, "first", "second");
    server.stop();
}
