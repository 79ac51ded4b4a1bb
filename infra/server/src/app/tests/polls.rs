//! No task holds a worker for long, whatever operators ask for and however large a topic is.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::ThreadId;

use posthaste_core::delivery_log::{FileKey, FileName};
use posthaste_delivery_log::{RowGroups, write_file};
use serde_json::{Value, json};
use tokio::task::yield_now;

use super::*;

/// Most processor time between two turns of a task that is always ready, on the only worker. Tests
/// are not optimised, so that what takes a few milliseconds of production takes some fifty here.
const TURN_MAX: Duration = Duration::from_millis(150);

/// Topics, and subscriptions of each: 4,050 in all.
const TOPICS: usize = 9;
const SUBSCRIPTIONS: usize = 450;

/// Small events in one request.
const EVENTS: usize = 200;

/// Records of the delivery log, in one file, that a list looks through.
const RECORDS: u64 = 60_000;

/// Objects of dead letters, and letters in each.
const LETTER_OBJECTS: usize = 20;
const LETTERS: usize = 500;

/// Items in the data of a large event: one request then has nearly 1 MB.
const ITEMS: usize = 20_000;

/// The processor time of a thread. Time that others take on a busy machine is not in it.
struct Turn {
    thread: ThreadId,
    time: Duration,
}

impl Turn {
    fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        let nanos = stat.split(' ').next().and_then(|time| time.parse().ok());
        Self {
            thread: std::thread::current().id(),
            time: Duration::from_nanos(nanos.unwrap()),
        }
    }

    /// The time since an earlier turn, unless the task has moved to another thread meanwhile: then
    /// the former one left its work to it.
    fn since(&self, before: &Self) -> Duration {
        if self.thread == before.thread {
            self.time.saturating_sub(before.time)
        } else {
            Duration::ZERO
        }
    }
}

/// The most processor time that other tasks took between two turns of this one.
async fn longest_turn(stop: CancellationToken) -> Duration {
    let mut longest = Duration::ZERO;
    let mut before = Turn::now();
    while !stop.is_cancelled() {
        yield_now().await;
        let now = Turn::now();
        longest = longest.max(now.since(&before));
        before = now;
    }
    longest
}

/// A client of the server, on a thread of its own.
struct Client {
    address: SocketAddr,
    key: String,
}

impl Client {
    fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let key = format!("authorization: Bearer {}\r\n", self.key);
        self.send(method, path, &key, "application/json", body)
    }

    fn send(&self, method: &str, path: &str, key: &str, content_type: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n{key}\
             content-type: {content_type}\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 20"),
            "{method} {path}: {answer:.500}"
        );
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// Large topics, events of all sizes, and what operators look at.
    fn load(&self) {
        let topics: Vec<_> = (0..TOPICS).map(|index| (index, topic(index))).collect();
        for (index, settings) in &topics {
            self.ask("PUT", &format!("/topics/orders{index}"), settings);
        }
        let keys = self.ask("GET", "/topics/orders0/keys", "");
        let keys: Value = serde_json::from_str(&keys).unwrap();
        let key = format!("aeg-sas-key: {}\r\n", keys["key1"].as_str().unwrap());
        let events = "/topics/orders0/events";
        let batch = "application/cloudevents-batch+json";
        let letters = "/topics/orders0/subscriptions/s0/dead-letters";
        for round in 0..3 {
            self.send("POST", events, &key, batch, &small_events());
            let large = large_event(&format!("large-{round}"));
            self.send("POST", events, &key, "application/cloudevents+json", &large);
            for path in [
                "/topics/orders0",
                "/topics/orders0/subscriptions?limit=1000",
                "/topics",
                "/links",
                "/metrics",
                "/openapi.json",
                "/console/sign-in",
                &format!("{events}?type=none"),
                &format!("{events}?limit=1000"),
                &format!("{letters}?limit=1000"),
                &format!("{letters}?reason=EndpointGone"),
                "/replays",
            ] {
                self.ask("GET", path, "");
            }
            let replay = json!({ "types": [format!("type-{round}")] });
            self.ask("POST", &format!("{letters}/replay"), &replay.to_string());
        }
        let changed = topics[0].1.replace("a1.example", "b1.example");
        self.ask("PUT", "/topics/orders0", &changed);
    }
}

/// A topic whose first subscription gets large events, and whose others get nothing.
fn topic(index: usize) -> String {
    let settings = |n: usize| {
        let wanted = if n == 0 {
            "large".to_owned()
        } else {
            format!("type-{n}")
        };
        json!({
            "endpoint": { "url": format!("https://a{n}.example/hook{index}") },
            "filter": { "includedEventTypes": [wanted] },
        })
    };
    let all: serde_json::Map<_, _> = (0..SUBSCRIPTIONS)
        .map(|n| (format!("s{n}"), settings(n)))
        .collect();
    json!({ "subscriptions": all }).to_string()
}

fn small_events() -> String {
    let mut events = String::from("[");
    for n in 0..EVENTS {
        let comma = if n == 0 { "" } else { "," };
        write!(
            events,
            r#"{comma}{{"specversion":"1.0","id":"{n}","source":"/s","type":"t"}}"#
        )
        .unwrap();
    }
    events.push(']');
    events
}

fn large_event(id: &str) -> String {
    let items: Vec<_> = (0..ITEMS)
        .map(|n| json!({ "article": n, "price": "9.95", "left": true }))
        .collect();
    let event = json!({
        "specversion": "1.0", "id": id, "source": "/s", "type": "large", "data": items,
    });
    event.to_string()
}

/// Records the measurements of each subscription.
fn measure_all() {
    for topic in 0..TOPICS {
        for subscription in 0..SUBSCRIPTIONS {
            let labels = [
                ("topic", format!("orders{topic}")),
                ("subscription", format!("s{subscription}")),
            ];
            ::metrics::counter!("DeliverySuccessCount", &labels).increment(1);
            ::metrics::counter!("DeliveryAttemptFailCount", &labels).increment(1);
            ::metrics::histogram!("DestinationProcessingDurationInMs", &labels).record(7.0);
        }
    }
}

/// Writes a file of the delivery log, and dead letters, into a data folder.
fn write_history(folder: &Path) {
    let now = SystemClock.now();
    let record = |n: u64| LogRecord {
        record_id: format!("{n:032x}"),
        time: now,
        topic: "orders0".to_owned(),
        subscription: format!("s{}", n % 400),
        event_id: Some(format!("event-{n}")),
        event_type: Some(format!("type-{}", n % 16)),
        delivery_key: format!("{n:032x}-0"),
        ..LogRecord::default()
    };
    let records: Vec<_> = (0..RECORDS).map(record).collect();
    let key = FileKey {
        hour: LogHour::containing(now),
        name: FileName::Fresh {
            minute: 0,
            id: "0b8b9c5e-6a0c-4d2f-8a57-1b0e6f3d9c11".to_owned(),
        },
    };
    let file = write_file(&records, RowGroups::default()).unwrap();
    put(&folder.join("log").join(key.render()), &file);
    let letter = |n: usize| {
        json!({
            "specversion": "1.0", "id": format!("letter-{n}"), "source": "/s", "type": "t",
            "deadletterreason": "MaxDeliveryAttemptsExceeded",
        })
    };
    let letters = (0..LETTERS).map(letter).collect::<Value>().to_string();
    for object in 0..LETTER_OBJECTS {
        let key = format!("dead-letters/ORDERS0/S0/2026/3/7/4/{object}.json");
        put(&folder.join(key), letters.as_bytes());
    }
}

fn put(file: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, bytes).unwrap();
}

/// The measure sees a task that computes.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn task_that_holds_the_worker_is_seen() {
    let stop = CancellationToken::new();
    let turns = tokio::spawn(longest_turn(stop.clone()));
    let holding = tokio::spawn(async {
        let begun = Turn::now();
        while Turn::now().since(&begun) < TURN_MAX {}
    });
    holding.await.unwrap();
    stop.cancel();
    assert!(turns.await.unwrap() >= TURN_MAX);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn worker_is_never_held_for_long() {
    let folder = tempfile::tempdir().unwrap();
    write_history(folder.path());
    let app = started(&folder).await;
    measure_all();
    let stop = CancellationToken::new();
    let turns = tokio::spawn(longest_turn(stop.clone()));
    let client = Client {
        address: app.addresses.public,
        key: app.admin_key().expose().to_owned(),
    };
    spawn_blocking(move || client.load()).await.unwrap();
    stop.cancel();
    let longest = turns.await.unwrap();
    assert!(longest < TURN_MAX, "{longest:?}");
    app.drain(PATIENCE).await.unwrap();
}
