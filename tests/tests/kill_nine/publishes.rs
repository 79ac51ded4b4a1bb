//! `kill -9`, again and again, in the middle of ten thousand publishes: whatever was acknowledged
//! is delivered or is a dead letter, and an event is delivered twice only if a kill lies between.
//! The delivery log has the last state of each event, and each attempt that the endpoint saw.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use posthaste_tests::api::{Api, CLOUD_EVENT, Topic};
use posthaste_tests::endpoint::{Answer, Endpoint, Received};
use posthaste_tests::events::{cloud_event, subscription};
use posthaste_tests::home::Home;
use posthaste_tests::patience::{now, wait_until};
use posthaste_tests::seed::Seed;
use posthaste_tests::seen::Seen;
use posthaste_tests::server::Server;
use serde_json::Value;

const EVENTS: usize = 10_000;
const PUBLISHERS: usize = 16;
const KILLS: usize = 5;

/// The topics of the publishers: they use the last one. Each restart has a port of its own.
type Topics = Seen<Topic>;

/// The state that the publishers know.
#[derive(Default)]
struct Ledger {
    next: AtomicUsize,
    acknowledged: Mutex<HashSet<usize>>,
    unanswered: Mutex<HashSet<usize>>,
    /// Requests that a server did not answer although nobody killed it.
    faults: Mutex<Vec<String>>,
}

/// A good endpoint for most, one that is busy at first for some, and one that refuses for a few.
fn judge(request: &Received) -> u16 {
    match number(&request.ids()[0]) % 50 {
        7 => 400,
        9 if request.header("aeg-delivery-count") == Some("0") => 503,
        _ => 200,
    }
}

fn number(id: &str) -> usize {
    id.parse().expect("an id is a number")
}

#[test]
fn acknowledged_event_is_delivered_or_a_dead_letter() {
    let seed = Seed::of_this_run();
    let home = Home::new();
    let endpoint = Endpoint::start();
    let ledger = Ledger::default();
    let topics = Topics::default();
    endpoint.script("/a", [Answer::Judge(judge)]);
    let server = home.serve();
    topics.push(server.api().create_topic_with(
        "orders",
        "all",
        &subscription(&endpoint.url("/a")),
    ));

    let mut kills: Vec<RangeInclusive<Duration>> = Vec::new();
    let server = std::thread::scope(|scope| {
        for _ in 0..PUBLISHERS {
            scope.spawn(|| publish(&ledger, &topics));
        }
        let mut server = server;
        for moment in moments(seed) {
            wait_until("the moment to kill", || {
                (ledger.acknowledged() >= moment).then_some(())
            });
            let before = now();
            server.kill();
            server = home.serve();
            // Until the next server answers, the endpoint may still be reading what the last one
            // had sent.
            kills.push(before..=now());
            topics.push(server.api().topic("orders"));
        }
        server
    });
    let faults = ledger.faults.lock().expect("no publisher panics");
    assert!(
        faults.is_empty(),
        "servers that live did not answer: {faults:?}"
    );
    drop(faults);
    check(&home, &endpoint, &ledger, &kills);
    check_log(&server, &endpoint, &ledger);
    server.stop();
}

impl Ledger {
    fn acknowledged(&self) -> usize {
        self.acknowledged.lock().expect("no publisher panics").len()
    }
}

/// Publishes one event after the other, each once. After a request without an answer it waits for
/// a server that answers.
fn publish(ledger: &Ledger, topics: &Topics) {
    loop {
        let number = ledger.next.fetch_add(1, Ordering::Relaxed);
        if number >= EVENTS {
            return;
        }
        let (topic, count) = topics.wait_for("a server", |all| {
            all.last().cloned().map(|topic| (topic, all.len()))
        });
        match topic.send(
            CLOUD_EVENT,
            cloud_event(&number.to_string()).to_string().as_bytes(),
        ) {
            Ok(answer) => {
                answer.expect(200);
                let mut acknowledged = ledger.acknowledged.lock().expect("no publisher panics");
                acknowledged.insert(number);
            }
            Err(error) => {
                let mut unanswered = ledger.unanswered.lock().expect("no publisher panics");
                unanswered.insert(number);
                drop(unanswered);
                wait_for_a_server(ledger, topics, (&topic, count), &error);
            }
        }
    }
}

/// Waits for the next server, or until this one answers, which was not killed then.
fn wait_for_a_server(
    ledger: &Ledger,
    topics: &Topics,
    (topic, count): (&Topic, usize),
    error: &ureq::Error,
) {
    wait_until("this server or the next one", || {
        if topics.all().len() > count {
            return Some(());
        }
        let health = topic.api().send("GET", "/health", &[], b"");
        health.is_ok_and(|it| it.status == 200).then(|| {
            let fault = format!("server {count}: {error:?}");
            ledger
                .faults
                .lock()
                .expect("no publisher panics")
                .push(fault);
        })
    });
}

/// After how many acknowledged events the kills come: in the middle, at random.
fn moments(mut seed: Seed) -> Vec<usize> {
    let mut moments: Vec<_> = (0..KILLS)
        .map(|_| EVENTS / 10 + seed.below(EVENTS * 8 / 10))
        .collect();
    moments.sort_unstable();
    moments
}

#[expect(
    clippy::print_stdout,
    reason = "how many duplicates there were is a result of the run"
)]
fn check(home: &Home, endpoint: &Endpoint, ledger: &Ledger, kills: &[RangeInclusive<Duration>]) {
    let acknowledged = ledger.acknowledged.lock().expect("no publisher panics");
    let unanswered = ledger.unanswered.lock().expect("no publisher panics");
    assert_eq!(acknowledged.len() + unanswered.len(), EVENTS);
    let mut arrivals: HashMap<usize, Vec<Duration>> = HashMap::new();
    let mut read = 0;
    wait_until(
        "every acknowledged event to be delivered or a dead letter",
        || {
            for request in endpoint.since(read) {
                read += 1;
                if judge(&request) == 200 {
                    arrivals
                        .entry(number(&request.ids()[0]))
                        .or_default()
                        .push(request.at);
                }
            }
            acknowledged
                .iter()
                .all(|number| arrivals.contains_key(number) || number % 50 == 7)
                .then_some(())
        },
    );
    let refused = acknowledged
        .iter()
        .filter(|number| *number % 50 == 7)
        .count();
    let dead: HashSet<usize> = wait_until("every refused event to be a dead letter", || {
        let letters = home.dead_letters("orders", "all");
        let dead: HashSet<_> = letters
            .iter()
            .filter_map(|letter| letter["id"].as_str())
            .map(number)
            .collect();
        (dead.intersection(&acknowledged).count() == refused).then_some(dead)
    });
    assert!(dead.iter().all(|number| number % 50 == 7));
    let known = |number: &usize| acknowledged.contains(number) || unanswered.contains(number);
    assert!(
        arrivals.keys().chain(&dead).all(known),
        "an event nobody published"
    );

    let mut duplicates = 0;
    for (number, times) in &mut arrivals {
        times.sort_unstable();
        for two in times.windows(2) {
            duplicates += 1;
            let is_between = kills
                .iter()
                .any(|kill| two[0] <= *kill.end() && *kill.start() <= two[1]);
            assert!(
                is_between,
                "event {number} was delivered twice, {two:?}, and no kill lies between: {kills:?}"
            );
        }
    }
    println!(
        "{} acknowledged, {} without an answer; {} delivered, {} dead letters; {duplicates} duplicates in \
            {KILLS} kills",
        acknowledged.len(),
        unanswered.len(),
        arrivals.len(),
        dead.len()
    );
}

/// Waits until the log has the last state of every acknowledged event and every attempt that the
/// endpoint saw: an attempt that was cut off by a kill is made again under the same number. Each
/// record is listed once.
fn check_log(server: &Server, endpoint: &Endpoint, ledger: &Ledger) {
    let acknowledged = ledger.acknowledged.lock().expect("no publisher panics");
    let seen: HashSet<(usize, u64)> = endpoint.since(0).iter().map(attempt).collect();
    wait_until("the delivery log to have every event", || {
        let records = records(server.api());
        let ids: HashSet<_> = records
            .iter()
            .map(|record| record["recordId"].as_str())
            .collect();
        assert_eq!(ids.len(), records.len(), "a record is listed twice");
        let ended = |result: &str| -> HashSet<usize> {
            records
                .iter()
                .filter(|record| record["result"] == result)
                .map(event)
                .collect()
        };
        let delivered = ended("delivered");
        let dead = ended("dead-lettered");
        let is_ended =
            |number: &usize| if number % 50 == 7 { &dead } else { &delivered }.contains(number);
        let attempts = records.iter().filter(|record| record["kind"] == "attempt");
        let attempts =
            attempts.map(|record| (event(record), record["attempt"].as_u64().unwrap_or(0)));
        let logged: HashSet<(usize, u64)> = attempts.collect();
        (acknowledged.iter().all(is_ended) && seen.is_subset(&logged)).then_some(())
    });
}

/// The event and the number of the attempt that a request was.
fn attempt(request: &Received) -> (usize, u64) {
    let before = request
        .header("aeg-delivery-count")
        .and_then(|count| count.parse::<u64>().ok());
    (
        number(&request.ids()[0]),
        before.expect("every request has a count") + 1,
    )
}

fn event(record: &Value) -> usize {
    number(record["id"].as_str().expect("every record has an event"))
}

/// All records of the delivery log.
fn records(api: &Api) -> Vec<Value> {
    let mut records = Vec::new();
    let mut cursor = String::new();
    loop {
        let mut page = api.show(&format!("/topics/orders/events?limit=1000{cursor}"));
        records.extend(
            page["records"]
                .as_array_mut()
                .map(std::mem::take)
                .expect("a page has records"),
        );
        let Some(next) = page["cursor"].as_str() else {
            return records;
        };
        cursor = format!("&cursor={next}");
    }
}
