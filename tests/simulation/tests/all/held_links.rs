//! Deliveries held because their link fails: the link is tried from time to time with one of them,
//! and gets the others when it is well again.

use std::collections::BTreeSet;
use std::time::Duration;

use posthaste_core::circuit::{
    CircuitDecision, DeliveryTarget, HealthSettings, Observation, RequestFailure,
};
use posthaste_core::model::{OutcomeName, SendFailure, SubscriptionName, TopicName};
use posthaste_core::stored::delivery::{parse_delivery, render_delivery};
use posthaste_core::stored::layout;
use posthaste_core::stored::parked::render_parked;
use posthaste_local::StateStore;
use posthaste_ports::{Clock, QueueName};
use posthaste_services::LinkHealth;
use posthaste_simulation::{Answer, World, event};
use posthaste_testkit::ManualClock;
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);
const LINK: &str = "https://billing.example.com:443";

fn link() -> DeliveryTarget {
    DeliveryTarget::parse(LINK).expect("a target")
}

/// The links as a separate worker knows them.
fn book(world: &World) -> LinkHealth<StateStore, ManualClock> {
    LinkHealth::new(
        world.local.state_store(),
        world.clock.clone(),
        HealthSettings::default(),
    )
}

/// Has another worker see the link fail until its deliveries pause for ten minutes.
async fn retry(world: &World) {
    let last = RequestFailure {
        outcome: OutcomeName::SocketError,
        status: None,
    };
    for _ in 0..4 {
        world.clock.advance(MINUTE);
        let failing = Observation::Failing {
            failures: 10,
            last,
            began: world.clock.now(),
        };
        let seen = [(link(), failing)];
        book(world).observe(&seen).await.expect("a write");
    }
}

/// Sends a delivery that has waited, as wake does.
async fn release(world: &World, id: &str) {
    let mut delivery = parse_delivery(&world.message(&[event(id)], DAY).body).expect("a delivery");
    world.clock.advance(SECOND);
    delivery.not_before = world.clock.now();
    world
        .send(QueueName::Deliveries, render_delivery(&delivery))
        .await;
}

/// The ids of the events of all requests since this was asked last.
fn requested(world: &World) -> Vec<String> {
    let id = |body: &str| {
        serde_json::from_str::<Value>(body).ok()?["id"]
            .as_str()
            .map(str::to_owned)
    };
    world
        .endpoint
        .take()
        .iter()
        .filter_map(|request| id(&request.body))
        .collect()
}

/// A minute: so many events are published, wake runs, deliver takes what there is.
async fn minute(world: &World, published: &mut Vec<String>, events: usize) {
    for _ in 0..events {
        let id = format!("{:05}", published.len());
        world.publish(&[event(&id)], DAY).await;
        published.push(id);
    }
    world.wake().await;
    world.deliver_all().await;
    world.clock.advance(MINUTE);
}

/// A worker that knows nothing yet probes with a waiting event and tells the others.
#[tokio::test]
async fn new_worker_probes_with_a_waiting_event_and_tells_the_others() {
    let world = World::new();
    world.subscribe(json!({})).await;
    retry(&world).await;
    world.clock.advance(10 * MINUTE);
    release(&world, "1").await;
    world.deliver_all().await;
    assert_eq!(requested(&world).len(), 1);
    let gate = book(&world).decide(&link(), true).await;
    assert!(
        matches!(gate, CircuitDecision::Ramp { at_once: 1, .. }),
        "{gate:?}"
    );
}

#[tokio::test]
async fn a_worker_that_knows_nothing_yet_holds_what_has_waited() {
    let world = World::new();
    world.subscribe(json!({})).await;
    retry(&world).await;
    release(&world, "1").await;
    world.deliver_all().await;
    assert_eq!((requested(&world).len(), world.held().await.len()), (0, 1));
}

#[tokio::test]
async fn a_second_endpoint_gets_what_was_held_while_both_were_down() {
    let world = World::new();
    let endpoint = json!({ "url": "https://billing.example.com/", "fallbackUrl": "https://other.example.com/" });
    world.subscribe(json!({ "endpoint": endpoint })).await;
    retry(&world).await;
    let topic = TopicName::parse("orders");
    let subscription = SubscriptionName::parse("billing");
    let topic = topic.expect("a name");
    let subscription = subscription.expect("a name");
    let key = layout::held_key(&topic, &subscription, world.clock.now() + DAY, "x");
    let object = render_parked(&[world.message(&[event("1")], DAY).body]);
    world
        .write_state(&key, String::from_utf8(object.to_vec()).expect("text"))
        .await;
    world.clock.advance(SECOND);
    assert_eq!(world.wake().await.held_sent, 1);
    world.deliver_all().await;
    let requests = world.endpoint.take();
    assert_eq!(
        (requests.len(), requests[0].url.as_str()),
        (1, "https://other.example.com/")
    );
}

/// An outage costs a request now and then, and ends with everything delivered in order.
#[tokio::test]
async fn outage_costs_few_requests_and_ends_with_ordered_delivery() {
    let world = World::new();
    world.subscribe(json!({})).await;
    world
        .endpoint
        .answer([Answer::Failure(SendFailure::Socket)]);
    let mut published = Vec::new();
    for _ in 0..10 {
        minute(&world, &mut published, 5).await;
    }
    assert_eq!(
        book(&world).decide(&link(), true).await,
        CircuitDecision::Hold
    );
    let tried: BTreeSet<_> = requested(&world).into_iter().collect();
    for _ in 0..60 {
        minute(&world, &mut published, 5).await;
    }
    let asked = requested(&world);
    assert!((3..=6).contains(&asked.len()), "{asked:?}");
    assert!(!world.held().await.is_empty());
    assert_eq!(world.visible(QueueName::DeadLetters).await, 0);
    let outage = published.len();
    world.endpoint.answer([Answer::Status(204)]);
    let mut delivered = Vec::new();
    for _ in 0..20 {
        minute(&world, &mut published, 5).await;
        delivered.extend(requested(&world));
    }
    assert_eq!(
        (delivered.len(), world.held().await.len()),
        (published.len(), 0)
    );
    // Nothing that was held was charged an attempt, and nothing overtook more than its neighbours.
    let was_tried = |id: &String| tried.contains(id) || asked.contains(id);
    let held: Vec<_> = delivered
        .iter()
        .filter(|id| **id < published[outage] && !was_tried(id))
        .collect();
    assert!(held.len() > 300, "{}", held.len());
    for (place, id) in held.iter().enumerate() {
        let before = held[..place].iter().filter(|earlier| *earlier > id).count();
        assert!(before <= 10, "{before} overtook {id}");
    }
}
