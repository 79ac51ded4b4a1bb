//! The search of everything by what a visitor has.

mod bounds;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use posthaste_core::delivery_log::{LogRecord, LogResult};
use posthaste_core::stored::layout;
use posthaste_testkit::records::topic_name;
use serde_json::json;
use tower::ServiceExt;

use super::World;
use super::logged::{HOSTILE, again, delivered};
use crate::ConsoleState;
use crate::address::PageAddress;
use crate::pages::search::search_address;

const OBJECT: &str = "ORDERS/BILLING/2023/11/14/22/a.json";

fn search(text: &str) -> String {
    search_address(text).to_string()
}

impl World {
    /// An installation with `Orders/Billing`, and with `invoices/billing-eu` on another host.
    async fn with_two_subscriptions() -> Self {
        let world = Self::with_billing().await;
        world.put(&["topics", "invoices"], json!({})).await;
        let url = "https://eu.example.org/a?token=s3cret";
        world
            .put(
                &["topics", "invoices", "subscriptions", "billing-eu"],
                json!({ "endpoint": { "url": url } }),
            )
            .await;
        world
    }

    /// Checks that a search leads to this page at once.
    #[track_caller]
    fn check_hit(page: &super::ShownPage, expected: &str) {
        assert_eq!((page.status, page.location()), (303, expected));
    }
}

#[tokio::test]
async fn every_page_has_the_search_box() {
    let world = World::with_billing().await;
    let form = r#"<form class="search" method="get" action="/console/search" role="search">"#;
    for page in [
        "",
        "/topics",
        "/events",
        "/topics/orders",
        "/search",
        "/no-such-page",
    ] {
        let shown = world.get(&format!("/console{page}")).await;
        for part in [form, r#"<label class="unseen" for="search-text">"#] {
            assert_eq!(shown.html.matches(part).count(), 1, "{page}");
        }
    }
    world.forget_cookies();
    let page = world.get("/console/sign-in").await;
    page.has_not(&["search"]);
}

#[tokio::test]
async fn empty_search_says_what_can_be_found() {
    let world = World::with_billing().await;
    for address in [
        "/console/search",
        "/console/search?q=",
        "/console/search?q=+",
    ] {
        world
            .get(address)
            .await
            .has(&["Every topic is searched", "dead letter by its key"]);
    }
}

#[tokio::test]
async fn only_hit_of_each_kind_is_shown_at_once() {
    let world = World::with_two_subscriptions().await;
    world.log_records(&[delivered("order-1", world.ago(60))]);
    let event = "/console/topics/Orders/events/order-1";
    for text in ["order-1", " order-1 ", "msg_key-of-order-1"] {
        World::check_hit(&world.get(&search(text)).await, event);
    }
    let subscription = "/console/topics/invoices/subscriptions/billing-eu";
    for text in [
        "billing-EU",
        "Billing-e",
        "eu.example.org",
        "https://EU.example.org/a?token=other",
        "example.org",
    ] {
        World::check_hit(&world.get(&search(text)).await, subscription);
    }
    world.write_letters("a", &json!([{ "id": "order-0", "deadletterreason": "x" }]));
    let letter = PageAddress::new(&["dead-letters", "record"])
        .query("object", Some(OBJECT))
        .query("index", Some(0));
    World::check_hit(&world.get(&search(OBJECT)).await, &letter.to_string());
}

#[tokio::test]
async fn times_go_on_to_the_event() {
    let world = World::with_billing().await;
    world.log_records(&[delivered("order-1", world.ago(60))]);
    let page = world.get("/console/search?q=order-1&from=2h").await;
    World::check_hit(&page, "/console/topics/Orders/events/order-1?from=2h");
}

#[tokio::test]
async fn events_of_all_topics_are_listed_with_their_dead_letters() {
    let world = World::with_billing().await;
    let dead = LogRecord {
        result: LogResult::DeadLettered,
        reason: Some("EndpointGone".to_owned()),
        dead_letter_object: Some(OBJECT.to_owned()),
        ..delivered("order-1", world.ago(70))
    };
    let other = LogRecord {
        topic: "invoices".to_owned(),
        ..again(delivered("order-1", world.ago(9)), 1, world.ago(9))
    };
    world.log_records(&[dead, other]);
    let page = world.get(&search("order-1")).await;
    page.has(&[
        r#"href="/console/topics/Orders/events/order-1""#,
        r#"href="/console/topics/invoices/events/order-1""#,
        r#"<span class="badge good">delivered</span>"#,
        "object=ORDERS%2FBILLING%2F2023%2F11%2F14%2F22%2Fa.json&amp;id=order-1",
        "The log was searched back to",
        r#"name="q" value="order-1""#,
    ]);
}

#[tokio::test]
async fn text_that_is_an_id_and_a_name_has_a_heading_for_each() {
    let world = World::with_two_subscriptions().await;
    world.log_records(&[delivered("billing", world.ago(60))]);
    let page = world.get(&search("billing")).await;
    page.has(&[
        "<h2>Events</h2>",
        r#"href="/console/topics/Orders/events/billing""#,
        "<h2>Subscriptions with this name</h2>",
        r#"href="/console/topics/Orders/subscriptions/Billing""#,
        r#"href="/console/topics/invoices/subscriptions/billing-eu""#,
        "https://eu.example.org/a",
        "2 topics were searched",
    ]);
    // The endpoint of Orders/Billing has this host, and the subscription has its row already.
    page.has_not(&["s3cret", "<h2>Subscriptions with this endpoint</h2>"]);
}

#[tokio::test]
async fn key_of_a_dead_letter_shows_its_letters() {
    let world = World::with_billing().await;
    let letter = |id| json!({ "id": id, "deadletterreason": "EndpointGone" });
    world.write_letters("a", &json!([letter("order-0"), letter("order-1")]));
    let page = world.get(&search(OBJECT)).await;
    page.has(&[
        "Dead letters of this key",
        "EndpointGone",
        "object=ORDERS%2FBILLING%2F2023%2F11%2F14%2F22%2Fa.json&amp;index=1",
        r#"<span class="badge bad">open</span>"#,
    ]);
}

#[tokio::test]
async fn empty_result_says_what_was_searched_and_how_far_back() {
    let world = World::with_two_subscriptions().await;
    world.log_records(&[delivered("order-1", world.ago(60))]);
    world.get(&search("none")).await.has(&[
        "Nothing was found.",
        "No event has this id, and no request this webhook-id.",
        "The log was searched back to",
        "It is complete until",
        "Subscriptions with this name: 2 topics were searched.",
        "Subscriptions with this endpoint: 2 topics were searched.",
    ]);
    let page = world.get("/console/search?q=none&from=never").await;
    let is_named = ["from-mistake", r#"value="never""#].map(|part| page.html.contains(part));
    assert_eq!((page.status, is_named), (400, [true; 2]), "{}", page.html);
    page.has_not(&["Nothing was found"]);
}

#[tokio::test]
async fn long_list_of_subscriptions_goes_on() {
    let world = World::with_billing().await;
    for at in 0..60 {
        let name = format!("crm-{at:02}");
        let endpoint = json!({ "endpoint": { "url": "https://crm.example.net/hooks" } });
        world
            .put(&["topics", "orders", "subscriptions", &name], endpoint)
            .await;
    }
    for (text, parameter) in [("crm-", "names"), ("crm.example.net", "urls")] {
        let page = world.get(&search(text)).await;
        page.has(&["crm-00", "crm-24", "Search on"])
            .has_not(&["crm-25"]);
        let (_, rest) = page.html.split_once(&format!("&amp;{parameter}=")).unwrap();
        let cursor = rest.split('"').next().unwrap();
        let next = format!("{}&{parameter}={cursor}", search(text));
        world.get(&next).await.has(&["crm-25", "crm-59"]).has_not(&[
            "crm-24",
            "Search on",
            "The log was searched",
        ]);
    }
}

/// A part that fails is named, and the others are shown. That something is the only hit is then
/// unknown.
#[tokio::test]
async fn part_that_fails_hides_no_other() {
    let world = World::with_billing().await;
    world.log_records(&[delivered("order-1", world.ago(60))]);
    for (failing, missing) in [
        ("/subscriptions", "<h2>Subscriptions with this name</h2>"),
        ("/events/order-1", "role=\"alert\""),
    ] {
        let routes = world.api_routes.clone();
        let answer = move |request: Request| {
            let fails = request.uri().path() == failing;
            let routes = routes.clone();
            async move {
                if fails {
                    StatusCode::SERVICE_UNAVAILABLE.into_response()
                } else {
                    routes.oneshot(request).await.into_response()
                }
            }
        };
        let world = World::with_billing()
            .await
            .changed(|_, _| ConsoleState::new(Router::new().fallback(answer)));
        let page = world.get(&search("order-1")).await;
        assert_eq!(page.status, 503, "{failing}");
        assert!(page.html.contains(missing), "{failing}: {}", page.html);
        page.has_not(&["Nothing was found"]);
    }
}

#[tokio::test]
async fn unreadable_topic_is_said() {
    let world = World::with_billing().await;
    let key = layout::topic_record_key(&topic_name("broken"));
    world.state.write(&key, "{");
    world.get(&search("none")).await.has(&[
        "Nothing was found.",
        "records cannot be read, and which were not searched: 1.",
    ]);
}

#[tokio::test]
async fn texts_of_any_characters_are_found_and_escaped() {
    let world = World::with_billing().await;
    let long = "ü".repeat(1_024);
    let ids = [&HOSTILE[..], &["a/b%41", " x", &long]].concat();
    for (ago, id) in (1..).zip(ids) {
        let page = world.get(&search(id)).await;
        page.has(&["Nothing was found."]).has_not(&HOSTILE[..2]);
        assert!(page.html.len() < 30_000, "{} bytes", page.html.len());
        world.log_records(&[delivered(id, world.ago(ago))]);
        let event = PageAddress::for_event("Orders", id).to_string();
        World::check_hit(&world.get(&search(id)).await, &event);
    }
}

#[tokio::test]
async fn addresses_of_the_former_page_lead_to_the_search() {
    let world = World::with_billing().await;
    let long = "ü".repeat(1_024);
    let former = PageAddress::new(&["find"]).with_event_id(&long).to_string();
    for (address, expected) in [
        ("/console/find".to_owned(), "/console/search".to_owned()),
        (
            "/console/find?id=a%20b&from=1h&to=".to_owned(),
            "/console/search?q=a+b&from=1h".to_owned(),
        ),
        (former, search(&long)),
    ] {
        World::check_hit(&world.get(&address).await, &expected);
    }
    assert!(search(&long).starts_with("/console/search?q64="));
}
