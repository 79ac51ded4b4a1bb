//! Keys that no object can have, at every door of the API that takes one.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use posthaste_testkit::conformance::store::bad_keys;
use serde_json::{Value, json};

use crate::Api;

const DEAD_LETTERS: &str = "/topics/orders/subscriptions/billing/dead-letters";

/// Asks for each of the keys at every door, and checks that it is the caller's error, which names
/// its member. The topic `orders` must have the subscription `billing`, without dead letters.
pub async fn refuses_bad_keys(api: &Api) {
    for key in bad_keys("ORDERS/BILLING/") {
        let escaped = escaped(&key);
        let shown = api
            .ask("GET", &format!("/dead-letters/{escaped}"), &Value::Null)
            .await;
        assert_eq!(shown.0, 404, "{key:?}: {shown:?}");
        for (action, request) in [
            ("replay", json!({ "keys": [key] })),
            ("replay", json!({ "keys": [key], "dryRun": true })),
            ("resolve", json!({ "keys": [key] })),
            ("resolve", json!({ "keys": [key], "dryRun": true })),
            ("delete", json!({ "keys": [key] })),
            ("delete", json!({ "keys": [key], "dryRun": true })),
        ] {
            let path = format!("{DEAD_LETTERS}/{action}");
            check(api, &path, &request, "keys[0]").await;
        }
        let resend = "/topics/orders/subscriptions/billing/events/1/resend";
        let letter = json!({ "deadLetter": { "object": key, "index": 0 } });
        check(api, resend, &letter, "deadLetter.object").await;
        let cursor = cursor(&key);
        for action in ["resolve", "delete"] {
            let path = format!("{DEAD_LETTERS}/{action}");
            check(api, &path, &json!({ "cursor": cursor }), "cursor").await;
        }
    }
    for key in bad_keys("topics/")
        .into_iter()
        .chain(bad_keys("replays/"))
        .chain(bad_keys(""))
        .filter(|key| !key.is_empty())
    {
        for list in [
            "/topics",
            "/replays",
            "/replays?active=true",
            "/dead-letters",
        ] {
            let joint = if list.contains('?') { '&' } else { '?' };
            let path = format!("{list}{joint}cursor={}", cursor(&key));
            check_get(api, &path, "cursor").await;
        }
        for list in ["events", "subscriptions/billing/attempts"] {
            let path = format!("/topics/orders/{list}?cursor={}", cursor(&key));
            check_get(api, &path, "cursor").await;
        }
        let answer = api
            .ask("GET", &format!("/replays/{}", escaped(&key)), &Value::Null)
            .await;
        assert_eq!(answer.0, 404, "{key:?}: {answer:?}");
    }
    check_get(api, &format!("/topics?prefix={}", "a".repeat(65)), "prefix").await;
}

/// A key that a store of files may refuse, and S3 may have: there is no such object.
pub async fn finds_no_object_under_a_long_name(api: &Api) {
    let long = format!("ORDERS/BILLING/{}", "n".repeat(300));
    let of_the_store = "ORDERS/BILLING/.posthaste-tmp/0".to_owned();
    let without_list = format!("ORDERS/BILLING/{}", "n/".repeat(500) + "nnnn");
    for key in [long, of_the_store, without_list] {
        let request = json!({ "keys": [key], "dryRun": true });
        for action in ["replay", "resolve", "delete"] {
            let (status, answer) = api
                .ask("POST", &format!("{DEAD_LETTERS}/{action}"), &request)
                .await;
            let detail = &answer["failures"][0]["detail"];
            assert_eq!(
                (status, detail),
                (200, &json!("there is no such object")),
                "{key}: {answer}"
            );
        }
        let resend = "/topics/orders/subscriptions/billing/events/1/resend";
        let letter = json!({ "deadLetter": { "object": key, "index": 0 } });
        let answer = api.ask("POST", resend, &letter).await;
        assert_eq!(answer.0, 404, "{key}: {answer:?}");
    }
}

async fn check(api: &Api, path: &str, request: &Value, member: &str) {
    let (status, problem) = api.ask("POST", path, request).await;
    assert_eq!(
        (status, &problem["member"]),
        (400, &json!(member)),
        "{path} {request}: {problem}"
    );
}

async fn check_get(api: &Api, path: &str, member: &str) {
    let (status, problem) = api.ask("GET", path, &Value::Null).await;
    assert_eq!(
        (status, &problem["member"]),
        (400, &json!(member)),
        "{path}: {problem}"
    );
}

/// A key in the path of a request.
fn escaped(key: &str) -> String {
    utf8_percent_encode(key, NON_ALPHANUMERIC).to_string()
}

/// A cursor with this text, as a client could make one.
fn cursor(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(text)
}
