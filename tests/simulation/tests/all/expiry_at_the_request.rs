//! Time to live is looked at once more right before a request begins: it may have waited for its
//! lane, its turn or the other half of its batch.

use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_deliver::DeliverSettings;
use posthaste_simulation::{Answer, Faults, Letter, World, event, start};
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);
const INVOCATION: Duration = Duration::from_mins(2);

/// A world in which one request is open at a time, and each takes ten seconds.
async fn one_at_a_time(subscription: Value) -> World {
    let one = DeliverSettings {
        requests_per_link_start: 1,
        requests_per_link_max: 1,
        ..DeliverSettings::default()
    };
    let world = World::bounded(&Faults::none(), one);
    world.subscribe(subscription).await;
    world.endpoint.answer([Answer::After(10 * SECOND, 204)]);
    world
}

/// The time at which each request began, in seconds, and the number of its events.
fn began(world: &World) -> Vec<(u64, usize)> {
    let events = |body: &str| match serde_json::from_str(body).expect("JSON") {
        Value::Array(events) => events.len(),
        _ => 1,
    };
    let requests = world.endpoint.take();
    requests
        .iter()
        .map(|request| (request.at.since(start()).as_secs(), events(&request.body)))
        .collect()
}

fn expired(letters: &[Letter], attempts: u64, outcome: &str) -> Vec<String> {
    let ids = letters.iter().map(|letter| {
        let Letter { id, reason, .. } = letter;
        assert_eq!(
            (&**reason, letter.attempts, &*letter.outcome),
            ("TimeToLiveExceeded", attempts, outcome)
        );
        id.clone()
    });
    ids.collect()
}

#[tokio::test]
async fn event_that_expires_waiting_for_its_lane_is_not_sent() {
    let world = one_at_a_time(json!({})).await;
    for number in 0..4 {
        world
            .publish(&[event(&number.to_string())], 15 * SECOND)
            .await;
    }
    world.deliver_within(INVOCATION).await;
    assert_eq!(began(&world), [(0, 1), (10, 1)]);
    let letters = world.letters().await;
    assert_eq!(expired(&letters, 0, "Probation").len(), 2);
}

#[tokio::test]
async fn event_that_expires_as_its_request_would_begin_is_not_sent() {
    let world = one_at_a_time(json!({})).await;
    for number in 0..3 {
        world
            .publish(&[event(&number.to_string())], 10 * SECOND)
            .await;
    }
    world.deliver_within(INVOCATION).await;
    assert_eq!(began(&world), [(0, 1)]);
    assert_eq!(world.letters().await.len(), 2);
}

#[tokio::test]
async fn only_expired_events_of_a_waiting_batch_are_not_sent() {
    let world = one_at_a_time(json!({ "batching": { "maxEventsPerBatch": 4 } })).await;
    let events = |ids: [&str; 2]| ids.map(event).to_vec();
    world.publish(&events(["a", "b"]), 60 * SECOND).await;
    world.publish(&events(["c", "d"]), 60 * SECOND).await;
    world
        .publish(&events(["short-1", "short-2"]), 5 * SECOND)
        .await;
    world
        .publish(&events(["long-1", "long-2"]), 60 * SECOND)
        .await;
    world.deliver_within(INVOCATION).await;
    assert_eq!(began(&world), [(0, 4), (10, 2)]);
    assert_eq!(
        expired(&world.letters().await, 0, "Probation"),
        ["short-1", "short-2"]
    );
}

#[tokio::test]
async fn event_that_expires_waiting_for_its_turn_is_not_sent() {
    let world = World::new();
    let rate =
        json!({ "endpoint": { "url": "https://billing.example.com/", "maxRequestsPerSecond": 1 } });
    world.subscribe(rate).await;
    let events: Vec<_> = (0..10).map(|number| event(&number.to_string())).collect();
    world.publish(&events, 4 * SECOND).await;
    for _ in 0..10 {
        world.in_time(world.deliver_within(INVOCATION)).await;
        world.clock.advance(SECOND);
    }
    let requests = world.endpoint.take();
    assert!(
        requests
            .iter()
            .all(|request| request.at < start() + 4 * SECOND),
        "{requests:?}"
    );
    assert_eq!(world.letters().await.len() + requests.len(), 10);
}

/// Takes ten seconds and refuses what holds the bad event.
fn refuses(body: &str, _at: Timestamp) -> u16 {
    if body.contains("bad") { 400 } else { 204 }
}

#[tokio::test]
async fn a_half_that_expires_before_it_is_sent_has_had_its_attempt() {
    let world = one_at_a_time(json!({ "batching": { "maxEventsPerBatch": 4 } })).await;
    world
        .endpoint
        .answer([Answer::After(10 * SECOND, 400), Answer::By(refuses)]);
    world
        .publish(&["bad", "good-1", "good-2"].map(event), 10 * SECOND)
        .await;
    world.deliver_within(INVOCATION).await;
    assert_eq!(began(&world), [(0, 3)]);
    assert_eq!(
        expired(&world.letters().await, 1, "BadRequest"),
        ["bad", "good-1", "good-2"]
    );
}
