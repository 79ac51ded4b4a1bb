//! The pages of replays.

use std::time::Duration;

use posthaste_core::api::{ReplayReason, ReplayState, ReplayView};
use posthaste_core::delivery_log::{LogRecord, LogResult};
use posthaste_core::stored::{ReplayRecord, layout};
use serde_json::json;

use super::World;
use super::logged::delivered;
use crate::ConsoleState;
use crate::api::RequestTarget;

async fn begin(world: &World) -> String {
    begin_with(world, &json!({ "ratePerSecond": 7 })).await
}

async fn begin_with(world: &World, request: &serde_json::Value) -> String {
    let target = RequestTarget::new(&[
        "topics",
        "Orders",
        "subscriptions",
        "Billing",
        "dead-letters",
        "replay",
    ]);
    let begun = world
        .api
        .send_json::<ReplayView>(http::Method::POST, target, None, request)
        .await;
    world.clock.advance(Duration::from_secs(1));
    begun.unwrap().body.id
}

#[tokio::test]
async fn replays_are_listed_newest_first() {
    let world = World::with_billing().await;
    world
        .get("/console/replays")
        .await
        .has(&["There is no replay", "/console/dead-letters"]);
    let other = json!({ "ratePerSecond": 7, "types": ["t"] });
    let first = begin(&world).await;
    let second = begin_with(&world, &other).await;
    let page = world.get("/console/replays").await;
    page.has(&[
        "starts within a minute",
        "Orders",
        "Billing",
        ">7<",
        "data-live",
    ])
    .has_not(&["good\">running"]);
    assert!(page.html.find(&second).unwrap() < page.html.find(&first).unwrap());
    world
        .post(
            &format!("/console/replays/{first}"),
            &format!("/console/replays/{first}/cancel"),
            &[],
        )
        .await;
    let page = world.get("/console/replays?active=true").await;
    page.has(&[&*second, r#"value="true" checked"#])
        .has_not(&[&*first]);
}

#[tokio::test]
async fn a_replay_is_shown_with_its_progress_and_cancelled() {
    let world = World::with_billing().await;
    let id = begin(&world).await;
    let key = layout::replay_record_key(&id);
    let mut record =
        ReplayRecord::parse(&world.state.objects_under(&key).pop().unwrap().1).unwrap();
    record.progress.found = 1_234;
    record.progress.queued = 1_200;
    record.updated_at = world.ago(0);
    world.state.write(&key, record.render());
    let path = format!("/console/replays/{id}");
    let page = world.get(&path).await;
    page.has(&[
        "1,234",
        "1,200",
        "What became of the queued events",
        "data-live",
        "7 events per second",
    ]);
    page.has(&[
        "good\">running",
        "A dead letter is resolved once its event is delivered",
    ]);
    let cancelled = world.post(&path, &format!("{path}/cancel"), &[]).await;
    assert_eq!(
        (cancelled.status, cancelled.page_after()),
        (303, &*format!("{path}?done=cancelled"))
    );
    let page = world.get(cancelled.location()).await;
    page.has(&[
        "badge bad\">cancelled",
        "by an operator",
        "The replay is cancelled",
    ]);
    page.has_not(&["Cancel this replay"]);
    assert_eq!(world.get("/console/replays/nothing").await.status, 404);
}

#[tokio::test]
async fn a_replay_that_had_ended_is_not_said_to_be_cancelled() {
    let world = World::with_billing().await;
    let id = begin(&world).await;
    let path = format!("/console/replays/{id}");
    let page = world.get(&path).await;
    let key = layout::replay_record_key(&id);
    let record = ReplayRecord::parse(&world.state.objects_under(&key).pop().unwrap().1).unwrap();
    let record = record.with_state(ReplayState::Done, None, world.ago(0));
    world.state.write(&key, record.render());
    let sent = world.send_form(&page, &format!("{path}/cancel"), &[]).await;
    let page = world.get(sent.location()).await;
    page.has(&[
        "badge good\">done",
        "had ended before it could be cancelled",
    ]);
    page.has_not(&["The replay is cancelled"]);
}

#[tokio::test]
async fn a_replay_of_a_deleted_subscription_has_no_link_to_it() {
    let world = World::with_billing().await;
    let id = begin(&world).await;
    let link = "/console/topics/Orders/subscriptions/Billing";
    world.get("/console/replays").await.has(&[link]);
    let key = layout::replay_record_key(&id);
    let reason = Some(ReplayReason::SubscriptionDeleted);
    let record = ReplayRecord::parse(&world.state.objects_under(&key).pop().unwrap().1).unwrap();
    world.state.write(
        &key,
        record
            .with_state(ReplayState::Cancelled, reason, world.ago(0))
            .render(),
    );
    world
        .get("/console/replays")
        .await
        .has(&["(deleted)"])
        .has_not(&[link]);
}

#[tokio::test]
async fn a_replay_that_may_be_cancelled_or_not_is_looked_at_again() {
    let world = World::with_billing().await;
    let id = begin(&world).await;
    let path = format!("/console/replays/{id}");
    let page = world.get(&path).await;
    world
        .state
        .write(&layout::replay_record_key(&id), "damaged");
    let sent = world.send_form(&page, &format!("{path}/cancel"), &[]).await;
    assert_eq!(sent.status, 500);
    assert!(
        sent.html.contains("It is not known whether this was done"),
        "{}",
        sent.html
    );
}

#[tokio::test]
async fn replays_are_filtered_by_topic_and_subscription() {
    let world = World::with_billing().await;
    let id = begin(&world).await;
    let page = world
        .get("/console/replays?topic=orders&subscription=BILLING")
        .await;
    page.has(&[&id, r#"value="Orders""#, r#"value="BILLING""#]);
    world
        .get("/console/replays?subscription=audit")
        .await
        .has(&["No replay has these values"]);
    let page = world.get("/console/replays?topic=a%2Fb").await;
    assert_eq!(page.status, 400);
    assert!(page.html.contains(r#"id="topic-mistake""#), "{}", page.html);
}

#[tokio::test]
async fn an_empty_page_does_not_say_that_there_is_no_replay() {
    let world = World::with_billing().await;
    let id = begin(&world).await;
    // The cursor of the key `replays/0`, which is before every record.
    let page = world.get("/console/replays?cursor=cmVwbGF5cy8w").await;
    page.has(&["There are no more replays", "First page"])
        .has_not(&["There is no replay", &id]);
    // A cursor of the other list.
    let page = world
        .get("/console/replays?active=true&cursor=cmVwbGF5cy8w")
        .await;
    assert_eq!(page.status, 400);
    assert!(
        page.html.contains("not a cursor of this list"),
        "{}",
        page.html
    );
}

/// Changes the record of a replay.
fn change(world: &World, id: &str, change: impl FnOnce(&mut ReplayRecord)) {
    let key = layout::replay_record_key(id);
    let mut record =
        ReplayRecord::parse(&world.state.objects_under(&key).pop().unwrap().1).unwrap();
    record.state = ReplayState::Done;
    change(&mut record);
    world.state.write(&key, record.render());
}

/// A replay of which nothing arrived is red in the list as on its page, and says how many failed.
#[tokio::test]
async fn replay_of_which_nothing_arrived_is_red_with_its_counts() {
    let world = World::with_billing().await;
    let id = begin(&world).await;
    change(&world, &id, |record| record.progress.queued = 2);
    let again = |event: &str| LogRecord {
        run_id: Some(id.clone()),
        result: LogResult::DeadLettered,
        ..delivered(event, world.ago(0))
    };
    world.log_records(&[again("order-1"), again("order-2")]);
    for page in ["/console/replays", &format!("/console/replays/{id}")] {
        world
            .get(page)
            .await
            .has(&[r#"<span class="badge bad">failed"#, "0 delivered, 2 failed"]);
    }
}

#[tokio::test]
async fn replay_that_queued_nothing_is_red_without_a_log() {
    let world = World::with_billing().await;
    let id = begin(&world).await;
    change(&world, &id, |record| record.progress.failed = 1_000);
    world.get("/console/replays").await.has(&[
        r#"<span class="badge bad">failed"#,
        "0 delivered, 1,000 failed",
    ]);
}

#[tokio::test]
async fn replay_that_failed_in_part_says_how_many_arrived() {
    let world = World::with_billing().await;
    let id = begin(&world).await;
    change(&world, &id, |record| record.progress.queued = 2);
    let of_run = |event: &str, result| LogRecord {
        run_id: Some(id.clone()),
        result,
        ..delivered(event, world.ago(0))
    };
    world.log_records(&[
        of_run("order-1", LogResult::Delivered),
        of_run("order-2", LogResult::Dropped),
    ]);
    world
        .get("/console/replays")
        .await
        .has(&[r#"<span class="badge good">done"#, "1 delivered, 1 failed"]);
}

/// The outcomes of the events of twenty replays are counted at a time.
#[tokio::test]
async fn replays_whose_outcomes_are_not_counted_are_named() {
    let world = World::with_billing().await;
    world.log_records(&[delivered("order-1", world.ago(60))]);
    for number in 0..21 {
        let id = begin_with(&world, &json!({ "types": [format!("t{number}")] })).await;
        change(&world, &id, |record| record.progress.queued = 1);
    }
    let page = world.get("/console/replays").await;
    page.has(&["not counted of 1 of these replays"]);
    let marked = page
        .html
        .matches(r#"<span class="hint">not counted</span>"#);
    assert_eq!(marked.count(), 1);
}

/// A replay of which the log lacks records.
fn partly_counted() -> serde_json::Value {
    json!({ "id": "a", "topic": "Orders", "subscription": "Billing", "state": "Done", "objects": 1,
        "found": 9, "queued": 9, "failed": 0, "createdAt": "2026-11-21T10:00:00Z",
        "updatedAt": "2026-11-21T10:01:00Z", "request": {},
        "outcomes": { "delivered": 5, "failedAgain": 3, "waiting": 1,
            "completeUntil": "2026-11-21T10:16:00Z", "isPartial": true } })
}

#[tokio::test]
async fn partial_outcomes_are_bounds() {
    let one = axum::routing::get(async || axum::Json(partly_counted()));
    let list = axum::routing::get(async || axum::Json(json!({ "replays": [partly_counted()] })));
    let topics = axum::routing::get(async || axum::Json(json!({ "topics": [] })));
    let api = axum::Router::new()
        .route("/replays/a", one)
        .route("/replays", list)
        .route("/topics", topics);
    let world = World::with_billing()
        .await
        .changed(|_, _| ConsoleState::new(api));
    let page = world.get("/console/replays/a").await;
    page.has(&["at least 5<", "at least 3<", "at most 1<"]);
    let page = world.get("/console/replays").await;
    page.has(&["at least 5 delivered, at least 3 failed"]);
}
