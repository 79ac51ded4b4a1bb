//! Topics and subscriptions that go by themselves, with events that wait for them.

use std::time::Duration;

use posthaste_core::model::DeadLetterReason;
use posthaste_core::stored::dead_letter_message::parse_dead_letter;
use posthaste_ports::{Clock, ObjectStore, QueueName};
use posthaste_simulation::{Answer, World, event};
use posthaste_testkit::recorded::PortOperation;
use serde_json::{Value, json};

const DAY: Duration = Duration::from_hours(24);
const MINUTE: Duration = Duration::from_mins(1);

/// The reason for which the one event was given up that waits for its bucket, and the number of its
/// attempts.
async fn given_up(world: &World) -> (DeadLetterReason, u16) {
    world.clock.advance(5 * MINUTE);
    let messages = world.receive(QueueName::DeadLetters).await;
    assert_eq!(messages.len(), 1);
    let letter = parse_dead_letter(&messages[0].body).expect("a dead letter");
    (letter.reason, letter.delivery.attempts)
}

/// Events that wait when their subscription's time is over are dead letters.
#[tokio::test]
async fn events_of_an_ended_subscription_are_dead_letters() {
    let world = World::new();
    let ends_at = (world.clock.now() + MINUTE).to_string();
    world
        .subscribe(json!({ "expirationTimeUtc": ends_at }))
        .await;
    world.endpoint.answer([Answer::Status(503)]);
    world.publish(&[event("e")], DAY).await;
    world.deliver().await;
    // The subscription is not swept yet: the time alone decides.
    world.clock.advance(MINUTE);
    world.deliver().await;
    assert_eq!(world.endpoint.take().len(), 1);
    assert_eq!(
        given_up(&world).await,
        (DeadLetterReason::SubscriptionDeleted, 1)
    );
}

/// A temporary subscription, as manage writes it.
async fn subscribe_idle(world: &World, mut settings: Value) {
    settings["autoDeleteOnIdle"] = json!("PT5M");
    settings["status"] = json!({ "state": "Active", "since": world.clock.now().to_string() });
    world.subscribe(settings).await;
    world.write_state("temporary/orders", String::new()).await;
}

/// A world in which an event waits this long for its retry, of a subscription that is deleted when
/// idle.
async fn refused_once(wait: &str) -> World {
    let world = World::new();
    subscribe_idle(&world, json!({ "retryPolicy": { "schedule": [wait] } })).await;
    world
        .endpoint
        .answer([Answer::Status(422), Answer::Status(204)]);
    world.publish(&[event("e")], DAY).await;
    world.deliver_all().await;
    world
}

/// Runs wake and deliver once a minute, up to so often or until a request arrives. Answers whether
/// one did.
async fn arrives_within(world: &World, minutes: usize) -> bool {
    for _ in 0..minutes {
        world.clock.advance(MINUTE);
        world.wake().await;
        world.deliver_all().await;
        if !world.endpoint.take().is_empty() {
            return true;
        }
    }
    false
}

#[tokio::test]
async fn idle_subscription_stays_while_an_event_waits_for_its_retry() {
    for wait in ["PT12M", "PT1H"] {
        let world = refused_once(wait).await;
        assert_eq!(world.endpoint.take().len(), 1);
        assert!(arrives_within(&world, 70).await, "{wait}");
        assert_eq!(
            world.record().await.settings.subscriptions.len(),
            1,
            "{wait}"
        );
        // Then nothing waits any more.
        assert!(!arrives_within(&world, 30).await, "{wait}");
        assert_eq!(
            world.record().await.settings.subscriptions.len(),
            0,
            "{wait}"
        );
        assert_eq!(world.delayed(QueueName::DeadLetters).await, 0);
    }
}

/// A subscription whose retry was due while nothing ran is there when it is attempted.
#[tokio::test]
async fn retry_due_while_nothing_ran_keeps_its_subscription() {
    // One waits in the queue, the other in the object store.
    for wait in ["PT12M", "PT1H"] {
        let world = refused_once(wait).await;
        world.wake().await;
        assert_eq!(world.endpoint.take().len(), 1);
        world.clock.advance(Duration::from_hours(5));
        // wake is first, and its sweep runs beside its release.
        assert!(arrives_within(&world, 1).await, "{wait}");
        assert_eq!(world.delayed(QueueName::DeadLetters).await, 0, "{wait}");
    }
}

#[tokio::test]
async fn recreated_subscription_stays_while_events_reach_it() {
    let world = World::new();
    subscribe_idle(&world, json!({ "retryPolicy": { "schedule": ["PT12M"] } })).await;
    world
        .endpoint
        .answer([Answer::Status(503), Answer::Status(204)]);
    world.publish(&[event("old")], DAY).await;
    world.deliver_all().await;
    world.endpoint.take();
    // Deliver noted the old one for a quarter of an hour ahead. The note goes with it.
    let state = world.local.state_store();
    state.delete("activity/orders.billing").await.unwrap();
    let since = world.clock.now().to_string();
    let status = json!({ "state": "Active", "since": since });
    world
        .subscribe_again(json!({ "autoDeleteOnIdle": "PT5M", "status": status }))
        .await;
    for _ in 0..20 {
        world.publish(&[event("new")], DAY).await;
        assert!(arrives_within(&world, 1).await);
    }
    assert_eq!(world.record().await.settings.subscriptions.len(), 1);
}

/// Events given up for an idle subscription keep the delay of its dead letters.
#[tokio::test]
async fn event_given_up_for_an_idle_subscription_keeps_its_delay() {
    let world = World::new();
    let retries = json!({ "schedule": ["PT12M"], "maxDeliveryAttempts": 2 });
    subscribe_idle(
        &world,
        json!({ "retryPolicy": retries, "deadLetter": { "delay": "PT0S" } }),
    )
    .await;
    world.endpoint.answer([Answer::Status(422)]);
    world.publish(&[event("e")], DAY).await;
    world.deliver_all().await;
    assert_eq!(world.endpoint.take().len(), 1);
    assert!(arrives_within(&world, 20).await);
    assert_eq!(world.visible(QueueName::DeadLetters).await, 1);
}

#[tokio::test]
async fn before_its_time_a_subscription_receives_as_any_other() {
    let world = World::new();
    let ends_at = (world.clock.now() + MINUTE).to_string();
    world
        .subscribe(json!({ "expirationTimeUtc": ends_at }))
        .await;
    world.publish(&[event("e")], DAY).await;
    world.clock.advance(Duration::from_millis(59_999));
    world.deliver().await;
    assert_eq!(world.endpoint.take().len(), 1);
}

#[tokio::test]
async fn a_delivery_is_noted_once_in_a_while_and_only_where_it_counts() {
    let check = async |settings, notes| {
        let world = World::new();
        world.subscribe(settings).await;
        for _ in 0..3 {
            world.publish(&[event("e")], DAY).await;
            world.deliver_all().await;
        }
        let puts = world
            .calls
            .all()
            .into_iter()
            .filter(|call| call.operation == PortOperation::Put);
        let keys: Vec<_> = puts.map(|call| call.key).collect();
        assert_eq!(keys, vec!["activity/orders.billing"; notes]);
    };
    check(json!({}), 0).await;
    check(json!({ "autoDeleteOnIdle": "PT8M" }), 1).await;
}

#[tokio::test]
async fn event_expired_before_its_publish_is_not_attempted() {
    let world = World::new();
    world.subscribe(json!({})).await;
    world.publish(&[event("e")], Duration::ZERO).await;
    world.deliver().await;
    assert_eq!(world.endpoint.take().len(), 0);
    assert_eq!(
        given_up(&world).await,
        (DeadLetterReason::TimeToLiveExceeded, 0)
    );
}

/// An attempt that began in time counts if it succeeds, and expires at once if it fails.
#[tokio::test]
async fn attempt_begun_in_time_counts_on_success_and_else_expires() {
    let check = async |status, requests, letters| {
        let world = World::new();
        world.subscribe(json!({})).await;
        world
            .endpoint
            .answer([Answer::After(Duration::from_secs(20), status)]);
        world.publish(&[event("e")], Duration::from_secs(10)).await;
        world.deliver().await;
        assert_eq!(world.endpoint.take().len(), requests);
        assert_eq!(world.delayed(QueueName::Deliveries).await, 0);
        assert_eq!(world.delayed(QueueName::DeadLetters).await, letters);
        if letters > 0 {
            assert_eq!(
                given_up(&world).await,
                (DeadLetterReason::TimeToLiveExceeded, 1)
            );
        }
    };
    check(204, 1, 0).await;
    check(500, 1, 1).await;
}
