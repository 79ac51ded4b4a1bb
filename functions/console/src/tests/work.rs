//! The page of what is long, and that of work which resolves or deletes dead letters.

use std::time::Duration;

use http::Method;
use posthaste_core::api::ReplayView;
use posthaste_core::stored::LetterEnding;
use serde_json::{Value, json};

use super::World;
use crate::api::RequestTarget;

const PAGE: &str = "/console/work";
const ONE: &str = "/console/work/open";

/// The key of the mark of `ending`.
const MARK: &str = "ending/0a";

/// The mark of work that began a minute ago and was worked on just now.
fn ending(world: &World) -> Value {
    let now = world.ago(0).as_millis();
    json!({ "v": 1, "id": "open", "topic": "Orders", "subscription": "Billing", "end": "resolve",
        "request": {}, "beganAt": now - 60_000, "workedAt": now,
        "after": "ORDERS/BILLING/2023/11/14/22/a.json",
        "done": { "events": 1_234, "objects": 2, "deletedObjects": 0, "failed": 3, "read": 2 } })
}

fn write_ending(world: &World, ending: &Value) {
    world.state.write(MARK, ending.to_string());
}

fn read_ending(world: &World) -> LetterEnding {
    let (_, bytes) = world.state.objects_under(MARK).remove(0);
    LetterEnding::parse(&bytes).unwrap()
}

fn letter(id: &str) -> Value {
    json!({ "specversion": "1.0", "id": id, "source": "/s", "type": "t",
        "deadletterreason": "EndpointGone" })
}

async fn begin_replay(world: &World) -> String {
    begin_replay_of(world, "t").await
}

async fn begin_replay_of(world: &World, event_type: &str) -> String {
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
        .send_json::<ReplayView>(
            Method::POST,
            target,
            None,
            &json!({ "types": [event_type] }),
        )
        .await;
    begun.unwrap().body.id
}

#[tokio::test]
async fn page_says_that_nothing_is_under_way() {
    let world = World::with_billing().await;
    world.get(PAGE).await.has(&[
        "No replay is under way",
        "No outage is being recovered from",
        "No dead letters are being resolved or deleted",
        "/console/replays",
        "data-live",
    ]);
}

#[tokio::test]
async fn all_that_is_long_is_on_one_page() {
    let world = World::with_billing().await;
    let replay = begin_replay(&world).await;
    write_ending(&world, &ending(&world));
    let now = world.ago(0).as_millis();
    let mark = json!({ "v": 1, "topic": "Orders", "subscription": "Billing",
        "outageSince": now - 600_000, "from": now - 700_000, "lastAt": now - 1_000,
        "letters": 5_000 });
    world
        .state
        .write("recovery/orders.billing", mark.to_string());
    world.get(PAGE).await.has(&[
        &replay,
        "0 of 0 found queued",
        "0 of about 5,000 queued",
        "until the endpoint has been well",
        "10 min ago",
        "1,234 dead letters",
        "3 cannot be read",
        "1 min ago",
        ONE,
    ]);
}

#[tokio::test]
async fn replay_is_cancelled_from_the_page_and_leads_back() {
    let world = World::with_billing().await;
    let replay = begin_replay(&world).await;
    let action = format!("/console/replays/{replay}/cancel");
    let cancelled = world.post(PAGE, &action, &[("back", PAGE)]).await;
    assert_eq!(
        (cancelled.status, cancelled.page_after()),
        (303, "/console/work?done=cancelled")
    );
    world
        .get(cancelled.location())
        .await
        .has(&["It is cancelled", "No replay is under way"]);
}

/// Much is under way: each part shows its first rows, and says that there is more.
#[tokio::test]
async fn page_with_much_under_way_stays_short() {
    let world = World::with_billing().await;
    let now = world.ago(0).as_millis();
    for number in 0..25 {
        begin_replay_of(&world, &format!("t{number}")).await;
        let mut work = ending(&world);
        work["id"] = format!("work-{number}").into();
        let key = format!("ending/{number:02}");
        world.state.write(&key, work.to_string());
        let name = format!("{}-{number:02}", "n".repeat(40));
        let mark = json!({ "v": 1, "topic": "Orders", "subscription": name,
            "outageSince": now - 600_000, "from": now - 700_000, "lastAt": now - 1_000,
            "letters": 5_000 });
        let key = format!("recovery/orders.{name}");
        world.state.write(&key, mark.to_string());
    }
    let page = world.get(PAGE).await;
    page.has(&["All that have not ended", "And 5 more"]);
    assert_eq!(page.html.matches("<tr role=\"row\"").count(), 3 * (20 + 1));
    assert!(page.html.len() < 100_000, "{} bytes", page.html.len());
}

/// The marks of work lie in no order.
#[tokio::test]
async fn open_work_is_first_and_then_the_newest() {
    let world = World::with_billing().await;
    let now = world.ago(0).as_millis();
    for number in 0..25 {
        let mut work = ending(&world);
        work["id"] = format!("work-{number:02}").into();
        work["beganAt"] = (now - 60_000 * (1 + number)).into();
        if number < 24 {
            work["endedAt"] = now.into();
        }
        let key = format!("ending/{:02}", (number * 7) % 25);
        world.state.write(&key, work.to_string());
    }
    let page = world.get(PAGE).await;
    let shown: Vec<_> = page
        .html
        .split("href=\"/console/work/work-")
        .skip(1)
        .collect();
    let shown: Vec<_> = shown.iter().map(|rest| &rest[..2]).collect();
    let newest = (0..19).map(|number| format!("{number:02}"));
    let expected: Vec<_> = std::iter::once("24".to_owned()).chain(newest).collect();
    assert_eq!(shown, expected);
    page.has(&["And 5 more, which are older or have ended."]);
}

/// The page is there, and says of each part that it cannot be read.
#[tokio::test]
async fn failing_api_leaves_the_page() {
    let world = World::with_billing().await.failing(Method::GET);
    let page = world.get(PAGE).await;
    page.has(&["Replays", "This cannot be read now"]);
    assert_eq!(page.html.matches("This cannot be read now").count(), 3);
}

#[tokio::test]
async fn work_is_shown_with_its_progress() {
    let world = World::with_billing().await;
    for name in ["a", "b", "c"] {
        world.write_letters(name, &json!([letter(name)]));
    }
    world.clock.advance(Duration::from_mins(1));
    write_ending(&world, &ending(&world));
    let page = world.get(ONE).await;
    page.has(&[
        "Resolve dead letters",
        "running",
        "1,234",
        "about 2,468",
        "20 a second",
        "You may leave this page",
        "Orders",
        "data-live",
    ]);
    world.clock.advance(Duration::from_mins(1));
    world
        .get(ONE)
        .await
        .has(&["waiting", "within two minutes", "2 min ago"]);
}

#[tokio::test]
async fn work_is_cancelled_and_says_how_many_were_done() {
    let world = World::with_billing().await;
    write_ending(&world, &ending(&world));
    let action = format!("{ONE}/cancel");
    let cancelled = world.post(ONE, &action, &[]).await;
    assert_eq!(
        (cancelled.status, cancelled.page_after()),
        (303, "/console/work/open?done=cancelled")
    );
    let page = world.get(cancelled.location()).await;
    page.has(&[
        "badge bad\">cancelled",
        "What was done by then stays done",
        "1,234",
    ]);
    page.has_not(&["Cancel this work", "You may leave this page"]);
    assert!(read_ending(&world).cancelled_at.is_some());
    world.clock.advance(Duration::from_mins(1));
    world.get(ONE).await.has_not(&["data-live"]);
}

#[tokio::test]
async fn work_that_had_ended_is_not_said_to_be_cancelled() {
    let world = World::with_billing().await;
    write_ending(&world, &ending(&world));
    let page = world.get(ONE).await;
    let ended = LetterEnding {
        ended_at: Some(world.ago(0)),
        ..read_ending(&world)
    };
    world.state.write(MARK, ended.render());
    let sent = world.send_form(&page, &format!("{ONE}/cancel"), &[]).await;
    let page = world.get(sent.location()).await;
    page.has(&["badge good\">done", "had ended before", "All is done"]);
    page.has_not(&["It is cancelled"]);
}

#[tokio::test]
async fn work_that_is_gone_has_a_page_that_says_so() {
    let world = World::with_billing().await;
    let page = world.get("/console/work/%3Cb%3Egone").await;
    assert_eq!(page.status, 404);
    for text in ["There is no such work any more", PAGE] {
        assert!(page.html.contains(text), "{text}: {}", page.html);
    }
    assert!(!page.html.contains("<b>gone"), "{}", page.html);
}

/// A mark whose id is no id of ours becomes no markup and no other address.
#[tokio::test]
async fn hostile_id_of_work_is_escaped() {
    let world = World::with_billing().await;
    let mut hostile = ending(&world);
    hostile["id"] = "\"><script>alert(1)</script>/../x".into();
    write_ending(&world, &hostile);
    let page = world.get(PAGE).await;
    page.has(&["/console/work/%22%3E%3Cscript"]);
    page.has_not(&["<script>alert"]);
}

/// More dead letters than one request resolves: the page of the work follows, not one of the form.
#[tokio::test]
async fn long_resolve_leads_to_the_page_of_its_work() {
    let world = World::with_billing().await;
    for number in 0..1_001 {
        world.write_letters(&format!("{number:04}"), &json!([letter("x")]));
    }
    world.clock.advance(Duration::from_mins(1));
    let list = "/console/dead-letters?topic=Orders&subscription=Billing";
    let owner = [("topic", "Orders"), ("subscription", "Billing")];
    let resolve = "/console/dead-letters/resolve";
    let page = world.get(list).await;
    let acting = [owner[0], owner[1], ("step", "act")];
    let sent = world.send_form(&page, resolve, &acting).await;
    assert_eq!(sent.status, 303, "{}", sent.html);
    let work = sent.location();
    assert!(work.starts_with("/console/work/"), "{work}");
    world.get(work).await.has(&[
        "Resolve dead letters",
        "1,000",
        "about 1,001",
        "You may leave this page",
    ]);
    // The same again, while that one goes on.
    let again = world.send_form(&page, resolve, &acting).await;
    assert_eq!((again.status, again.location()), (303, work));
}
