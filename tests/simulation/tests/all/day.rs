//! A day in the life of an event whose endpoint never recovers, to the second.

use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_ports::{Clock, QueueName};
use posthaste_simulation::{Answer, World, event, start};
use serde_json::json;

const MINUTE: Duration = Duration::from_mins(1);

/// Moves the clock in small steps, works on due messages, and runs wake once a minute.
async fn pass(world: &World, length: Duration) {
    let end = world.clock.now() + length;
    while world.clock.now() < end {
        for _ in 0..12 {
            world.deliver_all().await;
            world.clock.advance(Duration::from_secs(5));
        }
        world.wake().await;
        if world.visible(QueueName::DeadLetters).await > 0 {
            world.bury().await;
        }
    }
}

fn minutes(times: &[Timestamp]) -> Vec<u64> {
    times
        .iter()
        .map(|at| at.since(start()).as_secs() / 60)
        .collect()
}

/// Eleven attempts fit into a day, and in place of the twelfth there is a dead letter.
#[tokio::test]
async fn eleven_attempts_fit_into_a_day_and_then_a_dead_letter_comes() {
    let world = World::new();
    // Its dead letter would be sent again.
    let off = json!({ "recovery": { "enabled": false } });
    world.subscribe(off).await;
    world.endpoint.answer([Answer::Status(500)]);
    world.publish(&[event("e")], Duration::from_hours(24)).await;
    pass(&world, Duration::from_hours(48)).await;
    let attempts: Vec<_> = world
        .endpoint
        .take()
        .iter()
        .map(|request| request.at)
        .collect();
    assert_eq!(attempts.len(), 11, "{:?}", minutes(&attempts));
    for pair in attempts
        .windows(2)
        .zip(posthaste_core::model::SCHEDULE_DEFAULT)
    {
        let ([earlier, later], step) = pair else {
            unreachable!("windows of two")
        };
        let waited = later.since(*earlier);
        let slack = step / 10 + 2 * MINUTE;
        assert!(
            waited >= step && waited <= step + slack,
            "{waited:?} after a step of {step:?}"
        );
    }
    let buried = world.buried().await;
    assert_eq!(buried.len(), 1, "{buried:?}");
    let text = std::str::from_utf8(&buried[0].1).unwrap();
    assert!(
        text.contains(r#""deadletterreason":"TimeToLiveExceeded","deliveryattempts":11"#),
        "{text}"
    );
    assert!(
        buried[0].0.starts_with("ORDERS/BILLING/2023/11/"),
        "{}",
        buried[0].0
    );
    assert_eq!(
        (
            world.parked().await.len(),
            world.delayed(QueueName::Deliveries).await
        ),
        (0, 0)
    );
}

#[tokio::test]
async fn a_time_to_live_of_half_an_hour_leaves_six_attempts() {
    let world = World::new();
    world.subscribe(json!({})).await;
    world.endpoint.answer([Answer::Status(500)]);
    world.publish(&[event("e")], Duration::from_mins(30)).await;
    pass(&world, Duration::from_hours(3)).await;
    assert_eq!(world.endpoint.take().len(), 6);
    assert_eq!(world.buried().await.len(), 1);
}
