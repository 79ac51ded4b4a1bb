//! An endpoint that takes 29 s for each answer beside one that answers at once, in the same
//! invocation: it holds its share of the open requests, and its waiting line delays no other.

use std::time::Duration;

use posthaste_core::model::SubscriptionName;
use posthaste_core::stored::delivery::{parse_delivery, render_delivery};
use posthaste_deliver::DeliverSettings;
use posthaste_ports::{Clock, QueueName};
use posthaste_simulation::{Answer, Faults, World, event};
use serde_json::json;

const DAY: Duration = Duration::from_hours(24);
const ANSWER_TIME: Duration = Duration::from_secs(29);
const INVOCATION: Duration = Duration::from_mins(2);

/// A world in which `shipping` is another subscription, whose endpoint is not the slow one of
/// `billing`.
async fn world(settings: DeliverSettings) -> World {
    let world = World::bounded(&Faults::none(), settings);
    world
        .subscribe(json!({ "endpoint": { "url": "https://slow.example.com/" } }))
        .await;
    let mut record = world.record().await;
    let quick = json!({ "endpoint": { "url": "https://quick.example.com/" } });
    record
        .settings
        .subscriptions
        .insert(shipping(), serde_json::from_value(quick).expect("settings"));
    world.write_record(record.render()).await;
    world.endpoint.answer([Answer::SlowAt("slow", ANSWER_TIME)]);
    world
}

fn shipping() -> SubscriptionName {
    SubscriptionName::parse("shipping").expect("a name")
}

/// Publishes messages of so many events, each of which is a request, for both.
async fn publish(world: &World, messages: usize, events: usize) {
    let events: Vec<_> = (0..events)
        .map(|number| event(&number.to_string()))
        .collect();
    for _ in 0..messages {
        let message = world.message(&events, DAY);
        let mut delivery = parse_delivery(&message.body).expect("a delivery");
        delivery.subscription = shipping();
        for body in [message.body, render_delivery(&delivery)] {
            world.send(QueueName::Deliveries, body).await;
        }
    }
}

/// Lets go on what can without time. Answers how many requests came since the last time: slow ones
/// and quick ones.
async fn come(world: &World) -> (usize, usize) {
    let mut seen = usize::MAX;
    while seen != world.endpoint.seen() {
        seen = world.endpoint.seen();
        world.rest().await;
    }
    let requests = world.endpoint.take();
    let slow = requests
        .iter()
        .filter(|request| request.url.contains("slow"))
        .count();
    (slow, requests.len() - slow)
}

#[tokio::test]
async fn a_slow_endpoint_holds_its_share_and_keeps_nobody() {
    let settings = DeliverSettings {
        requests_max: 40,
        requests_per_link_max: 20,
        ..DeliverSettings::default()
    };
    let world = world(settings).await;
    publish(&world, 1, 100).await;
    let script = async {
        let start = world.clock.now();
        // 10 at first, and 4 more for the 90 that wait.
        assert_eq!(come(&world).await, (14, 100));
        assert_eq!(
            world.clock.now(),
            start,
            "the quick ones waited for nothing"
        );
        for _ in 0..2 {
            world.clock.advance(ANSWER_TIME);
            assert_eq!(come(&world).await, (14, 0));
        }
        world.clock.advance(ANSWER_TIME);
    };
    let (response, ()) = tokio::join!(world.deliver_within(INVOCATION), script);
    assert_eq!(response.failures, []);
    // Events that were not begun in time wait in the queue, and no attempt was charged.
    let left = world.receive(QueueName::Deliveries).await;
    let left: Vec<_> = left
        .iter()
        .map(|message| parse_delivery(&message.body).unwrap())
        .collect();
    assert_eq!(
        left.iter()
            .map(|delivery| (delivery.events.len(), delivery.attempts))
            .collect::<Vec<_>>(),
        [(58, 0)]
    );
}

#[tokio::test]
async fn long_row_of_a_slow_endpoint_does_not_keep_others_waiting() {
    let world = world(DeliverSettings::default()).await;
    publish(&world, 5, 250).await;
    let script = async {
        // Of the 1,250 slow ones 500 are under way or wait: 10 at first, and 23 more for those, or
        // 24 where more of them came to wait before the first was let in.
        assert_eq!(come(&world).await, (33, 1250));
        world.stop();
        world.clock.advance(ANSWER_TIME);
    };
    let (response, ()) = tokio::join!(world.deliver_within(INVOCATION), script);
    assert_eq!(response.failures, []);
}
