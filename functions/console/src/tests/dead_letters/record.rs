//! The page of one dead letter.

use posthaste_core::delivery_log::log_text;
use serde_json::json;

use super::super::World;
use super::super::logged::{HOSTILE, delivered, with_payload};
use super::{RECORD, letter, world};
use crate::address::PageAddress;

#[tokio::test]
async fn a_record_is_shown_as_it_is_stored() {
    let world = world().await;
    let key = "ORDERS%2FBILLING%2F2023%2F11%2F14%2F22%2Fa.json";
    let page = world
        .get(&format!(
            "/console/dead-letters/record?object={key}&index=1"
        ))
        .await;
    page.has(&[
        "order-2",
        "&quot;deadletterreason&quot;: &quot;TimeToLiveExceeded&quot;",
        "Event before",
    ]);
    page.has(&["/console/topics/Orders/events/order-2", "number 2"])
        .has_not(&["Next event"]);
    world
        .get(&format!(
            "/console/dead-letters/record?object={key}&id=order-2"
        ))
        .await
        .has(&["number 2"]);
    let page = world
        .get("/console/dead-letters/record?object=ORDERS%2FBILLING%2Fx")
        .await;
    assert_eq!(page.status, 404);
    world
        .get(&format!(
            "/console/dead-letters/record?object={key}&index=2"
        ))
        .await
        .has(&[
            "no dead letter of this number",
            "Show the first one",
            "Dead letters of this subscription",
        ]);
    world
        .dead_letters
        .write("MALFORMED/2023/11/14/22/x", "<b>not JSON");
    let page = world
        .get("/console/dead-letters/record?object=MALFORMED%2F2023%2F11%2F14%2F22%2Fx")
        .await;
    page.has(&["&lt;b&gt;not JSON", "no list of dead letters"]);
}

#[tokio::test]
async fn a_hostile_or_large_record_is_text_and_cut() {
    let world = World::with_billing().await;
    let mut letters: Vec<_> = HOSTILE
        .iter()
        .map(|text| letter(text, "EndpointGone"))
        .collect();
    letters.push(
        json!({ "id": "large", "deadletterreason": "x", "data": "\"\u{202e}".repeat(500_000) }),
    );
    world.write_letters("a", &letters.into());
    let mut pages = vec![world.get("/console/dead-letters/list").await];
    for index in 0..5 {
        let url =
            "/console/dead-letters/record?object=ORDERS%2FBILLING%2F2023%2F11%2F14%2F22%2Fa.json";
        pages.push(world.get(&format!("{url}&index={index}")).await);
    }
    for page in &pages {
        page.has(&[])
            .has_not(&["<script>", "<img", "\u{202e}", r#"href="javascript"#]);
        assert!(page.html.len() < 200_000, "{} bytes", page.html.len());
    }
    pages[5].has(&["Only the beginning is shown"]);
}

#[tokio::test]
async fn an_id_that_the_object_does_not_have_shows_no_other_event() {
    let page = world().await.get(&format!("{RECORD}&id=order-9")).await;
    page.has(&[
        "no dead letter of this id",
        "Dead letters of this subscription",
        "Show the first one",
    ]);
    page.has_not(&["Send this event again", "EndpointGone"]);
}

#[tokio::test]
async fn an_id_is_matched_as_the_log_keeps_it_and_can_be_sent() {
    let world = World::with_billing().await;
    let long = "x".repeat(1_500);
    world.write_letters(
        "a",
        &json!([
            letter("order-1", "EndpointGone"),
            letter(&long, "EndpointGone")
        ]),
    );
    let kept = log_text(&long);
    let page = world.get(&format!("{RECORD}&id={kept}")).await;
    page.has(&[
        "number 2",
        &PageAddress::for_event("Orders", &kept).to_string(),
    ]);
    let action = format!("/console/topics/Orders/resend?id={kept}");
    assert!(
        page.html.contains(&format!("action=\"{action}\"")),
        "{}",
        page.html
    );
    let object = page.field("object");
    let fields = [
        ("subscription", "BILLING"),
        ("object", &*object),
        ("index", "1"),
    ];
    let sent = world.send_form(&page, &action, &fields).await;
    assert_eq!(
        sent.page_after(),
        format!("{}?done=resent", PageAddress::for_event("Orders", &kept))
    );
    world
        .get(sent.location())
        .await
        .has(&["a new delivery of it is queued"]);
}

#[tokio::test]
async fn letters_of_one_id_are_listed_to_choose_from() {
    let world = World::with_billing().await;
    let letters = json!([
        letter("1", "EndpointGone"),
        letter("2", "Unknown"),
        letter("1", "TimeToLiveExceeded")
    ]);
    world.write_letters("a", &letters);
    let page = world.get(&format!("{RECORD}&id=1")).await;
    page.has(&[
        "2 dead letters of this id",
        "EndpointGone",
        "TimeToLiveExceeded",
        "&amp;index=0\"",
        "&amp;index=2\"",
    ]);
    page.has_not(&["&amp;index=1\"", "Send this event again"]);
}

#[tokio::test]
async fn the_record_that_is_shown_is_the_one_that_is_sent() {
    let world = world().await;
    world.log_records(&[with_payload(delivered("order-1", world.ago(10)), "newer")]);
    let page = world.get(&format!("{RECORD}&index=0")).await;
    assert_eq!(
        (page.field("index"), page.field("subscription")),
        ("0".to_owned(), "Billing".to_owned())
    );
    let object = page.field("object");
    let action = "/console/topics/Orders/resend?id=order-1";
    let send = async |index: &str| {
        let fields = [
            ("subscription", "BILLING"),
            ("object", &*object),
            ("index", index),
        ];
        world.send_form(&page, action, &fields).await
    };
    assert_eq!(
        send("0").await.page_after(),
        "/console/topics/Orders/events/order-1?done=resent"
    );
    let refused = send("1").await;
    assert_eq!(refused.status, 404);
    assert!(
        refused
            .html
            .contains("no dead letter of this id at this place"),
        "{}",
        refused.html
    );
}

#[tokio::test]
async fn a_record_has_its_state_and_is_resolved_after_a_dry_run() {
    let world = world().await;
    let record = format!("{RECORD}&index=0");
    let page = world.get(&record).await;
    page.has(&[
        "badge bad\">open",
        "Resolve this dead letter",
        ">Orders</bdi> / <bdi>Billing",
    ]);
    let resolve = "/console/dead-letters/resolve";
    let fields = [
        ("topic", "Orders"),
        ("subscription", "Billing"),
        ("letter", &*page.field("letter")),
        ("ticked", "true"),
        ("includeFormer", "true"),
    ];
    let preview = world.post(&record, resolve, &fields).await;
    preview.has(&["<strong>1</strong> dead letters would be resolved"]);
    assert_eq!(preview.field("letter"), page.field("letter"));
    let acting = [&fields[..], &[("step", "act")]].concat();
    let done = world.send_form(&preview, resolve, &acting).await;
    world
        .get(done.location())
        .await
        .has(&["order-2"])
        .has_not(&["order-1"]);
    world
        .get(&record)
        .await
        .has(&["badge good\">resolved"])
        .has_not(&["Resolve th"]);
    let other = world.get(&format!("{RECORD}&index=1")).await;
    other.has(&["badge bad\">open", "Resolve this dead letter"]);
}

/// The key is shown where commands need it, and nowhere else as text.
#[tokio::test]
async fn key_of_a_record_is_among_its_technical_facts_alone() {
    let page = world().await.get(&format!("{RECORD}&index=0")).await;
    let key = "ORDERS/BILLING/2023/11/14/22/a.json";
    let (before, technical) = page.html.split_once("<summary>Technical").unwrap();
    assert!(
        technical.contains(&format!("<bdi>{key}</bdi>")),
        "{technical}"
    );
    assert!(!before.contains(&format!(">{key}")), "{before}");
    page.has(&["2 dead letters were written together"]);
}
