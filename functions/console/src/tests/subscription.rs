//! The page of a subscription, and what is done from it.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::IntoResponse;
use axum::{Json, Router};
use posthaste_core::api::events::ListTime;
use posthaste_core::delivery_log::LogRecord;
use posthaste_testkit::endpoint::answered;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::logged::{HOSTILE, delivered, refused};
use super::{ShownPage, World};
use crate::ConsoleState;
use crate::api::RequestTarget;

const PAGE: &str = "/console/topics/orders/subscriptions/billing";

async fn with_billing(settings: Value) -> World {
    let world = World::signed_in().await;
    world.put(&["topics", "orders"], json!({})).await;
    world
        .put(&["topics", "orders", "subscriptions", "billing"], settings)
        .await;
    world
}

async fn plain() -> World {
    with_billing(json!({ "endpoint": { "url": "https://billing.example.com/hooks" } })).await
}

const DANGER: &str = "/console/topics/orders/subscriptions/billing?tab=danger";

async fn act(world: &World, action: &str) -> ShownPage {
    let page = if action == "disable" { DANGER } else { PAGE };
    world.post(page, &format!("{PAGE}/{action}"), &[]).await
}

#[tokio::test]
async fn page_begins_with_health_and_leads_to_its_parts() {
    let world = with_billing(json!({
        "endpoint": { "url": "https://billing.example.com/hooks" },
        "filter": { "includedEventTypes": ["order.paid"], "subjectEndsWith": "/eu" },
        "deliveryHeaders": [{ "name": "Authorization", "value": "s3cret", "isSecret": true }],
    }))
    .await;
    let page = world.get(PAGE).await;
    page.has(&[
        r#"<nav class="actions" aria-label="Parts of the subscription">"#,
        r#"aria-current="page">Now</a>"#,
        "its events arrive",
        "There was no attempt within 24 hours.",
        "billing.example.com/hooks",
        "order.paid; subject ends with /eu",
        &format!("href=\"{PAGE}/edit\""),
        &format!("href=\"{PAGE}/edit?tab=yaml\""),
        &format!("href=\"{PAGE}?tab=danger\""),
        "href=\"/console/events?topic=orders&amp;subscription=billing\"",
        "href=\"/console/dead-letters?topic=orders&amp;subscription=billing\"",
    ])
    .has_not(&["s3cret", "whsec_", "/delete\"", "/rotate-secret\""]);
    let danger = world.get(DANGER).await;
    danger
        .has(&[
            r#"aria-current="page">Danger</a>"#,
            "<code>(masked:",
            &format!("action=\"{PAGE}/rotate-secret\""),
            &format!("action=\"{PAGE}/disable\""),
            &format!("action=\"{PAGE}/delete\""),
        ])
        .has_not(&["s3cret", "whsec_", "Last attempts"]);
    for (tab, leads_to) in [("settings", "/edit"), ("yaml", "/edit?tab=yaml")] {
        let led = world.get(&format!("{PAGE}?tab={tab}")).await;
        assert_eq!(
            (led.status, led.location()),
            (303, &*format!("{PAGE}{leads_to}"))
        );
    }
    for page in ["crm", "crm?tab=danger"] {
        let unknown = format!("/console/topics/orders/subscriptions/{page}");
        assert_eq!(world.get(&unknown).await.status, 404);
    }
}

/// The last 20 attempts are a table, and all that were read are dots of the chart.
#[tokio::test]
async fn last_attempts_are_a_chart_and_a_table() {
    let world = World::with_billing().await;
    let mut records: Vec<_> = (0..30)
        .map(|number| delivered(&format!("order-{number}"), world.ago(100 + number)))
        .collect();
    records.push(refused("order-bad", world.ago(50)));
    world.log_records(&records);
    let page = world
        .get("/console/topics/Orders/subscriptions/Billing")
        .await;
    page.has(&[
        "Response times of the last 31 attempts",
        "31 values, 1 of failures",
        "50 s ago",
        "retried later",
        "Busy",
        "503 <bdi>thanks</bdi>",
        "12 ms",
        "/events/order-bad\"",
        "/events/order-18\"",
    ])
    .has_not(&["/events/order-19\""]);
}

#[tokio::test]
async fn attempts_with_hostile_texts_are_text_and_bounded() {
    let world = World::with_billing().await;
    let long = "\"".repeat(2_000);
    let texts = HOSTILE.iter().copied().chain([long.as_str()]).cycle();
    let records: Vec<_> = texts
        .zip(0..60)
        .map(|(text, number)| LogRecord {
            event_id: Some(text.to_owned()),
            answer: Some(text.to_owned()),
            reason: Some(text.to_owned()),
            ..refused(&format!("order-{number}"), world.ago(100 + number))
        })
        .collect();
    world.log_records(&records);
    let page = world
        .get("/console/topics/Orders/subscriptions/Billing")
        .await;
    page.has(&["60 values, 60 of failures", "&lt;script&gt;"])
        .has_not(&["<script>alert", "<img", "\u{202e}"]);
    assert!(page.html.len() < 60_000, "{}", page.html.len());
}

#[tokio::test]
async fn log_that_is_off_is_said_in_a_sentence() {
    let world = World::signed_in().await;
    world
        .put(&["topics", "orders"], json!({ "deliveryLog": "off" }))
        .await;
    let billing = json!({ "endpoint": { "url": "https://billing.example.com/hooks" } });
    world
        .put(&["topics", "orders", "subscriptions", "billing"], billing)
        .await;
    world
        .get(PAGE)
        .await
        .has(&["<p class=\"empty\"><bdi>The delivery log"])
        .has_not(&["Response times of", "no attempt within"]);
}

/// A log that cannot be read takes nothing else from the page.
#[tokio::test]
async fn page_without_its_log_still_shows_state_and_buttons() {
    let world = plain().await;
    let routes = world.api_routes.clone();
    let answer = move |request: Request<Body>| {
        let fails = request.uri().path().ends_with("/attempts");
        let routes = routes.clone();
        async move {
            if fails {
                StatusCode::SERVICE_UNAVAILABLE.into_response()
            } else {
                routes.oneshot(request).await.into_response()
            }
        }
    };
    let world = world.changed(|_, _| ConsoleState::new(Router::new().fallback(answer)));
    world.get(PAGE).await.has(&[
        "The last attempts are not known now.",
        "its events arrive",
        &format!("action=\"{PAGE}/pause\""),
    ]);
}

/// Each refresh waits a second for the log at most, and says what that left out.
#[tokio::test]
async fn attempts_that_take_long_are_searched_for_a_second() {
    let world = plain().await;
    let routes = world.api_routes.clone();
    let answer = move |request: Request<Body>| {
        let is_list = request.uri().path().ends_with("/attempts");
        let time = request.extensions().get::<ListTime>().copied();
        let routes = routes.clone();
        async move {
            if !is_list {
                return routes.oneshot(request).await.into_response();
            }
            assert_eq!(time, Some(ListTime(Duration::from_secs(1))));
            let back_to = "2023-11-14T20:00:00.000Z";
            Json(json!({
                "records": [], "searchedBackTo": back_to, "completeUntil": back_to, "cursor": "x",
            }))
            .into_response()
        }
    };
    let world = world.changed(|_, _| ConsoleState::new(Router::new().fallback(answer)));
    world.get(PAGE).await.has(&[
        "No attempt was found so far.",
        "2023-11-14 20:00:00",
        "were not searched within a second.",
        "Search further back</a>",
    ]);
}

#[tokio::test]
async fn paused_subscription_says_since_when_in_a_sentence() {
    let world = plain().await;
    act(&world, "pause").await;
    world
        .get(PAGE)
        .await
        .has(&[" since <span class=\"ago\"", "an operator paused it."]);
}

#[tokio::test]
async fn fate_of_what_a_disabled_subscription_misses_is_shown() {
    let world = plain().await;
    act(&world, "disable").await;
    let skips = "New events are skipped and counted.";
    world.get(PAGE).await.has(&[skips]);
    let kept = json!({
        "endpoint": { "url": "https://billing.example.com/hooks" }, "whileDisabled": "deadLetter",
    });
    world
        .put(&["topics", "orders", "subscriptions", "billing"], kept)
        .await;
    world
        .get(PAGE)
        .await
        .has(&["New events become dead letters."])
        .has_not(&[skips]);
}

/// Paused subscriptions show their state, and their held events are counted.
#[tokio::test]
async fn waiting_and_held_events_are_shown() {
    let world = plain().await;
    act(&world, "pause").await;
    world.state.write("held/orders.billing/00000001-x", "{}");
    world
        .get(PAGE)
        .await
        .has(&["paused by an operator", "1 waiting until it recovers"]);
    world
        .get("/console/topics/orders")
        .await
        .has(&["data-label=\"Waiting\">1"]);
}

#[tokio::test]
async fn only_what_the_state_allows_is_offered() {
    let world = plain().await;
    let offered = |page: &ShownPage| {
        let actions = [
            "pause", "resume", "enable", "disable", "validate", "force", "test",
        ];
        let is_offered = |action: &&str| page.html.contains(&format!("action=\"{PAGE}/{action}\""));
        actions
            .into_iter()
            .filter(is_offered)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(offered(&world.get(PAGE).await), "pause force test");
    let paused = act(&world, "pause").await;
    assert_eq!(
        (paused.status, paused.page_after()),
        (303, format!("{PAGE}?done=pause").as_str())
    );
    let page = world.get(paused.location()).await;
    assert_eq!(
        offered(page.has(&["The subscription is paused."])),
        "resume test"
    );
    world.clock.advance(Duration::from_secs(61));
    world
        .get(paused.location())
        .await
        .has_not(&["The subscription is paused."]);
    act(&world, "resume").await;
    act(&world, "disable").await;
    assert_eq!(offered(&world.get(PAGE).await), "enable test");
    let refused = world
        .send_form(&world.get(PAGE).await, &format!("{PAGE}/pause"), &[])
        .await;
    assert_eq!(refused.status, 409);
    assert!(
        refused.html.contains(&format!("href=\"{PAGE}\"")),
        "{}",
        refused.html
    );
    assert_eq!(
        world
            .send_form(&world.get(PAGE).await, &format!("{PAGE}/explode"), &[])
            .await
            .status,
        404
    );
}

/// Endpoints that have not consented can be asked again, and neither tested nor forced.
#[tokio::test]
async fn endpoint_without_consent_can_be_asked_but_not_tested() {
    let world = World::signed_in().await;
    world.endpoint.answer(|_| answered(500, &[], "no"));
    world.put(&["topics", "orders"], json!({})).await;
    let endpoint = json!({ "url": "https://billing.example.com/", "validation": "CloudEvents" });
    world
        .put(
            &["topics", "orders", "subscriptions", "billing"],
            json!({ "endpoint": endpoint }),
        )
        .await;
    let page = world.get(PAGE).await;
    page.has(&[
        "failed",
        &format!("{PAGE}/validate"),
        &format!("{PAGE}/enable"),
    ]);
    page.has_not(&[&format!("{PAGE}/test"), &format!("{PAGE}/force")]);
    world
        .endpoint
        .answer(|_| answered(200, &[("webhook-allowed-origin", "*")], ""));
    let asked = act(&world, "validate").await;
    world
        .get(asked.location())
        .await
        .has(&["The endpoint was asked.", "active", "consented at"]);
}

#[tokio::test]
async fn force_says_what_it_ended() {
    let world = plain().await;
    let forced = act(&world, "force").await;
    assert_eq!(
        (forced.status, forced.page_after()),
        (303, &*format!("{PAGE}?done=no-hold,forced"))
    );
    world.get(forced.location()).await.has(&[
        "Nothing was in its way. Events that wait go out",
        "15 minutes",
    ]);
    world.fail_link("https://billing.example.com").await;
    let forced = act(&world, "force").await;
    assert_eq!(
        forced.page_after(),
        format!("{PAGE}?done=hold-ended,forced")
    );
    world
        .get(forced.location())
        .await
        .has(&["Its endpoint is tried again", "same scheme, host and port"]);
}

#[tokio::test]
async fn the_actions_are_live_and_stand_above_the_state() {
    let world = plain().await;
    let page = world.get(PAGE).await;
    let place = |text: &str| page.html.find(text).unwrap();
    let [actions, pause, state] = [
        "<section id=\"actions\" data-live",
        "/pause\"",
        "<section id=\"now\" data-live",
    ]
    .map(place);
    assert!(actions < pause && pause < state);
    page.has(&[
        "within a minute",
        "within 15 minutes",
        "If its whole link is down",
    ]);
    act(&world, "pause").await;
    world
        .get(PAGE)
        .await
        .has(&["If its whole link is down", "tries its endpoint now"]);
}

#[tokio::test]
async fn a_test_event_shows_its_request_and_the_answer_as_text() {
    let world = with_billing(json!({
        "endpoint": { "url": "https://billing.example.com/hooks" },
        "deliveryHeaders": [{ "name": "X-Key", "value": "s3cret", "isSecret": true }],
    }))
    .await;
    world.endpoint.answer(|_| {
        let body = format!("<script>alert(1)</script>\u{202e}{}", "x".repeat(60_000));
        answered(404, &[("x-odd", "<img src=x>")], &body)
    });
    let page = act(&world, "test").await;
    page.has(&[
        "not delivered",
        "404",
        "webhook-signature",
        "(masked)",
        "&lt;script&gt;",
        "⟦U+202E⟧",
        "&lt;img",
        "bytes.",
    ]);
    page.has_not(&["<script>alert", "<img", "s3cret"]);
    assert!(page.html.len() < 50_000, "{}", page.html.len());
    world.endpoint.answer(|_| answered(200, &[], ""));
    act(&world, "test").await.has(&["badge good", "Empty."]);
}

#[tokio::test]
async fn a_new_secret_is_shown_once() {
    let world = plain().await;
    let rotated = world
        .post(
            DANGER,
            &format!("{PAGE}/rotate-secret"),
            &[("overlap", "PT1H"), ("kind", "")],
        )
        .await;
    rotated.has(&[
        "It is never shown again",
        "whsec_",
        "Do not reload this page",
    ]);
    world
        .get(DANGER)
        .await
        .has(&[" until "])
        .has_not(&["whsec_"]);
    let pair = world
        .post(
            DANGER,
            &format!("{PAGE}/rotate-secret"),
            &[("overlap", "P1D"), ("kind", "v1a")],
        )
        .await;
    pair.has(&["whsk_", "whpk_"]);
    let refused = world
        .post(
            DANGER,
            &format!("{PAGE}/rotate-secret"),
            &[("overlap", "P9D")],
        )
        .await;
    assert_eq!(refused.status, 400);
}

#[tokio::test]
async fn third_rotation_is_refused_unless_it_may_drop() {
    let world = plain().await;
    let rotate = async |more: &[(&str, &str)]| {
        let fields = [&[("overlap", "P1D"), ("kind", "")][..], more].concat();
        let action = format!("{PAGE}/rotate-secret");
        world.post(DANGER, &action, &fields).await
    };
    assert_eq!(
        [rotate(&[]).await.status, rotate(&[]).await.status],
        [200; 2]
    );
    let refused = rotate(&[]).await;
    assert_eq!(refused.status, 409);
    assert!(refused.html.contains("3 secrets sign already"));
    let rotated = rotate(&[("drop", "true")]).await;
    rotated.has(&["whsec_", "These secrets sign no more"]);
}

#[tokio::test]
async fn a_subscription_is_deleted_once_its_name_was_typed() {
    let world = plain().await;
    let delete = format!("{PAGE}/delete");
    assert_eq!(
        world.post(DANGER, &delete, &[("name", "")]).await.status,
        400
    );
    let deleted = world.post(DANGER, &delete, &[("name", "billing")]).await;
    assert_eq!(
        deleted.page_after(),
        "/console/topics/orders?done=subscription-deleted"
    );
    world
        .get(deleted.location())
        .await
        .has(&["The subscription was deleted.", "has no subscription"]);
}

#[tokio::test]
async fn a_word_that_is_not_known_shows_nothing() {
    let world = plain().await;
    let page = world.get(&format!("{PAGE}?done=%3Cscript%3E")).await;
    page.has(&["Last attempts"])
        .has_not(&["role=\"status\"", "&lt;script"]);
}

/// Secrets and keys appear on the page that made or shows them, and on no other.
#[tokio::test]
async fn secret_appears_only_on_the_page_that_made_it() {
    let world = with_billing(json!({
        "endpoint": { "url": "https://billing.example.com/hooks" },
        "deliveryHeaders": [{ "name": "Authorization", "value": "Bearer s3cret", "isSecret": true }],
    }))
    .await;
    let rotated = world
        .post(DANGER, &format!("{PAGE}/rotate-secret"), &[])
        .await;
    let (_, secret) = rotated
        .html
        .split_once("aria-label=\"Signing secret\">")
        .unwrap();
    let secret = secret.split('<').next().unwrap();
    let keys: Value = world
        .api
        .get(RequestTarget::new(&["topics", "orders", "keys"]))
        .await
        .unwrap();
    let hidden = [
        "s3cret",
        secret,
        keys["key1"].as_str().unwrap(),
        keys["key2"].as_str().unwrap(),
    ];
    let edit = format!("{PAGE}/edit");
    let form = world.get(&format!("{edit}?tab=yaml")).await;
    let version = form.field("version");
    let text = form.text();
    assert!(
        text.contains("value: (masked)") && text.contains("secrets:"),
        "{text}"
    );
    for step in ["check", "edit"] {
        let fields = [
            ("version", version.as_str()),
            ("text", &text),
            ("step", step),
        ];
        world
            .send_form(&form, &edit, &fields)
            .await
            .has_not(&hidden);
    }
    let stale = [
        ("version", "\"x\""),
        ("text", text.as_str()),
        ("step", "save"),
    ];
    world.send_form(&form, &edit, &stale).await.has_not(&hidden);
    act(&world, "test").await.has_not(&hidden);
    act(&world, "force").await.has_not(&hidden);
    let saved = [
        ("version", version.as_str()),
        ("text", text.as_str()),
        ("step", "save"),
    ];
    world.send_form(&form, &edit, &saved).await;
    let pages = [
        "/console/topics",
        "/console/topics/orders",
        "/console/topics/orders/edit",
        PAGE,
        DANGER,
        &edit,
        "/console/topics/orders/subscriptions/new",
        "/console/failing",
    ];
    for page in pages {
        world
            .get(page)
            .await
            .has(&["</html>"])
            .has_not(&hidden)
            .has_not(&["whsec_", "whsk_"]);
    }
    // The secrets are kept by their masks.
    act(&world, "test").await.has(&["webhook-signature"]);
    let request = world.endpoint.take().pop().unwrap();
    assert_eq!(request.headers["authorization"], "Bearer s3cret");
    let keys_page = world
        .post("/console/topics/orders", "/console/topics/orders/keys", &[])
        .await;
    keys_page.has(&hidden[2..]);
}
