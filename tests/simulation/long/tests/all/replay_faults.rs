//! A replay with a fault at every effect of wake's: nothing that was asked for is passed over.

use std::collections::BTreeSet;
use std::time::Duration;

use posthaste_core::api::ReplayState;
use posthaste_ports::{ErrorKind, QueueName};
use posthaste_services::LeftWork;
use posthaste_simulation::{Answer, Faults, World, event};
use posthaste_testkit::faulty::{CallFault, FaultPlan};
use posthaste_wake::WakeError;
use serde_json::{Value, json};

pub(crate) const IDS: [&str; 12] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"];

/// A world in which wake's calls fail by this plan, with dead letters in three objects. Only what
/// happens after `armed` counts: the plans see deliver and deadletter before.
pub(crate) async fn world(faults: &Faults) -> World {
    let world = World::with(faults);
    world
        .subscribe(json!({ "deadLetter": { "delay": "PT0S" } }))
        .await;
    for ids in IDS.chunks(4) {
        world.endpoint.answer([Answer::Status(400)]);
        for id in ids {
            world.publish(&[event(id)], Duration::from_hours(24)).await;
        }
        while world.visible(QueueName::Deliveries).await > 0
            || world.visible(QueueName::DeadLetters).await > 0
        {
            world.deliver_all().await;
            world.bury().await;
            world.clock.advance(Duration::from_mins(15));
        }
    }
    world.endpoint.take();
    world.clock.advance(Duration::from_hours(1));
    world
}

/// Asks for everything again at once, and returns the replay's id.
pub(crate) async fn ask(world: &World) -> String {
    world.replay(json!({ "ratePerSecond": 1000 })).await
}

/// One run of wake, and two minutes after it everything that it sent.
pub(crate) async fn step(world: &World, left: LeftWork) -> Result<(), WakeError> {
    world.endpoint.answer([Answer::Status(200)]);
    let woken = world.try_wake_over(left).await;
    world.clock.advance(Duration::from_mins(2));
    world.deliver_all().await;
    woken.map(drop)
}

/// Replays everything at this rate until it is done, and checks that every event arrived.
async fn check(faults: &Faults, label: &str) {
    let world = world(faults).await;
    let id = ask(&world).await;
    let mut arrived = BTreeSet::new();
    for _ in 0..10 {
        // A run that fails is the next one's to make good.
        drop(step(&world, LeftWork::Old).await);
        for request in world.endpoint.take() {
            let event: Value = serde_json::from_str(&request.body).expect("an event");
            arrived.insert(event["id"].as_str().expect("an id").to_owned());
        }
    }
    let record = world.replayed(&id).await;
    assert_eq!(
        (record.state, record.progress.failed),
        (ReplayState::Done, 0),
        "{label}"
    );
    assert_eq!(arrived, IDS.map(str::to_owned).into(), "{label}");
}

#[tokio::test]
async fn replay_passes_over_no_event_whatever_fails_once() {
    let quiet = Faults::none();
    check(&quiet, "nothing fails").await;
    let before = {
        let quiet = Faults::none();
        world(&quiet).await;
        [
            quiet.queues.effects(),
            quiet.state.effects(),
            quiet.bucket.effects(),
        ]
    };
    for fault in [
        CallFault::Before(ErrorKind::Other),
        CallFault::After(ErrorKind::Other),
    ] {
        for (port, before) in before.into_iter().enumerate() {
            for number in 0..8 {
                let plan = FaultPlan::nth(before + number, fault.clone());
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
