//! An endpoint that refuses every event: after ten it gets no more, what waits stays, and the first
//! success lets it go.

use std::time::Duration;

use posthaste_core::circuit::{DeliveryTarget, TargetPhase};
use posthaste_core::model::OutcomeName;
use posthaste_ports::Clock;
use posthaste_simulation::{Answer, Letter, World, event, start};
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const MOMENT: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_hours(24);

const BILLING: &str = "https://billing.example.com:443 orders.billing";

async fn world(settings: Value, status: u16) -> World {
    let world = World::new();
    world.chance.hold(0.0);
    world.subscribe(settings).await;
    world.endpoint.answer([Answer::Status(status)]);
    world
}

/// Publishes an event of each number, a message and an invocation for each. The events of one
/// moment would have one key.
async fn publish(world: &World, numbers: std::ops::Range<u32>) {
    for number in numbers {
        world.clock.advance(MOMENT);
        world.publish(&[event(&number.to_string())], DAY).await;
        world.deliver().await;
    }
}

fn condition(world: &World) -> Option<(TargetPhase, u32)> {
    let target = DeliveryTarget::parse(BILLING).unwrap();
    world.links.condition(&target).map(|it| (it.phase, it.hold))
}

/// Each client error that speaks of the endpoint, and each that speaks of the event where nothing
/// arrives.
#[tokio::test]
async fn endpoint_that_refuses_everything_gets_ten_requests() {
    for status in [400, 401, 402, 403, 404, 405, 409, 413, 415, 422, 451, 499] {
        let world = world(json!({}), status).await;
        publish(&world, 0..15).await;
        assert_eq!(world.endpoint.take().len(), 10, "{status}");
        assert_eq!(
            condition(&world),
            Some((TargetPhase::Glitch, 1)),
            "{status}"
        );
    }
}

/// A 410 that does not disable the subscription is a refusal like another.
#[tokio::test]
async fn endpoint_that_is_gone_for_every_event_gets_ten_requests() {
    let keeps = json!({ "retryPolicy": { "disableOnGone": false } });
    let world = world(keeps, 410).await;
    publish(&world, 0..15).await;
    assert_eq!(world.endpoint.take().len(), 10);
    assert_eq!(condition(&world), Some((TargetPhase::Glitch, 1)));
}

#[tokio::test]
async fn refusals_that_speak_of_events_count_where_nothing_arrives() {
    let refused_after = async |status, rest| {
        let world = world(json!({}), 204).await;
        publish(&world, 0..1).await;
        world.clock.advance(rest);
        world.endpoint.take();
        world.endpoint.answer([Answer::Status(status)]);
        publish(&world, 1..21).await;
        world.endpoint.take().len()
    };
    for status in [400, 413, 422] {
        assert_eq!(refused_after(status, 59 * SECOND).await, 20, "{status}");
        assert_eq!(refused_after(status, MINUTE + SECOND).await, 10, "{status}");
    }
    // A key that has just been taken back.
    assert_eq!(refused_after(401, SECOND).await, 10);
}

#[tokio::test]
async fn success_ends_a_row_of_refusals() {
    let world = world(json!({}), 404).await;
    publish(&world, 0..9).await;
    world.endpoint.answer([Answer::Status(204)]);
    publish(&world, 9..10).await;
    world.endpoint.answer([Answer::Status(404)]);
    publish(&world, 10..19).await;
    assert_eq!((world.endpoint.take().len(), condition(&world)), (19, None));
}

/// Two events that are refused again and again may be at fault themselves.
#[tokio::test]
async fn refusals_of_two_events_stop_nothing() {
    let often = json!({ "retryPolicy": { "schedule": ["PT10S"] } });
    let world = world(often, 409).await;
    publish(&world, 0..2).await;
    world.pass(2 * MINUTE).await;
    assert_eq!((world.endpoint.take().len(), condition(&world)), (26, None));
    // The third event makes it the endpoint.
    publish(&world, 2..3).await;
    assert_eq!(condition(&world), Some((TargetPhase::Glitch, 1)));
}

fn refused_letter(id: u32) -> Letter {
    Letter {
        id: id.to_string(),
        reason: "UndeliverableDueToClientError".to_owned(),
        attempts: 1,
        outcome: OutcomeName::Unauthorized.to_string(),
    }
}

/// An event that was refused before stays a dead letter, each probe that is refused becomes one,
/// and what waits goes out with the first success.
#[tokio::test]
async fn success_of_a_probe_releases_what_was_not_refused() {
    let world = world(json!({}), 401).await;
    publish(&world, 0..25).await;
    assert_eq!(world.endpoint.take().len(), 10);
    let mut probes = Vec::new();
    for minute in 1..=12 {
        world.pass(MINUTE).await;
        let asked = world.endpoint.take();
        probes.extend(asked.iter().map(|_| minute));
    }
    assert_eq!(
        (probes, condition(&world)),
        (vec![1, 2, 3], Some((TargetPhase::Retry, 1)))
    );
    assert_eq!(world.held_deliveries().await.len(), 12);
    world.endpoint.answer([Answer::Status(204)]);
    world.pass(5 * MINUTE).await;
    let arrived = world.endpoint.take();
    assert_eq!(arrived.len(), 12);
    assert!(arrived[0].at >= start() + 13 * MINUTE);
    assert!(world.is_at_rest().await);
    let letters = world.letters().await;
    assert_eq!(letters.len(), 13);
    assert!(
        (0..10).all(|id| letters.contains(&refused_letter(id))),
        "{letters:?}"
    );
    assert!(
        letters
            .iter()
            .all(|letter| letter.outcome == "Unauthorized")
    );
}

/// The state is stored: after a restart nothing is sent before the probe, and a refused probe is
/// still no sign that all is well.
#[tokio::test]
async fn hold_for_refusals_outlives_a_restart() {
    let world = world(json!({}), 403).await;
    publish(&world, 0..15).await;
    world.endpoint.take();
    let now = world.clock.now();
    let world = World::over(world.end().await, now);
    world.chance.hold(0.0);
    world.endpoint.answer([Answer::Status(403)]);
    world.pass(59 * SECOND).await;
    assert_eq!(world.endpoint.take().len(), 0);
    world.pass(SECOND).await;
    assert_eq!(world.endpoint.take().len(), 1);
    assert_eq!(condition(&world), Some((TargetPhase::Glitch, 2)));
}
