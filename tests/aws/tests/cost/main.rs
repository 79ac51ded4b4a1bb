//! The cost of a delivery on AWS: the exact requests to SQS and S3, counted at the strict double,
//! and the dollars that they come to. docs/src/operating/aws.md shows the dollars; a number that
//! changes here changes there too.

#![expect(
    clippy::cast_precision_loss,
    reason = "counts become dollars, shown to the cent"
)]

mod arrivals;
mod bill;
mod capacity;
mod event;
mod month;
mod prices;
mod recovery;
mod scenario;
mod table;
mod world;

use std::thread;
use std::time::Duration;

use posthaste_core::model::DeliveryLogMode;
use posthaste_testkit::recorded::PortOperation;
use serde_json::json;
use tokio::runtime;

use crate::bill::{Bill, Requests};
use crate::event::event;
use crate::month::month_at_three_loads;
use crate::prices::{
    Dollars, IDLE_MERGE, MINUTES_BETWEEN_LOOKS, S3_GET, S3_PUT, WAITING_LOOK, idle_month,
    log_per_million,
};
use crate::scenario::{ALL, Outcome, Scenario};
use crate::world::{START, World};

/// Room for the functions' unoptimised futures, and more.
const STACK_BYTES: usize = 16 << 20;

/// Bounds of the outages, whose numbers depend on which held delivery is the probe: most requests
/// to the endpoint for 1,000 events (1,020 were seen, and 34 to 108; it took 8,000 and 154 before
/// deliveries paused), and a million's dollars ($3.84, $0.62).
const OUTAGES_MAX: [(usize, f64); 2] = [(1_100, 4.00), (154, 0.70)];

const REQUESTS: &str = "\
| per 1,000 deliveries | publish: send | mapping: receive | mapping: delete | deliver: send \
| deliver: delete | wake: send | S3 PUT, LIST | S3 GET | invocations of publish | of deliver | POSTs |
|---|---|---|---|---|---|---|---|---|---|---|---|
| one subscriber, 100 events/s | 1000 | 419 | 419 | 0 | 0 | 0 | 0 | 14 | 1000 | 419 | 1000 |
| one subscriber, 10 events/s | 1000 | 1000 | 1000 | 0 | 0 | 0 | 0 | 72 | 1000 | 1000 | 1000 |
| 100 events/s with `DeliverBatchWindow=1` | 1000 | 100 | 100 | 0 | 0 | 0 | 0 | 10 | 1000 | 100 | 1000 |
| 100 events/s with `Idempotency-Key` | 1000 | 419 | 419 | 0 | 0 | 0 | 2000 | 14 | 1000 | 419 | 1000 |
| one subscriber, an event every 10 s | 1000 | 1000 | 1000 | 0 | 0 | 0 | 0 | 3000 | 1000 | 1000 | 1000 |
| one subscriber, published by the hundred | 20 | 20 | 10 | 0 | 0 | 0 | 0 | 7 | 10 | 10 | 1000 |
| ten subscribers, 10 events/s | 100 | 100 | 100 | 0 | 0 | 0 | 0 | 10 | 100 | 100 | 1000 |
| batching, 100 events/s | 1000 | 419 | 419 | 0 | 0 | 0 | 0 | 14 | 1000 | 419 | 419 |
| batching, published by the hundred | 20 | 20 | 10 | 0 | 0 | 0 | 0 | 7 | 10 | 10 | 20 |
| 10 % retried, 100 events/s | 1000 | 446 | 446 | 100 | 100 | 0 | 0 | 41 | 1000 | 446 | 1100 |
| 100 events/s with `maxConcurrentRequests: 5` | 1000 | 419 | 419 | 0 | 0 | 0 | 838 | 15 | 1000 | 419 | 1000 |
| 10 events/s with `maxConcurrentRequests: 5` | 1000 | 1000 | 1000 | 0 | 0 | 0 | 2000 | 73 | 1000 | 1000 | 1000 |
";

const DOLLARS: &str = "\
| per million deliveries | SQS | S3 | Lambda | all |
|---|---|---|---|---|
| one subscriber, 100 events/s | $0.74 | $0.01 | $0.70 | $1.44 |
| one subscriber, 10 events/s | $1.20 | $0.03 | $1.28 | $2.51 |
| 100 events/s with `DeliverBatchWindow=1` | $0.48 | $0.00 | $0.38 | $0.87 |
| 100 events/s with `Idempotency-Key` | $0.74 | $10.01 | $0.70 | $11.44 |
| one subscriber, an event every 10 s | $1.20 | $1.20 | $1.28 | $3.68 |
| one subscriber, published by the hundred | $0.02 | $0.00 | $0.06 | $0.08 |
| ten subscribers, 10 events/s | $0.12 | $0.00 | $0.13 | $0.25 |
| batching, 100 events/s | $0.74 | $0.01 | $0.70 | $1.44 |
| batching, published by the hundred | $0.02 | $0.00 | $0.01 | $0.04 |
| 10 % retried, 100 events/s | $0.84 | $0.02 | $0.73 | $1.58 |
| 100 events/s with `maxConcurrentRequests: 5` | $0.74 | $4.20 | $0.70 | $5.63 |
| 10 events/s with `maxConcurrentRequests: 5` | $1.20 | $10.03 | $1.28 | $12.51 |
";

/// The requests of the delivery log with 6,000 deliveries.
const LOG: [&str; 3] = [
    "6000 sends, 600 receives, 600 deletes, 3 puts, 3 invocations: $0.484",
    "600 sends, 180 receives, 60 deletes, 2 puts, 2 invocations: $0.059",
    "2340 sends, 234 receives, 234 deletes, 2 puts, 2 invocations: $0.190",
];

const MONTH: &str = "\
| per month, whatever is published | |
|---|---|
| wake | $0.22 |
| monitor | $0.36 |
| merges | $0.06 |
| empty receives of the five mappings | $1.30 |
| all | $1.94 |
";

const THREE_LOADS: &str = "\
| a month of | an event every 10 s | 10 events/s | 100 events/s |
|---|---|---|---|
| million deliveries | 0.26 | 25.92 | 259.20 |
| deliveries: SQS, S3, Lambda | $0.95 | $65.11 | $374.06 |
| the delivery log, with payloads | $0.36 | $12.78 | $49.48 |
| whatever is published | $1.94 | $1.94 | $1.94 |
| what leaves AWS | $0.04 | $4.20 | $41.99 |
| alarms and metrics | $5.80 | $5.80 | $5.80 |
| all | **$9.10** | **$89.83** | **$473.27** |
";

#[test]
fn a_thousand_deliveries_ask_for_exactly_this_and_cost_so_much() {
    let outcomes = outcomes();
    let (exact, outages) = outcomes.split_at(outcomes.len() - OUTAGES_MAX.len());
    assert_eq!(table::requests(exact), REQUESTS);
    assert_eq!(table::dollars(exact), DOLLARS);
    assert_eq!(month_at_three_loads(exact), THREE_LOADS);
    for (outage, (posts_max, dollars_max)) in outages.iter().zip(OUTAGES_MAX) {
        let dollars = Dollars::per_million(outage).total();
        assert!(
            outage.posts <= posts_max && dollars <= dollars_max,
            "{outage:?}: ${dollars:.2}"
        );
    }
}

#[tokio::test]
async fn a_minute_in_which_nothing_is_published_has_its_price_too() {
    let mut world = World::new(&json!({})).await;
    // The first sample makes the state, which later ones only compare and replace.
    world.sample().await;
    let first = std::mem::take(&mut world.bill.monitor);
    world.clock.advance(Duration::from_mins(1));
    // `infra/lambda` ends the monitor's minute with a sample that finds everything calm.
    assert!(world.sample().await.is_calm());
    // All three queues are counted; the state and the slow targets are read.
    let minute = Requests {
        others: 3,
        puts: 1,
        gets: 2,
        ..Requests::default()
    };
    assert_eq!((first.others, first.puts, first.gets), (3, 1, 2));
    assert_eq!(world.bill.monitor, minute);
    assert_eq!(table::month(minute), MONTH);
    let month: f64 = idle_month(minute).iter().map(|(_, dollars)| dollars).sum();
    assert!(month <= IDLE_MONTH_MAX, "${month:.3}");
}

/// The most that a month may cost in which nothing is published.
const IDLE_MONTH_MAX: f64 = 1.95;

#[tokio::test]
async fn idle_wake_looks_for_work_every_fourteen_minutes() {
    let mut world = World::new(&json!({})).await;
    let mut looks = Vec::new();
    for minute in 0..=2 * MINUTES_BETWEEN_LOOKS {
        if world.wake().await {
            looks.push(minute);
        }
        world.clock.advance(Duration::from_mins(1));
    }
    assert_eq!(looks, [0, MINUTES_BETWEEN_LOOKS, 2 * MINUTES_BETWEEN_LOOKS]);
    assert_eq!(
        world.bill.wake,
        Requests::default(),
        "a look and a rest ask for just so much"
    );
}

/// Deliveries of a minute at 100 a second, and the most that the delivery log may add to a million
/// of them, by the sizes of deliver's batches: one an invocation, ten, and 2.6 on average.
const LOGGED: u32 = 6_000;
const LOG_MAX: [(&[usize], f64); 3] = [(&[1], 0.50), (&[10], 0.06), (&[2, 3, 2, 3, 3], 0.20)];

/// The most that the delivery log may add to a month in which nothing is published.
const IDLE_LOG_MAX: f64 = 0.33;

/// The most that the summaries of the log cost in a month with records in every hour, in dollars.
const SUMMARIES_MONTH_MAX: f64 = 0.005;

/// Hours of a month.
const HOURS_PER_MONTH: f64 = 730.0;

#[test]
fn the_delivery_log_adds_so_much_to_a_million_deliveries() {
    for ((sizes, most), expected) in LOG_MAX.into_iter().zip(LOG) {
        let bill = in_room(|| logged(sizes));
        let record = bill.record;
        let dollars = log_per_million(&bill, LOGGED);
        let found = format!(
            "{} sends, {} receives, {} deletes, {} puts, {} invocations: ${dollars:.3}",
            bill.deliver.sends,
            record.receives,
            record.deletes,
            record.puts,
            bill.record_invocations
        );
        assert_eq!(found, expected, "{sizes:?}");
        assert!(dollars <= most, "{found}");
    }
}

/// A merge that finds nothing makes four requests, and a month of them stays small.
#[tokio::test]
async fn empty_merge_costs_four_requests_and_little_a_month() {
    let mut world = World::new(&json!({})).await;
    let mut merged_later = async || {
        world.clock.advance(Duration::from_mins(10));
        world.bill.record = Requests::default();
        world.merge().await;
        world.bill.record.beside(IDLE_MERGE)
    };
    // The first looks at every hour there is, and remembers it. The second sees the same at rest.
    merged_later().await;
    assert_eq!(merged_later().await, WAITING_LOOK);
    for _ in 0..2 {
        for _ in 0..5 {
            assert_eq!(merged_later().await, Requests::default());
        }
        // An hour later it looks again whether everything is at rest.
        assert_eq!(merged_later().await, WAITING_LOOK);
    }
    let rows = idle_month(Requests::default());
    let of = |name: &str| rows.iter().find(|row| row.0 == name).expect("a row").1;
    let added = of("merges") + of("empty receives of the five mappings") / 5.0;
    assert!(added <= IDLE_LOG_MAX, "${added:.3}");
}

/// The summary of an hour is made once, after the hour: no run before or after it asks for more.
#[tokio::test]
async fn summary_of_an_hour_costs_a_put_and_four_gets() {
    let subscription = json!({ "s": { "endpoint": { "url": "https://s.example.com/" } } });
    let mut world = World::with_log(&subscription, DeliveryLogMode::Payloads).await;
    world.merge().await;
    world.publish(&[event(1, START)]).await;
    world.deliver_all().await;
    world.record_all().await;
    let mut merged_after = async |minutes| {
        world.clock.advance(Duration::from_mins(minutes));
        world.bill.record = Requests::default();
        world.merge().await;
        world.bill.record.beside(IDLE_MERGE)
    };
    let made = merged_after(66).await.beside(WAITING_LOOK);
    assert_eq!((made.puts, made.gets, made.sqs()), (1, 4, 0));
    assert_eq!(merged_after(10).await, WAITING_LOOK);
    let month = HOURS_PER_MONTH * (S3_PUT + 4.0 * S3_GET);
    assert!(month <= SUMMARIES_MONTH_MAX, "${month:.4}");
}

/// The bill of deliveries whose payloads are logged.
async fn logged(sizes: &[usize]) -> Bill {
    let subscription = json!({ "s": { "endpoint": { "url": "https://s.example.com/" } } });
    let mut world = World::with_log(&subscription, DeliveryLogMode::Payloads).await;
    for first in (0..LOGGED as usize).step_by(100) {
        for id in first..first + 100 {
            world.publish(&[event(id, START)]).await;
        }
        world.deliver_in(sizes).await;
        world.clock.advance(Duration::from_secs(1));
    }
    world.record_all().await;
    world.bill
}

/// Runs a scenario on a thread with room for it.
fn in_room<F: Future<Output = Bill>>(scenario: impl FnOnce() -> F + Send) -> Bill {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        let run = || {
            let runtime = runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(scenario())
        };
        thread
            .spawn_scoped(scope, run)
            .expect("a thread")
            .join()
            .expect("a scenario that ends")
    })
}

#[test]
fn the_page_about_aws_shows_these_tables() {
    let page = include_str!("../../../../docs/src/operating/aws.md");
    for row in [DOLLARS, MONTH, THREE_LOADS]
        .into_iter()
        .flat_map(str::lines)
    {
        assert!(
            page.contains(row),
            "docs/src/operating/aws.md has no row {row}"
        );
    }
}

#[tokio::test]
async fn each_call_of_the_object_store_is_one_request() {
    let mut world =
        World::new(&json!({ "s": { "endpoint": { "url": "https://s.example.com/" } } })).await;
    for id in 0..30 {
        world.publish(&[event(id, START)]).await;
        world.deliver_all().await;
        world.clock.advance(Duration::from_secs(3));
    }
    let calls = |operation| world.calls.count(operation) as u64;
    let requests = world.bill.requests();
    assert_eq!(
        requests.gets,
        calls(PortOperation::Get) + calls(PortOperation::GetIfChanged)
    );
    assert_eq!(
        requests.puts,
        calls(PortOperation::Put) + calls(PortOperation::List)
    );
    assert_eq!(
        (requests.sends, world.posts()),
        (calls(PortOperation::SendBatch), 30)
    );
    assert!(requests.gets > 0, "topics are looked up");
}

/// If all links are well, there is nothing but the list.
#[tokio::test]
async fn start_of_an_instance_asks_for_one_list() {
    let world = World::new(&json!({})).await;
    let list = Requests {
        puts: 1,
        ..Requests::default()
    };
    assert_eq!(world.start, list);
}

/// All scenarios side by side, each on a thread and a clock of its own.
fn outcomes() -> Vec<Outcome> {
    thread::scope(|scope| {
        let run = |scenario: Scenario| {
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            thread.spawn_scoped(scope, move || {
                let runtime = runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .expect("a runtime");
                runtime.block_on(scenario.run())
            })
        };
        let threads = ALL.map(|scenario| run(scenario).expect("a thread"));
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a scenario that ends"))
            .collect()
    })
}
