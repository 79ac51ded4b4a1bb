//! Topics and subscriptions that go by themselves.

use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_core::stored::{ActivityNote, TopicRecord};
use posthaste_ports::Clock;
use serde_json::{Value, json};

use super::{Api, billing};

const MINUTE: Duration = Duration::from_mins(1);
const SUBSCRIPTION: &str = "/topics/orders/subscriptions/billing";

fn with(member: &str, value: Value) -> Value {
    let mut settings = billing();
    settings[member] = value;
    settings
}

fn noted(api: &Api, key: &str) -> Option<Timestamp> {
    Some(ActivityNote::parse(&api.state.read(key)?).unwrap().at())
}

#[tokio::test]
async fn a_time_that_is_over_is_refused_at_the_door() {
    let api = Api::with_billing().await;
    let over = api.clock.now().to_string();
    let body = api
        .put(SUBSCRIPTION, with("expirationTimeUtc", json!(over)))
        .await
        .problem(400, "bad-settings");
    assert_eq!(body["member"], "expirationTimeUtc");
    let within = json!({ "subscriptions": { "billing": with("expirationTimeUtc", json!(over)) } });
    let body = api
        .put("/topics/orders", within)
        .await
        .problem(400, "bad-settings");
    assert_eq!(body["member"], "subscriptions.billing.expirationTimeUtc");
    let body = api
        .put("/topics/orders", json!({ "autoDeleteOnIdle": "PT1M" }))
        .await;
    assert_eq!(
        body.problem(400, "bad-settings")["member"],
        "autoDeleteOnIdle"
    );
}

#[tokio::test]
async fn a_subscription_whose_time_is_over_is_gone_before_it_is_swept() {
    let api = Api::with_billing().await;
    let ends_at = (api.clock.now() + MINUTE).to_string();
    let put = api
        .put(SUBSCRIPTION, with("expirationTimeUtc", json!(ends_at)))
        .await;
    assert_eq!(
        (put.status, &put.json()["expirationTimeUtc"]),
        (200, &json!(ends_at))
    );
    assert!(api.state.read("temporary/orders").is_some());
    api.clock.advance(MINUTE);
    api.get(SUBSCRIPTION)
        .await
        .problem(404, "unknown-subscription");
    assert_eq!(
        api.get("/topics").await.json()["topics"][0]["subscriptionCount"],
        0
    );
    assert_eq!(api.put(SUBSCRIPTION, billing()).await.status, 201);
}

#[tokio::test]
async fn permanent_topics_and_subscriptions_cost_no_note() {
    let api = Api::with_billing().await;
    api.get(&format!("{SUBSCRIPTION}/dead-letters")).await;
    for key in [
        "temporary/orders",
        "activity/orders",
        "activity/orders.billing",
    ] {
        assert_eq!(api.state.read(key), None, "{key}");
    }
}

/// Writing a subscription, and reading its dead letters, count as its use.
#[tokio::test]
async fn writes_and_dead_letter_reads_count_as_use() {
    let api = Api::with_billing().await;
    let made = api.clock.now();
    api.put(SUBSCRIPTION, with("autoDeleteOnIdle", json!("PT8M")))
        .await;
    assert_eq!(noted(&api, "activity/orders.billing"), Some(made));
    // Another subscription's update is not its use.
    api.clock.advance(2 * MINUTE);
    api.put("/topics/orders/subscriptions/audit", billing())
        .await;
    assert_eq!(noted(&api, "activity/orders.billing"), Some(made));
    assert_eq!(
        api.get(&format!("{SUBSCRIPTION}/dead-letters"))
            .await
            .status,
        200
    );
    assert_eq!(
        noted(&api, "activity/orders.billing"),
        Some(made + 2 * MINUTE)
    );
}

#[tokio::test]
async fn a_write_that_changes_nothing_is_a_use_of_what_it_names() {
    let api = Api::with_billing().await;
    let settings = with("autoDeleteOnIdle", json!("PT8M"));
    api.put(SUBSCRIPTION, settings.clone()).await;
    for path in [SUBSCRIPTION, "/topics/orders"] {
        api.clock.advance(2 * MINUTE);
        let body = match path {
            SUBSCRIPTION => settings.clone(),
            _ => json!({ "subscriptions": { "billing": settings.clone() } }),
        };
        assert_eq!(api.put(path, body).await.status, 200);
        assert_eq!(
            noted(&api, "activity/orders.billing"),
            Some(api.clock.now()),
            "{path}"
        );
    }
}

/// A topic that is being deleted takes no write until its object must be gone.
#[tokio::test]
async fn deleted_topic_refuses_writes_until_its_object_is_gone() {
    let api = Api::with_billing().await;
    let record = TopicRecord::parse(&api.state.read("topics/orders.json").unwrap()).unwrap();
    api.state.write(
        "topics/orders.json",
        record.into_tombstone(api.clock.now()).render(),
    );
    api.get("/topics/orders")
        .await
        .problem(404, "unknown-topic");
    api.delete("/topics/orders")
        .await
        .problem(404, "unknown-topic");
    assert_eq!(api.get("/topics").await.json(), json!({ "topics": [] }));
    let refused = api.put("/topics/orders", json!({})).await;
    refused.problem(409, "conflict");
    assert!(refused.headers.contains_key("retry-after"));
    api.clock.advance(2 * MINUTE);
    assert_eq!(api.put("/topics/orders", json!({})).await.status, 201);
}
