//! A second endpoint: used while the first is down, and left again when that is well.

use std::time::Duration;

use posthaste_core::circuit::{DeliveryTarget, TargetPhase};
use posthaste_core::model::SendFailure;
use posthaste_simulation::{Answer, World, event, start};
use serde_json::json;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

const REFUSED: Answer = Answer::Failure(SendFailure::Socket);
const WELL: Answer = Answer::Status(204);

/// A subscription with two endpoints whose first does not take connections, ten minutes after it
/// began not to.
async fn first_is_down(second: Answer) -> World {
    let world = World::new();
    world.chance.hold(0.0);
    let endpoint = json!({ "url": "https://first.example.com/", "fallbackUrl": "https://second.example.com/" });
    world.subscribe(json!({ "endpoint": endpoint })).await;
    answer(&world, REFUSED, second);
    for number in 0..10 {
        publish(&world, &number.to_string()).await;
    }
    world.pass(10 * MINUTE).await;
    assert_eq!(
        phase(&world, "https://first.example.com:443"),
        Some(TargetPhase::Retry)
    );
    world
}

fn answer(world: &World, first: Answer, second: Answer) {
    world.endpoint.answer_at("first", first);
    world.endpoint.answer_at("second", second);
}

async fn publish(world: &World, id: &str) {
    world.publish(&[event(id)], DAY).await;
    world.deliver_all().await;
}

fn phase(world: &World, link: &str) -> Option<TargetPhase> {
    world
        .links
        .condition(&DeliveryTarget::parse(link).unwrap())
        .map(|it| it.phase)
}

/// The number of requests to each since the last call.
fn sent(world: &World) -> (usize, usize) {
    let requests = world.endpoint.take();
    let first = requests
        .iter()
        .filter(|request| request.url.contains("first"))
        .count();
    (first, requests.len() - first)
}

/// While the first is down, everything goes to the second, and the first alone is probed.
#[tokio::test]
async fn fallback_gets_everything_while_the_first_is_down() {
    let world = first_is_down(WELL).await;
    // The first ten and three of them again; then all ten went to the second.
    assert_eq!((sent(&world), world.is_at_rest().await), ((13, 10), true));
    publish(&world, "new").await;
    assert_eq!(sent(&world), (0, 1));
    // A hold ends at 13 minutes, and what is published next asks; it goes to the second after that.
    world.clock.advance_to(start() + 14 * MINUTE);
    publish(&world, "asks").await;
    assert_eq!(sent(&world), (1, 0));
    world.pass(2 * MINUTE).await;
    assert_eq!((sent(&world), world.is_at_rest().await), ((0, 1), true));
}

#[tokio::test]
async fn once_the_first_is_well_everything_goes_there_again() {
    let world = first_is_down(WELL).await;
    sent(&world);
    answer(&world, WELL, WELL);
    world.clock.advance_to(start() + 14 * MINUTE);
    for number in 0..5 {
        publish(&world, &number.to_string()).await;
        world.clock.advance(MINUTE);
    }
    assert_eq!((sent(&world), world.is_at_rest().await), ((5, 0), true));
}

/// While both are down events are held, and they go out when either is well.
#[tokio::test]
async fn events_are_held_while_both_endpoints_are_down() {
    for (first, second) in [(WELL, REFUSED), (REFUSED, WELL)] {
        let world = first_is_down(REFUSED).await;
        world.pass(10 * MINUTE).await;
        assert_eq!(
            phase(&world, "https://second.example.com:443"),
            Some(TargetPhase::Retry)
        );
        // Some wait for their own next attempt.
        assert!(!world.held().await.is_empty());
        // Each is asked at its own time, and by no more than one.
        let (to_first, to_second) = sent(&world);
        assert!(
            to_first <= 10 + 4 && to_second <= 10 + 4,
            "{to_first} {to_second}"
        );
        let is_first = matches!(first, Answer::Status(_));
        answer(&world, first, second);
        // Longer than what asked often waits for its next attempt.
        world.pass_by(10 * SECOND, 65 * MINUTE).await;
        let (to_first, to_second) = sent(&world);
        let (well, down) = if is_first {
            (to_first, to_second)
        } else {
            (to_second, to_first)
        };
        assert_eq!((well, world.is_at_rest().await), (10, true), "{is_first}");
        assert!(down <= 65 / 15 + 2, "{is_first} {down}");
    }
}
