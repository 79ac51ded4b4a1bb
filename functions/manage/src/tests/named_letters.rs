//! Dead letters that a request names one by one.

use posthaste_core::stored::{LetterEnding, ReplayRecord, ResolvedLetters, layout};
use serde_json::{Value, json};

use super::{Answer, Api};

const LETTERS: &str = "/topics/orders/subscriptions/billing/dead-letters";
const FIRST: &str = "ORDERS/BILLING/2026/11/21/8/a.json";
const SECOND: &str = "ORDERS/BILLING/2026/11/21/9/b.json";

fn letter(id: &str) -> Value {
    json!({ "specversion": "1.0", "id": id, "source": "/s", "type": "t",
        "deadletterreason": "EndpointGone" })
}

/// An API with two objects of three letters.
async fn api() -> Api {
    let api = Api::with_billing().await;
    for (key, name) in [(FIRST, "a"), (SECOND, "b")] {
        let letters: Vec<_> = (0..3).map(|at| letter(&format!("{name}{at}"))).collect();
        api.dead_letters.write(key, json!(letters).to_string());
    }
    api
}

async fn ask(api: &Api, action: &str, request: Value) -> Answer {
    let path = format!("{LETTERS}/{action}");
    let json = [("content-type", "application/json")];
    api.call("POST", &path, &json, request.to_string()).await
}

fn named(letters: &[(&str, usize)]) -> Value {
    let letters = letters.iter();
    let letters = letters.map(|(object, index)| json!({ "object": object, "index": index }));
    json!({ "letters": letters.collect::<Vec<_>>(), "includeFormer": true })
}

fn resolved(api: &Api, key: &str) -> Vec<usize> {
    let list = api.dead_letters.read(&layout::resolved_letters_key(key));
    let list = list.map(|bytes| ResolvedLetters::parse(&bytes).unwrap());
    list.unwrap_or_default().places.into_iter().collect()
}

#[tokio::test]
async fn only_named_letters_are_resolved() {
    let api = api().await;
    let request = named(&[(FIRST, 1), (SECOND, 0), (SECOND, 2)]);
    let answer = ask(&api, "resolve", request).await;
    assert_eq!(answer.status, 200);
    let counts = answer.json();
    assert_eq!(
        (&counts["events"], &counts["objects"]),
        (&json!(3), &json!(2))
    );
    assert_eq!(counts.get("leftOut"), None);
    assert_eq!(resolved(&api, FIRST), [1]);
    assert_eq!(resolved(&api, SECOND), [0, 2]);
}

/// An object is deleted only once none of its other letters is open.
#[tokio::test]
async fn object_with_other_open_letters_is_not_deleted() {
    let api = api().await;
    let counts = ask(&api, "delete", named(&[(FIRST, 0)])).await.json();
    assert_eq!(
        (&counts["events"], &counts["deletedObjects"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(resolved(&api, FIRST), [0]);
    let counts = ask(&api, "delete", named(&[(FIRST, 1), (FIRST, 2)]))
        .await
        .json();
    assert_eq!(
        (&counts["events"], &counts["deletedObjects"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(api.dead_letters.read(FIRST), None);
}

#[tokio::test]
async fn letter_that_is_not_there_is_a_failure() {
    let api = api().await;
    let counts = ask(&api, "resolve", named(&[(FIRST, 2), (FIRST, 3)]))
        .await
        .json();
    assert_eq!(
        (&counts["events"], &counts["failed"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(counts["failures"][0]["index"], 3);
    assert_eq!(resolved(&api, FIRST), [2]);
}

#[tokio::test]
async fn replay_counts_and_stores_named_letters() {
    let api = api().await;
    let mut request = named(&[(SECOND, 2), (FIRST, 0)]);
    request["dryRun"] = json!(true);
    let preview = ask(&api, "replay", request.clone()).await.json();
    assert_eq!(preview["ids"], json!(["a0", "b2"]));
    request["dryRun"] = json!(false);
    let stored = ask(&api, "replay", request).await;
    assert_eq!(stored.status, 202);
    let id = stored.json()["id"].as_str().unwrap().to_owned();
    let record = api.state.read(&layout::replay_record_key(&id)).unwrap();
    assert_eq!(ReplayRecord::parse(&record).unwrap().v, 7);
}

#[tokio::test]
async fn letters_of_another_subscription_are_refused_by_name() {
    let api = api().await;
    let foreign = "ORDERS/CRM/2026/11/21/8/a.json";
    for action in ["resolve", "delete", "replay"] {
        let refused = ask(&api, action, named(&[(FIRST, 0), (foreign, 0)])).await;
        let problem = refused.problem(400, "bad-settings");
        assert_eq!(problem["member"], "letters[1].object", "{action}");
        let mut both = named(&[(FIRST, 0)]);
        both["keys"] = json!([FIRST]);
        let problem = ask(&api, action, both).await.problem(400, "bad-settings");
        assert_eq!(problem["member"], "letters", "{action}");
    }
    assert!(resolved(&api, FIRST).is_empty());
}

/// Work on single letters that a process leaves is of a version that older programs leave alone.
#[tokio::test]
async fn left_work_on_single_letters_is_of_the_newer_version() {
    let api = api().await;
    let seen = std::sync::Arc::new(std::sync::Mutex::new(None));
    let state = api.state.clone();
    let noted = std::sync::Arc::clone(&seen);
    api.dead_letters.when_read(move || {
        let key = state.keys(layout::ENDING).pop();
        if let Some(bytes) = key.and_then(|key| state.read(&key)) {
            *noted.lock().unwrap() = Some(bytes);
        }
    });
    ask(&api, "resolve", named(&[(FIRST, 1)])).await;
    let stored = seen.lock().unwrap().clone().expect("work under way");
    let version: Value = serde_json::from_slice(&stored).unwrap();
    assert_eq!(version["v"], 2);
    assert_eq!(
        LetterEnding::parse(&stored).unwrap().request.letters.len(),
        1
    );
}
