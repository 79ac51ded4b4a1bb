//! Dead letters that are ticked in the list.

use posthaste_core::stored::ReplayRecord;
use serde_json::json;

use super::{LIST, letter, world};

const REPLAY: &str = "/console/dead-letters/replay";
const RESOLVE: &str = "/console/dead-letters/resolve";
const FIRST: &str = "0 ORDERS/BILLING/2023/11/14/22/a.json";
const SECOND: &str = "1 ORDERS/BILLING/2023/11/14/22/a.json";

#[tokio::test]
async fn list_has_a_box_for_each_letter_and_two_actions() {
    let page = world().await.get("/console/dead-letters/list").await;
    page.has(&[
        &format!(r#"name="letter" value="{FIRST}""#),
        &format!(r#"name="letter" value="{SECOND}""#),
        r#"aria-label="Tick the dead letter in row 2""#,
        r#"formaction="/console/dead-letters/replay""#,
        r#"formaction="/console/dead-letters/resolve""#,
    ]);
}

#[tokio::test]
async fn only_ticked_letters_are_resolved() {
    let world = world().await;
    let ticked = [
        ("ticked", "true"),
        ("letter", SECOND),
        // What the filters select is not meant.
        ("reason", "EndpointGone"),
    ];
    let preview = world.post(LIST, RESOLVE, &ticked).await;
    preview.has(&["<strong>1</strong> dead letters would be resolved"]);
    let acting = [&ticked[..], &[("step", "act")]].concat();
    let done = world.send_form(&preview, RESOLVE, &acting).await;
    assert_eq!(done.status, 303, "{}", done.html);
    world
        .get(LIST)
        .await
        .has(&["order-1"])
        .has_not(&["order-2"]);
}

#[tokio::test]
async fn only_ticked_letters_are_sent_again() {
    let world = world().await;
    let ticked = [
        ("ticked", "true"),
        ("letter", FIRST),
        ("topic", "Orders"),
        ("subscription", "Billing"),
        ("includeFormer", "true"),
    ];
    let preview = world.post(LIST, REPLAY, &ticked).await;
    preview.has(&["<strong>1</strong> events", "order-1"]);
    assert_eq!(preview.field("letter"), FIRST);
    let starting = [&ticked[..], &[("step", "start")]].concat();
    let started = world.send_form(&preview, REPLAY, &starting).await;
    assert_eq!(started.status, 303, "{}", started.html);
    let (_, record) = world.state.objects_under("replays/").pop().unwrap();
    let request = ReplayRecord::parse(&record).unwrap().request;
    let places: Vec<_> = request.letters.iter().map(|it| it.index).collect();
    assert_eq!((places, request.keys.len()), (vec![0], 0));
}

#[tokio::test]
async fn letters_of_two_subscriptions_are_refused_with_the_reason() {
    let world = world().await;
    let other = "0 ORDERS/CRM/2023/11/14/22/c.json";
    let letters = json!([letter("order-9", "EndpointGone")]).to_string();
    world.dead_letters.write(&other[2..], letters);
    let both = [("ticked", "true"), ("letter", FIRST), ("letter", other)];
    for action in [RESOLVE, REPLAY] {
        let page = world.post(LIST, action, &both).await;
        assert_eq!(page.status, 400, "{}", page.html);
        assert!(
            page.html.contains("of several subscriptions"),
            "{}",
            page.html
        );
        let named = [
            &both[..],
            &[("topic", "Orders"), ("subscription", "Billing")],
        ]
        .concat();
        let page = world.post(LIST, action, &named).await;
        assert_eq!(page.status, 400, "{}", page.html);
        assert!(
            page.html.contains("not a dead letter of this subscription"),
            "{}",
            page.html
        );
    }
}

/// A form with boxes and no tick selects nothing, and not all that the filters do.
#[tokio::test]
async fn nothing_ticked_selects_nothing() {
    let world = world().await;
    let none = [
        ("ticked", "true"),
        ("topic", "Orders"),
        ("subscription", "Billing"),
        ("step", "act"),
    ];
    for action in [RESOLVE, REPLAY] {
        let page = world.post(LIST, action, &none).await;
        assert_eq!(page.status, 400, "{}", page.html);
        assert!(page.html.contains("Nothing is ticked"), "{}", page.html);
    }
    world.get(LIST).await.has(&["order-1", "order-2"]);
}

#[tokio::test]
async fn forged_box_is_refused_and_selects_nothing() {
    let world = world().await;
    for value in ["x", "-1 ORDERS/BILLING/2023/11/14/22/a.json", "0 ../a"] {
        let forged = [
            ("letter", value),
            ("topic", "Orders"),
            ("subscription", "Billing"),
            ("step", "act"),
        ];
        let page = world.post(LIST, RESOLVE, &forged).await;
        assert_eq!(page.status, 400, "{value}: {}", page.html);
    }
    world.get(LIST).await.has(&["order-1", "order-2"]);
}
