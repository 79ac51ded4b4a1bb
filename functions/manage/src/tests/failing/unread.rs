//! Rows of what is not wholly known, and of what waits without a try.

use posthaste_core::circuit::{DeliveryTarget, shard_index};
use posthaste_core::stored::layout;
use serde_json::{Value, json};

use super::super::waiting::accepted;
use super::*;

impl Api {
    fn park_object(&self, name: &str) {
        let topic = TopicName::parse("orders").unwrap();
        let name = SubscriptionName::parse(name).unwrap();
        let due = self.clock.now() + Duration::from_hours(1);
        self.state
            .write(&layout::parked_key(due, &topic, &name, "x"), "{}");
    }
}

/// Events whose retry is far ahead wait for a paused subscription too.
#[tokio::test]
async fn paused_subscription_with_parked_events_keeps_its_row() {
    let api = Api::with_billing().await;
    api.park_object("billing");
    let paused = "/topics/orders/subscriptions/billing/pause";
    assert_eq!(rows(&api.failing("").await), [""; 0]);
    assert_eq!(api.call("POST", paused, &[], "").await.status, 200);
    let view = api.failing("").await;
    assert_eq!(rows(&view), ["Billing paused"]);
    assert_eq!([&view["total"], &view["stopped"]], [&json!(1), &json!(1)]);
}

/// Events that came meanwhile are kept, and no attempt will be made for them.
#[tokio::test]
async fn disabled_subscription_that_misses_events_has_a_row() {
    let api = Api::with_billing().await;
    let disabled = "/topics/orders/subscriptions/billing/disable";
    assert_eq!(api.call("POST", disabled, &[], "").await.status, 200);
    assert_eq!(rows(&api.failing("").await), [""; 0]);
    let mut book = HealthBook::default();
    book.add_missed("orders.billing", 400, 9_000, None);
    api.state.write(HEALTH, book.render());
    let view = api.failing("").await;
    assert_eq!(rows(&view), ["Billing disabled"]);
    let row = &view["failing"][0];
    assert_eq!([&row["missed"], &view["stopped"]], [&json!(400), &json!(1)]);
    assert!(row["reason"].is_string() && row["nextAttemptAt"].is_null());
}

/// The circuit knows since when, why and what next, without the topic.
#[tokio::test]
async fn row_without_its_topic_keeps_its_place_and_facts() {
    let api = Api::with_billing().await;
    let mut links = FailingLinks::default();
    links.fail(&format!("{LINK} orders.billing"), api.clock.now());
    links.write(&api);
    api.hold_objects("billing", 1);
    let known = api.failing("").await["failing"][0].clone();
    api.state.damage("topics/orders.json");
    let view = api.failing("").await;
    assert_eq!(rows(&view), ["billing unknown"]);
    assert_eq!([&view["total"], &view["unknown"]], [&json!(1), &json!(1)]);
    for member in ["since", "link", "lastOutcome", "nextAttemptAt"] {
        assert!(known[member].is_string(), "{member}");
        assert_eq!(view["failing"][0][member], known[member], "{member}");
    }
}

/// Held events are not said to go out where the circuit may hold it still.
#[tokio::test]
async fn held_events_without_the_circuit_are_not_recovering() {
    let api = Api::with_billing().await;
    api.hold_objects("billing", 1);
    assert_eq!(rows(&api.failing("").await), ["Billing recovering"]);
    let shard = shard_index(DeliveryTarget::parse(LINK).unwrap().link());
    let key = layout::link_shard_key(shard);
    api.state.write(&key, "{}");
    api.state.damage(&key);
    let view = api.failing("").await;
    assert_eq!(rows(&view), ["Billing unknown"]);
    assert_eq!(view["leftOut"], json!(["circuit"]));
    assert_eq!(
        [&view["recovering"], &view["unknown"]],
        [&json!(0), &json!(1)]
    );
}

/// Events that are delayed in the queue wait for the hold of their endpoint as well.
#[tokio::test]
async fn delayed_events_are_tried_when_the_hold_ends() {
    let api = Api::with_billing().await;
    let now = api.clock.now();
    let mut links = FailingLinks::default();
    links.fail(&format!("{LINK} orders.billing"), now);
    links.write(&api);
    api.queue_up(&accepted("Billing", 3, 1), 10).await;
    let view = api.failing("").await;
    let hold_end = now + HealthSettings::default().glitch_hold;
    assert_eq!(view["failing"][0]["nextAttemptAt"], hold_end.to_string());
}

/// A probe goes out with an event. Where none waits, there is no next attempt.
#[tokio::test]
async fn link_without_waiting_events_has_no_next_attempt() {
    let api = Api::with_billing().await;
    let now = api.clock.now();
    let mut links = FailingLinks::default();
    links.fail(LINK, now);
    links.write(&api);
    api.note_failures(&[("orders.billing", tries(9, 1, now))]);
    let view = api.failing("").await;
    assert_eq!(rows(&view), ["Billing down"]);
    let row = &view["failing"][0];
    assert_eq!(row["waiting"]["count"], 0);
    assert_eq!(row["nextAttemptAt"], Value::Null);
}

/// The topic of a subscription with one failed try among many arrivals is not read.
#[tokio::test]
async fn healthy_entry_of_the_book_costs_no_read() {
    let reads_with = async |failed: &[(&str, SubscriptionTries)]| {
        let api = Api::with_billing().await;
        api.note_failures(failed);
        let before = api.state.reads();
        assert_eq!(rows(&api.failing("").await), [""; 0]);
        api.state.reads() - before
    };
    let well = tries(10, 1, Timestamp::EPOCH);
    let without = reads_with(&[]).await;
    assert_eq!(reads_with(&[("orders.billing", well)]).await, without);
}

/// A row says whom its notices go to, and whether that of its failure was sent.
#[tokio::test]
async fn row_names_its_notices_topic_and_whether_it_was_told() {
    let api = Api::with_billing().await;
    let body = json!({ "noticesTopic": "Ops", "subscriptions": {
        "crm": { "endpoint": { "url": "https://crm.example.com/" } },
    } });
    assert_eq!(api.put("/topics/team", body).await.status, 201);
    let now = api.clock.now();
    let both = [
        ("orders.billing", tries(0, 30, now)),
        ("team.crm", tries(0, 30, now)),
    ];
    api.note_failures(&both);
    let told = async || {
        let view = api.failing("").await;
        let rows = view["failing"].as_array().unwrap().iter();
        let told: Vec<_> = rows
            .map(|row| [row["noticesTopics"].clone(), row["told"].clone()])
            .collect();
        told
    };
    let to_ops = |told: Value| vec![[Value::Null, Value::Null], [json!(["Ops"]), told]];
    assert_eq!(told().await, to_ops(Value::Null));
    let book = api.state.read(HEALTH).unwrap();
    let mut book: Value = serde_json::from_slice(&book).unwrap();
    for is_told in [false, true] {
        for key in ["orders.billing", "team.crm"] {
            let incident = json!({ "since": now.as_millis(), "told": is_told });
            book["subscriptions"][key]["incident"] = incident;
        }
        api.state.write(HEALTH, book.to_string());
        assert_eq!(told().await, to_ops(json!(is_told)));
    }
}
