//! A backup is taken while events are published and delivered, the server is killed, and another
//! one goes on from the backup: nothing that was acknowledged before is lost.

#![allow(
    clippy::unwrap_used,
    reason = "the settings of clippy.toml for tests do not reach their helpers"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use posthaste_tests::api::Topic;
use posthaste_tests::binary::posthaste;
use posthaste_tests::endpoint::{Answer, Endpoint, Received};
use posthaste_tests::events::{cloud_event, subscription, subscription_with};
use posthaste_tests::home::Home;
use posthaste_tests::patience::{rest, wait_until};
use posthaste_tests::server::Server;
use serde_json::{Value, json};

/// Events that must be acknowledged before the backup begins, and after it.
const BEFORE: usize = 100;
const LATER: usize = 25;

/// Most events of a producer: a test that failed must end.
const EVENTS_MAX: usize = 3000;

/// Producers at once, and the rest of each after an event.
const PRODUCERS: usize = 4;
const REST: Duration = Duration::from_millis(10);

/// Ids of acknowledged events, in the order of their acknowledgements.
#[derive(Default)]
struct Acknowledged(Mutex<Vec<String>>);

impl Acknowledged {
    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn wait_for(&self, count: usize) -> Vec<String> {
        wait_until(&format!("{count} acknowledgements"), || {
            let all = self.all();
            (all.len() >= count).then_some(all)
        })
    }
}

/// Publishes one event after the other until it is told to stop.
fn publish(topic: &Topic, producer: usize, acknowledged: &Acknowledged, stop: &AtomicBool) {
    for number in 0..EVENTS_MAX {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let id = format!("{producer}-{number}");
        topic.publish(&cloud_event(&id));
        acknowledged.0.lock().unwrap().push(id);
        rest(REST);
    }
}

/// The webhook ids by event, of requests to a path.
fn webhook_ids(endpoint: &Endpoint, path: &str, since: usize) -> BTreeMap<String, String> {
    let received = endpoint.since(since);
    let of_path = received.iter().filter(|request| request.path == path);
    let ids = of_path.flat_map(|request| {
        let webhook_id = request.header("webhook-id").unwrap().to_owned();
        request
            .ids()
            .into_iter()
            .map(move |id| (id, webhook_id.clone()))
    });
    ids.collect()
}

/// The events of a subscription that the delivery log calls delivered.
fn delivered(server: &Server, subscription: &str) -> BTreeSet<String> {
    let mut delivered = BTreeSet::new();
    let mut cursor = String::new();
    loop {
        let path = format!(
            "/topics/orders/events?subscription={subscription}&result=delivered&limit=100{cursor}"
        );
        let page = server.api().show(&path);
        for record in page["records"].as_array().unwrap() {
            delivered.insert(record["id"].as_str().unwrap().to_owned());
        }
        match page["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return delivered,
        }
    }
}

/// Refuses every second event of a producer for good.
fn refuse_every_second(request: &Received) -> u16 {
    let is_odd = |id: &String| id.ends_with(['1', '3', '5', '7', '9']);
    if request.ids().iter().any(is_odd) {
        400
    } else {
        204
    }
}

/// A topic of three subscriptions: one is well, one refuses every second event, and the requests of
/// one, to another endpoint, hang.
fn create(server: &Server, endpoint: &Endpoint, hanging: &Endpoint) -> Topic {
    endpoint.script("/refusing", [Answer::Judge(refuse_every_second)]);
    hanging.script("/hanging", [Answer::Held(204)]);
    let url = |endpoint: &Endpoint, path: &str| subscription(&endpoint.url(path));
    // Longer than the test takes: a link whose requests time out would rest for a minute.
    let patient = json!({ "endpoint": { "timeout": "PT1M" } });
    server.api().create_topic(
        "orders",
        &json!({ "subscriptions": {
            "well": url(endpoint, "/well"),
            "refusing": url(endpoint, "/refusing"),
            "hanging": subscription_with(&hanging.url("/hanging"), &patient),
        } }),
    )
}

/// Runs a command of the program's that needs no server.
fn run(arguments: &[&str]) -> Output {
    let output = Command::new(posthaste()).args(arguments).output();
    output.expect("posthaste starts")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path of a test is text")
}

#[test]
fn backup_under_load_loses_nothing_that_was_acknowledged() {
    let home = Home::new();
    let root = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::start();
    let hanging = Endpoint::start();
    let backup = root.path().join("backup");
    let restored = root.path().join("restored");
    let server = home.serve();
    let topic = create(&server, &endpoint, &hanging);
    let acknowledged = Acknowledged::default();
    let stop = AtomicBool::new(false);
    let (before, taken) = thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let topic = &topic;
            let acknowledged = &acknowledged;
            let stop = &stop;
            scope.spawn(move || publish(topic, producer, acknowledged, stop));
        }
        hanging.wait_for("/hanging", 1);
        let before = acknowledged.wait_for(BEFORE);
        let taken = home.run_json(&server, &["backup", text(&backup)]);
        // The server goes on.
        acknowledged.wait_for(acknowledged.all().len() + LATER);
        stop.store(true, Ordering::Relaxed);
        (before, taken)
    });
    let first_ids = webhook_ids(&hanging, "/hanging", 0);
    server.kill();
    let seen = endpoint.all().len();
    let seen_hanging = hanging.all().len();
    hanging.open();

    let output = run(&["restore", text(&backup), "--data", text(&restored)]);
    assert!(output.status.success(), "{output:?}");
    let server = Server::start(&restored, &[]);
    wait_until("an end of each event", || {
        let letters = dead_letters(&restored.join("dead-letters"));
        let is_over = |name: &str, again: &BTreeMap<String, String>| {
            let delivered = delivered(&server, name);
            let is_there = |id: &String| {
                let is_letter = name == "refusing" && letters.contains(id);
                delivered.contains(id) || again.contains_key(id) || is_letter
            };
            before.iter().all(is_there)
        };
        let is_over = is_over("well", &webhook_ids(&endpoint, "/well", seen))
            && is_over("hanging", &webhook_ids(&hanging, "/hanging", seen_hanging))
            && is_over("refusing", &BTreeMap::new());
        is_over.then_some(())
    });
    // A receiver knows what it has seen already.
    let again = webhook_ids(&hanging, "/hanging", seen_hanging);
    let seen_before: Vec<_> = before
        .iter()
        .filter(|id| first_ids.contains_key(*id))
        .collect();
    assert!(!seen_before.is_empty());
    for id in seen_before {
        assert_eq!(again[id], first_ids[id], "{id}");
    }
    says_from_when(&server, taken["takenAt"].as_str().unwrap());
    server.stop();
}

/// The ids of the events in the dead letters below a folder.
fn dead_letters(folder: &Path) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                let letters: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
                let letters = letters.as_array().unwrap();
                ids.extend(
                    letters
                        .iter()
                        .map(|letter| letter["id"].as_str().unwrap().to_owned()),
                );
            }
        }
    }
    ids
}

/// Checks that the log of the server and the answers about events say from when the data are.
fn says_from_when(server: &Server, taken_at: &str) {
    // A page without records is about all times.
    let page = server
        .api()
        .show("/topics/orders/events?type=com.example.none");
    let gap = &page["gaps"][0];
    assert_eq!([&gap["from"], &gap["cause"]], [taken_at, "copy"], "{page}");
    let said = format!("the data folder was restored from a backup of {taken_at}:");
    let log = server.log();
    let lines = log.iter().filter(|line| line.contains(&said)).count();
    assert_eq!(lines, 1, "{log:?}");
}

#[test]
fn backup_of_a_stopped_folder_is_that_of_its_end() {
    let home = Home::new();
    let root = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::start();
    let hanging = Endpoint::start();
    let backup = root.path().join("backup");
    let restored = root.path().join("restored");
    let server = home.serve();
    create(&server, &endpoint, &hanging).publish(&cloud_event("1"));
    let first = hanging.wait_for_one("/hanging");
    let take = || run(&["backup", text(&backup), "--data", text(home.path())]);
    let refused = take();
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("is open in another posthaste"), "{said}");
    server.kill();
    hanging.open();
    let output = take();
    assert!(output.status.success(), "{output:?}");
    let output = run(&["restore", text(&backup), "--data", text(&restored)]);
    assert!(output.status.success(), "{output:?}");
    let server = Server::start(&restored, &[]);
    let again = hanging.wait_for("/hanging", 2).remove(1);
    assert_eq!(again.header("webhook-id"), first.header("webhook-id"));
    server.stop();
}

#[test]
fn backup_needs_the_admin_key() {
    let home = Home::new();
    let server = home.serve();
    let refused = server.api().send("GET", "/backup", &[], b"").unwrap();
    refused.problem(401);
    let headers = [("authorization", "Bearer another-key-of-this-length")];
    let refused = server.api().send("GET", "/backup", &headers, b"").unwrap();
    refused.problem(401);
    server.api().manage("POST", "/backup", None).problem(405);
}

/// The entries of backups in the audit trail, the newest first.
fn entries_of_backups(server: &Server) -> Vec<Value> {
    let page = server.api().show("/audit");
    let entries = page["entries"].as_array().unwrap().iter();
    let of_backups = entries.filter(|entry| entry["action"] == "backup.take");
    of_backups.cloned().collect()
}

#[test]
fn backup_has_an_entry_in_the_audit_trail() {
    let home = Home::new();
    let root = tempfile::tempdir().unwrap();
    let server = home.serve();
    let backup = root.path().join("backup");
    home.run_json(&server, &["backup", text(&backup)]);
    let entry = wait_until("the end of the backup's entry", || {
        let entries = entries_of_backups(&server);
        assert_eq!(entries.len(), 1, "{entries:?}");
        (entries[0]["outcome"] != "begun").then(|| entries[0].clone())
    });
    let known = ["actor", "via", "address", "outcome"].map(|member| &entry[member]);
    assert_eq!(known, ["adminKey", "cli", "127.0.0.1", "done"]);
    assert!(
        entry["key"].is_string() && entry["at"].is_string(),
        "{entry}"
    );
    let detail = entry["detail"].as_str().unwrap();
    assert!(detail.starts_with("2 files, "), "{detail}");

    // Whoever has the wrong key has no backup, and no entry of one.
    let headers = [("authorization", "Bearer another-key-of-this-length")];
    let refused = server.api().send("GET", "/backup", &headers, b"").unwrap();
    refused.problem(401);
    assert_eq!(entries_of_backups(&server).len(), 1);
    server.stop();
}

/// Bytes of a file in the data folder that no client of a test has read before the server ends.
const MUCH: u64 = 64 * 1024 * 1024 * 1024;

#[test]
fn backup_ends_at_once_when_the_server_ends() {
    let home = Home::new();
    let root = tempfile::tempdir().unwrap();
    let server = home.serve();
    let letter = home.path().join("dead-letters/ORDERS/BILLING/2026/1/1/1");
    fs::create_dir_all(&letter).unwrap();
    // It has no blocks on the disk.
    let file = fs::File::create(letter.join("x.json")).unwrap();
    file.set_len(MUCH).unwrap();
    let backup = root.path().join("backup");
    let mut command = Command::new(posthaste());
    command.args(["--url", server.url(), "backup", text(&backup), "--data-dir"]);
    command.arg(home.path()).stderr(Stdio::piped());
    let client = command.spawn().unwrap();
    let copy = backup.join("dead-letters/ORDERS/BILLING/2026/1/1/1/x.json");
    wait_until("bytes of the large file", || {
        fs::metadata(&copy)
            .is_ok_and(|file| file.len() > 0)
            .then_some(())
    });
    server.stop();

    let output = client.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let expected = "the backup could not be read to its end: the server ends";
    assert!(said.contains(expected), "{said}");
    assert!(!backup.join("backup.json").exists());
    drop(file);
    fs::remove_file(letter.join("x.json")).unwrap();
    let server = home.serve();
    let entry = entries_of_backups(&server).remove(0);
    assert_eq!(entry["outcome"], "failed", "{entry}");
    let detail = entry["detail"].as_str().unwrap();
    assert!(detail.starts_with("the server ends"), "{detail}");
    server.stop();
}
