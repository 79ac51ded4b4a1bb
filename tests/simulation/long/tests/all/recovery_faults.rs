//! A recovery by itself with a fault at the effects of deadletter and wake: whatever fails once, or
//! ends in the middle, all that the outage gave up arrives.

use std::collections::BTreeSet;
use std::time::Duration;

use posthaste_core::attempt::SendFailure;
use posthaste_core::stored::{RecoveryMark, layout};
use posthaste_ports::{ErrorKind, ObjectStore, QueueName};
use posthaste_simulation::{Answer, Faults, World, event};
use posthaste_testkit::faulty::{Fault, Plan};
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);

const TIME_TO_LIVE: Duration = Duration::from_mins(20);

/// The time in which everything has arrived, a run that fails, or two, included.
const RECOVERED_IN: Duration = Duration::from_mins(45);

/// Effects of each port at which something fails, spread over all of them.
const PLACES: u64 = 8;

const EVENTS: usize = 12;

/// A world in which events wait to be written as dead letters of an outage.
async fn world(faults: &Faults) -> World {
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
    let (mut arrived, mut passed) = (BTreeSet::new(), Duration::ZERO);
    let mut step = 0;
    while passed < RECOVERED_IN {
        // Messages that are handed back come again.
        world.bury().await;
        if step == 2 {
            world.endpoint.answer([Answer::Status(204)]);
        }
        world.clock.advance(MINUTE);
        drop(world.try_wake().await);
        world.deliver_all().await;
        for request in world.endpoint.take().into_iter().filter(|_| step >= 2) {
            let event: Value = serde_json::from_str(&request.body).unwrap();
            arrived.insert(event["id"].as_str().unwrap().to_owned());
        }
        (step, passed) = (step + 1, passed + MINUTE);
    }
    let expected: BTreeSet<_> = (0..EVENTS).map(|number| number.to_string()).collect();
    assert_eq!(arrived, expected, "{label}");
    let marks = world.local.state().list(layout::RECOVERY, None, 10).await;
    for mark in marks.unwrap().objects {
        let object = world.local.state().get(&mark.key).await.unwrap().unwrap();
        let mark = RecoveryMark::parse(&object.bytes).unwrap();
        let rests = mark.is_empty() && mark.job.is_none();
        assert!(rests || mark.ended_at.is_some(), "{label}: {mark:?}");
    }
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
        Fault::Before(ErrorKind::Other),
        Fault::After(ErrorKind::Other),
    ] {
        for (port, (before, after)) in before.into_iter().zip(after).enumerate() {
            let apart = ((after - before) / PLACES).max(1);
            for number in (before..after).step_by(usize::try_from(apart).unwrap()) {
                let plan = Plan::nth(number, fault.clone());
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
