//! The form that sends events again since a time.

use posthaste_core::api::ReplaySource;
use posthaste_core::stored::ReplayRecord;

use super::super::logged::{HOSTILE, delivered, with_payload};
use super::world;

const FORM: &str = "/console/dead-letters/send-since?topic=Orders&subscription=Billing";
const REPLAY: &str = "/console/dead-letters/replay";

#[tokio::test]
async fn form_has_the_time_and_both_sources() {
    let world = world().await;
    let page = world.get(&format!("{FORM}&from=2h")).await;
    page.has(&[
        r#"name="from" value="2h""#,
        r#"<option value="log" selected>"#,
        r#"<option value="delivered">"#,
        r#"name="subscription" value="Billing""#,
    ]);
    assert_eq!(
        world.get("/console/dead-letters/send-since").await.status,
        400
    );
    for text in HOSTILE {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("topic", text), ("subscription", text), ("from", text)])
            .finish();
        let page = world
            .get(&format!("/console/dead-letters/send-since?{query}"))
            .await;
        page.has(&[])
            .has_not(&["<script>", "<img", r#"href="javascript"#]);
    }
}

#[tokio::test]
async fn delivered_events_are_counted_first_and_then_sent_again() {
    let world = world().await;
    world.log_records(&[with_payload(delivered("order-1", world.ago(10)), "{}")]);
    let fields = [
        ("topic", "Orders"),
        ("subscription", "Billing"),
        ("source", "log"),
        ("result", "delivered"),
        ("from", "1h"),
        ("includeFormer", "true"),
        ("back", FORM),
    ];
    let preview = world.post(FORM, REPLAY, &fields).await;
    preview.has(&[
        "<strong>1</strong> events",
        "of the delivery log",
        r#"name="source" value="log""#,
        r#"name="result" value="delivered""#,
    ]);
    let from = preview.field("from");
    let starting = [
        ("topic", "Orders"),
        ("subscription", "Billing"),
        ("source", "log"),
        ("result", "delivered"),
        ("from", &*from),
        ("step", "start"),
    ];
    let started = world.send_form(&preview, REPLAY, &starting).await;
    assert_eq!(started.status, 303, "{}", started.html);
    let (_, record) = world.state.objects_under("replays/").pop().unwrap();
    let request = ReplayRecord::parse(&record).unwrap().request;
    assert_eq!(request.source, ReplaySource::Log);
    assert!(request.result.is_some() && request.from.is_some());
}

/// Of dead letters, a result or a status that stayed in the form is no mistake.
#[tokio::test]
async fn dead_letters_are_sent_whatever_the_log_fields_say() {
    let world = world().await;
    let fields = [
        ("topic", "Orders"),
        ("subscription", "Billing"),
        ("result", "delivered"),
        ("status", "5xx"),
        ("includeFormer", "true"),
    ];
    let preview = world.post(FORM, REPLAY, &fields).await;
    preview.has(&["<strong>2</strong> events"]);
    preview.has_not(&["delivery log", r#"name="status""#]);
}

#[tokio::test]
async fn mistakes_are_refused_by_name() {
    let world = world().await;
    for (field, value) in [("status", "x5x"), ("result", "lost"), ("source", "x")] {
        let fields = [
            ("topic", "Orders"),
            ("subscription", "Billing"),
            ("source", "log"),
            (field, value),
        ];
        let fields = if field == "source" {
            [&fields[..2], &fields[3..]].concat()
        } else {
            fields.to_vec()
        };
        let page = world.post(FORM, REPLAY, &fields).await;
        assert_eq!(page.status, 400, "{field}");
        assert!(page.html.contains("role=\"alert\""), "{}", page.html);
    }
}
