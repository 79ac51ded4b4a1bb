//! The pages of dead letters.

use serde_json::{Value, json};

use super::World;
use super::logged::HOSTILE;

const LIST: &str = "/console/dead-letters?topic=Orders&subscription=Billing";

fn letter(id: &str, reason: &str) -> Value {
    json!({ "specversion": "1.0", "id": id, "source": "/s", "type": "order.paid",
        "deadletterreason": reason, "deliveryattempts": 3, "lasthttpstatuscode": 410 })
}

/// An installation with two dead letters of Billing.
async fn world() -> World {
    let world = World::with_billing().await;
    let letters = json!([letter("order-1", "EndpointGone"), letter("order-2", "TimeToLiveExceeded")]);
    world.write_letters("a", &letters);
    world
}

#[tokio::test]
async fn without_dead_letters_the_page_says_so() {
    let world = World::with_billing().await;
    world.get("/console/dead-letters").await.has(&["There is no dead letter"]);
}

#[tokio::test]
async fn dead_letters_are_listed_and_lead_to_their_records() {
    let page = world().await.get("/console/dead-letters").await;
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
    let page = world.get("/console/dead-letters?reason=EndpointGone&type=order.paid").await;
    page.has(&["order-1", r#"<option value="EndpointGone" selected>"#]).has_not(&["order-2"]);
    world.get(&format!("{LIST}&type=x")).await.has(&["No dead letter has these values"]);
    for (query, field) in
        [("from=now", "from"), ("reason=Bored", "reason"), ("subscription=Billing", "topic")]
    {
        let page = world.get(&format!("/console/dead-letters?{query}")).await;
        assert_eq!(page.status, 400, "{query}");
        assert!(page.html.contains(&format!(r#"id="{field}-mistake""#)), "{query}: {}", page.html);
    }
}

#[tokio::test]
async fn a_record_is_shown_as_it_is_stored() {
    let world = world().await;
    let key = "ORDERS%2FBILLING%2F2023%2F11%2F14%2F22%2Fa.json";
    let page = world.get(&format!("/console/dead-letters/record?object={key}&index=1")).await;
    page.has(&["order-2", "&quot;deadletterreason&quot;: &quot;TimeToLiveExceeded&quot;", "Event before"]);
    page.has(&["/console/topics/ORDERS/events/order-2", "number 2"]).has_not(&["Next event"]);
    world.get(&format!("/console/dead-letters/record?object={key}&id=order-2")).await.has(&["number 2"]);
    let page = world.get("/console/dead-letters/record?object=ORDERS%2FBILLING%2Fx").await;
    assert_eq!(page.status, 404);
    world
        .get(&format!("/console/dead-letters/record?object={key}&index=2"))
        .await
        .has(&["no event of this number"]);
    world.dead_letters.write("MALFORMED/2023/11/14/22/x", "<b>not JSON");
    let page = world.get("/console/dead-letters/record?object=MALFORMED%2F2023%2F11%2F14%2F22%2Fx").await;
    page.has(&["&lt;b&gt;not JSON", "not an array of dead letters"]);
}

#[tokio::test]
async fn a_hostile_or_large_record_is_text_and_cut() {
    let world = World::with_billing().await;
    let mut letters: Vec<_> = HOSTILE.iter().map(|text| letter(text, "EndpointGone")).collect();
    letters.push(json!({ "id": "large", "deadletterreason": "x", "data": "\"\u{202e}".repeat(500_000) }));
    world.write_letters("a", &letters.into());
    let mut pages = vec![world.get("/console/dead-letters").await];
    for index in 0..5 {
        let url = "/console/dead-letters/record?object=ORDERS%2FBILLING%2F2023%2F11%2F14%2F22%2Fa.json";
        pages.push(world.get(&format!("{url}&index={index}")).await);
    }
    for page in &pages {
        page.has(&[]).has_not(&["<script>", "<img", "\u{202e}", r#"href="javascript"#]);
        assert!(page.html.len() < 200_000, "{} bytes", page.html.len());
    }
    pages[5].has(&["Only the beginning is shown"]);
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
    world.get(&list).await.has(&[r#"name="reason" value="EndpointGone""#]);
    let preview = world.post(&list, action, &fields).await;
    preview.has(&["<strong>1</strong> events", "EndpointGone", "order-1", "5</bdi> events per second"]);
    preview.has(&[r#"name="step" value="start""#, r#"name="ratePerSecond" value="5""#]);
    world.get("/console/replays").await.has(&["There is no replay"]);
    let mut start = fields.to_vec();
    start.push(("step", "start"));
    let started = world.send_form(&preview, action, &start).await;
    assert_eq!(started.status, 303);
    assert!(started.location().starts_with("/console/replays/"), "{}", started.location());
    let page = world.get(started.location()).await;
    page.has(&["begins within a minute", "EndpointGone", "5 events per second", "data-live"]);
}

#[tokio::test]
async fn a_replay_that_cannot_be_is_refused_with_the_reason() {
    let world = world().await;
    let check = async |fields: &[(&str, &str)], text: &str| {
        let page = world.post(LIST, "/console/dead-letters/replay", fields).await;
        assert_eq!(page.status, 400, "{}", page.html);
        assert!(page.html.contains(text), "{text:?} is missing in {}", page.html);
    };
    check(&[("topic", "Orders")], "A replay needs a topic and a subscription").await;
    let owner = [("topic", "Orders"), ("subscription", "Billing")];
    check(&[owner[0], owner[1], ("ratePerSecond", "fast")], "ratePerSecond").await;
    check(&[owner[0], owner[1], ("from", "soon")], "from").await;
}

#[tokio::test]
async fn dead_letters_are_resolved_or_deleted_after_a_dry_run() {
    let world = world().await;
    let owner = [("topic", "Orders"), ("subscription", "Billing"), ("includeFormer", "true")];
    let acting = [owner[0], owner[1], owner[2], ("step", "act")];
    let resolve = "/console/dead-letters/resolve";
    let preview = world.post(LIST, resolve, &owner).await;
    preview.has(&["<strong>2</strong> dead letters would be resolved", "Resolve these dead letters"]);
    world.get(LIST).await.has(&["order-1"]);
    let done = world.send_form(&preview, resolve, &acting).await;
    assert_eq!((done.status, done.location()), (303, &*format!("{LIST}&done=resolved")));
    world.get(done.location()).await.has(&["The dead letters are resolved"]).has_not(&["order-1"]);
    let all = format!("{LIST}&includeResolved=true");
    world.get(&all).await.has(&["order-1", r#"<span class="badge good">resolved</span>"#]);
    let delete = "/console/dead-letters/delete";
    let preview = world.post(&all, delete, &owner).await;
    preview.has(&["Objects that are deleted as a whole", "class=\"danger\""]);
    let done = world.send_form(&preview, delete, &acting).await;
    assert_eq!(done.status, 303);
    world.get(&all).await.has_not(&["order-1"]);
    world.get(&format!("{LIST}&done=%3Cb%3E")).await.has_not(&["role=\"status\""]);
}
