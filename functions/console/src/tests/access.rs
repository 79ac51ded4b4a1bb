//! Access to pages: the visitors who get in, and what keeps others out.

use std::future::Future;
use std::task::{Context, Waker};
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use posthaste_ports::Clock;
use serde_json::json;
use url::form_urlencoded;

use super::lost_forms::form_of_own_site;
use super::{ADMIN_KEY, World};
use crate::session::SIGNED_IN;
use crate::{ConsoleState, OverTls};

#[tokio::test]
async fn a_visitor_signs_in_and_comes_to_the_page_that_was_asked_for() {
    let world = World::new();
    let sent_away = world.get("/console/topics?x=1").await;
    assert_eq!(
        (sent_away.status, sent_away.location()),
        (303, "/console/sign-in?next=%2Fconsole%2Ftopics%3Fx%3D1")
    );
    world
        .get(sent_away.location())
        .await
        .has(&[r#"name="next" value="/console/topics?x=1""#]);
    let signed_in = world.sign_in(ADMIN_KEY).await;
    assert_eq!((signed_in.status, signed_in.location()), (303, "/console"));
    world.get("/console/topics").await.has(&["Sign out"]);
}

#[tokio::test]
async fn a_wrong_key_is_refused_and_waits_for_a_second() {
    let world = World::new();
    let before = world.clock.monotonic();
    let refused = world.sign_in("not-the-admin-key-of-tests").await;
    assert_eq!(refused.status, 403);
    assert!(
        refused.html.contains("This is not the admin key"),
        "{}",
        refused.html
    );
    assert_eq!(world.clock.monotonic(), before + Duration::from_secs(1));
    assert_eq!(world.get("/console/topics").await.status, 303);
    assert_eq!(world.sign_in("").await.status, 403);
}

#[tokio::test]
async fn a_session_ends_after_twelve_hours_and_with_the_sign_out() {
    let world = World::signed_in().await;
    world
        .clock
        .advance(SIGNED_IN.saturating_sub(Duration::from_millis(1)));
    assert_eq!(world.get("/console/topics").await.status, 200);
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(world.get("/console/topics").await.status, 303);
    world.sign_in(ADMIN_KEY).await;
    let out = world
        .post("/console/topics", "/console/sign-out", &[])
        .await;
    assert_eq!((out.status, out.location()), (303, "/console/sign-in"));
    assert_eq!(world.get("/console/topics").await.status, 303);
}

#[tokio::test]
async fn a_form_without_the_token_of_the_session_changes_nothing() {
    let world = World::signed_in().await;
    let form = |token: &str| Body::from(format!("form={token}"));
    let post = |body| Request::post("/console/sign-out").body(body).unwrap();
    for token in ["", "AAAA", "zUwhs_slhOVLE0goGFiC0N4LjIyz3nGKC4BS-HI94hE"] {
        assert_eq!(world.send(post(form(token))).await.status, 403, "{token:?}");
    }
    assert_eq!(
        world.get("/console/topics").await.status,
        200,
        "still signed in"
    );
    let page = world.get("/console/topics").await;
    let mut foreign = post(form(page.form_token()));
    foreign
        .headers_mut()
        .insert("sec-fetch-site", "cross-site".parse().unwrap());
    assert_eq!(world.send(foreign).await.status, 403);
    let large = Body::from(format!(
        "form={}&x={}",
        page.form_token(),
        "x".repeat(1 << 20)
    ));
    assert_eq!(world.send(post(large)).await.status, 413);
}

#[tokio::test]
async fn more_than_eight_wrong_keys_at_once_are_refused_at_once() {
    let world = World::new();
    let page = world.get("/console/sign-in").await;
    let send = || {
        world.send_form(
            &page,
            "/console/sign-in",
            &[("key", "not-the-admin-key-of-tests")],
        )
    };
    let mut waiting: Vec<_> = (0..8).map(|_| Box::pin(send())).collect();
    for one in &mut waiting {
        assert!(
            one.as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
    }
    let refused = send().await;
    assert_eq!(refused.status, 429);
    assert!(
        refused.html.contains("Too many sign-ins with a wrong key"),
        "{}",
        refused.html
    );
    let right = world
        .send_form(&page, "/console/sign-in", &[("key", ADMIN_KEY)])
        .await;
    assert_eq!(right.status, 303, "the right key waits for nobody");
}

/// Sign-ins that come too late, or without the cookie of their page, show the page again.
#[tokio::test]
async fn late_or_cookieless_sign_in_is_asked_for_again() {
    let world = World::new();
    let late = world.get("/console/sign-in?next=%2Fconsole%2Ftopics").await;
    world.clock.advance(Duration::from_hours(1));
    let fields = [("key", ADMIN_KEY), ("next", "/console/topics")];
    let again = world.send_form(&late, "/console/sign-in", &fields).await;
    assert_eq!(again.status, 403);
    assert!(
        again
            .html
            .contains("This page was open for too long. Sign in again."),
        "{}",
        again.html
    );
    let signed_in = world.send_form(&again, "/console/sign-in", &fields).await;
    assert_eq!(
        (signed_in.status, signed_in.location()),
        (303, "/console/topics")
    );

    let world = World::new();
    let page = world.get("/console/sign-in").await;
    world.forget_cookies();
    let refused = world.send_form(&page, "/console/sign-in", &fields).await;
    assert_eq!(refused.status, 403);
    assert!(
        refused.html.contains("did not keep the cookie"),
        "{}",
        refused.html
    );
}

#[tokio::test]
async fn signed_in_visitor_needs_no_second_sign_in() {
    let world = World::new();
    let second_tab = world.get("/console/sign-in").await;
    world.sign_in_well().await;
    let fields = [("key", ADMIN_KEY), ("next", "/console/topics")];
    let sent = world
        .send_form(&second_tab, "/console/sign-in", &fields)
        .await;
    assert_eq!((sent.status, sent.location()), (303, "/console/topics"));
    let shown = world.get("/console/sign-in?next=%2Fconsole%2Ftopics").await;
    assert_eq!((shown.status, shown.location()), (303, "/console/topics"));
}

/// Forms larger than any page sends, in bytes or in fields, are refused while they are read.
#[tokio::test]
async fn too_large_form_is_refused_before_it_is_kept() {
    let world = World::new();
    let page = world.get("/console/sign-in").await;
    let large = "x".repeat(9 * 1024);
    assert_eq!(
        world
            .send_form(&page, "/console/sign-in", &[("key", &large)])
            .await
            .status,
        413
    );
    let world = World::signed_in().await;
    let page = world.get("/console/topics/new").await;
    let many: Vec<_> = (0..1_000).map(|_| ("a", "")).collect();
    assert_eq!(
        world
            .send_form(&page, "/console/topics/new", &many)
            .await
            .status,
        413
    );
}

#[tokio::test]
async fn a_text_that_was_typed_comes_back_when_the_session_has_ended() {
    let world = World::signed_in().await;
    let page = world.get("/console/topics/new").await;
    let fields = [("name", "orders"), ("text", "inputSchema: <b>")];
    world.clock.advance(SIGNED_IN);
    let ended = world.send_form(&page, "/console/topics/new", &fields).await;
    assert_eq!(ended.status, 403);
    let url = "/console/sign-in?next=%2Fconsole%2Ftopics%2Fnew";
    for text in [
        "Your session has ended",
        &format!("href=\"{url}\""),
        "\ninputSchema: &lt;b&gt;</textarea>",
    ] {
        assert!(ended.html.contains(text), "{text} is not in {}", ended.html);
    }
    world.sign_in_well().await;
    let other = form_of_own_site(&page, "/console/topics/new", &fields);
    let other = world.send(other).await;
    assert_eq!(other.status, 403);
    assert!(
        other.html.contains("\ninputSchema: &lt;b&gt;</textarea>"),
        "{}",
        other.html
    );
    let text = other.text();
    let go_on = [("name", "orders"), ("text", &text), ("step", "edit")];
    let shown = world.send_form(&other, "/console/topics/new", &go_on).await;
    shown.has(&["\ninputSchema: &lt;b&gt;</textarea>", r#"value="orders""#]);
}

/// All fields of the form are given back as YAML, but no secret that was typed.
#[tokio::test]
async fn fields_of_settings_come_back_without_secrets() {
    let world = World::signed_in().await;
    world.put(&["topics", "orders"], json!({})).await;
    let new = "/console/topics/orders/subscriptions/new";
    let page = world.get(new).await;
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let base = format!("endpoint: {{ url: x }}\nsigning: {{ secrets: [{secret}] }}\n");
    let fields = [
        ("name", "billing"),
        ("tab", "form"),
        ("base", &base),
        ("endpoint.url", "https://billing.example.com/"),
        ("filter.subjectBeginsWith", "<orders>"),
    ];
    world.clock.advance(SIGNED_IN);
    let ended = world.send_form(&page, new, &fields).await;
    assert_eq!(ended.status, 403);
    for text in [
        "url: https://billing.example.com/",
        "subjectBeginsWith: &lt;orders&gt;",
        "<bdi>billing</bdi>",
        "Type them again.",
    ] {
        assert!(ended.html.contains(text), "{text}: {}", ended.html);
    }
    assert!(!ended.html.contains(secret), "{}", ended.html);
    // Going on is for pages of settings alone: elsewhere the same fields may do something.
    let deletion = "/console/topics/orders/delete";
    let ended = world.send_form(&page, deletion, &fields).await;
    assert_eq!(ended.status, 403);
    assert!(!ended.html.contains("textarea"), "{}", ended.html);
    let mut foreign = form_urlencoded::Serializer::new(String::new());
    let foreign = Request::post(new)
        .header("sec-fetch-site", "cross-site")
        .body(Body::from(foreign.extend_pairs(&fields).finish()));
    let shown = world.send(foreign.unwrap()).await;
    assert_eq!(shown.status, 403);
    assert!(!shown.html.contains("textarea"), "{}", shown.html);
}

#[tokio::test]
async fn an_address_that_takes_a_form_leads_to_the_page_with_the_form() {
    let world = World::signed_in().await;
    let check = async |url: &str, expected: &str| {
        let shown = world.get(url).await;
        assert_eq!((shown.status, shown.location()), (303, expected), "{url}");
    };
    check(
        "/console/topics/a/subscriptions/b/force",
        "/console/topics/a/subscriptions/b",
    )
    .await;
    check("/console/topics/a/keys", "/console/topics/a").await;
    check("/console/dead-letters/replay", "/console/dead-letters").await;
    check("/console/sign-out", "/console").await;
    check("/console/", "/console").await;
    check(
        "/console/sign-in?next=%2Fconsole%2Ftopics",
        "/console/topics",
    )
    .await;
}

#[tokio::test]
async fn a_long_address_is_not_carried_through_the_sign_in() {
    let world = World::new();
    let long = format!("/console/topics/orders/event?id={}", "%C3%BC".repeat(250));
    assert_eq!(world.get(&long).await.location(), "/console/sign-in");
}

#[tokio::test]
async fn a_page_that_takes_too_long_is_answered_all_the_same() {
    let hanging = axum::Router::new().fallback(std::future::pending::<()>);
    let world = World::signed_in()
        .await
        .changed(|_, _| ConsoleState::new(hanging));
    let page = world.get("/console/topics");
    let time = async {
        while world.clock.advance_to_next().is_none() {
            tokio::task::yield_now().await;
        }
    };
    let (shown, ()) = tokio::join!(page, time);
    assert_eq!(shown.status, 503);
    assert!(
        shown.html.contains("The page took too long"),
        "{}",
        shown.html
    );
}

/// Links from elsewhere carry no cookie, so the first page asks for itself again.
#[tokio::test]
async fn visitor_from_another_site_enters_by_a_page_that_reloads() {
    // The cookie is not sent with a link from elsewhere, so the first request seems to be signed
    // out.
    let world = World::new();
    let mut request = Request::get("/console/topics?x=1")
        .body(Body::empty())
        .unwrap();
    request
        .headers_mut()
        .insert("sec-fetch-site", "cross-site".parse().unwrap());
    let page = world.send(request).await;
    assert_eq!(
        (page.status, page.headers["refresh"].to_str().unwrap()),
        (200, "0")
    );
    page.has(&[r#"href="/console/topics?x=1""#]);
}

#[tokio::test]
async fn every_answer_keeps_scripts_frames_and_caches_out() {
    let world = World::signed_in().await;
    for path in [
        "/console/topics",
        "/console/nothing",
        "/console/topics/a/keys",
    ] {
        let page = world.get(path).await;
        let policy = page.headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(page.headers["cache-control"], "no-store");
        assert_eq!(page.headers["x-content-type-options"], "nosniff");
        for inline in ["<script>", " style=", " onclick=", "javascript:"] {
            assert!(!page.html.contains(inline), "{inline} in {}", page.html);
        }
    }
}

#[tokio::test]
async fn cookies_are_kept_to_https_but_on_the_own_machine() {
    for (host, is_secure) in [
        ("localhost:8080", false),
        ("[::1]:8080", false),
        ("posthaste.example.com", true),
    ] {
        let world = World::at(host);
        let set = world.sign_in(ADMIN_KEY).await.headers["set-cookie"]
            .to_str()
            .unwrap()
            .to_owned();
        assert_eq!(set.contains("; Secure;"), is_secure, "{set}");
        assert!(set.contains("HttpOnly; SameSite=Strict"), "{set}");
    }
}

/// The name of the host does not matter to a server that speaks TLS itself.
#[tokio::test]
async fn cookies_over_tls_are_kept_to_https_everywhere() {
    let world = World::at("localhost:8080");
    let request = Request::get("/console/sign-in").extension(OverTls);
    let shown = world.send(request.body(Body::empty()).unwrap()).await;
    let set = shown.headers["set-cookie"].to_str().unwrap();
    assert!(set.contains("; Secure;"), "{set}");
}

#[tokio::test]
async fn assets_need_no_session_and_are_kept_for_ever() {
    let world = World::new();
    let page = world.get("/console/sign-in").await.html;
    let assets: Vec<_> = page
        .split('"')
        .filter(|it| it.starts_with("/console/assets/"))
        .collect();
    assert_eq!(assets.len(), 3, "{page}");
    for asset in assets {
        let shown = world.get(asset).await;
        assert_eq!(
            (
                shown.status,
                shown.headers["cache-control"].to_str().unwrap()
            ),
            (200, "public, max-age=31536000, immutable")
        );
    }
    assert_eq!(world.get("/console/assets/console.css").await.status, 404);
}
