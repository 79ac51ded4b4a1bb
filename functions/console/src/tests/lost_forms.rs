//! Forms that did nothing: what they cost, what they give back, and to whom.

use axum::body::Body;
use axum::http::Request;
use url::form_urlencoded;

use super::{ShownPage, World};

const NEW: &str = "/console/topics/new";

/// The field of a form that goes on with a text.
const GOES_ON: &str = "name=\"step\" value=\"edit\"";

/// The form of a page with these fields, as a browser sends it that says where pages are from.
pub(super) fn form_of_own_site(
    page: &ShownPage,
    action: &str,
    fields: &[(&str, &str)],
) -> Request<Body> {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("form", page.form_token())
        .extend_pairs(fields);
    let request = Request::post(action).header("sec-fetch-site", "same-origin");
    request.body(Body::from(form.finish())).unwrap()
}

async fn send_without_session(fields: &[(&str, &str)]) -> ShownPage {
    let mut form = form_urlencoded::Serializer::new(String::new());
    let form = form.extend_pairs(fields).finish();
    let request = Request::post("/console/topics/x/edit").body(Body::from(form));
    let shown = World::new().send(request.unwrap()).await;
    assert_eq!(shown.status, 403, "{shown:?}");
    shown
}

/// Aliases are not expanded, however much they stand for, and their text is not given back.
#[tokio::test]
async fn alias_bomb_without_a_session_is_not_expanded() {
    for length in [10_000, 100_000] {
        let long = "x".repeat(length);
        let aliases = "*a, ".repeat(2_000);
        let bomb = format!("a: &a {long}\nb: [{aliases}]\nsecrets: [s3cret]\n");
        for field in ["text", "base"] {
            let shown = send_without_session(&[(field, &bomb), ("deliveryLog", "off")]).await;
            assert!(shown.html.len() < 10_000, "{}", shown.html.len());
            shown.has_not(&["*a, *a", "s3cret"]);
            assert!(shown.html.contains("go back in your browser"), "{shown:?}");
        }
    }
}

#[tokio::test]
async fn fields_longer_than_any_page_sends_are_not_given_back() {
    let long = "x".repeat(50_000);
    let fields = ["version", "name", "tab"].map(|name| (name, long.as_str()));
    let text = [("text", "inputSchema: Custom")];
    let shown = send_without_session(&[&fields[..], &text[..]].concat()).await;
    assert!(shown.html.contains("inputSchema: Custom"));
    assert!(shown.html.len() < 10_000, "{}", shown.html.len());
}

/// A form that nothing is known of is not sent on with a token of this session.
#[tokio::test]
async fn form_of_unknown_origin_is_only_copied() {
    let world = World::signed_in().await;
    let page = world.get(NEW).await;
    let fields = [("name", "orders"), ("text", "inputSchema: Custom")];
    let before = world.cookies.lock().clone();
    world.forget_cookies();
    world.sign_in_well().await;
    let shown = world.send_form(&page, NEW, &fields).await;
    assert_eq!(shown.status, 403);
    let expected = format!("href=\"{NEW}\"");
    for expected in ["inputSchema: Custom", "Copy your text", &expected] {
        assert!(shown.html.contains(expected), "{expected}: {}", shown.html);
    }
    shown.has_not(&[GOES_ON]);
    // It goes on where the request has the session whose page sent it too.
    world.cookies.lock().extend(before);
    let shown = world.send_form(&page, NEW, &fields).await;
    assert_eq!(shown.status, 403);
    assert!(shown.html.contains(GOES_ON), "{}", shown.html);
    let sent = form_of_own_site(&page, NEW, &fields);
    assert!(world.send(sent).await.html.contains(GOES_ON));
}

/// Anybody gets the token of a sign-in page, so it says nothing of who sent a form.
#[tokio::test]
async fn token_of_a_sign_in_page_goes_on_with_nothing() {
    let world = World::new();
    let page = world.get("/console/sign-in").await;
    world.sign_in_well().await;
    let cookies = world.cookies.lock().clone();
    assert!(cookies.len() > 1, "{cookies:?}");
    let fields = [("text", "inputSchema: Custom")];
    let shown = world.send_form(&page, NEW, &fields).await;
    assert_eq!(shown.status, 403);
    assert!(shown.html.contains("inputSchema: Custom"), "{shown:?}");
    shown.has_not(&[GOES_ON]);
}
