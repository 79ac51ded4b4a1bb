//! The search for events by what a visitor has.

use posthaste_core::delivery_log::{LogRecord, LogResult};
use serde_json::json;

use super::World;
use super::logged::{HOSTILE, again, delivered};
use crate::address::PageAddress;

const OBJECT: &str = "ORDERS/BILLING/2023/11/14/22/a.json";

fn find(text: &str) -> String {
    PageAddress::new(&["find"]).with_event_id(text).to_string()
}

#[tokio::test]
async fn overview_has_the_search() {
    let world = World::with_billing().await;
    let form = r#"<form class="filters" method="get" action="/console/find" role="search">"#;
    world
        .get("/console")
        .await
        .has(&[form, "webhook-id or dead-letter key"]);
    world
        .get("/console/find")
        .await
        .has(&[form, "Every topic is searched"]);
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
    let page = world.get(&find("order-1")).await;
    page.has(&[
        r#"href="/console/topics/Orders/events/order-1""#,
        r#"href="/console/topics/invoices/events/order-1""#,
        r#"<span class="badge good">delivered</span>"#,
        r#"<span class="badge bad">dead-lettered</span>"#,
        "object=ORDERS%2FBILLING%2F2023%2F11%2F14%2F22%2Fa.json&amp;id=order-1",
        "The log was searched back to",
        r#"value="order-1""#,
    ]);
    world
        .get(&find("msg_key-of-order-1"))
        .await
        .has(&[r#"href="/console/topics/Orders/events/order-1""#]);
}

#[tokio::test]
async fn key_of_a_dead_letter_shows_its_letters() {
    let world = World::with_billing().await;
    let letter = |id| json!({ "id": id, "deadletterreason": "EndpointGone" });
    world.write_letters("a", &json!([letter("order-0"), letter("order-1")]));
    let page = world.get(&find(OBJECT)).await;
    page.has(&[
        "Dead letters of this object",
        "EndpointGone",
        "object=ORDERS%2FBILLING%2F2023%2F11%2F14%2F22%2Fa.json&amp;index=1",
        r#"<span class="badge bad">open</span>"#,
        "may be waiting",
    ]);
}

/// Searches that find nothing say so, and a time that cannot be read is a named mistake.
#[tokio::test]
async fn empty_search_says_so_and_bad_time_is_named() {
    let world = World::with_billing().await;
    world
        .get(&find("none"))
        .await
        .has(&["Nothing was found", "may be waiting"]);
    let page = world.get("/console/find?id=none&from=never").await;
    let is_named = ["from-mistake", r#"value="never""#].map(|part| page.html.contains(part));
    assert_eq!((page.status, is_named), (400, [true; 2]), "{}", page.html);
}

#[tokio::test]
async fn ids_of_any_characters_are_found() {
    let world = World::with_billing().await;
    let long = "ü".repeat(1_024);
    let ids = [&HOSTILE[..], &["a/b%41", " x", &long]].concat();
    for (ago, id) in (1..).zip(ids) {
        world.log_records(&[delivered(id, world.ago(ago))]);
        let page = world.get(&find(id)).await;
        page.has(&[&PageAddress::for_event("Orders", id)
            .to_string()
            .replace('&', "&amp;")]);
        page.has_not(&HOSTILE[..2]);
    }
}
