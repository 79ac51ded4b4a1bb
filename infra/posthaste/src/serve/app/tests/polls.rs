//! No task holds a worker for long, whatever operators ask for and however large a topic is.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::ThreadId;

use serde_json::{Value, json};
use tokio::task::yield_now;

use super::*;

/// Most processor time between two turns of a task that is always ready, on the only worker. Tests
/// are not optimised, so that what takes a few milliseconds of production takes some fifty here.
const TURN_MAX: Duration = Duration::from_millis(150);

/// As many as a topic may have.
const SUBSCRIPTIONS: usize = 500;

const EVENTS: usize = 200;

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

    /// A large topic, events that none of its subscriptions wants, and what operators look at.
    fn load(&self) {
        let settings = |n| {
            json!({
                "endpoint": { "url": format!("https://a{n}.example/hook") },
                "filter": { "includedEventTypes": [format!("type-{n}")] },
            })
        };
        let all: serde_json::Map<_, _> = (0..SUBSCRIPTIONS)
            .map(|n| (format!("s{n}"), settings(n)))
            .collect();
        let topic = json!({ "subscriptions": all }).to_string();
        self.ask("PUT", "/topics/orders", &topic);
        let keys: Value =
            serde_json::from_str(&self.ask("GET", "/topics/orders/keys", "")).unwrap();
        let key = format!("aeg-sas-key: {}\r\n", keys["key1"].as_str().unwrap());
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
        let kind = "application/cloudevents-batch+json";
        for _ in 0..3 {
            self.send("POST", "/topics/orders/events", &key, kind, &events);
            for path in [
                "/topics/orders",
                "/topics/orders/subscriptions?limit=1000",
                "/topics",
                "/links",
                "/topics/orders/events",
                "/metrics",
                "/openapi.json",
                "/console/sign-in",
            ] {
                self.ask("GET", path, "");
            }
        }
        self.ask(
            "PUT",
            "/topics/orders",
            &topic.replace("a1.example", "b1.example"),
        );
    }
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
    let app = started(&folder).await;
    let stop = CancellationToken::new();
    let turns = tokio::spawn(longest_turn(stop.clone()));
    let client = Client {
        address: app.address,
        key: app.admin_key().expose().to_owned(),
    };
    spawn_blocking(move || client.load()).await.unwrap();
    stop.cancel();
    let longest = turns.await.unwrap();
    assert!(longest < TURN_MAX, "{longest:?}");
    app.drain(PATIENCE).await.unwrap();
}
