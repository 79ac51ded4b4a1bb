use posthaste_core::health::{HealthBook, SeenTry, TryResult, book_key};
use posthaste_core::model::Timestamp;
use posthaste_core::stored::HEALTH;
use posthaste_ports::ObjectStore;
use posthaste_testkit::records::{subscription_name, topic_name};
use serde_json::{Value, json};

use super::*;
use crate::testing::{Kit, subscription};

const FAILED: TryResult = TryResult::Failed {
    outcome: None,
    status: Some(401),
    is_last: true,
};

/// The topic `orders`, whose notices nobody gets, with this subscription.
fn orders(kit: &Kit, billing: Value) {
    kit.topic(json!({ "subscriptions": { "Billing": subscription(billing) } }));
}

fn fail(kit: &Kit, count: usize) {
    for _ in 0..count {
        note(kit, kit.clock.now(), FAILED);
    }
}

fn note(kit: &Kit, at: Timestamp, result: TryResult) {
    let seen = SeenTry {
        key: "a",
        accepted_at: at,
        at,
        is_first: false,
        result,
    };
    let key = || book_key(&topic_name("orders"), &subscription_name("billing"));
    kit.ports.links.arrivals().note(key, &seen);
}

async fn book(kit: &Kit) -> HealthBook {
    let object = kit.store.get(HEALTH).await.unwrap();
    object
        .map(|object| HealthBook::parse(&object.bytes).unwrap())
        .unwrap_or_default()
}

#[tokio::test]
async fn incident_is_known_and_marked_where_nobody_is_told() {
    let kit = Kit::new();
    orders(&kit, json!({}));
    fail(&kit, 10);
    look_at_health(kit.run(), None).await;
    let found = book(&kit).await;
    let health = found.subscription("orders.billing").unwrap();
    assert!(health.incident.as_ref().unwrap().told);
    note(&kit, kit.clock.now(), TryResult::Arrived);
    look_at_health(kit.run(), None).await;
    let found = book(&kit).await;
    assert_eq!(found.subscription("orders.billing").unwrap().incident, None);
}

#[tokio::test]
async fn subscription_that_is_paused_or_gone_leaves_the_book() {
    let paused = json!({ "status": { "state": "Paused", "since": "2026-03-07T04:05:00Z" } });
    for settings in [Some(paused), None] {
        let kit = Kit::new();
        match settings {
            Some(settings) => orders(&kit, settings),
            None => kit.topic(json!({})),
        }
        fail(&kit, 10);
        look_at_health(kit.run(), None).await;
        assert!(book(&kit).await.is_empty());
    }
}

#[tokio::test]
async fn topic_that_cannot_be_read_keeps_its_tries() {
    let kit = Kit::new();
    kit.store.write("topics/orders.json", "{");
    fail(&kit, 10);
    look_at_health(kit.run(), None).await;
    let found = book(&kit).await;
    let health = found.subscription("orders.billing").unwrap();
    assert_eq!((health.tries.in_row(), &health.incident), (10, &None));
}

#[tokio::test]
async fn healthy_minute_writes_nothing() {
    let kit = Kit::new();
    orders(&kit, json!({}));
    for _ in 0..100 {
        note(&kit, kit.clock.now(), TryResult::Arrived);
    }
    look_at_health(kit.run(), None).await;
    assert_eq!(kit.store.keys("health/"), [""; 0]);
}
