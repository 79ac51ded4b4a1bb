//! Dead letters that an operator resolves or deletes.

use std::time::Duration;

use posthaste_core::stored::{ResolvedLetters, layout};
use posthaste_ports::ErrorKind;
use serde_json::{Value, json};

use super::{Answer, Api};

const PATH: &str = "/topics/orders/subscriptions/billing/dead-letters";
const A: &str = "ORDERS/BILLING/2026/11/21/10/a.json";
const B: &str = "ORDERS/BILLING/2026/11/21/9/b.json";

fn letter(id: &str, event_type: &str) -> Value {
    let reason = "EndpointGone";
    json!({ "specversion": "1.0", "id": id, "source": "/s", "type": event_type, "deadletterreason": reason })
}

/// An API with two objects of two letters each.
async fn api() -> Api {
    let api = Api::with_billing().await;
    api.dead_letters
        .write(A, json!([letter("1", "t"), letter("2", "t")]).to_string());
    api.dead_letters
        .write(B, json!([letter("3", "t"), letter("4", "u")]).to_string());
    api.clock.advance(Duration::from_mins(1));
    api
}

async fn ask(api: &Api, action: &str, request: Value) -> Answer {
    api.call(
        "POST",
        &format!("{PATH}/{action}"),
        &[("content-type", "application/json")],
        request.to_string(),
    )
    .await
}

/// The numbers of an answer: events, objects, deleted objects, failures.
async fn counts(api: &Api, action: &str, request: Value) -> [u64; 4] {
    let answer = ask(api, action, request).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let answer = answer.json();
    ["events", "objects", "deletedObjects", "failed"].map(|member| answer[member].as_u64().unwrap())
}

fn resolved(api: &Api, key: &str) -> Vec<usize> {
    let list = api.dead_letters.read(&layout::resolved_letters_key(key));
    list.map_or_else(Vec::new, |list| {
        ResolvedLetters::parse(&list)
            .unwrap()
            .places
            .into_iter()
            .collect()
    })
}

#[tokio::test]
async fn letters_are_resolved_by_the_selection_and_only_once() {
    let api = api().await;
    assert_eq!(
        counts(&api, "resolve", json!({ "types": ["t"] })).await,
        [3, 2, 0, 0]
    );
    assert_eq!(
        (resolved(&api, A), resolved(&api, B)),
        (vec![0, 1], vec![0])
    );
    assert_eq!(counts(&api, "resolve", json!({})).await, [1, 1, 0, 0]);
    assert_eq!(counts(&api, "resolve", json!({})).await, [0, 0, 0, 0]);
    assert!(api.dead_letters.read(A).is_some());
}

#[tokio::test]
async fn answer_says_what_was_left_out_and_why() {
    let api = api().await;
    let asked =
        json!({ "types": ["u"], "from": "2026-11-21T09:00:00Z", "to": "2026-11-21T10:00:00Z" });
    let check = async |action: &str, resolved: u64| {
        let answer = ask(&api, action, asked.clone()).await.json();
        assert_eq!(
            (&answer["resolved"], &answer["leftOut"]),
            (&json!(resolved), &json!({ "otherType": 1, "otherTime": 1 })),
            "{action}"
        );
    };
    check("resolve", 0).await;
    check("resolve", 1).await;
    check("delete", 0).await;
}

/// An object is deleted as a whole, together with the list of its resolved letters.
#[tokio::test]
async fn object_is_deleted_whole_with_its_resolved_list() {
    let api = api().await;
    assert_eq!(
        counts(&api, "delete", json!({ "types": ["t"] })).await,
        [3, 2, 1, 0]
    );
    assert!(api.dead_letters.read(A).is_none() && api.dead_letters.read(B).is_some());
    assert_eq!(resolved(&api, B), [0]);
    // What is resolved stands in no object's way.
    assert_eq!(
        counts(&api, "delete", json!({ "types": ["u"] })).await,
        [1, 1, 1, 0]
    );
    assert!(api.dead_letters.read(B).is_none() && resolved(&api, B).is_empty());
    assert_eq!(counts(&api, "delete", json!({})).await, [0, 0, 0, 0]);
}

#[tokio::test]
async fn a_dry_run_counts_the_same_and_changes_nothing() {
    let api = api().await;
    api.dead_letters.fail_puts(ErrorKind::Denied);
    assert_eq!(
        counts(&api, "resolve", json!({ "dryRun": true, "keys": [A] })).await,
        [2, 1, 0, 0]
    );
    assert_eq!(
        counts(&api, "delete", json!({ "dryRun": true })).await,
        [4, 2, 2, 0]
    );
    assert!(api.dead_letters.read(A).is_some() && resolved(&api, A).is_empty());
}

#[tokio::test]
async fn unreadable_letters_are_counted_and_stay() {
    let api = api().await;
    api.dead_letters.write(A, "not ours");
    api.dead_letters
        .write(B, json!([letter("3", "t"), {}]).to_string());
    assert_eq!(counts(&api, "delete", json!({})).await, [1, 1, 0, 2]);
    assert!(api.dead_letters.read(A).is_some() && api.dead_letters.read(B).is_some());
}

#[tokio::test]
async fn more_than_one_request_can_do_goes_on_at_the_cursor() {
    let api = api().await;
    for number in 0..1_001 {
        let key = format!("ORDERS/BILLING/2026/11/21/10/{number:04}.json");
        api.dead_letters
            .write(&key, json!([letter("1", "t")]).to_string());
    }
    api.clock.advance(Duration::from_mins(1));
    let first = ask(&api, "resolve", json!({})).await.json();
    let second = ask(&api, "resolve", json!({ "cursor": first["cursor"] }))
        .await
        .json();
    let done = |answer: &Value| answer["objects"].as_u64().unwrap();
    assert_eq!(
        (done(&first), done(&second), second.get("cursor")),
        (1_000, 3, None)
    );
}

#[tokio::test]
async fn letters_of_a_subscription_that_is_gone_are_deleted_too() {
    let api = api().await;
    assert_eq!(api.delete("/topics/orders").await.status, 204);
    assert_eq!(counts(&api, "delete", json!({})).await, [4, 2, 2, 0]);
    ask(&api, "delete", json!({}))
        .await
        .problem(404, "unknown-subscription");
}

#[tokio::test]
async fn invalid_deletion_requests_are_refused_by_member() {
    let api = api().await;
    for (request, member) in [
        (json!({ "ratePerSecond": 1 }), "ratePerSecond"),
        (json!({ "reason": "Bored" }), "reason"),
        (json!({ "keys": ["ORDERS/OTHER/x"] }), "keys[0]"),
    ] {
        let problem = ask(&api, "delete", request.clone())
            .await
            .problem(400, "bad-settings");
        assert_eq!(problem["member"], member, "{request}");
    }
    let answer = ask(&api, "delete", json!({ "cursor": "?" })).await;
    assert_eq!(
        (answer.status, &answer.json()["member"]),
        (400, &json!("cursor"))
    );
}
