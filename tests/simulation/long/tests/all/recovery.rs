//! A backlog after an outage: oldest first, no herd, and what is new does not wait behind it.

use std::collections::HashSet;
use std::time::Duration;

use posthaste_core::circuit::{DeliveryTarget, TargetPhase};
use posthaste_core::model::{SendFailure, Timestamp};
use posthaste_ports::Clock;
use posthaste_simulation::{Answer, World, event};
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

/// Time of the endpoint for an answer.
const ANSWER_TIME: Duration = Duration::from_millis(50);

/// Held deliveries.
const BACKLOG: usize = 1_000;

/// Deliveries that are new while those drain.
const NEW: usize = 30;

/// The backlog is published in so many minutes.
const PUBLISHED_IN: usize = 10;

/// All but the one that asks go in order of the minute in which they expire. Within it, and where
/// the ramp sends some back, others pass.
const DISPLACED_MAX: usize = 4 * BACKLOG / PUBLISHED_IN;

/// New deliveries may be sent back by the ramp to its end, which is 30 s after it began, and are
/// behind a pass then.
const NEW_WAITS_MAX: Duration = Duration::from_secs(35);

/// The rest of the hold in which the endpoint is well again, and some minutes in which twice as
/// many go in each pass.
const DRAINED_IN_MAX: Duration = Duration::from_mins(10 + 5);

fn target() -> DeliveryTarget {
    DeliveryTarget::parse("https://billing.example.com:443").unwrap()
}

/// A world in which `BACKLOG` deliveries are held, `old-0` the oldest, of an endpoint that is down.
async fn backlog() -> World {
    let world = World::new();
    world.subscribe(json!({})).await;
    world
        .endpoint
        .answer([Answer::Failure(SendFailure::Socket)]);
    for minute in 0..PUBLISHED_IN {
        for number in 0..BACKLOG / PUBLISHED_IN {
            let id = format!("old-{}", minute * BACKLOG / PUBLISHED_IN + number);
            world.publish(&[event(&id)], DAY).await;
        }
        world.deliver_all().await;
        world.pass_by(10 * SECOND, MINUTE).await;
    }
    world
}

/// Seconds with what may be at once so long after recovery began, as the ramp has it.
fn allowed(since: Timestamp, now: Timestamp) -> usize {
    let steps = now.since(since).as_secs() / 5;
    if steps < 6 { 1 << steps } else { usize::MAX }
}

fn id(body: &str) -> String {
    serde_json::from_str::<Value>(body).unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// A backlog drains oldest first on a ramp, and new events do not wait behind it.
#[tokio::test]
async fn backlog_drains_oldest_first_on_a_ramp_beside_new_events() {
    let world = backlog().await;
    assert_eq!(world.held_deliveries().await.len(), BACKLOG);
    assert!(world.endpoint.take().len() < 30);
    world.endpoint.answer([Answer::Late(ANSWER_TIME, 204)]);
    let mut waited = Vec::new();
    let begin = world.clock.now();
    let drain = async {
        let mut round = 0;
        while !world.held().await.is_empty() {
            world.wake().await;
            for _ in 0..10 {
                world.clock.sleep(SECOND).await;
            }
            round += 1;
            assert!(round < 100, "it never drains");
        }
    };
    let mut is_recovering = false;
    let deliver = async || {
        let condition = world.links.condition(&target());
        world.deliver().await;
        let most = world.endpoint.most_at_once();
        if let Some(it) = condition.filter(|it| it.phase == TargetPhase::Recovering) {
            assert!(
                most <= allowed(it.since, world.clock.now()),
                "{most} since {it:?}"
            );
            is_recovering = true;
        }
        if is_recovering && waited.len() < NEW {
            world
                .publish(&[event(&format!("new-{}", waited.len()))], DAY)
                .await;
            waited.push(world.clock.now());
        }
    };
    world
        .in_time(Box::pin(world.deliver_beside(drain, deliver)))
        .await;
    assert_eq!(waited.len(), NEW);
    let drained_in = world.clock.now().since(begin);
    world.in_time(world.deliver_all()).await;
    world.pass(2 * MINUTE).await;
    let requests = world.endpoint.take();
    let ids: Vec<_> = requests.iter().map(|request| id(&request.body)).collect();
    let distinct: HashSet<_> = ids.iter().cloned().collect();
    assert_eq!((ids.len(), distinct.len()), (BACKLOG + NEW, BACKLOG + NEW));
    assert!(world.is_at_rest().await);
    assert!(drained_in <= DRAINED_IN_MAX, "{drained_in:?}");
    let old: Vec<usize> = ids
        .iter()
        .filter_map(|id| id.strip_prefix("old-")?.parse().ok())
        .collect();
    // The first one asked for the others, and was drawn.
    let displaced = old
        .iter()
        .enumerate()
        .skip(1)
        .map(|(place, number)| place.abs_diff(*number))
        .max()
        .unwrap();
    assert!(displaced <= DISPLACED_MAX, "{displaced}");
    for (number, published_at) in waited.iter().enumerate() {
        let request = requests
            .iter()
            .find(|it| id(&it.body) == format!("new-{number}"))
            .unwrap();
        let waited = request.at.since(*published_at);
        assert!(waited <= NEW_WAITS_MAX, "new-{number} waited {waited:?}");
    }
}
