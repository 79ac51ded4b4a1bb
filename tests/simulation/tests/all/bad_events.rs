//! Bad events among good ones: three that are published together fail together, and no good event
//! waits for them.

use std::collections::BTreeMap;
use std::time::Duration;

use posthaste_core::circuit::{DeliveryTarget, TargetPhase};
use posthaste_core::model::{SendFailure, Timestamp};
use posthaste_ports::{Clock, QueueName};
use posthaste_simulation::{Answer, LinkPath, World, event, start};
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

/// The time between two good events: four a second.
const BETWEEN_GOOD: Duration = Duration::from_millis(250);

/// The good events of a stream of four bursts: 400 seconds of them.
const GOOD: u32 = 1600;

/// The good events of a stream of one burst: a minute after it is over.
const GOOD_AROUND_ONE_BURST: u32 = 360;

/// Of so many good events, one goes to the neighbour too.
const TO_NEIGHBOUR: u32 = 4;

/// The good events between two bursts: two minutes of them.
const BETWEEN_BURSTS: u32 = 480;

/// Good events before the first burst: half a minute of them.
const BEFORE_FIRST_BURST: u32 = 120;

const LINK: &str = "https://billing.example.com:443";
const BILLING: &str = "https://billing.example.com:443 orders.billing";

fn is_bad(body: &str) -> bool {
    body.contains("bad")
}

fn status_500(body: &str, _: Timestamp) -> u16 {
    if is_bad(body) { 500 } else { 204 }
}

/// Two subscriptions on one host and port: `orders.billing` and `ops.pager`.
async fn neighbours(answer: Answer) -> World {
    let world = World::new();
    let paths = ["orders.billing", "ops.pager"].map(LinkPath::scripted);
    world.subscribe_paths(&paths).await;
    world.endpoint.answer([answer]);
    world
}

/// The times that good events waited for their first requests, in order of their ids.
#[derive(Default)]
struct Waits {
    published: BTreeMap<String, Timestamp>,
    waited: BTreeMap<String, Duration>,
    bad_requests: usize,
}

impl Waits {
    fn hear(&mut self, world: &World) {
        for request in world.endpoint.take() {
            let body: Value = serde_json::from_str(&request.body).unwrap();
            let id = body["id"].as_str().unwrap().to_owned();
            if is_bad(&id) {
                self.bad_requests += 1;
            } else {
                let waited = request.at.since(self.published[&id]);
                self.waited.entry(id).or_insert(waited);
            }
        }
    }
}

/// Good events four times a second to `billing`, one a second to `pager`, and three bad ones to
/// `billing` in each burst. Returns the longest wait of a good event.
async fn longest_wait(answer: Answer, bursts: u32, good: u32) -> Duration {
    let world = neighbours(answer).await;
    let mut waits = Waits::default();
    for number in 0..good {
        let burst = number / BETWEEN_BURSTS;
        let at = number % BETWEEN_BURSTS;
        if at == BEFORE_FIRST_BURST && burst < bursts {
            let bad = [0, 1, 2].map(|bad| event(&format!("bad-{burst}-{bad}")));
            world.publish(&bad, DAY).await;
            // An invocation of its own, which sees nothing but failures.
            world.deliver().await;
        }
        let own = format!("good-{number}");
        waits.published.insert(own.clone(), world.clock.now());
        world.publish(&[event(&own)], DAY).await;
        if number % TO_NEIGHBOUR == 0 {
            let other = format!("other-{number}");
            waits.published.insert(other.clone(), world.clock.now());
            world.publish_to_ops(&[event(&other)], DAY).await;
        }
        while world.visible(QueueName::Deliveries).await > 0 {
            world.deliver().await;
        }
        waits.hear(&world);
        world.clock.advance(BETWEEN_GOOD);
    }
    // Each bad event was tried at once, after 10 s and after 30 s more.
    assert!(waits.bad_requests >= 9 * bursts as usize);
    assert_eq!(waits.waited.len(), waits.published.len());
    waits.waited.into_values().max().unwrap()
}

#[tokio::test]
async fn bad_events_with_5xx_delay_no_good_one() {
    let refuse = Answer::By(status_500);
    assert_eq!(longest_wait(refuse, 4, GOOD).await, Duration::ZERO);
}

/// The receiver crashes: every subscription on its host and port goes on.
#[tokio::test]
async fn bad_events_that_close_the_connection_delay_no_good_one() {
    let crash = Answer::ClosedFor(is_bad);
    assert_eq!(longest_wait(crash, 4, GOOD).await, Duration::ZERO);
}

#[tokio::test]
async fn burst_of_bad_events_delays_no_good_event() {
    for answer in [Answer::ClosedFor(is_bad), Answer::By(status_500)] {
        let longest = longest_wait(answer, 1, GOOD_AROUND_ONE_BURST).await;
        assert_eq!(longest, Duration::ZERO);
    }
}

fn phase(world: &World, target: &str) -> Option<TargetPhase> {
    let target = DeliveryTarget::parse(target).unwrap();
    world.links.condition(&target).map(|it| it.phase)
}

/// Nothing arrived for a minute: an endpoint that is dead is stopped after one invocation.
#[tokio::test]
async fn dead_endpoint_is_stopped_as_soon_as_ever() {
    for (answer, link, subscription) in [
        (Answer::Status(500), None, Some(TargetPhase::Glitch)),
        (
            Answer::Failure(SendFailure::Closed),
            None,
            Some(TargetPhase::Glitch),
        ),
        (
            Answer::Failure(SendFailure::Refused),
            Some(TargetPhase::Glitch),
            None,
        ),
    ] {
        let world = neighbours(Answer::Status(204)).await;
        world.publish(&[event("good")], DAY).await;
        world.deliver().await;
        world.endpoint.take();
        world.clock.advance(MINUTE + SECOND);
        world.endpoint.answer([answer.clone()]);
        world
            .publish(&[event("1"), event("2"), event("3")], DAY)
            .await;
        world.deliver().await;
        assert_eq!(world.endpoint.take().len(), 3);
        let phases = (phase(&world, LINK), phase(&world, BILLING));
        assert_eq!(phases, (link, subscription), "{answer:?}");
    }
}

/// Something arrived a moment ago: ten in a row stop it.
#[tokio::test]
async fn endpoint_that_died_a_moment_ago_is_stopped_after_ten() {
    let world = neighbours(Answer::Status(204)).await;
    world.publish(&[event("good")], DAY).await;
    world.deliver().await;
    world.endpoint.take();
    world.endpoint.answer([Answer::Status(500)]);
    for number in 0..20 {
        world.publish(&[event(&number.to_string())], DAY).await;
        world.deliver().await;
    }
    assert_eq!(world.endpoint.take().len(), 10);
    assert_eq!(phase(&world, BILLING), Some(TargetPhase::Glitch));
}

/// Closed connections of two subscriptions are those of the host.
#[tokio::test]
async fn closed_connections_of_two_subscriptions_stop_the_link() {
    let world = neighbours(Answer::Failure(SendFailure::Closed)).await;
    for number in 0..10 {
        if number % 2 == 0 {
            world.publish(&[event(&number.to_string())], DAY).await;
        } else {
            world
                .publish_to_ops(&[event(&number.to_string())], DAY)
                .await;
        }
        world.deliver().await;
    }
    assert_eq!(phase(&world, LINK), Some(TargetPhase::Glitch));
}

/// The event that fails is not the one that asks: a delivery that never failed waits too.
#[tokio::test]
async fn probe_of_a_glitch_is_an_event_that_did_not_fail() {
    let world = World::new();
    world.chance.hold(0.0);
    world.subscribe(json!({})).await;
    world.endpoint.answer([Answer::By(status_500)]);
    let bad = [0, 1, 2].map(|bad| event(&format!("bad-{bad}")));
    world.publish(&bad, DAY).await;
    world.deliver().await;
    assert_eq!(phase(&world, BILLING), Some(TargetPhase::Glitch));
    // The bad ones come back within the minute, before the good one is published.
    world.clock.advance(30 * SECOND);
    world.deliver().await;
    world.publish(&[event("good")], DAY).await;
    world.deliver().await;
    world.endpoint.take();
    world.clock.advance(30 * SECOND);
    while world.visible(QueueName::Deliveries).await > 0 {
        world.in_time(world.deliver()).await;
    }
    let requests = world.endpoint.take();
    assert!(requests[0].body.contains("good"), "{requests:?}");
    assert_eq!(requests[0].at, start() + MINUTE);
    assert_eq!(phase(&world, BILLING), Some(TargetPhase::Recovering));
}

/// A problem event that asks for a pause asks for none of the others.
#[tokio::test]
async fn problem_event_pauses_no_other() {
    let world = World::new();
    world.chance.hold(0.0);
    world.subscribe(json!({})).await;
    world.endpoint.answer([Answer::By(status_500)]);
    world.publish(&[event("bad")], DAY).await;
    world.deliver().await;
    // It fails at once and after ten seconds, and others arrive.
    for rest in [10, 30] {
        world.publish(&[event("good")], DAY).await;
        world.deliver().await;
        world.clock.advance(rest * SECOND);
        if rest == 10 {
            world.deliver().await;
        }
    }
    // Its third attempt, at 40 s, is that of a problem event.
    world.endpoint.take();
    world
        .endpoint
        .answer([Answer::With(503, "retry-after", "600")]);
    world.deliver().await;
    assert_eq!(world.endpoint.take().len(), 1);
    assert_eq!(phase(&world, BILLING), None);
}
