//! The page of `/metrics` where many topics have an event each: its size, and the time of a scrape.
//!
//! `cargo bench -p posthaste-tests --bench metrics`. One line per number of topics.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]
#![expect(clippy::disallowed_methods, reason = "a bench measures real time")]

use std::time::{Duration, Instant};

use posthaste_tests::api::Api;
use posthaste_tests::endpoint::Endpoint;
use posthaste_tests::events::{cloud_event, subscription};
use posthaste_tests::home::Home;
use posthaste_tests::patience::rest;
use serde_json::json;

/// Numbers of topics, each with a subscription and an event.
const TOPICS: [usize; 3] = [100, 1_000, 10_000];

/// Scrapes of each.
const SCRAPES: usize = 9;

/// Longer than a page is shared by all who ask.
const APART: Duration = Duration::from_millis(1_100);

fn main() {
    println!("| topics | series of topics | bytes | median | longest |");
    println!("|---|---|---|---|---|");
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let mut made = 0;
    for topics in TOPICS {
        while made < topics {
            let settings = subscription(&endpoint.url("/"));
            let settings = json!({ "subscriptions": { "all": settings } });
            let topic = server.api().create_topic(&format!("t{made:05}"), &settings);
            topic.publish(&cloud_event("1"));
            made += 1;
        }
        let mut times: Vec<_> = (0..SCRAPES).map(|_| scrape(server.api()).0).collect();
        times.sort();
        let page = scrape(server.api()).1;
        let median = times[SCRAPES / 2];
        let longest = times[SCRAPES - 1];
        let of_topics = page.lines().filter(|line| line.contains("topic=\""));
        let of_topics = of_topics.count();
        let bytes = page.len();
        println!("| {topics} | {of_topics} | {bytes} | {median:.1?} | {longest:.1?} |");
    }
    drop(server);
}

/// A page that nobody has asked for before, and its time.
fn scrape(api: &Api) -> (Duration, String) {
    rest(APART);
    let begun = Instant::now();
    let answer = api.manage("GET", "/metrics", None).expect(200);
    let took = begun.elapsed();
    let text = String::from_utf8(answer.body);
    (took, text.expect("metrics are text"))
}
