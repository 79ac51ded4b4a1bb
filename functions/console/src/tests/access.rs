//! Who may see pages, and what keeps others out.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use posthaste_ports::Clock;

use super::{ADMIN_KEY, World};
use crate::session::SIGNED_IN;

#[tokio::test]
async fn a_visitor_signs_in_and_comes_to_the_page_that_was_asked_for() {
    let world = World::new();
    let sent_away = world.get("/console/links?x=1").await;
    assert_eq!(
        (sent_away.status, sent_away.location()),
        (303, "/console/sign-in?next=%2Fconsole%2Flinks%3Fx%3D1")
    );
    world.get(sent_away.location()).await.has(&[r#"name="next" value="/console/links?x=1""#]);
    let signed_in = world.sign_in(ADMIN_KEY).await;
    assert_eq!((signed_in.status, signed_in.location()), (303, "/console"));
    world.get("/console/links").await.has(&["Sign out"]);
}

#[tokio::test]
async fn a_wrong_key_is_refused_and_waits_for_a_second() {
    let world = World::new();
    let before = world.clock.monotonic();
    let refused = world.sign_in("not-the-admin-key-of-tests").await;
    assert_eq!(refused.status, 403);
    assert!(refused.html.contains("This is not the admin key"), "{}", refused.html);
    assert_eq!(world.clock.monotonic(), before + Duration::from_secs(1));
    assert_eq!(world.get("/console/links").await.status, 303);
    assert_eq!(world.sign_in("").await.status, 403);
}

#[tokio::test]
async fn a_session_ends_after_twelve_hours_and_with_the_sign_out() {
    let world = World::signed_in().await;
    world.clock.advance(SIGNED_IN.saturating_sub(Duration::from_millis(1)));
    assert_eq!(world.get("/console/links").await.status, 200);
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(world.get("/console/links").await.status, 303);
    world.sign_in(ADMIN_KEY).await;
    let out = world.post("/console/links", "/console/sign-out", &[]).await;
    assert_eq!((out.status, out.location()), (303, "/console/sign-in"));
    assert_eq!(world.get("/console/links").await.status, 303);
}

#[tokio::test]
async fn a_form_without_the_token_of_the_session_changes_nothing() {
    let world = World::signed_in().await;
    let form = |token: &str| Body::from(format!("form={token}"));
    let post = |body| Request::post("/console/sign-out").body(body).unwrap();
    for token in ["", "AAAA", "zUwhs_slhOVLE0goGFiC0N4LjIyz3nGKC4BS-HI94hE"] {
        assert_eq!(world.send(post(form(token))).await.status, 403, "{token:?}");
    }
    assert_eq!(world.get("/console/links").await.status, 200, "still signed in");
    let page = world.get("/console/links").await;
    let mut foreign = post(form(page.form_token()));
    foreign.headers_mut().insert("sec-fetch-site", "cross-site".parse().unwrap());
    assert_eq!(world.send(foreign).await.status, 403);
    let large = Body::from(format!("form={}&x={}", page.form_token(), "x".repeat(1 << 20)));
    assert_eq!(world.send(post(large)).await.status, 413);
}

#[tokio::test]
async fn a_visitor_from_another_site_comes_in_by_a_page_that_asks_again() {
    // The cookie is not sent with a link from elsewhere, so the first request seems to be signed out.
    let world = World::new();
    let mut request = Request::get("/console/links?x=1").body(Body::empty()).unwrap();
    request.headers_mut().insert("sec-fetch-site", "cross-site".parse().unwrap());
    let page = world.send(request).await;
    assert_eq!((page.status, page.headers["refresh"].to_str().unwrap()), (200, "0"));
    page.has(&[r#"href="/console/links?x=1""#]);
}

#[tokio::test]
async fn every_answer_keeps_scripts_frames_and_caches_out() {
    let world = World::signed_in().await;
    for path in ["/console/links", "/console/nothing", "/console/sign-in"] {
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
    for (host, is_secure) in
        [("localhost:8080", false), ("[::1]:8080", false), ("posthaste.example.com", true)]
    {
        let world = World::at(host);
        let set = world.sign_in(ADMIN_KEY).await.headers["set-cookie"].to_str().unwrap().to_owned();
        assert_eq!(set.ends_with("; Secure"), is_secure, "{set}");
        assert!(set.contains("HttpOnly; SameSite=Strict"), "{set}");
    }
}

#[tokio::test]
async fn assets_need_no_session_and_are_kept_for_ever() {
    let world = World::new();
    let page = world.get("/console/sign-in").await.html;
    let assets: Vec<_> = page.split('"').filter(|it| it.starts_with("/console/assets/")).collect();
    assert_eq!(assets.len(), 3, "{page}");
    for asset in assets {
        let shown = world.get(asset).await;
        assert_eq!(
            (shown.status, shown.headers["cache-control"].to_str().unwrap()),
            (200, "public, max-age=31536000, immutable")
        );
    }
    assert_eq!(world.get("/console/assets/console.css").await.status, 404);
}
