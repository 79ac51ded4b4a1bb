//! The number of deliveries an event came through, as its requests and its failure notice say.

use std::time::Duration;

use posthaste_core::model::{Delivery, HOPS_HEADER, Hops};
use posthaste_core::stored::delivery::{parse_delivery, render_delivery};
use posthaste_ports::QueueName;
use posthaste_simulation::{Answer, World, event};
use serde_json::json;

const DAY: Duration = Duration::from_hours(24);
const HOUR: Duration = Duration::from_hours(1);

/// Puts an event that came through so many deliveries into the queue.
async fn publish(world: &World, id: &str, hops: u8) {
    let message = world.message(&[event(id)], DAY);
    let delivery = parse_delivery(&message.body).expect("a delivery");
    let delivery = Delivery {
        hops: Hops::new(hops),
        ..delivery
    };
    world
        .send(QueueName::Deliveries, render_delivery(&delivery))
        .await;
}

/// The hops of each request since the last time whose URL has this in it.
fn hops_at(world: &World, place: &str) -> Vec<String> {
    let requests = world.endpoint.take();
    let there = requests
        .iter()
        .filter(|request| request.url.contains(place));
    let hops = |value: &http::HeaderValue| value.to_str().expect("text").to_owned();
    there
        .map(|request| {
            hops(
                request
                    .headers
                    .get(HOPS_HEADER)
                    .expect("a delivery says its hops"),
            )
        })
        .collect()
}

#[tokio::test]
async fn every_attempt_says_one_more_than_its_event_came_through() {
    // A retry in the queue, and one that is parked.
    for schedule in ["PT1M", "PT1H"] {
        let world = World::new();
        world
            .subscribe(json!({ "retryPolicy": { "schedule": [schedule] } }))
            .await;
        world
            .endpoint
            .answer([Answer::Status(503), Answer::Status(204)]);
        publish(&world, "a", 3).await;
        world.deliver_all().await;
        assert_eq!(hops_at(&world, "billing"), ["4"]);
        world.clock.advance(HOUR + Duration::from_mins(6));
        world.wake().await;
        world.deliver_all().await;
        assert_eq!(hops_at(&world, "billing"), ["4"], "{schedule}");
    }
}

#[tokio::test]
async fn messages_of_the_same_hops_alone_share_a_request() {
    let world = World::new();
    world
        .subscribe(json!({ "batching": { "maxEventsPerBatch": 10 } }))
        .await;
    for (id, hops) in [("a", 0), ("b", 5), ("c", 2), ("d", 0), ("e", 5)] {
        publish(&world, id, hops).await;
    }
    world.deliver_all().await;
    assert_eq!(hops_at(&world, "billing"), ["1", "6", "3"]);
}

#[tokio::test]
async fn a_failure_notice_goes_on_with_the_hops_of_its_event() {
    let world = World::new();
    world.subscribe(json!({})).await;
    world.tell_ops(json!({})).await;
    world.endpoint.answer([Answer::By(|body, _| {
        if body.contains("dev.posthaste.") {
            204
        } else {
            400
        }
    })]);
    publish(&world, "a", 6).await;
    world.deliver_all().await;
    assert_eq!(hops_at(&world, "billing"), ["7"]);
    world.clock.advance(15 * Duration::from_mins(1));
    world.bury().await;
    world.deliver_all().await;
    assert_eq!(hops_at(&world, "pager"), ["7"]);
}
