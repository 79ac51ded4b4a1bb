//! The page of links.

use posthaste_core::api::LinksView;
use serde_json::json;

use super::World;
use crate::api::Target;

#[tokio::test]
async fn without_trouble_the_page_says_so() {
    let world = World::signed_in().await;
    world.get("/console/links").await.has(&["Every link and subscription is well"]);
}

#[tokio::test]
async fn a_paused_subscription_with_held_events_is_shown() {
    let world = World::signed_in().await;
    world.put(&["topics", "orders"], json!({})).await;
    let billing = json!({ "endpoint": { "url": "https://billing.example.com/" } });
    world.put(&["topics", "orders", "subscriptions", "billing"], billing).await;
    let pause = Target::new(&["topics", "orders", "subscriptions", "billing", "pause"]);
    world.api.post::<serde_json::Value>(pause).await.unwrap();
    world.state.write("held/orders.billing/00000001-x", "{}");
    let view: LinksView = world.api.get(Target::new(&["links"])).await.unwrap();
    assert_eq!(view.links.len(), 1);
    let page = world.get("/console/links").await;
    page.has(&["/console/topics/orders/subscriptions/billing", "paused", "https://billing.example.com:443"]);
}
