//! The request of an attempt, made again.

use std::time::Duration;

use serde_json::json;

use super::{link_to, page_of};
use crate::tests::World;
use crate::tests::logged::{HOSTILE, delivered, refused, with_payload};

#[tokio::test]
async fn request_of_an_attempt_is_one_click_away() {
    let world = World::with_billing().await;
    world.clock.advance(Duration::from_hours(1));
    let first = with_payload(refused("a/b", world.ago(9)), HOSTILE[0]);
    world.log_records(&[first]);
    let page = world.get(&page_of("a/b")).await;
    let address = link_to(&page, "Show the request").unwrap();
    assert_eq!(
        address,
        "/console/topics/Orders/event/request?id=a%2Fb&subscription=Billing&key=key-of-a%2Fb&attempt=1"
    );
    let page = world.get(&address).await;
    assert_eq!(page.status, 200);
    page.has(&[
        "The log keeps neither headers nor bodies",
        "webhook-id",
        "msg_key-of-a/b",
        "(masked)",
        "(not shown)",
        "&lt;script&gt;",
        "Back to the event",
        "Endpoint then",
    ]);
    page.has_not(&["s3cret", "<script>alert", "By today's settings"]);
    world
        .put(&["topics", "Orders"], json!({ "deliveryLog": "payloads" }))
        .await;
    let page = world.get(&address).await;
    page.has(&[
        "By today's settings",
        "/console/audit?topic=Orders&amp;from=",
    ]);
    let none = world.get(&address.replace("attempt=1", "attempt=7")).await;
    assert_eq!(none.status, 404);
    assert!(none.html.contains("Back to the event"), "{}", none.html);
    let bad = world.get(&address.replace("attempt=1", "attempt=x")).await;
    assert_eq!(bad.status, 400);
}

/// The request of an event of any id is found, and nothing of it is more than text.
#[tokio::test]
async fn requests_of_hostile_events_are_text() {
    let world = World::with_billing().await;
    for id in ["..", "%2F", "a \"b\"", HOSTILE[0], HOSTILE[1], HOSTILE[2]] {
        world.log_records(&[with_payload(delivered(id, world.ago(5)), HOSTILE[1])]);
        let page = world.get(&page_of(id)).await;
        let address = link_to(&page, "Show the request").unwrap();
        let page = world.get(&address).await;
        assert_eq!(page.status, 200, "{id:?}: {}", page.html);
        page.has(&["Headers of the request"])
            .has_not(&["<script>", "<img", "\u{202e}", "\u{0}"]);
    }
}
