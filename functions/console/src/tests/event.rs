//! The page of one event.

mod made_request;
mod subscriptions;

use std::collections::BTreeSet;
use std::time::Duration;

use posthaste_core::delivery_log::{LogRecord, LogResult, RecordKind};
use posthaste_core::model::Timestamp;
use serde_json::json;

use super::logged::{HOSTILE, again, delivered, refused, with_payload};
use super::{ShownPage, World};
use crate::address::PageAddress;
use crate::api::RequestTarget;

fn page_of(id: &str) -> String {
    PageAddress::for_event("Orders", id).to_string()
}

#[tokio::test]
async fn a_delivery_is_shown_with_its_attempts() {
    let world = World::with_billing().await;
    let first = with_payload(refused("order-1", world.ago(70)), "x");
    let second = again(refused("order-1", world.ago(70)), 2, world.ago(20));
    let second = LogRecord {
        status: None,
        error: Some("connection refused".to_owned()),
        answer: None,
        ..second
    };
    world.log_records(&[first, second]);
    let page = world.get(&page_of("order-1")).await;
    page.has(&[
        "Event order-1",
        r#"<section id="deliveries" data-live"#,
        r#"href="/console/topics/Orders/subscriptions/Billing""#,
        r#"<span class="badge warn">waiting</span>"#,
        "Attempt 1",
        "Attempt 2",
        "answered <strong>503</strong> after 12 ms",
        "connection refused",
        "thanks",
        "text/plain",
        "msg_key-of-order-1",
        "https://billing.example.com/hooks",
        "1 waiting (due)",
        "<span class=\"badge\">first</span>",
        "<span class=\"badge\">retry</span>",
        "due; its endpoint may be down",
        "Can be sent again until",
        "The log is complete until",
    ]);
    page.has_not(&[r#"href="https://"#]);
}

#[tokio::test]
async fn a_dead_letter_leads_to_its_record() {
    let world = World::with_billing().await;
    let dead = LogRecord {
        result: LogResult::DeadLettered,
        reason: Some("EndpointGone".to_owned()),
        dead_letter_object: Some("ORDERS/BILLING/2023/11/14/22/a.json".to_owned()),
        ..delivered("order-1", world.ago(10))
    };
    world.log_records(&[dead]);
    let link = "/console/dead-letters/record?object=ORDERS%2FBILLING%2F2023%2F11%2F14%2F22%2Fa.json&amp;id=order-1";
    world.get(&page_of("order-1")).await.has(&[
        link,
        "EndpointGone",
        "badge bad\">dead-lettered",
        "1 given up (<bdi>200</bdi>)",
    ]);
    let letter = |id| json!({ "id": id, "deadletterreason": "EndpointGone" });
    world.write_letters("a", &json!([letter("order-0"), letter("order-1")]));
    let page = world.get(&link.replace("&amp;", "&")).await;
    page.has(&["number 2", &page_of("order-1"), "Send this event again"]);
}

#[tokio::test]
async fn an_event_without_a_record_may_still_come() {
    let world = World::with_billing().await;
    world
        .get(&page_of("order-1"))
        .await
        .has(&["may be waiting", "data-live", "Show what fails"]);
    let page = world.get("/console/topics/unknown/events/order-1").await;
    assert_eq!(page.status, 404);
}

#[tokio::test]
async fn a_payload_is_asked_for_apart_and_cut() {
    let world = World::with_billing().await;
    world.log_records(&[with_payload(
        delivered("order-1", world.ago(10)),
        &"\"<é".repeat(20_000),
    )]);
    let page = world.get(&page_of("order-1")).await;
    page.has(&["Show the payload", "?payload=true#payload"])
        .has_not(&["specversion"]);
    let page = world
        .get(&format!("{}?payload=true", page_of("order-1")))
        .await;
    page.has(&[
        "  &quot;data&quot;: &quot;",
        "Only the beginning is shown, of 100,0",
        "Hide the payload",
    ]);
    assert!(page.html.len() < 200_000, "{} bytes", page.html.len());
    world.log_records(&[delivered("order-2", world.ago(10))]);
    world
        .get(&page_of("order-2"))
        .await
        .has(&["cannot be sent again from here"]);
}

#[tokio::test]
async fn an_event_is_sent_again_and_the_page_says_what_may_follow() {
    let world = World::with_billing().await;
    let held = LogRecord {
        kind: RecordKind::Held,
        result: LogResult::Held,
        ..with_payload(delivered("a/b", world.ago(0)), "x")
    };
    world.log_records(&[held]);
    let action = "/console/topics/Orders/resend?id=a%2Fb";
    let fields = [("delivery", "Billing key-of-a/b")];
    let sent = world.post(&page_of("a/b"), action, &fields).await;
    let after = format!("{}&done=resent,waits", page_of("a/b"));
    assert_eq!((sent.status, sent.page_after()), (303, &*after));
    let page = world.get(sent.location()).await;
    page.has(&[
        "a new delivery of it is queued",
        "its dead letter is resolved",
        "still waits",
    ]);
    world.clock.advance(Duration::from_secs(61));
    world
        .get(sent.location())
        .await
        .has_not(&["role=\"status\""]);
    let refused = world
        .post(&page_of("a/b"), action, &[("delivery", "audit key-of-a/b")])
        .await;
    assert_eq!(refused.status, 404);
    assert!(
        refused.html.contains("The event was not sent again"),
        "{}",
        refused.html
    );
}

#[tokio::test]
async fn any_id_has_its_page_and_is_shown_as_text() {
    let world = World::with_billing().await;
    let long = "ü".repeat(1_024);
    let ids = [
        "..",
        "a%41",
        "-",
        ".",
        "a/b",
        "a?b#c",
        "100%",
        "%2F",
        "+",
        "\u{0}\n\"",
        &long,
    ]
    .into_iter()
    .chain(HOSTILE);
    let records: Vec<_> = ids
        .clone()
        .map(|id| LogRecord {
            delivery_key: "key".to_owned(),
            webhook_id: None,
            answer: Some(id.to_owned()),
            error: Some(id.to_owned()),
            ..delivered(id, world.ago(5))
        })
        .collect();
    world.log_records(&records);
    for id in ids {
        let page = world.get(&page_of(id)).await;
        page.has(&["Attempt 1"]).has_not(&[
            "<script>",
            "<img",
            "\u{202e}",
            "\u{0}",
            r#"href="javascript"#,
        ]);
    }
}

/// The keys of the deliveries on a page.
fn keys_on(page: &ShownPage) -> BTreeSet<String> {
    let lists = page.html.split("aria-label=\"Attempts of ").skip(1);
    lists
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect()
}

/// The address of the first link with this text.
fn link_to(page: &ShownPage, text: &str) -> Option<String> {
    let (before, _) = page.html.split_once(&format!("\">{text}</a>"))?;
    let (_, link) = before.rsplit_once("href=\"")?;
    let address = link.split('"').next()?;
    Some(address.replace("&amp;", "&"))
}

/// Ids that a path does not carry stay in the form that narrows the search to a time.
#[tokio::test]
async fn id_with_a_slash_keeps_its_page_in_a_narrower_search() {
    let world = World::with_billing().await;
    let page = world.get(&page_of("shop/1")).await;
    page.has(&[
        r#"action="/console/topics/Orders/event""#,
        r#"type="hidden" name="id" value="shop/1""#,
    ]);
    world.get(&page_of("a\nb")).await.has(&[
        r#"action="/console/topics/Orders/event""#,
        r#"type="hidden" name="id64" value="YQpi""#,
    ]);
    let long = "ü".repeat(1_024);
    let page = world.get(&page_of(&long)).await;
    page.has(&[r#"type="hidden" name="id64" value="w7zDvMO8"#]);
    assert_eq!(
        world
            .get("/console/topics/Orders/event?id64=a+b")
            .await
            .status,
        400
    );
}

#[tokio::test]
async fn an_id_of_many_deliveries_and_long_texts_makes_no_long_page() {
    let world = World::with_billing().await;
    let text = Some("\"".repeat(1_000));
    let record = |n: u16| LogRecord {
        delivery_key: format!("key-{n}"),
        error: text.clone(),
        answer: text.clone(),
        ..again(delivered("order-1", world.ago(5)), n, world.ago(5))
    };
    let mut records: Vec<_> = (1..=60).map(record).collect();
    records.extend((1..=60).map(|n| again(refused("order-2", world.ago(9)), n, world.ago(9))));
    world.log_records(&records);
    let page = world.get(&page_of("order-1")).await;
    page.has(&[
        "1 delivered. 59 earlier deliveries of this id",
        "older deliveries are not shown",
    ]);
    assert!(page.html.len() < 100_000, "{} bytes", page.html.len());
    let mut shown = keys_on(&page);
    let mut page = page;
    while let Some(next) = link_to(&page, "Show older deliveries") {
        page = world.get(&next).await;
        assert!(page.html.len() < 100_000, "{} bytes", page.html.len());
        page.has(&[
            "Only deliveries to <bdi>Billing</bdi>",
            "Newer deliveries are not shown",
        ]);
        let keys = keys_on(&page);
        assert!(!keys.is_empty());
        shown.extend(keys);
    }
    assert_eq!(shown.len(), 60);
    let page = world.get(&page_of("order-2")).await;
    page.has(&[
        "10 older attempts are not shown",
        "<a href=\"#attempts-0\">60</a>",
        "Attempt 60",
        "?subscription=Billing&amp;key=key-of-order-2\"",
    ]);
    let page = world
        .get(&format!("{}?key=key-of-order-2", page_of("order-2")))
        .await;
    page.has(&[
        "Attempt 60",
        "Attempt 11<",
        "?key=key-of-order-2&amp;skip=50\"",
        "Show all deliveries",
    ]);
    let page = world
        .get(&format!(
            "{}?key=key-of-order-2&skip=50",
            page_of("order-2")
        ))
        .await;
    page.has(&["Attempt 10<", "Attempt 1<", "Show the newest attempts"])
        .has_not(&["Attempt 11<", "older attempts"]);
}

#[tokio::test]
async fn a_search_of_another_time_is_kept_and_its_mistakes_are_named() {
    let world = World::with_billing().await;
    world.log_records(&[delivered("order-1", world.ago(5))]);
    let page = world
        .get(&format!("{}?to=2023-11-14T22:00:00Z", page_of("order-1")))
        .await;
    page.has(&[r#"value="2023-11-14T22:00:00Z""#])
        .has_not(&["Attempt 1"]);
    let page = world.get(&format!("{}?to=soon", page_of("order-1"))).await;
    assert_eq!(page.status, 400);
    assert!(page.html.contains(r#"id="to-mistake""#), "{}", page.html);
}

/// Pages of ended events do not refresh by themselves until the event is sent again.
#[tokio::test]
async fn ended_event_refreshes_only_after_it_is_sent_again() {
    let world = World::with_billing().await;
    let now = world.ago(0);
    let old = with_payload(delivered("old", now), "x");
    world.log_records(&[old, refused("open", now), dead("dead", now)]);
    world.clock.advance(Duration::from_secs(90));
    world.log_records(&[delivered("new", world.ago(9))]);
    for id in ["new", "open", "dead"] {
        world
            .get(&page_of(id))
            .await
            .has(&["id=\"deliveries\" data-live"]);
    }
    world
        .get(&page_of("old"))
        .await
        .has(&["Attempt 1"])
        .has_not(&["data-live"]);
    let fields = [("delivery", "Billing key-of-old")];
    let sent = world
        .post(
            &page_of("old"),
            "/console/topics/Orders/resend?id=old",
            &fields,
        )
        .await;
    world.get(sent.location()).await.has(&["data-live"]);
}

/// The last attempt of an event that was given up.
fn dead(id: &str, at: Timestamp) -> LogRecord {
    let reason = Some("MaxDeliveryAttemptsExceeded".to_owned());
    LogRecord {
        result: LogResult::DeadLettered,
        reason,
        next_attempt_at: None,
        ..refused(id, at)
    }
}

#[tokio::test]
async fn a_dead_letter_that_is_not_written_yet_has_its_time() {
    let world = World::with_billing().await;
    world.log_records(&[dead("order-1", world.ago(60))]);
    let page = world.get(&page_of("order-1")).await;
    page.has(&["about 5 minutes after the last attempt (deadLetter.delay)"]);
    for (delay, shown) in [
        ("PT0S", "a minute"),
        ("PT10M", "10 minutes"),
        ("PT1M30S", "PT1M30S"),
    ] {
        let settings = json!({
            "endpoint": { "url": "https://billing.example.com/" }, "deadLetter": { "delay": delay },
        });
        world
            .put(&["topics", "Orders", "subscriptions", "Billing"], settings)
            .await;
        world
            .get(&page_of("order-1"))
            .await
            .has(&[&*format!("about {shown} after the last attempt")]);
    }
}

/// Last attempts show the outcome of their request, not the reason for giving up.
#[tokio::test]
async fn last_attempt_shows_its_outcome_not_the_reason() {
    let world = World::with_billing().await;
    let answered = dead("answered", world.ago(9));
    let error = Some("connection refused".to_owned());
    let failed = LogRecord {
        status: None,
        error,
        ..dead("failed", world.ago(9))
    };
    world.log_records(&[answered, failed]);
    for (id, outcome) in [("answered", "Busy"), ("failed", "failed")] {
        let badge = format!("badge bad\"><bdi>{outcome}</bdi>");
        let page = world.get(&page_of(id)).await;
        page.has(&[&*badge, "MaxDeliveryAttemptsExceeded"]);
        page.has_not(&["badge bad\"><bdi>MaxDeliveryAttemptsExceeded"]);
    }
}

#[tokio::test]
async fn overdue_attempt_leads_to_what_fails() {
    let world = World::with_billing().await;
    world.log_records(&[
        refused("order-1", world.ago(20)),
        refused("order-2", world.ago(7)),
    ]);
    world
        .get(&page_of("order-1"))
        .await
        .has(&["its endpoint may be down", "href=\"/console/failing\""]);
    world
        .get(&page_of("order-2"))
        .await
        .has(&["in 3 s", "1 waiting (next "])
        .has_not(&["may be down"]);
}

#[tokio::test]
async fn a_deleted_subscription_or_topic_of_an_event_has_no_link() {
    let world = World::with_billing().await;
    world.log_records(&[with_payload(delivered("order-1", world.ago(9)), "x")]);
    world.get(&page_of("order-1")).await.has(&["Send again to"]);
    world
        .api
        .delete(RequestTarget::new(&[
            "topics",
            "Orders",
            "subscriptions",
            "Billing",
        ]))
        .await
        .unwrap();
    let page = world.get(&page_of("order-1")).await;
    page.has(&["(deleted)", "href=\"/console/topics/Orders\""]);
    page.has_not(&["/subscriptions/", "Send again to"]);
    world
        .api
        .delete(RequestTarget::new(&["topics", "Orders"]))
        .await
        .unwrap();
    world
        .get(&page_of("order-1"))
        .await
        .has(&["Attempt 1"])
        .has_not(&["href=\"/console/topics/Orders\""]);
}

#[tokio::test]
async fn the_search_of_another_time_stands_below_the_deliveries() {
    let world = World::with_billing().await;
    world.log_records(&[delivered("order-1", world.ago(9))]);
    let page = world.get(&page_of("order-1")).await;
    let place = |text: &str| page.html.find(text).unwrap();
    assert!(place("The log is complete") < place("Search another time"));
}
