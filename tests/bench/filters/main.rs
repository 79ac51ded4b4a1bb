//! The cost of advanced filters for a publish: the time to match one event with every subscription
//! of a topic.
//!
//! `cargo bench -p posthaste-core --bench filters`. One line per topic: how many subscriptions,
//! filters of each and different keys, of which operators, whether all filters pass (so that all of
//! them are looked at), the size of the event, and the time of one event, by itself and as one of a
//! hundred.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]
#![expect(clippy::unwrap_used, reason = "a bench that fails panics")]
#![expect(clippy::disallowed_methods, reason = "a bench measures real time")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use posthaste_core::events::Event;
use posthaste_core::model::{EventSchema, Topic};
use posthaste_core::stored::TopicRecord;
use serde_json::{Map, Value, json};

/// Time for which each figure is measured.
const MEASURED: Duration = Duration::from_secs(1);

/// A topic and an event for it.
struct Case {
    name: &'static str,
    subscriptions: usize,
    filters: usize,
    /// The number of different members of the data that the filters ask for.
    keys: usize,
    data_bytes: usize,
    /// The filter of this number on this key, `true` where it is to pass.
    filter: fn(usize, &str) -> Value,
}

fn main() {
    println!("| filters | subscriptions | of each | keys | event | one event | of a hundred |");
    println!("|---|---|---|---|---|---|---|");
    let mixed = |subscriptions, filters, keys, data_bytes| Case {
        name: "mixed, all pass",
        subscriptions,
        filters,
        keys,
        data_bytes,
        filter: passing,
    };
    let full = |name, filter| Case {
        name,
        subscriptions: 500,
        filters: 25,
        keys: 25,
        data_bytes: 1_000,
        filter,
    };
    for case in [
        mixed(1, 25, 25, 1_000),
        mixed(100, 5, 25, 1_000),
        mixed(500, 0, 0, 1_000),
        mixed(500, 25, 25, 1_000),
        mixed(500, 25, 25, 100_000),
        mixed(500, 25, 12_500, 1_000_000),
        full("StringContains, all pass", contains),
        full("NumberInRange, all pass", in_range),
        full("the first of each fails", failing),
    ] {
        case.measure();
    }
}

impl Case {
    fn measure(&self) {
        let topic = self.topic();
        let event = self.event();
        let bytes = event.json().len();
        let hundred = vec![event.clone(); 100];
        let one = time(|| {
            drop(black_box(
                topic
                    .filters
                    .match_events(black_box(std::slice::from_ref(&event))),
            ));
        });
        let all = time(|| drop(black_box(topic.filters.match_events(black_box(&hundred)))));
        let Self {
            name,
            subscriptions,
            filters,
            keys,
            ..
        } = self;
        let each = all / 100;
        println!(
            "| {name} | {subscriptions} | {filters} | {keys} | {bytes} B | {one:.1?} | {each:.1?} |"
        );
    }

    fn topic(&self) -> Topic {
        let subscription = |number: usize| {
            let filter = |n: usize| {
                let n = number * self.filters + n;
                (self.filter)(n, &format!("data.k{}", n % self.keys))
            };
            let filters: Vec<Value> = (0..self.filters).map(filter).collect();
            let settings = json!({
                "endpoint": { "url": "https://a.example.com/" }, "filter": { "advancedFilters": filters },
            });
            (format!("s{number}"), settings)
        };
        let subscriptions: Map<String, Value> = (0..self.subscriptions).map(subscription).collect();
        let record = json!({
            "v": 1, "name": "orders", "key1": "a", "key2": "b", "createdAt": 0, "updatedAt": 0,
            "settings": { "subscriptions": subscriptions },
        });
        TopicRecord::parse(record.to_string().as_bytes())
            .unwrap()
            .compile()
            .unwrap()
    }

    /// An event whose member `k{n}` is a number, a text or a boolean by turns, filled up to its
    /// size.
    fn event(&self) -> Event {
        let value = |n: usize| match n % 5 {
            0 | 1 => json!(n),
            2 | 3 => json!(format!("Order-{n}-of-a-usual-length")),
            _ => json!(true),
        };
        let mut data: Map<String, Value> = (0..self.keys)
            .map(|n| (format!("k{n}"), value(n)))
            .collect();
        let used = Value::Object(data.clone()).to_string().len();
        data.insert(
            "rest".to_owned(),
            json!("x".repeat(self.data_bytes.saturating_sub(used))),
        );
        let event =
            json!({ "specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": data });
        Event::parse(EventSchema::CloudEvents, Bytes::from(event.to_string())).unwrap()
    }
}

/// Filters of many kinds, each of which passes.
fn passing(n: usize, key: &str) -> Value {
    match n % 5 {
        0 => json!({ "operatorType": "NumberGreaterThanOrEquals", "key": key, "value": 0 }),
        1 => json!({ "operatorType": "NumberNotIn", "key": key, "values": [-1] }),
        2 => json!({ "operatorType": "StringBeginsWith", "key": key, "values": ["ORDER-"] }),
        3 => json!({ "operatorType": "StringContains", "key": key, "values": ["USUAL"] }),
        _ => json!({ "operatorType": "BoolEquals", "key": key, "value": true }),
    }
}

fn contains(n: usize, _: &str) -> Value {
    let key = format!("data.k{}", n % 5 * 5 + 2);
    json!({ "operatorType": "StringContains", "key": key, "values": ["usual"] })
}

fn in_range(n: usize, _: &str) -> Value {
    json!({ "operatorType": "NumberInRange", "key": format!("data.k{}", n % 5 * 5), "values": [[-1.5, 1e9]] })
}

fn failing(_: usize, key: &str) -> Value {
    json!({ "operatorType": "StringIn", "key": key, "values": ["another"] })
}

/// The mean time of one run.
fn time(run: impl Fn()) -> Duration {
    run();
    let started = Instant::now();
    let mut runs = 0_u32;
    while started.elapsed() < MEASURED {
        run();
        runs += 1;
    }
    started.elapsed() / runs.max(1)
}
