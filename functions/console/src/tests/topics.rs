//! The list of topics, and new ones.

use serde_json::json;

use super::World;

#[tokio::test]
async fn without_a_topic_the_page_leads_to_the_first() {
    let world = World::signed_in().await;
    let page = world.get("/console/topics").await;
    page.has(&["There is no topic yet", "href=\"/console/topics/new\""]);
}

#[tokio::test]
async fn topics_are_listed_page_by_page() {
    let world = World::signed_in().await;
    for number in 0..51 {
        world
            .put(
                &["topics", &format!("t-{number:02}")],
                json!({ "defaultTimeToLive": "P1D" }),
            )
            .await;
    }
    let page = world.get("/console/topics").await;
    page.has(&[
        "/console/topics/t-00\"",
        "/console/topics/t-49\"",
        "P1D",
        "Next page",
    ])
    .has_not(&["t-50"]);
    let (_, next) = page
        .html
        .split_once("<a class=\"button\" href=\"/console/topics?")
        .unwrap();
    let next = format!("/console/topics?{}", next.split('"').next().unwrap());
    world
        .get(&next)
        .await
        .has(&["/console/topics/t-50\""])
        .has_not(&["t-49", "Next page"]);
}

#[tokio::test]
async fn a_page_of_deleted_topics_does_not_say_that_there_is_none() {
    let world = World::signed_in().await;
    for number in 0..51 {
        world
            .put(&["topics", &format!("t-{number:02}")], json!({}))
            .await;
    }
    for number in 0..50 {
        world.leave_tombstone(&format!("t-{number:02}"));
    }
    let page = world.get("/console/topics").await;
    page.has(&["No topic is on this page", "Next page"])
        .has_not(&["There is no topic yet"]);
}

#[tokio::test]
async fn topics_are_found_by_the_beginning_of_their_names() {
    let world = World::signed_in().await;
    for name in ["orders", "orders-eu", "bills"] {
        world.put(&["topics", name], json!({})).await;
    }
    let page = world.get("/console/topics?prefix=ORDERS").await;
    page.has(&[
        "/console/topics/orders\"",
        "/console/topics/orders-eu\"",
        "value=\"ORDERS\"",
    ]);
    page.has_not(&["/console/topics/bills"]);
    world
        .get("/console/topics?prefix=x")
        .await
        .has(&["No topic has a name that begins like this"]);
    assert_eq!(
        world
            .get("/console/topics?prefix=%3Cscript%3E")
            .await
            .status,
        400
    );
}

#[tokio::test]
async fn a_topic_that_cannot_be_read_is_listed_and_has_a_page() {
    let world = World::signed_in().await;
    world.put(&["topics", "orders"], json!({})).await;
    world.state.write("topics/broken.json", "not a record");
    let page = world.get("/console/topics").await;
    page.has(&[
        "cannot be read",
        "href=\"/console/topics/broken\"",
        "href=\"/console/topics/orders\"",
    ]);
    let page = world.get("/console/topics/broken").await;
    assert_eq!(page.status, 500);
    assert!(
        page.html.contains("the record cannot be read") && page.html.contains("/broken/delete"),
        "{page:?}"
    );
}

#[tokio::test]
async fn a_new_topic_leads_to_its_first_subscription() {
    let world = World::signed_in().await;
    let fields = [
        ("name", "orders"),
        (
            "text",
            "inputSchema: EventGrid\r\ndefaultTimeToLive: P1D\r\n",
        ),
        ("step", "save"),
    ];
    let made = world
        .post("/console/topics/new", "/console/topics/new", &fields)
        .await;
    assert_eq!(
        (made.status, made.page_after()),
        (303, "/console/topics/orders?done=created")
    );
    world.get(made.location()).await.has(&[
        "The topic was created.",
        "EventGrid",
        "P1D",
        "href=\"/console/topics/orders/subscriptions/new\"",
        "href=\"#publish\"",
    ]);
}

#[tokio::test]
async fn a_new_topic_with_mistakes_is_not_made() {
    let world = World::signed_in().await;
    world.put(&["topics", "orders"], json!({})).await;
    let subscriptions = "subscriptions: { a: { endpoint: { url: 'https://a.example/' } } }";
    for (name, text, expected) in [
        ("a b", "inputSchema: CloudEvents", "is not a name"),
        ("crm", "inputSchema: CloudEvent", "line 1, column 14"),
        ("crm", "inputSchem: CloudEvents", "did you mean"),
        ("crm", "inputSchema: [", "line 1, column 14"),
        (
            "crm",
            subscriptions,
            "subscriptions have pages of their own",
        ),
        ("ORDERS", "inputSchema: CloudEvents", "already"),
    ] {
        let fields = [("name", name), ("text", text), ("step", "save")];
        let refused = world
            .post("/console/topics/new", "/console/topics/new", &fields)
            .await;
        assert_eq!(refused.status, 400, "{text:?}");
        for marked in [
            "<title>Mistake: New topic",
            r#"<div class="problem" role="alert" tabindex="-1" autofocus>"#,
        ] {
            assert!(
                refused.html.contains(marked),
                "{marked:?} is missing in {}",
                refused.html
            );
        }
        assert!(
            refused.html.contains(expected),
            "{expected:?} is missing in {}",
            refused.html
        );
    }
    let long = [("name", "crm"), ("text", &*"#".repeat(70_000))];
    let refused = world
        .post("/console/topics/new", "/console/topics/new", &long)
        .await;
    assert!(
        refused.status == 413 && refused.html.len() < 5_000,
        "{}",
        refused.html
    );
    world.get("/console/topics").await.has_not(&["crm"]);
}
