//! The page of a topic.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;

use super::World;
use crate::api::RequestTarget;

async fn with_orders() -> World {
    let world = World::signed_in().await;
    world
        .put(&["topics", "Orders"], json!({ "deliveryLog": "attempts" }))
        .await;
    let billing = json!({
        "endpoint": { "url": "https://billing.example.com/hooks?token=t0ken" },
        "filter": { "includedEventTypes": ["order.paid"], "subjectBeginsWith": "shops/" },
    });
    world
        .put(&["topics", "orders", "subscriptions", "billing"], billing)
        .await;
    world
}

/// Topic pages list their subscriptions, and leave out the query of endpoint URLs.
#[tokio::test]
async fn subscriptions_are_shown_with_state_health_and_filter() {
    let page = with_orders().await.get("/console/topics/orders").await;
    page.has(&[
        "<bdi>Orders</bdi></h1>",
        "attempts",
        "href=\"/console/topics/Orders/subscriptions/billing\"",
        "active",
        "healthy",
        "https://billing.example.com/hooks<",
        "order.paid; subject begins with shops/",
    ]);
    page.has_not(&["t0ken"]);
}

#[tokio::test]
async fn publishing_is_explained_with_the_visitor_s_own_address() {
    let world = with_orders().await;
    let page = world.get("/console/topics/orders").await;
    page.has(&[
        "curl --fail-with-body 'http://localhost:8080/topics/Orders/events'",
        "aeg-sas-key: $KEY",
        "cloudevents+json",
        "see &quot;Show keys&quot; below",
    ]);
    let request = Request::get("/console/topics/orders")
        .body(Body::empty())
        .unwrap();
    let page = world.send_to("a.example';rm", request).await;
    assert!(
        page.html
            .contains("curl --fail-with-body 'https://HOST/topics/Orders/events'"),
        "{}",
        page.html
    );
}

#[tokio::test]
async fn keys_are_shown_replaced_and_deleted_by_forms_alone() {
    let world = with_orders().await;
    let page = "/console/topics/orders";
    let keys = world.post(page, "/console/topics/Orders/keys", &[]).await;
    let first = key(&keys.html, "key1");
    keys.has(&[
        "Publish keys of Orders",
        "/keys/key2\"",
        "Make internalKey1",
    ]);
    let replaced = world
        .send_form(&keys, "/console/topics/Orders/keys/key1", &[])
        .await;
    keys.has_not(&["Do not reload"]);
    replaced
        .has(&[
            "The key <bdi>key1</bdi> was made.",
            "Do not reload this page",
        ])
        .has_not(&[&first]);
    let made = world
        .send_form(&keys, "/console/topics/Orders/keys/bulkKey1", &[])
        .await;
    made.has(&["/console/topics/Orders/keys/bulkKey1/delete"]);
    let deleted = world
        .send_form(&made, "/console/topics/Orders/keys/bulkKey1/delete", &[])
        .await;
    assert_eq!(
        (deleted.status, deleted.page_after()),
        (303, "/console/topics/Orders?done=key-deleted")
    );
    let refused = world
        .send_form(&made, "/console/topics/Orders/keys/key1/delete", &[])
        .await;
    assert_eq!(refused.status, 400);
    world
        .get(page)
        .await
        .has_not(&[&first, &key(&made.html, "bulkKey1")]);
}

fn key(html: &str, name: &str) -> String {
    let (_, row) = html
        .split_once(&format!("data-label=\"Name\">{name}</td>"))
        .unwrap();
    let (_, key) = row.split_once("<code>").unwrap();
    key.split('<').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_topic_is_edited_by_its_difference() {
    let world = with_orders().await;
    let edit = "/console/topics/Orders/edit";
    let form = world.get("/console/topics/Orders/edit?tab=yaml").await;
    form.has(&["inputSchema: CloudEvents\ndeliveryLog: attempts\n"])
        .has_not(&["subscriptions:", "Orders\n"]);
    let version = form.field("version");
    let text = "inputSchema: CloudEvents\ndefaultTimeToLive: PT1H\n";
    let fields = [
        ("version", version.as_str()),
        ("text", text),
        ("step", "check"),
    ];
    let review = world.send_form(&form, edit, &fields).await;
    review.has(&[
        "defaultTimeToLive: (default) → PT1H",
        "deliveryLog: attempts → (default)",
        "Go on editing",
    ]);
    world.get("/console/topics/orders").await.has_not(&["PT1H"]);
    let back = world
        .send_form(
            &review,
            edit,
            &[("version", &version), ("text", text), ("step", "edit")],
        )
        .await;
    back.has(&["defaultTimeToLive: PT1H"]);
    let saved = world
        .send_form(
            &review,
            edit,
            &[("version", &version), ("text", text), ("step", "save")],
        )
        .await;
    assert_eq!(
        (saved.status, saved.page_after()),
        (303, "/console/topics/Orders?done=saved")
    );
    world.get(saved.location()).await.has(&[
        "The topic was saved.",
        "PT1H",
        "/subscriptions/billing",
    ]);
}

#[tokio::test]
async fn a_topic_that_was_changed_meanwhile_is_not_overwritten() {
    let world = with_orders().await;
    let edit = "/console/topics/orders/edit";
    let form = world.get(edit).await;
    world
        .put(
            &["topics", "orders"],
            json!({ "defaultTimeToLive": "PT2H" }),
        )
        .await;
    let version = form.field("version");
    let text = "deliveryLog: off\n";
    let fields = [
        ("version", version.as_str()),
        ("text", text),
        ("step", "save"),
    ];
    let told = world.send_form(&form, edit, &fields).await;
    assert_eq!(told.status, 409);
    assert!(
        told.html.contains("was changed since you began"),
        "{}",
        told.html
    );
    assert!(
        told.html.contains("defaultTimeToLive: PT2H → (default)"),
        "{}",
        told.html
    );
    world.get("/console/topics/orders").await.has(&["PT2H"]);
    let version = told.field("version");
    let fields = [
        ("version", version.as_str()),
        ("text", text),
        ("step", "save"),
    ];
    assert_eq!(world.send_form(&told, edit, &fields).await.status, 303);
}

#[tokio::test]
async fn a_schema_that_a_subscription_does_not_accept_is_a_mistake() {
    let world = with_orders().await;
    let crm =
        json!({ "endpoint": { "url": "https://a.example/" }, "deliverySchema": "CloudEvents" });
    world
        .put(&["topics", "orders", "subscriptions", "crm"], crm)
        .await;
    world
        .put(
            &["topics", "orders", "subscriptions", "bin"],
            json!({
                "endpoint": { "url": "https://a.example/" }, "contentMode": "binary",
            }),
        )
        .await;
    let form = world.get("/console/topics/orders/edit").await;
    let fields = [
        ("version", "x"),
        ("text", "inputSchema: EventGrid\n"),
        ("step", "check"),
    ];
    let refused = world
        .send_form(&form, "/console/topics/orders/edit", &fields)
        .await;
    assert_eq!(refused.status, 400);
    assert!(
        refused.html.contains("subscriptions.bin."),
        "{}",
        refused.html
    );
}

#[tokio::test]
async fn a_topic_is_deleted_once_its_name_was_typed() {
    let world = with_orders().await;
    let page = "/console/topics/orders";
    let delete = "/console/topics/Orders/delete";
    let refused = world.post(page, delete, &[("name", "order")]).await;
    assert_eq!(refused.status, 400);
    world.get(page).await.has(&["billing"]);
    let deleted = world.post(page, delete, &[("name", "orders ")]).await;
    assert_eq!(
        (deleted.status, deleted.page_after()),
        (303, "/console/topics?done=deleted")
    );
    world
        .get(deleted.location())
        .await
        .has(&["The topic was deleted.", "There is no topic yet"]);
    assert_eq!(world.get(page).await.status, 404);
}

#[tokio::test]
async fn a_topic_called_new_has_a_page() {
    let world = World::signed_in().await;
    world.put(&["topics", "new"], json!({})).await;
    world
        .get("/console/topics")
        .await
        .has(&["href=\"/console/topics/New\""]);
    world
        .get("/console/topics/New")
        .await
        .has(&["<bdi>new</bdi></h1>", "/topics/new/events"]);
}

/// Filters by name and state select subscriptions, and stay in the form.
#[tokio::test]
async fn subscriptions_are_filtered_by_name_and_state() {
    let world = with_orders().await;
    let crm = json!({ "endpoint": { "url": "https://crm.example/" } });
    world
        .put(&["topics", "orders", "subscriptions", "crm"], crm)
        .await;
    let page = world
        .get("/console/topics/orders?prefix=BI&state=Active")
        .await;
    page.has(&[
        "/subscriptions/billing\"",
        r#"value="BI""#,
        r#"<option value="Active" selected>"#,
    ]);
    page.has_not(&["/subscriptions/crm\""]);
    world
        .get("/console/topics/orders?state=Paused")
        .await
        .has(&["No subscription has these values"]);
    let page = world.get("/console/topics/orders?prefix=a%2Fb").await;
    assert_eq!(page.status, 400);
    assert!(
        page.html.contains(r#"id="prefix-mistake""#),
        "{}",
        page.html
    );
}

#[tokio::test]
async fn an_empty_list_of_subscriptions_keeps_its_place_on_the_page() {
    let world = with_orders().await;
    // The cursor of the name `zzz`.
    let page = world.get("/console/topics/orders?cursor=enp6").await;
    page.has(&["There are no more subscriptions", "First page"])
        .has_not(&["has no subscription"]);
    world
        .api
        .delete(RequestTarget::new(&[
            "topics",
            "orders",
            "subscriptions",
            "billing",
        ]))
        .await
        .unwrap();
    let page = world.get("/console/topics/orders").await;
    page.has(&[
        r#"<section id="subscriptions" data-live"#,
        "Make the first subscription",
    ]);
}

/// Topics without a delivery log setting show the installation's default.
#[tokio::test]
async fn topic_without_own_delivery_log_uses_the_default() {
    let world = World::signed_in().await;
    world.put(&["topics", "Plain"], json!({})).await;
    world
        .get("/console/topics/Plain")
        .await
        .has(&["<dd>installation default</dd>"]);
}

#[tokio::test]
async fn the_form_that_deletes_a_topic_names_what_goes_with_it() {
    let world = World::signed_in().await;
    world.put(&["topics", "Orders"], json!({})).await;
    let expected = [
        "<p>Its keys are deleted too. Events",
        "Its subscription <bdi>s1</bdi> and its keys are deleted too.",
        "Its 2 subscriptions (<bdi>s1, s2</bdi>) and its keys",
        "Its 3 subscriptions (<bdi>s1, s2, s3</bdi>) and its keys",
        "(<bdi>s1, s2, s3, s4</bdi>)",
        "(<bdi>s1, s2, s3, s4, s5</bdi>)",
        "Its 6 subscriptions (<bdi>s1, s2, s3, s4, s5</bdi>, …) and its keys are deleted too.",
    ];
    for (text, next) in expected.into_iter().zip(1..) {
        world
            .get("/console/topics/Orders")
            .await
            .has(&[text, "Capital letters do not matter."]);
        let endpoint = json!({ "endpoint": { "url": "https://billing.example.com/" } });
        world
            .put(
                &["topics", "Orders", "subscriptions", &format!("s{next}")],
                endpoint,
            )
            .await;
    }
}
