//! The retry schedule to the second, over the whole life of an event: every attempt at its exact
//! time, without jitter and with the most there is. A wait longer than the queue can delay ends
//! with the minute in which it ends by the schedule.

use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_ports::{Clock, QueueName};
use posthaste_simulation::{Answer, World, event, start};
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);

/// The course of an event whose endpoint always answers 500, in seconds since it was published.
#[derive(Debug, PartialEq, Eq)]
struct Life {
    attempts: Vec<u64>,
    /// The time at which it was in the dead-letter bucket.
    buried: Option<u64>,
    reason: String,
    counted: Value,
}

/// Lets time pass to the next moment at which something could happen: a second while something is
/// delayed in a queue, else the next full minute, at which wake runs.
async fn pass(world: &World) {
    let full_minute =
        Timestamp::from_millis((world.clock.now().minute_rounded_down() + 1) * 60_000);
    let rest = full_minute.since(world.clock.now());
    let is_delayed = world.delayed(QueueName::Deliveries).await
        + world.delayed(QueueName::DeadLetters).await
        > 0;
    let step = if is_delayed { SECOND.min(rest) } else { rest };
    world.clock.advance(step);
    if step == rest {
        world.wake().await;
    }
}

/// Lives an event's life of at most `time_to_live`, with this share of the most jitter.
async fn live(settings: Value, time_to_live: Duration, jitter: f64) -> Life {
    let world = World::new();
    world.subscribe(settings).await;
    world.chance.hold(jitter);
    world.endpoint.answer([Answer::Status(500)]);
    world.publish(&[event("e")], time_to_live).await;
    let since = |at: Timestamp| at.since(start()).as_secs();
    let end = world.clock.now() + Duration::from_hours(48);
    let mut buried = None;
    while buried.is_none() && world.clock.now() < end {
        world.deliver_all().await;
        if world.visible(QueueName::DeadLetters).await > 0 {
            world.bury().await;
            buried = Some(since(world.clock.now()));
        }
        pass(&world).await;
    }
    let objects = world.buried().await;
    let object: Value = serde_json::from_slice(&objects[0].1).expect("a dead-letter object");
    Life {
        attempts: world
            .endpoint
            .take()
            .iter()
            .map(|request| since(request.at))
            .collect(),
        buried,
        reason: object[0]["deadletterreason"]
            .as_str()
            .expect("a reason")
            .to_owned(),
        counted: object[0]["deliveryattempts"].clone(),
    }
}

async fn check(
    settings: Value,
    time_to_live: Duration,
    jitter: f64,
    attempts: &[u64],
    buried: u64,
    reason: &str,
) {
    let expected = Life {
        attempts: attempts.to_vec(),
        buried: Some(buried),
        reason: reason.to_owned(),
        counted: json!(attempts.len()),
    };
    assert_eq!(live(settings, time_to_live, jitter).await, expected);
}

const DAY: Duration = Duration::from_hours(24);
const EXPIRED: &str = "TimeToLiveExceeded";

/// The document: "10 seconds, 30 seconds, 1 minute, 5 minutes, 10 minutes, 30 minutes, 1 hour, 3
/// hours, 6 hours, every 12 hours up to 24 hours". The twelfth attempt would fall due at 125,200 s,
/// after the day; five minutes later the event is in the bucket.
#[tokio::test]
async fn eleven_attempts_fit_into_24_hours_and_the_twelfth_expires() {
    let attempts = [
        0, 10, 40, 100, 400, 1000, 2800, 6400, 17_200, 38_800, 82_000,
    ];
    check(json!({}), DAY, 0.0, &attempts, 125_200 + 300, EXPIRED).await;
}

/// The document: "a small randomisation is added to all retry steps". Here it is at most 10 % or 3
/// seconds, whichever is more, and at most 5 minutes.
#[tokio::test]
async fn the_most_jitter_leaves_eleven_attempts_in_a_day() {
    let attempts = [
        0, 13, 46, 112, 442, 1102, 3100, 7000, 18_100, 40_000, 83_500,
    ];
    check(json!({}), DAY, 1.0, &attempts, 127_000 + 300, EXPIRED).await;
}

/// The example of the English document: with a time to live of 30 minutes and 10 attempts, at most
/// six attempts are made before the event expires, so that the number has no effect.
#[tokio::test]
async fn six_attempts_are_made_within_a_time_to_live_of_30_minutes() {
    let attempts = [0, 10, 40, 100, 400, 1000];
    let settings = json!({ "retryPolicy": { "maxDeliveryAttempts": 10 } });
    check(
        settings,
        Duration::from_mins(30),
        0.0,
        &attempts,
        2800 + 300,
        EXPIRED,
    )
    .await;
}

/// The document: "an event is dropped when one of the limits of the retry policy is reached". The
/// attempts end first here.
#[tokio::test]
async fn greatest_number_of_attempts_ends_an_event_before_expiry() {
    let settings = json!({ "retryPolicy": { "maxDeliveryAttempts": 3 } });
    check(
        settings,
        DAY,
        0.0,
        &[0, 10, 40],
        40 + 300,
        "MaxDeliveryAttemptsExceeded",
    )
    .await;
}
