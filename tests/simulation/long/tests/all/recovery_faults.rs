//! A recovery by itself with a fault at the effects of deadletter and wake: whatever fails once, or
//! ends in the middle, all that the outage gave up arrives.

use std::collections::BTreeSet;
use std::time::Duration;

use posthaste_core::model::SendFailure;
use posthaste_core::stored::{RecoveryMark, layout};
use posthaste_ports::{ErrorKind, ObjectStore, QueueName};
use posthaste_services::LeftWork;
use posthaste_simulation::{Answer, Faults, World, event};
use posthaste_testkit::faulty::{CallFault, FaultPlan};
use posthaste_wake::WakeError;
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);

const TIME_TO_LIVE: Duration = Duration::from_mins(20);

/// The time in which everything has arrived, a run that fails, or two, included.
const RECOVERED_IN: Duration = Duration::from_mins(45);

/// Effects of each port at which something fails, spread over all of them.
const PLACES: u64 = 8;

pub(crate) const EVENTS: usize = 12;

/// The step with which the endpoint is well again.
pub(crate) const WELL_FROM: usize = 2;

/// A world in which events wait to be written as dead letters of an outage.
pub(crate) async fn world(faults: &Faults) -> World {
    let world = World::with(faults);
    world.chance.hold(0.0);
    world
        .subscribe(json!({
            "deadLetter": { "delay": "PT0S" },
            "retryPolicy": { "eventTimeToLiveInMinutes": 20 },
            "recovery": { "enabled": true },
        }))
        .await;
    world
        .endpoint
        .answer([Answer::Failure(SendFailure::Socket)]);
    for number in 0..EVENTS {
        world
            .publish(&[event(&number.to_string())], TIME_TO_LIVE)
            .await;
        world.pass_by(SECOND, SECOND).await;
    }
    // The dead-letter queue is left alone until all are given up.
    let is_waiting = async || world.visible(QueueName::DeadLetters).await < EVENTS as u64;
    while is_waiting().await {
        world.pass_by(MINUTE, MINUTE).await;
    }
    world.endpoint.take();
    world
}

/// One invocation of each function, and a minute that passes.
pub(crate) async fn step(world: &World, number: usize, left: LeftWork) -> Result<(), WakeError> {
    let answer = if number < WELL_FROM {
        Answer::Failure(SendFailure::Socket)
    } else {
        Answer::Status(204)
    };
    // Messages that are handed back come again.
    world.bury().await;
    world.endpoint.answer([answer]);
    world.clock.advance(MINUTE);
    let woken = world.try_wake_over(left).await;
    world.deliver_all().await;
    woken.map(drop)
}

/// The marks of recoveries that have not come to rest.
pub(crate) async fn working_marks(world: &World) -> Vec<RecoveryMark> {
    let page = world
        .local
        .state_store()
        .list(layout::RECOVERY, None, 10)
        .await;
    let mut working = Vec::new();
    for mark in page.unwrap().objects {
        let object = world
            .local
            .state_store()
            .get(&mark.key)
            .await
            .unwrap()
            .unwrap();
        let mark = RecoveryMark::parse(&object.bytes).unwrap();
        let rests = mark.is_empty() && mark.job.is_none() || mark.ended_at.is_some();
        working.extend((!rests).then_some(mark));
    }
    working
}

/// The effects of each port until now.
fn effects(faults: &Faults) -> [u64; 3] {
    [
        faults.queues.effects(),
        faults.state.effects(),
        faults.bucket.effects(),
    ]
}

/// Lets everything be recovered, and checks that each event arrived.
async fn check(faults: &Faults, label: &str) {
    let world = world(faults).await;
    let mut arrived = BTreeSet::new();
    let mut passed = Duration::ZERO;
    let mut number = 0;
    while passed < RECOVERED_IN {
        drop(step(&world, number, LeftWork::Old).await);
        let requests = world.endpoint.take().into_iter();
        for request in requests.filter(|_| number >= WELL_FROM) {
            let event: Value = serde_json::from_str(&request.body).unwrap();
            arrived.insert(event["id"].as_str().unwrap().to_owned());
        }
        number += 1;
        passed += MINUTE;
    }
    let expected: BTreeSet<_> = (0..EVENTS).map(|number| number.to_string()).collect();
    assert_eq!(arrived, expected, "{label}");
    let working = working_marks(&world).await;
    assert!(working.is_empty(), "{label}: {working:?}");
}

#[tokio::test]
async fn all_that_an_outage_gave_up_arrives_whatever_fails_once() {
    let quiet = Faults::none();
    let before = {
        let quiet = Faults::none();
        world(&quiet).await;
        effects(&quiet)
    };
    check(&quiet, "nothing fails").await;
    let after = effects(&quiet);
    for fault in [
        CallFault::Before(ErrorKind::Other),
        CallFault::After(ErrorKind::Other),
    ] {
        for (port, (before, after)) in before.into_iter().zip(after).enumerate() {
            let apart = ((after - before) / PLACES).max(1);
            for number in (before..after).step_by(usize::try_from(apart).unwrap()) {
                let plan = FaultPlan::nth(number, fault.clone());
                let mut faults = Faults::none();
                match port {
                    0 => faults.queues = plan.clone(),
                    1 => faults.state = plan.clone(),
                    _ => faults.bucket = plan.clone(),
                }
                check(&faults, &format!("{fault:?} at {number} of port {port}")).await;
            }
        }
    }
}
