//! The page of links.

use posthaste_core::api::LinksView;
use serde_json::json;

use super::World;
use crate::api::RequestTarget;

#[tokio::test]
async fn without_trouble_the_page_says_so() {
    let world = World::signed_in().await;
    world
        .get("/console/links")
        .await
        .has(&["Every link and subscription is well"]);
}

#[tokio::test]
async fn a_paused_subscription_with_held_events_is_shown() {
    let world = World::signed_in().await;
    world.put(&["topics", "orders"], json!({})).await;
    let billing = json!({ "endpoint": { "url": "https://billing.example.com/" } });
    world
        .put(&["topics", "orders", "subscriptions", "billing"], billing)
        .await;
    let pause = RequestTarget::new(&["topics", "orders", "subscriptions", "billing", "pause"]);
    world.api.post::<serde_json::Value>(pause).await.unwrap();
    world.state.write("held/orders.billing/00000001-x", "{}");
    let view: LinksView = world.api.get(RequestTarget::new(&["links"])).await.unwrap();
    assert_eq!(view.links.len(), 1);
    let page = world.get("/console/links").await;
    page.has(&[
        "/console/topics/orders/subscriptions/billing",
        "paused",
        "https://billing.example.com:443",
    ]);
}

#[tokio::test]
async fn rows_are_selected_by_state_and_name_and_paged() {
    let world = World::signed_in().await;
    world.put(&["topics", "orders"], json!({})).await;
    for number in 0..60 {
        let name = format!("s{number:02}");
        let settings = json!({ "endpoint": { "url": format!("https://{name}.example.com/") } });
        world
            .put(&["topics", "orders", "subscriptions", &name], settings)
            .await;
        let pause = RequestTarget::new(&["topics", "orders", "subscriptions", &name, "pause"]);
        world.api.post::<serde_json::Value>(pause).await.unwrap();
        world
            .state
            .write(&format!("held/orders.{name}/00000001-x"), "{}");
    }
    let first = world.get("/console/links").await;
    first
        .has(&[
            "orders / s00",
            "orders / s49",
            r#"href="/console/links?after=50""#,
        ])
        .has_not(&["s50", "First page"]);
    let second = world.get("/console/links?after=50").await;
    second
        .has(&["orders / s50", "orders / s59", r#"href="/console/links""#])
        .has_not(&["s49", "Next page"]);
    let one = world.get("/console/links?state=paused&name=S07").await;
    one.has(&[
        "orders / s07",
        r#"value="paused" selected"#,
        r#"value="S07""#,
    ])
    .has_not(&["orders / s08"]);
    let beyond = world.get("/console/links?after=60").await;
    beyond
        .has(&["There are no more rows", r#"href="/console/links""#])
        .has_not(&["Change the filters"]);
    world
        .get("/console/links?state=retry")
        .await
        .has(&["Change the filters"])
        .has_not(&["orders / s07"]);
    assert_eq!(world.get("/console/links?state=broken").await.status, 400);
}

/// Rows that the API leaves out are mentioned on every page and under every filter.
#[tokio::test]
async fn rows_left_out_by_the_api_are_mentioned() {
    let world = World::signed_in().await;
    for number in 0..=1_000 {
        world
            .fail_link(&format!("https://s{number}.example.com:443"))
            .await;
    }
    for query in ["", "?name=s7", "?state=paused", "?after=2000"] {
        let page = world.get(&format!("/console/links{query}")).await;
        page.has(&["Only the first 1,000 rows are shown and searched; there are more."]);
    }
}

#[tokio::test]
async fn slow_targets_have_a_table_of_their_own() {
    let world = World::signed_in().await;
    let object = r#"{"v":1,"slowUntil":{"https://b.example.com:443 orders.crm":253402300799000}}"#;
    world.state.write("lanes.json", object);
    let page = world.get("/console/links").await;
    page.has(&[
        "Slow lane",
        "/console/topics/orders/subscriptions/crm",
        "https://b.example.com:443",
    ]);
}
