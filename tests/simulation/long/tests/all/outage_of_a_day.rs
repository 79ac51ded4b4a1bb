//! An endpoint that refuses connections for a day, in which a hundred thousand events are published
//! for it: what it is asked, what that costs, what expires, and how it gets the rest.
//!
//! The measured numbers: `cargo test -p posthaste-simulation-long outage_of_a_day:: -- --nocapture`.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use posthaste_core::model::SendFailure;
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, QueueName, QueueSender};
use posthaste_simulation::{Answer, Faults, World, event};
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

/// Time after which a topic is read again: the default on AWS.
const TOPIC_MAX_AGE: Duration = Duration::from_secs(5);

const MINUTES: usize = 24 * 60;

/// In each minute a message is published of events that live a day, and one of events that live
/// longer.
const TIMES_TO_LIVE: [Duration; 2] = [Duration::from_hours(24), Duration::from_hours(30)];

const MESSAGES_A_MINUTE: usize = TIMES_TO_LIVE.len();

/// Each message is one request.
const EVENTS_A_MESSAGE: usize = 35;

const MESSAGES: usize = MINUTES * MESSAGES_A_MINUTE;

/// A hundred thousand, and some.
const EVENTS: usize = MESSAGES * EVENTS_A_MESSAGE;

/// Ten in a row, what was under way with them, and a probe after each hold: three of a minute,
/// three of ten, and one every quarter of an hour.
const REQUESTS_TO_THE_DEAD_MAX: usize = 10 + MESSAGES_A_MINUTE + 99;

/// Each minute's deliveries that expire together share an object, and wake takes and gives back its
/// lease. deliver signals wake once in nine minutes.
/// Each probe is taken out of its object, claimed, answered for, and waits again.
const PUTS_DOWN_MAX: usize = MESSAGES + 2 * MINUTES + MINUTES / 9 + 5 * REQUESTS_TO_THE_DEAD_MAX;

/// In every minute wake reads its lease, the pressure, before each pass, and the topic and the link
/// of what is held, the book of health, and the topic and the link of what is in it; deliver reads
/// the topic.
const GETS_DOWN_MAX: usize = 11 * MINUTES + 3 * REQUESTS_TO_THE_DEAD_MAX;

/// In every minute wake looks for what is parked, held, forced, recovered, replayed, temporary, gone
/// and to be told, and at the second and third page of what is held; at the page of which the one that asks
/// is drawn; and for links that are not well, to judge whose webhooks arrive; once an hour for what
/// is old.
const LISTS_DOWN_MAX: usize = 11 * MINUTES + 4 * 24;

/// The objects from which those that asked were taken, and those whose rest has a key of its own.
const DELETES_DOWN_MAX: usize = 2 * REQUESTS_TO_THE_DEAD_MAX;

/// Every message leaves the queue once; the first do so again after each Glitch, and each that asks
/// twice: with its failure, and when its wait is over.
const SETTLED_DOWN_MAX: usize = MESSAGES + 10 * MESSAGES_A_MINUTE + 3 * REQUESTS_TO_THE_DEAD_MAX;

/// A delivery that asks is sent by itself.
const SENDS_DOWN_MAX: usize = REQUESTS_TO_THE_DEAD_MAX;

/// Each minute's, and those that asked.
const HELD_MAX: usize = MESSAGES + 99;

/// The rest of the last hold, and some minutes in which twice as many go in each pass.
const DRAINED_IN_MAX: Duration = Duration::from_mins(15 + 10);

/// Every held object is read and deleted once, and in each minute's passes the lease and the
/// pressure are read.
const OBJECTS_DRAINED_MAX: usize = HELD_MAX + 10 * MINUTES / 24;

/// Several small objects share a send of ten messages; the first passes are smaller.
const SENDS_DRAINED_MAX: usize = MESSAGES / 5;

/// While the ramp is steep, what finds no room on it is sent back to its later part.
const SENT_BACK_MAX: usize = MESSAGES / 10;

/// The delivery that asks is drawn from a thousand, so that none asks often: those that did made
/// six attempts at most.
const RETRIED_IN_MAX: Duration = Duration::from_mins(30);

/// Of those that live a day, the ones of the minutes in which the last hold ended and the others
/// drained.
const EXPIRED_MAX: usize = (15 + 10) * EVENTS_A_MESSAGE;

/// Calls by port and operation.
type Counts = BTreeMap<String, usize>;

/// A day's outage.
struct Outage {
    world: World,
    counts: Counts,
    /// The number of times that each event arrived.
    arrived: Vec<u8>,
}

impl Outage {
    async fn new() -> Self {
        let world = World::remembering(&Faults::none(), TOPIC_MAX_AGE);
        world
            .subscribe(json!({ "batching": { "maxEventsPerBatch": EVENTS_A_MESSAGE } }))
            .await;
        // What the delivery log adds is counted elsewhere.
        let mut record = world.record().await;
        record.settings.delivery_log = Some(posthaste_core::model::DeliveryLogMode::Off);
        world.write_record(record.render()).await;
        world
            .endpoint
            .answer([Answer::Failure(SendFailure::Socket)]);
        Self {
            world,
            counts: Counts::new(),
            arrived: vec![0; EVENTS],
        }
    }

    async fn publish(&self, minute: usize) {
        let message = |n: usize| {
            let first = (minute * MESSAGES_A_MINUTE + n) * EVENTS_A_MESSAGE;
            let events: Vec<_> = (first..first + EVENTS_A_MESSAGE)
                .map(|n| event(&n.to_string()))
                .collect();
            self.world.message(&events, TIMES_TO_LIVE[n])
        };
        let messages = (0..MESSAGES_A_MINUTE).map(message).collect();
        let sent = self
            .world
            .local
            .queue(QueueName::Deliveries)
            .send_batch(messages)
            .await
            .unwrap();
        assert!(sent.iter().all(Result::is_ok));
    }

    /// A day passes. Answers how many requests the endpoint was sent.
    async fn day(&mut self) -> usize {
        let mut requests = 0;
        for minute in 0..MINUTES {
            self.publish(minute).await;
            self.world.deliver_all().await;
            // Something may fall due within the minute while it is in the queue.
            let is_delayed = self.world.delayed(QueueName::Deliveries).await > 0;
            let step = if is_delayed { 10 * SECOND } else { MINUTE };
            self.world.pass_by(step, MINUTE).await;
            requests += self.world.endpoint.take().len();
            self.note_calls();
        }
        requests
    }

    /// The endpoint is well, and what is held drains. Answers how long that took.
    async fn drain(&mut self) -> Duration {
        self.world.endpoint.answer([Answer::Status(204)]);
        let world = &self.world;
        let begin = world.clock.now();
        while !world.held().await.is_empty() {
            assert!(world.clock.now().since(begin) < HOUR, "it never drains");
            let deliver = async || {
                world.deliver().await;
            };
            Box::pin(world.deliver_beside(world.wake(), deliver)).await;
            world.pass_by(5 * SECOND, 15 * SECOND).await;
        }
        world.clock.now().since(begin)
    }

    /// Waits for the next attempt of the delivery that asked. Answers how long that took.
    async fn rest(&self) -> Duration {
        let begin = self.world.clock.now();
        while !self.world.is_at_rest().await {
            assert!(
                self.world.clock.now().since(begin) < 24 * HOUR,
                "it never comes to rest"
            );
            self.world.pass_by(10 * MINUTE, 10 * MINUTE).await;
        }
        self.world.clock.now().since(begin)
    }

    /// Notes what arrived.
    fn arrive(&mut self) -> usize {
        let requests = self.world.endpoint.take();
        for request in &requests {
            for event in serde_json::from_str::<Vec<Value>>(&request.body).unwrap() {
                self.arrived[event["id"].as_str().unwrap().parse::<usize>().unwrap()] += 1;
            }
        }
        requests.len()
    }

    /// The calls since the last time.
    fn count(&mut self) -> Counts {
        self.note_calls();
        std::mem::take(&mut self.counts)
    }

    fn note_calls(&mut self) {
        for call in self.world.calls.take() {
            *self
                .counts
                .entry(format!("{} {:?}", call.port, call.operation))
                .or_default() += 1;
        }
    }

    /// Every event arrived once or is a dead letter; answers how many are.
    async fn end(&mut self) -> usize {
        let letters = self.world.letters().await;
        for letter in &letters {
            let number: usize = letter.id.parse().unwrap();
            let is_of_a_day = (number / EVENTS_A_MESSAGE).is_multiple_of(MESSAGES_A_MINUTE);
            assert!(
                is_of_a_day && letter.reason == "TimeToLiveExceeded",
                "{letter:?}"
            );
            self.arrived[number] += 1;
        }
        let wrong: Vec<_> = (0..EVENTS).filter(|n| self.arrived[*n] != 1).collect();
        assert!(
            wrong.is_empty(),
            "{} did not end once, the first of them {:?}",
            wrong.len(),
            wrong.first()
        );
        letters.len()
    }
}

fn of(counts: &Counts, calls: &[&str]) -> usize {
    calls.iter().filter_map(|call| counts.get(*call)).sum()
}

#[expect(
    clippy::print_stdout,
    reason = "the table that docs/src/decisions shows, with --nocapture"
)]
fn at_most<N: Display + PartialOrd + Copy>(what: &str, found: N, bound: N) {
    println!("| {what} | {found} | {bound} |");
    assert!(
        found <= bound,
        "{what}: {found}, and no more than {bound} were expected"
    );
}

/// An outage of a day costs little, and every event arrives once or expires.
#[tokio::test]
async fn outage_of_a_day_costs_little_and_loses_no_event() {
    println!("| {EVENTS} events in {MESSAGES} messages | measured | at most |");
    println!("|---|---|---|");
    let mut outage = Outage::new().await;
    at_most(
        "requests to the dead endpoint",
        outage.day().await,
        REQUESTS_TO_THE_DEAD_MAX,
    );
    cost_of_the_outage(&outage.count());
    at_most(
        "objects held at its end",
        outage.world.all_keys(layout::HELD).await.len(),
        HELD_MAX,
    );
    let took = Box::pin(outage.drain()).await;
    at_most("seconds to drain", took.as_secs(), DRAINED_IN_MAX.as_secs());
    cost_of_the_drain(&outage.count());
    let waited = outage.rest().await;
    at_most(
        "minutes until what asked is sent again",
        waited.as_secs() / 60,
        RETRIED_IN_MAX.as_secs() / 60,
    );
    at_most("requests after the outage", outage.arrive(), MESSAGES);
    at_most("dead letters", outage.end().await, EXPIRED_MAX);
}

fn cost_of_the_outage(counts: &Counts) {
    at_most(
        "objects written in the outage",
        of(counts, &["state Put"]),
        PUTS_DOWN_MAX,
    );
    at_most(
        "objects read in the outage",
        of(counts, &["state Get", "state GetIfChanged"]),
        GETS_DOWN_MAX,
    );
    at_most(
        "lists in the outage",
        of(counts, &["state List"]),
        LISTS_DOWN_MAX,
    );
    at_most(
        "objects deleted in the outage",
        of(counts, &["state Delete"]),
        DELETES_DOWN_MAX,
    );
    let settled = of(counts, &["deliveries Replace", "deliveries Acknowledge"]);
    at_most("messages settled in the outage", settled, SETTLED_DOWN_MAX);
    at_most(
        "sends in the outage",
        of(counts, &["deliveries SendBatch"]),
        SENDS_DOWN_MAX,
    );
}

fn cost_of_the_drain(counts: &Counts) {
    at_most(
        "objects read in the drain",
        of(counts, &["state Get"]),
        OBJECTS_DRAINED_MAX,
    );
    at_most(
        "objects deleted in the drain",
        of(counts, &["state Delete"]),
        OBJECTS_DRAINED_MAX,
    );
    at_most(
        "sends in the drain",
        of(counts, &["deliveries SendBatch"]),
        SENDS_DRAINED_MAX,
    );
    let replaced = of(counts, &["deliveries Replace"]);
    at_most(
        "messages sent back by the ramp, or given up",
        replaced,
        SENT_BACK_MAX,
    );
}
