//! The page of events.

use posthaste_core::delivery_log::{LogRecord, LogResult, RecordKind};
use serde_json::json;
use url::form_urlencoded;

use super::World;
use super::logged::{HOSTILE, again, delivered, refused};
use crate::address::PageAddress;

#[tokio::test]
async fn without_a_topic_the_page_leads_to_the_first() {
    let world = World::signed_in().await;
    world
        .get("/console/events")
        .await
        .has(&["There is no topic yet", "/console/topics"]);
}

/// Installations with one topic show its records at once, the newest first.
#[tokio::test]
async fn only_topic_is_preselected_and_newest_records_come_first() {
    let world = World::with_billing().await;
    world.log_records(&[
        refused("order-1", world.ago(60)),
        delivered("order-2", world.ago(30)),
    ]);
    let page = world.get("/console/events").await;
    page.has(&[
        r#"value="Orders" placeholder="(choose a topic)" list="topic-words""#,
        r#"href="/console/topics/Orders/events/order-1""#,
        "order.paid",
        "Billing",
        "Busy",
        "503",
        "The log is complete until",
    ]);
    let place = |text: &str| page.html.find(text).unwrap();
    assert!(place("<bdi>order-2<") < place("<bdi>order-1<"));
    world
        .put(&["topics", "Invoices"], serde_json::json!({}))
        .await;
    world
        .get("/console/events")
        .await
        .has(&["Choose a topic"])
        .has_not(&["<bdi>order-1</bdi>"]);
}

#[tokio::test]
async fn filters_hold_and_keep_their_values() {
    let world = World::with_billing().await;
    world.log_records(&[
        refused("order-1", world.ago(60)),
        delivered("order-2", world.ago(30)),
    ]);
    let page = world
        .get("/console/events?topic=Orders&status=5xx&result=retry&type=order.paid&id=")
        .await;
    page.has(&[
        "order-1",
        r#"value="5xx""#,
        r#"<option value="retry" selected>retried later"#,
    ])
    .has_not(&["order-2"]);
    let page = world.get("/console/events?topic=orders&from=40s").await;
    page.has(&[
        "order-2",
        r#"value="Orders" placeholder="(choose a topic)" list="topic-words""#,
    ])
    .has_not(&["<bdi>order-1</bdi>", "webhookId", "opens the event"]);
    world
        .get("/console/events?subscription=audit")
        .await
        .has(&["No record of this topic has these values"]);
}

#[tokio::test]
async fn an_event_s_id_leads_to_the_event() {
    let world = World::with_billing().await;
    let sent = world.get("/console/events?id=a%2Fb%3F").await;
    assert_eq!(
        (sent.status, sent.location()),
        (303, "/console/topics/Orders/event?id=a%2Fb%3F")
    );
    world
        .put(&["topics", "Invoices"], serde_json::json!({}))
        .await;
    for (query, searched) in [
        ("id=a%2Fb", "q=a%2Fb"),
        ("webhookId=msg_1-0&from=1h", "q=msg_1-0&from=1h"),
        ("topic=orders&webhookId=msg_1-0", "q=msg_1-0"),
    ] {
        let sent = world.get(&format!("/console/events?{query}")).await;
        let expected = format!("/console/search?{searched}");
        assert_eq!((sent.status, sent.location()), (303, &*expected));
    }
}

#[tokio::test]
async fn id_of_any_length_leads_from_the_list_to_its_event() {
    let world = World::with_billing().await;
    for (ago, character) in (1..).zip(["ü", "日", "👋", "x", "\"", "."]) {
        let id = character.repeat(1_024);
        world.log_records(&[delivered(&id, world.ago(ago))]);
        let address = PageAddress::for_event("Orders", &id).to_string();
        world.get("/console/events").await.has(&[&address]);
        world.get(&address).await.has(&["Attempt 1"]);
        // What is typed in whole leads there too.
        let whole: String = form_urlencoded::byte_serialize(id.repeat(2).as_bytes()).collect();
        let typed = world
            .get(&format!("/console/events?topic=Orders&id={whole}"))
            .await;
        assert_eq!(typed.location(), address);
    }
}

#[tokio::test]
async fn wrong_values_are_named_beside_their_fields() {
    let world = World::with_billing().await;
    let page = world
        .get("/console/events?from=tomorrow&status=many&result=x&subscription=a")
        .await;
    assert_eq!(page.status, 400);
    for text in [
        r#"id="from-mistake""#,
        r#"aria-describedby="status-mistake""#,
        "expected a status such as `503`",
        "expected one of `delivered`",
        r#"value="tomorrow""#,
        "A filter cannot be used",
    ] {
        assert!(
            page.html.contains(text),
            "{text:?} is missing in {}",
            page.html
        );
    }
    let page = world.get("/console/events?topic=Order").await;
    assert_eq!(page.status, 404);
}

#[tokio::test]
async fn a_long_list_comes_in_pages_that_keep_the_filters() {
    let world = World::with_billing().await;
    let records: Vec<_> = (0..60)
        .map(|n| delivered(&format!("order-{n}"), world.ago(1 + n)))
        .collect();
    world.log_records(&records);
    let page = world
        .get("/console/events?topic=Orders&type=order.paid")
        .await;
    assert_eq!(page.html.matches("/events/order-").count(), 50);
    let (before, _) = page.html.split_once(r#"" rel="next""#).unwrap();
    let next = before.rsplit('"').next().unwrap().replace("&amp;", "&");
    assert!(
        next.starts_with("/console/events?topic=Orders&type=order.paid&cursor="),
        "{next}"
    );
    let page = world.get(&next).await;
    page.has(&["First page"]).has_not(&["Next page"]);
    assert_eq!(page.html.matches("/events/order-").count(), 10);
}

/// Markup, hidden characters and script URLs of producers are shown as plain text.
#[tokio::test]
async fn texts_of_producers_are_escaped() {
    let world = World::with_billing().await;
    let records: Vec<_> = HOSTILE
        .iter()
        .zip(1..)
        .map(|(text, secs)| {
            let event_type = Some((*text).to_owned());
            LogRecord {
                event_type,
                ..delivered(text, world.ago(secs))
            }
        })
        .collect();
    world.log_records(&records);
    let page = world.get("/console/events").await;
    page.has(&["&lt;script&gt;alert(1)", "⟦U+202E⟧gnp.exe"]);
    page.has_not(&["<script>", "<img", "\u{202e}", r#"href="javascript"#]);
}

#[tokio::test]
async fn ids_of_any_length_make_no_long_page() {
    let world = World::with_billing().await;
    let id = |n: u64| format!("{n}{}", "\u{202e}\"é".repeat(400));
    let record = |n| LogRecord {
        webhook_id: Some(format!("msg_{n}")),
        ..delivered(&id(n), world.ago(1 + n))
    };
    let records: Vec<_> = (0..50).map(record).collect();
    world.log_records(&records);
    let page = world.get("/console/events").await;
    page.has(&["/console/search?q=msg_"]);
    assert!(page.html.len() < 200_000, "{} bytes", page.html.len());
}

#[tokio::test]
async fn a_search_for_an_id_keeps_the_time_and_the_subscription() {
    let world = World::with_billing().await;
    world.log_records(&[delivered("order-1", world.ago(60))]);
    let from = "from=2023-11-14T22%3A13%3A00Z";
    let to = "to=2023-11-14T22%3A13%3A10Z";
    let sent = world
        .get(&format!(
            "/console/events?id=order-1&subscription=Billing&{from}&{to}"
        ))
        .await;
    let event = "/console/topics/Orders/events/order-1";
    assert_eq!(
        sent.location(),
        format!("{event}?subscription=Billing&{from}&{to}")
    );
    let page = world.get(sent.location()).await;
    page.has(&[
        "with these values",
        r#"name="subscription" value="Billing""#,
    ])
    .has_not(&["Attempt 1"]);
    world
        .get(&format!("{event}?subscription=billing"))
        .await
        .has(&["Attempt 1", "Only deliveries to"]);
    world
        .get(&format!("{event}?subscription=audit"))
        .await
        .has_not(&["Attempt 1"]);
}

/// Records say what came of each attempt, and not the present state of the event.
#[tokio::test]
async fn records_show_the_result_of_each_attempt() {
    let world = World::with_billing().await;
    let dead = LogRecord {
        result: LogResult::DeadLettered,
        reason: Some("MaxDeliveryAttemptsExceeded".to_owned()),
        ..again(refused("order-1", world.ago(60)), 2, world.ago(30))
    };
    let written = LogRecord {
        kind: RecordKind::DeadLettered,
        record_id: "written".to_owned(),
        time: world.ago(9),
        ..dead.clone()
    };
    world.log_records(&[refused("order-1", world.ago(60)), dead, written]);
    let page = world.get("/console/events").await;
    page.has(&[
        "Events and their attempts",
        "<span class=\"badge \">retried later</span>",
        "<span class=\"badge bad\">dead-lettered</span>",
        "<span class=\"badge bad\">dead letter written</span>",
        "The list shows attempts that were made",
        "href=\"/console\">overview</a>",
    ]);
    page.has_not(&[">waiting<"]);
}

#[tokio::test]
async fn a_status_that_no_answer_has_is_a_mistake() {
    let world = World::with_billing().await;
    for status in ["9xx", "600", "6XX", "999"] {
        let page = world
            .get(&format!("/console/events?topic=Orders&status={status}"))
            .await;
        assert_eq!(page.status, 400, "{status}");
        assert!(
            page.html
                .contains("expected a status from 100 to 599, or a class from 1xx to 5xx")
        );
        assert!(
            page.html.contains("class=\"field mistaken\""),
            "{}",
            page.html
        );
    }
    for status in ["1xx", "100", "599", "5xx"] {
        world
            .get(&format!("/console/events?topic=Orders&status={status}"))
            .await
            .has(&[]);
    }
}

#[tokio::test]
async fn without_a_topic_the_page_leads_to_the_same_search_in_each() {
    let world = World::with_billing().await;
    world.put(&["topics", "bills"], json!({})).await;
    let page = world.get("/console/events?result=retry").await;
    for topic in ["bills", "Orders"] {
        page.has(&[&format!(
            r#"<a href="/console/events?topic={topic}&amp;result=retry"><bdi>{topic}</bdi></a>"#
        )]);
    }
}
