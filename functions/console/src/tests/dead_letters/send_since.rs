//! The page that sends events again since a time.

use posthaste_core::api::ReplaySource;
use posthaste_core::delivery_log::{LogRecord, LogResult};
use posthaste_core::stored::ReplayRecord;

use super::super::World;
use super::super::logged::{HOSTILE, delivered, with_payload};
use super::world;

const FORM: &str = "/console/dead-letters/send-since?topic=Orders&subscription=Billing";
const REPLAY: &str = "/console/dead-letters/replay";

/// A world whose log has an event that arrived, and one that was given up.
async fn logged_world() -> World {
    let world = world().await;
    let arrived = with_payload(delivered("order-8", world.ago(10)), "{}");
    let given_up = with_payload(delivered("order-9", world.ago(9)), "{}");
    let given_up = LogRecord {
        result: LogResult::DeadLettered,
        status: Some(503),
        ..given_up
    };
    world.log_records(&[arrived, given_up]);
    world
}

#[tokio::test]
async fn form_has_the_time_and_both_sources() {
    let world = world().await;
    let page = world.get(&format!("{FORM}&from=2h")).await;
    page.has(&[
        r#"name="from" value="2h""#,
        r#"<option value="log" selected>"#,
        r#"<option value="failed" selected>"#,
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
        page.has_not(&["<script>", "<img", r#"href="javascript"#]);
        assert!((400..500).contains(&page.status), "{text}: {}", page.html);
    }
}

/// The link of a row shows what was given up since then, and one press sends it.
#[tokio::test]
async fn link_shows_what_was_given_up_and_one_press_sends_it() {
    let world = logged_world().await;
    let page = world.get(&format!("{FORM}&from=1h")).await;
    page.has(&["<strong>1</strong> events", "Start the replay", "order-9"])
        .has_not(&["order-8"]);
    let [until, from] = ["until", "from"].map(|name| page.field(name));
    assert_eq!(page.field("result"), "failed");
    let starting = [
        ("topic", "Orders"),
        ("subscription", "Billing"),
        ("source", "log"),
        ("result", "failed"),
        ("from", &*from),
        ("until", &*until),
        ("step", "start"),
    ];
    let started = world.send_form(&page, REPLAY, &starting).await;
    assert_eq!(started.status, 303, "{}", started.html);
    let (_, record) = world.state.objects_under("replays/").pop().unwrap();
    let request = ReplayRecord::parse(&record).unwrap().request;
    assert_eq!(request.source, ReplaySource::Log);
    assert!(request.result.is_some() && request.from.is_some());
}

/// A link that another site makes must start nothing.
#[tokio::test]
async fn address_alone_starts_nothing() {
    let world = logged_world().await;
    let page = world
        .get(&format!("{FORM}&from=1h&step=start&dryRun=false"))
        .await;
    page.has(&["<strong>1</strong> events"]);
    assert_eq!(world.state.objects_under("replays/").len(), 0);
    let page = world.get(FORM).await;
    page.has(&["Choose since when"])
        .has_not(&["Start the replay"]);
}

#[tokio::test]
async fn what_is_chosen_stays_and_is_counted() {
    let world = logged_world().await;
    let page = world
        .get(&format!("{FORM}&from=1h&result=delivered&ratePerSecond=7"))
        .await;
    page.has(&[
        "order-8",
        r#"<option value="delivered" selected>"#,
        r#"max="1000" value="7""#,
    ])
    .has_not(&["order-9"]);
    let page = world.get(&format!("{FORM}&from=1h&result=")).await;
    page.has(&["<strong>2</strong> events"])
        .has_not(&[r#"<option value="failed" selected>"#]);
}

/// Of dead letters, a result or a status that stayed in the form is no mistake.
#[tokio::test]
async fn dead_letters_are_sent_whatever_the_log_fields_say() {
    let world = world().await;
    let query = "from=2h&source=&result=delivered&status=5xx&includeFormer=true";
    let page = world.get(&format!("{FORM}&{query}")).await;
    page.has(&["<strong>2</strong> events", "Start the replay"]);
    page.has_not(&["of the delivery log"]);
}

#[tokio::test]
async fn mistakes_are_refused_by_name() {
    let world = world().await;
    for (field, value) in [
        ("status", "x5x"),
        ("result", "lost"),
        ("source", "x"),
        ("from", "soon"),
    ] {
        let from = if field == "from" { "" } else { "&from=1h" };
        let page = world.get(&format!("{FORM}{from}&{field}={value}")).await;
        assert_eq!(page.status, 400, "{field}");
        assert!(page.html.contains("role=\"alert\""), "{}", page.html);
        assert!(!page.html.contains("Start the replay"), "{field}");
    }
}
