//! A fault at every effect: whatever fails, before it happened or after, no event is lost.

use std::collections::BTreeSet;
use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_simulation::{Answer, Faults, World, event, start};
use posthaste_testkit::faulty::at_every_effect;
use serde_json::json;

fn answer(body: &str, at: Timestamp) -> u16 {
    match body {
        _ if body.contains("refused") => 400,
        _ if body.contains("waits") && at < start() + Duration::from_mins(30) => 500,
        _ => 200,
    }
}

/// Publishes three events, of which one arrives, one is refused and one waits an hour first; then
/// lets time pass.
async fn run(faults: &Faults) -> BTreeSet<&'static str> {
    let world = World::with(faults);
    world
        .subscribe(json!({ "retryPolicy": { "schedule": ["PT10S", "PT1H"] } }))
        .await;
    world.endpoint.answer([Answer::By(answer)]);
    world
        .publish(
            &[event("arrives"), event("refused"), event("waits")],
            Duration::from_hours(24),
        )
        .await;
    let mut arrived = BTreeSet::new();
    for _ in 0..14 {
        world.deliver().await;
        if let Err(error) = world.try_wake().await {
            assert!(faults.state.faults() > 0, "{error}");
        }
        world.bury().await;
        world.clock.advance(Duration::from_mins(15));
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
        arrived.extend(
            ["refused", "waits", "arrives"]
                .into_iter()
                .filter(|id| text.contains(id)),
        );
    }
    arrived
}

#[tokio::test]
async fn nothing_is_lost_whichever_effect_fails() {
    let all = BTreeSet::from(["arrives", "refused", "waits"]);
    for (part, faults_of) in Faults::PARTS {
        at_every_effect(async |plan, place| {
            assert_eq!(run(&faults_of(plan)).await, all, "{part}: {place}");
        })
        .await;
    }
}
