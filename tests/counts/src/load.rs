//! One request after the other, each when everything of the one before has been delivered.

use std::io::Write;
use std::net::TcpStream;
use std::ops::Range;
use std::time::Duration;

use posthaste_ports::Clock;
use posthaste_system::SystemClock;
use posthaste_tests::api::{Api, CLOUD_EVENT, CLOUD_EVENTS_BATCH};
use posthaste_tests::events::subscription;
use serde_json::{Map, Value, json};

use crate::case::Case;
use crate::endpoint::Endpoint;
use crate::wire::{Connection, MESSAGE_BYTES_MAX};

/// The id of an event before it is published.
const ID: &str = "0b8b9c5e-6a0c-4a57-9d0c-3c2a7d1f6f1e";

/// Size of an event, in bytes.
const EVENT_BYTES: usize = 1024;

/// A publisher and an endpoint with a server between them.
pub struct Load<'e> {
    case: Case,
    endpoint: &'e Endpoint,
    publisher: Connection<Vec<u8>>,
    request: Vec<u8>,
    /// The places of the events' ids in the request.
    ids: Vec<Range<usize>>,
    /// The id of the next event.
    next_id: u64,
}

impl<'e> Load<'e> {
    /// Creates a topic with its subscriptions on a server, and publishes until everything is warm.
    pub fn start(case: Case, api: &Api, endpoint: &'e Endpoint) -> Self {
        let subscribe = |n: u32| {
            (
                format!("s{n}"),
                subscription(&format!("http://{}/s{n}", endpoint.address)),
            )
        };
        let subscriptions: Map<String, Value> = (0..case.subscriptions()).map(subscribe).collect();
        let topic = api.create_topic("counts", &json!({ "subscriptions": subscriptions }));
        let request = publish(&topic.path(), &topic.keys[0], case.events());
        let stream = TcpStream::connect(api.url().trim_start_matches("http://"));
        let publisher =
            stream.and_then(|stream| Connection::new(stream, vec![0; MESSAGE_BYTES_MAX]));
        let publisher = publisher.expect("the server listens");
        let found = request
            .windows(ID.len())
            .enumerate()
            .filter(|(_, window)| *window == ID.as_bytes());
        let ids = found.map(|(at, _)| at..at + ID.len()).collect();
        let mut load = Self {
            case,
            endpoint,
            publisher,
            request,
            ids,
            next_id: 0,
        };
        load.run(case.warm_up_requests());
        load
    }

    /// Publishes the requests of one window, and returns the time that it took.
    pub fn run_window(&mut self) -> Duration {
        let began = SystemClock.monotonic();
        self.run(self.case.window_requests());
        SystemClock.monotonic().saturating_sub(began)
    }

    fn run(&mut self, requests: u32) {
        for _ in 0..requests {
            self.make_new_events();
            let arrived = self.endpoint.arrivals.count();
            self.publisher
                .write(&self.request)
                .expect("the server reads");
            let head = self
                .publisher
                .read()
                .expect("the server answers")
                .expect("the server answers");
            assert!(
                head.starts_with(b"HTTP/1.1 200"),
                "{}",
                String::from_utf8_lossy(head)
            );
            self.endpoint
                .arrivals
                .wait_for(arrived + u64::from(self.case.deliveries()));
        }
    }

    /// Gives each event of the request an id of its own, as a producer does: a message of records
    /// has equal events once.
    fn make_new_events(&mut self) {
        for id in self.ids.iter().cloned() {
            let mut digits = &mut self.request[id];
            write!(digits, "{:0width$}", self.next_id, width = ID.len())
                .expect("it has room for the digits");
            self.next_id += 1;
        }
    }
}

fn publish(path: &str, key: &str, events: u32) -> Vec<u8> {
    let (content_type, body) = if events == 1 {
        (CLOUD_EVENT, event())
    } else {
        let events: Vec<_> = (0..events).map(|_| event()).collect();
        (CLOUD_EVENTS_BATCH, format!("[{}]", events.join(",")))
    };
    format!(
        "POST {path} HTTP/1.1\r\nhost: counts\r\naeg-sas-key: {key}\r\ncontent-type: \
            {content_type}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A CloudEvent of [`EVENT_BYTES`].
fn event() -> String {
    let head = format!(
        r#"{{"specversion":"1.0","id":"{ID}","source":"/counts","type":"com.example.counted","data":{{"fill":""#
    );
    let tail = r#""}}"#;
    format!(
        "{head}{}{tail}",
        "x".repeat(EVENT_BYTES - head.len() - tail.len())
    )
}
