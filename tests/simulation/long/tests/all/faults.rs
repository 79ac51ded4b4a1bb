//! A fault at every effect: whatever fails, before it happened or after, no event is lost.

use std::collections::BTreeSet;
use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_services::LeftWork;
use posthaste_simulation::{Answer, Faults, World, event, start};
use posthaste_testkit::faulty::at_every_effect;
use posthaste_wake::WakeError;
use serde_json::json;

pub(crate) const EVENTS: [&str; 3] = ["arrives", "refused", "waits"];

/// The steps in which each event comes to its end where nothing fails.
const STEPS: usize = 14;

pub(crate) fn answer(body: &str, at: Timestamp) -> u16 {
    match body {
        _ if body.contains("refused") => 400,
        _ if body.contains("waits") && at < start() + Duration::from_mins(30) => 500,
        _ => 200,
    }
}

/// Publishes three events, of which one arrives, one is refused and one waits an hour first.
pub(crate) async fn begin(world: &World) {
    world
        .subscribe(json!({ "retryPolicy": { "schedule": ["PT10S", "PT1H"] } }))
        .await;
    world
        .publish(&EVENTS.map(event), Duration::from_hours(24))
        .await;
}

/// One invocation of each function, and a quarter of an hour that passes.
pub(crate) async fn step(world: &World, left: LeftWork) -> Result<(), WakeError> {
    world.endpoint.answer([Answer::By(answer)]);
    world.deliver().await;
    let woken = world.try_wake_over(left).await;
    world.bury().await;
    world.clock.advance(Duration::from_mins(15));
    woken.map(drop)
}

async fn run(faults: &Faults) -> BTreeSet<&'static str> {
    let world = World::with(faults);
    begin(&world).await;
    let mut arrived = BTreeSet::new();
    for _ in 0..STEPS {
        if let Err(error) = step(&world, LeftWork::Old).await {
            assert!(faults.state.faults() > 0, "{error}");
        }
    }
    for request in world.endpoint.take() {
        arrived.extend(
            ["arrives", "waits"]
                .into_iter()
                .filter(|id| request.body.contains(id)),
        );
    }
    for (_, object) in world.buried().await {
        let text = String::from_utf8(object.to_vec()).expect("text");
        arrived.extend(EVENTS.into_iter().filter(|id| text.contains(id)));
    }
    arrived
}

#[tokio::test]
async fn every_event_survives_whichever_effect_fails() {
    let all = BTreeSet::from(EVENTS);
    for (part, faults_of) in Faults::PARTS {
        at_every_effect(async |plan, place| {
            assert_eq!(run(&faults_of(plan)).await, all, "{part}: {place}");
        })
        .await;
    }
}
