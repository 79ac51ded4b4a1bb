//! Publishers: of one event and of many, of small ones and large, and those that do not wait for an
//! answer.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use posthaste_tests::api::{CLOUD_EVENT, CLOUD_EVENTS_BATCH, Topic};
use posthaste_tests::events::cloud_event;
use posthaste_tests::patience::rest;
use posthaste_tests::seed::Seed;
use posthaste_tests::seen::Seen;
use serde_json::{Value, json};

use crate::ledger::{Fate, Ledger};

/// Events of a request that has many.
const MANY: usize = 10;

/// Bytes of what a large event carries: more than a message of a queue may have.
const LARGE_BYTES: usize = 300_000;

/// The pause between two requests of a publisher, and that after one that failed.
const PAUSE: Duration = Duration::from_millis(60);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(300);

/// A request of the crowd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    One,
    Many,
    Large,
    /// The client is gone when the answer comes.
    Left,
    /// The client is gone in the middle of the body.
    Cut,
}

/// Whether an event is as it was published.
pub(crate) fn is_whole(number: u32, event: &Value) -> bool {
    if event["data"].is_string() {
        *event == large_event(number)
    } else {
        *event == cloud_event(&number.to_string())
    }
}

fn large_event(number: u32) -> Value {
    let mut event = cloud_event(&number.to_string());
    event["data"] = json!("x".repeat(LARGE_BYTES));
    event
}

/// Publishes until it is told to stop.
pub(crate) fn publish(ledger: &Ledger, topics: &Seen<Topic>, seed: &mut Seed, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let topic = topics.wait_for("a server", |all| all.last().cloned());
        let kind = match seed.below(100) {
            0..70 => Kind::One,
            70..94 => Kind::Many,
            94..96 => Kind::Large,
            96..98 => Kind::Left,
            _ => Kind::Cut,
        };
        let numbers = ledger.begin(if kind == Kind::Many { MANY } else { 1 });
        let fate = request(&topic, kind, &numbers);
        ledger.end(&numbers, fate);
        let is_well = fate == Fate::Acknowledged;
        rest(if is_well { PAUSE } else { PAUSE_AFTER_FAILURE });
    }
}

fn request(topic: &Topic, kind: Kind, numbers: &[u32]) -> Fate {
    let event = |number: &u32| match kind {
        Kind::Large => large_event(*number),
        _ => cloud_event(&number.to_string()),
    };
    let mut events: Vec<_> = numbers.iter().map(event).collect();
    let (content_type, body) = match kind {
        Kind::Many => (CLOUD_EVENTS_BATCH, Value::from(events)),
        _ => (CLOUD_EVENT, events.swap_remove(0)),
    };
    let body = body.to_string();
    if matches!(kind, Kind::Left | Kind::Cut) {
        // A server that is down refuses the connection: then nothing was accepted, and nobody knows.
        let _ = leave(topic, content_type, &body, kind);
        return Fate::Unknown;
    }
    match topic.send(content_type, body.as_bytes()) {
        Ok(answer) => match answer.status {
            200 => Fate::Acknowledged,
            400..500 => Fate::Refused,
            _ => Fate::Unknown,
        },
        Err(_) => Fate::Unknown,
    }
}

/// Sends a request, or its half, and goes away.
fn leave(topic: &Topic, content_type: &str, body: &str, kind: Kind) -> std::io::Result<()> {
    let address = topic.api().url().trim_start_matches("http://").to_owned();
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: {address}\r\naeg-sas-key: {}\r\ncontent-type: {content_type}\r\n\
         content-length: {}\r\n\r\n",
        topic.path(),
        topic.keys[0],
        body.len()
    );
    let sent = if kind == Kind::Cut {
        &body[..body.len() / 2]
    } else {
        body
    };
    let mut stream = TcpStream::connect(&address)?;
    stream.write_all(head.as_bytes())?;
    stream.write_all(sent.as_bytes())
}
