//! A clock that is set back, by a time server or an operator: nothing waits for as long as it
//! jumped.

use std::time::Duration;

use posthaste_ports::{Clock, QueueName};
use posthaste_simulation::{Answer, World, event};
use serde_json::json;

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// A world in which an event was tried twice and waits twenty minutes or two more for its next
/// attempt, and one was tried once and waits ten seconds.
async fn waiting() -> World {
    let world = World::new();
    let schedule = json!({ "schedule": ["PT10S", "PT20M"], "maxDeliveryAttempts": 3 });
    world.subscribe(json!({ "retryPolicy": schedule })).await;
    // A status that says nothing about the endpoint: its deliveries do not pause after it.
    world.endpoint.answer([Answer::Status(422)]);
    world.publish(&[event("parked")], DAY).await;
    world.deliver_all().await;
    world.clock.advance(Duration::from_secs(15));
    world.deliver_all().await;
    world.publish(&[event("delayed")], DAY).await;
    world.deliver_all().await;
    world.wake().await;
    assert_eq!(
        (world.endpoint.take().len(), world.parked().await.len()),
        (3, 1)
    );
    world
}

/// Runs wake once a minute, and deliver. Answers after how many minutes each request began.
async fn requests(world: &World, minutes: u64) -> Vec<u64> {
    let mut begun = Vec::new();
    for minute in 0..minutes {
        world.wake().await;
        world.deliver_all().await;
        begun.extend(world.endpoint.take().iter().map(|_| minute));
        world.clock.advance(MINUTE);
    }
    begun
}

/// Events that wait, wait no longer than their schedule allows.
#[tokio::test]
async fn clock_set_back_delays_events_no_longer_than_the_schedule() {
    for jump in [6 * HOUR, 30 * DAY] {
        let world = waiting().await;
        world.clock.set_back(jump);
        let begun = requests(&world, 30).await;
        // The one in the queue goes when it would have; what is parked after twenty minutes, and
        // what rounding adds.
        assert_eq!(begun.len(), 3, "{begun:?}");
        assert_eq!(begun[0], 1);
        assert!(
            (20..=24).contains(&begun[1]) && (20..=24).contains(&begun[2]),
            "{begun:?}"
        );
        let dead = world.visible(QueueName::DeadLetters).await
            + world.delayed(QueueName::DeadLetters).await;
        assert_eq!((world.parked().await.len(), dead), (0, 2));
    }
}

#[tokio::test]
async fn a_process_that_starts_after_that_sees_it_by_what_wake_noted() {
    for jump in [6 * HOUR, 30 * DAY] {
        let world = waiting().await;
        world.clock.set_back(jump);
        world.clock.advance(HOUR);
        let now = world.clock.now();
        let world = World::over(world.end().await, now);
        world.endpoint.answer([Answer::Status(422)]);
        let begun = requests(&world, 45).await;
        // The queue does not know any more how long its message was to wait: as long as a queue
        // delays, at most.
        assert_eq!(begun.len(), 3, "{begun:?}");
        assert!(
            begun[0] <= 15 && (20..=24).contains(&begun[1]) && begun[2] <= 40,
            "{begun:?}"
        );
        assert_eq!(world.parked().await.len(), 0);
    }
}

#[tokio::test]
async fn held_events_of_a_down_endpoint_are_probed_by_the_next_look() {
    let world = World::new();
    world.subscribe(json!({})).await;
    world.endpoint.answer([Answer::Status(500)]);
    for n in 0..12 {
        world.publish(&[event(&format!("e{n}"))], DAY).await;
    }
    // Three Glitches, then Retry.
    requests(&world, 10).await;
    assert!(!world.held().await.is_empty());
    world.clock.set_back(6 * HOUR);
    world.endpoint.answer([Answer::Status(204)]);
    requests(&world, 45).await;
    assert_eq!(
        (world.held().await.len(), world.parked().await.len()),
        (0, 0)
    );
}

/// An event in line for a rate is not behind those of the clock before it was set back.
#[tokio::test]
async fn event_in_line_for_a_rate_is_not_behind_the_old_clock() {
    let world = World::new();
    // One request a minute.
    let endpoint =
        json!({ "url": "https://billing.example.com/hooks", "maxRequestsPerSecond": 0.02 });
    world.subscribe(json!({ "endpoint": endpoint })).await;
    for id in ["1", "2", "3"] {
        world.publish(&[event(id)], DAY).await;
    }
    world.deliver_all().await;
    world.clock.set_back(HOUR);
    for id in ["4", "5", "6"] {
        world.publish(&[event(id)], DAY).await;
    }
    world.deliver_all().await;
    assert_eq!(
        (world.endpoint.take().len(), world.parked().await.len()),
        (2, 0)
    );
    world.pass(6 * MINUTE).await;
    assert_eq!(
        (world.endpoint.take().len(), world.is_at_rest().await),
        (4, true)
    );
}
