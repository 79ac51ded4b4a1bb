//! A bound on the rate of a subscription: kept over all workers, without attempts and without busy
//! loops.

use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ErrorKind, QueueName};
use posthaste_simulation::{Answer, Faults, World, event};
use posthaste_testkit::faulty::{CallFault, FaultPlan};
use posthaste_testkit::recorded::PortOperation;
use serde_json::json;

const HOUR: Duration = Duration::from_hours(1);

fn limited(per_second: f64) -> serde_json::Value {
    json!({ "endpoint": { "url": "https://billing.example.com/hooks", "maxRequestsPerSecond": per_second } })
}

async fn publish(world: &World, count: usize) {
    for id in 0..count {
        world.publish(&[event(&id.to_string())], HOUR).await;
    }
}

/// Delivers for so long, in steps of a second. The clock wakes tasks that sleep in a step.
async fn go_on(world: &World, secs: u32) {
    for _ in 0..secs {
        world.deliver_all().await;
        world.clock.advance(Duration::from_secs(1));
    }
    world.deliver_all().await;
}

/// The times of requests, in milliseconds after the beginning.
fn times(world: &World, start: Timestamp) -> Vec<u128> {
    world
        .endpoint
        .take()
        .iter()
        .map(|request| request.at.since(start).as_millis())
        .collect()
}

/// The calls to the state of rates so far.
fn asked(world: &World) -> usize {
    world
        .calls
        .all()
        .iter()
        .filter(|call| call.key.starts_with(layout::RATES))
        .count()
}

/// Delivers visible messages, while the clock moves to the next task that sleeps for a second or
/// less.
async fn deliver_awake(world: &World) {
    let driver = async {
        loop {
            tokio::task::yield_now().await;
            let soon = world.clock.now() + Duration::from_secs(1);
            if world.clock.next_due().is_some_and(|due| due <= soon) {
                world.clock.advance_to_next();
            }
        }
    };
    tokio::select! {
        biased;
        () = world.deliver_all() => {}
        () = driver => {}
    }
}

#[tokio::test]
async fn requests_go_out_at_the_rate_and_the_rest_waits_in_the_queue() {
    let world = World::new();
    world.subscribe(limited(0.5)).await;
    let start = world.clock.now();
    publish(&world, 5).await;
    world.deliver().await;
    assert_eq!(world.delayed(QueueName::Deliveries).await, 4);
    go_on(&world, 20).await;
    assert_eq!(times(&world, start), [0, 2000, 4000, 6000, 8000]);
    // Each came back once, when it was its turn: none asked in between.
    assert_eq!(asked(&world), 6, "one read, and one lease for each request");
}

#[tokio::test]
async fn subscription_without_a_rate_costs_no_requests() {
    let world = World::new();
    world.subscribe(json!({})).await;
    publish(&world, 20).await;
    world.deliver_all().await;
    assert_eq!((world.endpoint.take().len(), asked(&world)), (20, 0));
}

/// A single lease serves the requests of an invocation, each at its moment.
#[tokio::test]
async fn single_lease_serves_an_invocation_each_request_in_time() {
    let world = World::new();
    world.subscribe(limited(100.0)).await;
    let start = world.clock.now();
    publish(&world, 10).await;
    deliver_awake(&world).await;
    assert_eq!(
        times(&world, start),
        (0..10).map(|n| n * 10).collect::<Vec<_>>()
    );
    assert_eq!(asked(&world), 2, "a read and a lease");
}

#[tokio::test]
async fn rate_taken_by_another_worker_is_not_available() {
    let world = World::new();
    world.subscribe(limited(10.0)).await;
    let start = world.clock.now();
    let taken = json!({ "v": 1, "taken_until": (start + Duration::from_secs(7)).as_millis() });
    world
        .write_state("rates/orders.billing.json", taken.to_string())
        .await;
    publish(&world, 1).await;
    go_on(&world, 10).await;
    assert_eq!(times(&world, start), [7000]);
}

#[tokio::test]
async fn each_half_of_a_batch_is_a_request_of_its_own() {
    let world = World::new();
    let mut settings = limited(0.5);
    settings["batching"] = json!({ "maxEventsPerBatch": 10 });
    world.subscribe(settings).await;
    world.endpoint.answer([Answer::Status(400)]);
    let start = world.clock.now();
    world.publish(&[event("1"), event("2")], HOUR).await;
    // The events have their lane, and wait in it for turns that are near.
    deliver_awake(&world).await;
    assert_eq!(times(&world, start), [0, 2000, 4000]);
}

#[tokio::test]
async fn a_backlog_far_above_the_rate_waits_in_the_object_store() {
    let world = World::new();
    world.subscribe(limited(0.05)).await;
    publish(&world, 60).await;
    world.deliver_all().await;
    // Places 20 s apart: 45 of them within what the queue can delay.
    assert_eq!(
        (
            world.endpoint.take().len(),
            world.delayed(QueueName::Deliveries).await
        ),
        (1, 45)
    );
    assert!(!world.parked().await.is_empty());
    for _ in 0..25 {
        go_on(&world, 60).await;
        world.wake().await;
    }
    assert_eq!(
        world.endpoint.take().len(),
        59,
        "as fast as the rate allows"
    );
}

#[tokio::test]
async fn a_place_in_line_past_an_events_end_is_its_end() {
    let world = World::new();
    world.subscribe(limited(0.02)).await;
    for id in 0..30 {
        world
            .publish(&[event(&id.to_string())], Duration::from_mins(10))
            .await;
    }
    go_on(&world, 601).await;
    assert_eq!(
        world.delayed(QueueName::Deliveries).await + world.visible(QueueName::Deliveries).await,
        0
    );
    assert!(world.parked().await.is_empty());
}

#[tokio::test]
async fn a_store_that_fails_keeps_the_rate_and_costs_no_attempt() {
    let plan = FaultPlan::by(|effect| {
        (effect.key.starts_with(layout::RATES) && effect.number < 40)
            .then_some(CallFault::Before(ErrorKind::Other))
    });
    let world = World::with(&Faults::in_state(&plan));
    world.subscribe(limited(5.0)).await;
    let start = world.clock.now();
    publish(&world, 1).await;
    world.deliver_all().await;
    assert_eq!(
        (
            world.endpoint.take().len(),
            world.delayed(QueueName::Deliveries).await
        ),
        (0, 1)
    );
    go_on(&world, 1800).await;
    assert!(plan.faults() > 1);
    let requests = world.endpoint.take();
    assert_eq!(
        (requests.len(), &requests[0].headers["aeg-delivery-count"]),
        (1, &"0".parse().unwrap())
    );
    assert_eq!(requests[0].at.since(start).as_secs() % 30, 0);
}

#[tokio::test]
async fn requests_that_wait_together_ask_a_store_that_fails_once() {
    let plan = FaultPlan::by(|effect| {
        effect
            .key
            .starts_with(layout::RATES)
            .then_some(CallFault::Before(ErrorKind::Other))
    });
    let world = World::with(&Faults::in_state(&plan));
    world.subscribe(limited(5.0)).await;
    publish(&world, 10).await;
    world.deliver().await;
    assert_eq!(
        (plan.faults(), world.delayed(QueueName::Deliveries).await),
        (1, 10)
    );
}

#[tokio::test]
async fn a_lease_whose_answer_was_lost_is_not_used() {
    let plan = FaultPlan::by(|effect| {
        let is_first =
            effect.key.starts_with(layout::RATES) && effect.operation == PortOperation::Put;
        (is_first && effect.number < 4).then_some(CallFault::After(ErrorKind::TimedOut))
    });
    let world = World::with(&Faults::in_state(&plan));
    world.subscribe(limited(1.0)).await;
    let start = world.clock.now();
    publish(&world, 1).await;
    go_on(&world, 40).await;
    assert_eq!((plan.faults(), times(&world, start)), (1, vec![30_000]));
}

#[tokio::test]
async fn events_that_wait_for_their_turn_expire_like_others() {
    let world = World::new();
    world.subscribe(limited(0.02)).await;
    for id in ["1", "2"] {
        world.publish(&[event(id)], Duration::from_secs(30)).await;
    }
    go_on(&world, 70).await;
    assert_eq!(world.endpoint.take().len(), 1);
    world.clock.advance(Duration::from_mins(6));
    world.bury().await;
    let letters: serde_json::Value = serde_json::from_slice(&world.buried().await[0].1).unwrap();
    assert_eq!(letters[0]["deadletterreason"], "TimeToLiveExceeded");
}
