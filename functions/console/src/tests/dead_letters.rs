//! The pages of dead letters.

mod groups;
mod record;
mod send_since;
mod ticked;

use std::time::Duration;

use posthaste_core::stored::ReplayRecord;
use serde_json::{Value, json};

use super::World;

const RECORD: &str =
    "/console/dead-letters/record?object=ORDERS%2FBILLING%2F2023%2F11%2F14%2F22%2Fa.json";

const LIST: &str = "/console/dead-letters/list?topic=Orders&subscription=Billing";

fn letter(id: &str, reason: &str) -> Value {
    json!({ "specversion": "1.0", "id": id, "source": "/s", "type": "order.paid",
        "deadletterreason": reason, "deliveryattempts": 3, "lasthttpstatuscode": 410 })
}

/// An installation with two dead letters of Billing.
async fn world() -> World {
    let world = World::with_billing().await;
    let letters = json!([
        letter("order-1", "EndpointGone"),
        letter("order-2", "TimeToLiveExceeded")
    ]);
    world.write_letters("a", &letters);
    world
}

#[tokio::test]
async fn without_dead_letters_the_page_says_so() {
    let world = World::with_billing().await;
    let page = world.get("/console/dead-letters").await;
    page.has(&[
        "There is no dead letter",
        "appears some minutes after the last attempt",
    ]);
}

#[tokio::test]
async fn dead_letters_are_listed_and_lead_to_their_records() {
    let page = world().await.get("/console/dead-letters/list").await;
    page.has(&[
        "/console/dead-letters/record?object=ORDERS%2FBILLING%2F2023%2F11%2F14%2F22%2Fa.json&amp;index=1",
        "order-1",
        "EndpointGone",
        "410",
        r#"<span class="badge bad">open</span>"#,
        "Choose a topic and a subscription",
    ]);
    page.has_not(&["Show what a replay would send"]);
}

#[tokio::test]
async fn filters_hold_and_mistakes_are_named() {
    let world = world().await;
    let page = world
        .get("/console/dead-letters/list?reason=EndpointGone&type=order.paid")
        .await;
    page.has(&["order-1", r#"<option value="EndpointGone" selected>"#])
        .has_not(&["order-2"]);
    world
        .get(&format!("{LIST}&type=x"))
        .await
        .has(&["No dead letter has these values"]);
    for (query, field) in [
        ("from=soon", "from"),
        ("reason=Bored", "reason"),
        ("subscription=Billing", "topic"),
    ] {
        let page = world
            .get(&format!("/console/dead-letters/list?{query}"))
            .await;
        assert_eq!(page.status, 400, "{query}");
        assert!(
            page.html.contains(&format!(r#"id="{field}-mistake""#)),
            "{query}: {}",
            page.html
        );
    }
}

#[tokio::test]
async fn a_replay_is_counted_first_and_then_started() {
    let world = world().await;
    let action = "/console/dead-letters/replay";
    let fields = [
        ("topic", "Orders"),
        ("subscription", "Billing"),
        ("reason", "EndpointGone"),
        ("ratePerSecond", "5"),
    ];
    let list = format!("{LIST}&reason=EndpointGone");
    world
        .get(&list)
        .await
        .has(&[r#"name="reason" value="EndpointGone""#]);
    let preview = world.post(&list, action, &fields).await;
    preview.has(&[
        "<strong>1</strong> events",
        "Reason <bdi>EndpointGone",
        "order-1",
        "5</bdi> events per second",
    ]);
    preview.has(&[
        r#"name="step" value="start""#,
        r#"name="ratePerSecond" value="5""#,
    ]);
    world
        .get("/console/replays")
        .await
        .has(&["There is no replay"]);
    let mut start = fields.to_vec();
    start.push(("step", "start"));
    let started = world.send_form(&preview, action, &start).await;
    assert_eq!(started.status, 303);
    assert!(
        started.location().starts_with("/console/replays/"),
        "{}",
        started.location()
    );
    let page = world.get(started.location()).await;
    page.has(&[
        "It starts within a minute",
        "EndpointGone",
        "5 events per second",
        "data-live",
    ]);
    page.has(&[
        "A dead letter is resolved once its event is delivered",
        "fewer may be found",
    ]);
}

#[tokio::test]
async fn a_replay_that_cannot_be_is_refused_with_the_reason() {
    let world = world().await;
    let check = async |fields: &[(&str, &str)], text: &str| {
        let page = world
            .post(LIST, "/console/dead-letters/replay", fields)
            .await;
        assert_eq!(page.status, 400, "{}", page.html);
        assert!(
            page.html.contains(text),
            "{text:?} is missing in {}",
            page.html
        );
    };
    check(
        &[("topic", "Orders")],
        "Choose a topic and a subscription first",
    )
    .await;
    let owner = [("topic", "Orders"), ("subscription", "Billing")];
    check(
        &[owner[0], owner[1], ("ratePerSecond", "fast")],
        "ratePerSecond",
    )
    .await;
    check(&[owner[0], owner[1], ("from", "soon")], "from").await;
}

#[tokio::test]
async fn dead_letters_are_resolved_or_deleted_after_a_dry_run() {
    let world = world().await;
    let owner = [
        ("topic", "Orders"),
        ("subscription", "Billing"),
        ("includeFormer", "true"),
    ];
    let acting = [owner[0], owner[1], owner[2], ("step", "act")];
    let resolve = "/console/dead-letters/resolve";
    let preview = world.post(LIST, resolve, &owner).await;
    preview.has(&[
        "<strong>2</strong> dead letters would be resolved",
        "Resolve these dead letters",
    ]);
    world.get(LIST).await.has(&["order-1"]);
    let done = world.send_form(&preview, resolve, &acting).await;
    assert_eq!(
        (done.status, done.page_after()),
        (303, &*format!("{LIST}&done=resolved"))
    );
    world
        .get(done.location())
        .await
        .has(&["The dead letters are resolved"])
        .has_not(&["order-1"]);
    let all = format!("{LIST}&includeResolved=true");
    world
        .get(&all)
        .await
        .has(&["order-1", r#"<span class="badge good">resolved</span>"#]);
    let delete = "/console/dead-letters/delete";
    let preview = world.post(&all, delete, &owner).await;
    preview.has(&["stored with others that stay", "class=\"danger\""]);
    let done = world.send_form(&preview, delete, &acting).await;
    assert_eq!(done.status, 303);
    world.get(&all).await.has_not(&["order-1"]);
    world
        .get(&format!("{LIST}&done=%3Cb%3E"))
        .await
        .has_not(&["role=\"status\""]);
}

/// Dead letters written after a dry run are neither resolved nor deleted by its action.
#[tokio::test]
async fn letters_written_after_a_dry_run_are_left_alone() {
    let owner = [
        ("topic", "Orders"),
        ("subscription", "Billing"),
        ("includeFormer", "true"),
    ];
    for end in ["resolve", "delete"] {
        let world = world().await;
        let action = format!("/console/dead-letters/{end}");
        let preview = world.post(LIST, &action, &owner).await;
        preview.has(&["<strong>2</strong>"]);
        let until = preview.field("until");
        world.clock.advance(Duration::from_mins(2));
        world.write_letters("b", &json!([letter("order-3", "EndpointGone")]));
        let acting = [&owner[..], &[("until", &*until), ("step", "act")]].concat();
        let done = world.send_form(&preview, &action, &acting).await;
        assert_eq!(done.page_after(), format!("{LIST}&done={end}d"));
        world
            .get(done.location())
            .await
            .has(&["order-3"])
            .has_not(&["order-1", "order-2"]);
    }
}

#[tokio::test]
async fn dry_run_says_what_it_leaves_out_and_why() {
    let world = world().await;
    let fields = [
        ("topic", "Orders"),
        ("subscription", "Billing"),
        ("reason", "EndpointGone"),
    ];
    for action in ["replay", "resolve", "delete"] {
        let action = format!("/console/dead-letters/{action}");
        let preview = world.post(LIST, &action, &fields).await;
        preview.has(&["Left out: events given up for another reason"]);
    }
}

#[tokio::test]
async fn a_dry_run_keeps_an_earlier_end_and_a_replay_has_its_time() {
    let world = world().await;
    let action = "/console/dead-letters/replay";
    let owner = [("topic", "Orders"), ("subscription", "Billing")];
    let earlier = [owner[0], owner[1], ("to", "2023-11-14T22:00:00Z")];
    world
        .post(LIST, action, &earlier)
        .await
        .has(&["nothing to send"])
        .has_not(&["name=\"until\""]);
    let later = [owner[0], owner[1], ("to", "2033-11-14T22:00:00Z")];
    let preview = world.post(LIST, action, &later).await;
    let until = preview.field("until");
    let started = [&later[..], &[("until", &*until), ("step", "start")]].concat();
    assert_eq!(
        world.send_form(&preview, action, &started).await.status,
        303
    );
    let (_, record) = world.state.objects_under("replays/").pop().unwrap();
    let to = ReplayRecord::parse(&record).unwrap().request.to.unwrap();
    let to = to.resolve_at(world.ago(0));
    assert_eq!((to.to_string(), to), (until, world.ago(0)));
}

/// Links choose the dead letters of one subscription, also when its topic is gone.
#[tokio::test]
async fn subscription_is_chosen_by_link_even_when_deleted() {
    let world = world().await;
    let link = r#"href="/console/dead-letters/list?topic=Orders&amp;subscription=Billing&amp;reason=EndpointGone""#;
    world
        .get("/console/dead-letters/list?reason=EndpointGone")
        .await
        .has(&[link, "Only this subscription"]);
    world.get(LIST).await.has_not(&["Only this subscription"]);
    let link = r#"href="/console/dead-letters/list?topic=Orders&amp;subscription=Billing""#;
    world.get(&format!("{RECORD}&index=0")).await.has(&[link]);
    world
        .api
        .delete(crate::api::RequestTarget::new(&["topics", "Orders"]))
        .await
        .unwrap();
    let page = world
        .get("/console/dead-letters/list?topic=ORDERS&subscription=BILLING")
        .await;
    page.has(&["order-1", r#"value="ORDERS""#, "Show what to resolve"]);
}

#[tokio::test]
async fn a_deleted_subscription_has_no_link_and_gets_nothing_again() {
    let subscription = ["topics", "Orders", "subscriptions", "Billing"];
    for (deleted, names) in [
        (&subscription[..], ["Orders", "BILLING"]),
        (&subscription[..2], ["ORDERS", "BILLING"]),
    ] {
        let world = world().await;
        world.get(LIST).await.has(&[
            "/console/topics/Orders/subscriptions/Billing\"",
            "Replay to",
        ]);
        world
            .api
            .delete(crate::api::RequestTarget::new(deleted))
            .await
            .unwrap();
        let [topic, name] = names;
        let shown =
            format!("<bdi>{topic}</bdi> / <bdi>{name}</bdi> <span class=\"hint\">(deleted)</span>");
        let list = world.get(LIST).await;
        list.has(&[&shown, "Show what to resolve", "cannot be sent again"]);
        list.has_not(&["/subscriptions/", "Replay to"]);
        let record = world.get(&format!("{RECORD}&index=0")).await;
        record.has(&[
            &shown,
            "cannot be sent again",
            "badge bad\">open",
            "Resolve this dead letter",
        ]);
        record.has_not(&["/subscriptions/", "Send this event again"]);
        record.has(&[&*format!("/console/topics/{topic}/events/order-1")]);
    }
}

/// Actions that end with a status of 500 may have happened, and the page says so.
#[tokio::test]
async fn page_says_when_an_action_may_have_happened() {
    let world = world().await;
    let owner = [
        ("topic", "Orders"),
        ("subscription", "Billing"),
        ("step", "act"),
    ];
    let starting = [owner[0], owner[1], ("step", "start")];
    let list = world.get(LIST).await;
    let record = world.get(&format!("{RECORD}&index=0")).await;
    world.state.write("topics/orders.json", "damaged");
    let check = async |action: &str, fields: &[(&str, &str)], texts: &[&str]| {
        let page = world.send_form(&list, action, fields).await;
        assert_eq!(page.status, 500, "{}", page.html);
        for text in [
            texts,
            &["Not known whether it was done", "before you try again"],
        ]
        .concat()
        {
            assert!(
                page.html.contains(text),
                "{text:?} is missing in {}",
                page.html
            );
        }
    };
    check(
        "/console/dead-letters/resolve",
        &owner,
        &["whether dead letters were resolved"],
    )
    .await;
    check(
        "/console/dead-letters/delete",
        &owner,
        &["whether dead letters were deleted"],
    )
    .await;
    let replays = "href=\"/console/replays\"";
    check(
        "/console/dead-letters/replay",
        &starting,
        &["whether the replay is stored", replays],
    )
    .await;
    let resent = [
        ("subscription", "BILLING"),
        ("object", &*record.field("object")),
        ("index", "0"),
    ];
    let action = "/console/topics/ORDERS/resend?id=order-1";
    check(action, &resent, &["whether the event was sent again"]).await;
    let pause = "/console/topics/Orders/subscriptions/Billing/pause";
    check(pause, &[], &["whether this was done"]).await;
    for action in ["resolve", "delete", "replay"] {
        let page = world
            .send_form(
                &list,
                &format!("/console/dead-letters/{action}"),
                &owner[..2],
            )
            .await;
        assert_eq!(page.status, 500, "{}", page.html);
        page.has_not(&["not known whether"]);
    }
}
