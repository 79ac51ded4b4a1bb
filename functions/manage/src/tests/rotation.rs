use std::time::Duration;

use posthaste_core::api::SecretText;
use serde_json::{Value, json};

use super::{Answer, Api, billing};

const PATH: &str = "/topics/orders/subscriptions/billing";
const ROTATE: &str = "/topics/orders/subscriptions/billing/rotate-secret";
const HOUR: Duration = Duration::from_hours(1);

async fn rotate(api: &Api, body: &str) -> Answer {
    api.call(
        "POST",
        ROTATE,
        &[("content-type", "application/json")],
        body.to_owned(),
    )
    .await
}

/// The mask that is shown for a secret.
fn mask(secret: &Value) -> String {
    SecretText::new(secret.as_str().unwrap())
        .masked_as_one_of_several()
        .expose()
        .to_owned()
}

/// The secrets as they are stored, and until when.
fn stored(api: &Api) -> Value {
    let record: Value =
        serde_json::from_slice(&api.state.read("topics/orders.json").unwrap()).unwrap();
    record["settings"]["subscriptions"]["Billing"]["signing"].clone()
}

/// The new secret is shown once, and signs first until the old one ends.
#[tokio::test]
async fn new_secret_is_shown_once_and_signs_before_the_old_one() {
    let api = Api::with_billing().await;
    let old = stored(&api)["secrets"][0].clone();
    let answer = api.call("POST", ROTATE, &[], "").await;
    let rotated = answer.json();
    assert_eq!(
        (answer.status, answer.header("cache-control")),
        (200, "no-store")
    );
    assert_eq!(answer.header("etag"), api.get(PATH).await.header("etag"));
    assert_eq!(stored(&api)["secrets"], json!([rotated["secret"], old]));
    assert_eq!(
        (&rotated["kind"], &rotated["publicKey"]),
        (&json!("v1"), &Value::Null)
    );
    let new = json!(mask(&rotated["secret"]));
    let masked = json!({ "secrets": [new, mask(&old)], "expiresAt": stored(&api)["expiresAt"] });
    assert_eq!(rotated["signing"], masked);
    assert_eq!(api.get(PATH).await.json()["signing"], masked);
    api.clock.advance(24 * HOUR);
    assert_eq!(
        api.get(PATH).await.json()["signing"],
        json!({ "secrets": [new] })
    );
    assert_eq!(
        api.get("/topics/orders").await.json()["subscriptions"]["Billing"]["signing"]["secrets"],
        json!([new])
    );
}

#[tokio::test]
async fn an_overlap_and_a_kind_may_be_asked_for() {
    let api = Api::with_billing().await;
    let rotated = rotate(&api, r#"{"kind":"v1a"}"#).await.json();
    assert!(rotated["secret"].as_str().unwrap().starts_with("whsk_"));
    assert!(rotated["publicKey"].as_str().unwrap().starts_with("whpk_"));
    // The v1 secret of before is not touched by a rotation of v1a.
    assert_eq!(stored(&api)["expiresAt"], Value::Null);
    let again = rotate(&api, r#"{"overlap":"PT0S"}"#).await.json();
    assert_eq!(
        (
            &again["kind"],
            stored(&api)["secrets"].as_array().unwrap().len()
        ),
        (&json!("v1a"), 2)
    );
    assert!(
        !stored(&api)
            .to_string()
            .contains(rotated["secret"].as_str().unwrap())
    );
}

#[tokio::test]
async fn a_rotation_that_cannot_be_made_changes_nothing() {
    let api = Api::with_billing().await;
    let problem = rotate(&api, r#"{"overlap":"P8D"}"#)
        .await
        .problem(400, "bad-settings");
    assert_eq!(
        (&problem["member"], &problem["detail"]),
        (&json!("overlap"), &json!("expected PT0S to P7D, found P8D"))
    );
    rotate(&api, r#"{"kind":"v2"}"#)
        .await
        .problem(400, "bad-settings");
    rotate(&api, r#"{"grace":"P1D"}"#)
        .await
        .problem(400, "bad-settings");
    rotate(&api, "[]").await.problem(400, "bad-settings");
    rotate(&api, "{").await.problem(400, "about:blank");
    api.call("POST", ROTATE, &[("content-type", "text/plain")], "{}")
        .await
        .problem(415, "about:blank");
    api.call("POST", ROTATE, &[("if-match", "\"other\"")], "")
        .await
        .problem(412, "precondition-failed");
    assert_eq!(stored(&api)["secrets"].as_array().unwrap().len(), 1);
    let post = async |path: &str| api.call("POST", path, &[], "").await;
    post("/topics/none/subscriptions/billing/rotate-secret")
        .await
        .problem(404, "unknown-topic");
    post("/topics/orders/subscriptions/none/rotate-secret")
        .await
        .problem(404, "unknown-subscription");
}

#[tokio::test]
async fn a_third_rotation_ends_the_oldest_secret_and_names_it() {
    let api = Api::with_billing().await;
    let first = stored(&api)["secrets"][0].clone();
    let mut newest = Vec::new();
    for body in ["", "", r#"{"drop":true}"#] {
        api.clock.advance(HOUR);
        if !body.is_empty() {
            let before = stored(&api);
            let problem = rotate(&api, "").await.problem(409, "incompatible");
            assert_eq!(problem["member"], "drop");
            assert_eq!(stored(&api), before);
        }
        newest.insert(0, rotate(&api, body).await.json());
    }
    assert_eq!(
        (&newest[1]["ended"], &newest[2]["ended"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(newest[0]["ended"], json!([mask(&first)]));
    let secrets: Vec<_> = newest.iter().map(|rotated| &rotated["secret"]).collect();
    assert_eq!(stored(&api)["secrets"], json!(secrets));
    assert_eq!(api.get(PATH).await.json()["signing"], newest[0]["signing"]);
    // The overlap of each goes on as its own rotation said.
    api.clock.advance(23 * HOUR);
    assert_eq!(
        api.get(PATH).await.json()["signing"]["secrets"],
        json!([mask(secrets[0]), mask(secrets[1])])
    );
}

#[tokio::test]
async fn a_secret_of_the_other_kind_beside_three_waits_for_room() {
    let api = Api::with_billing().await;
    for _ in 0..3 {
        assert_eq!(rotate(&api, r#"{"drop":true}"#).await.status, 200);
        api.clock.advance(HOUR);
    }
    let before = stored(&api);
    let problem = rotate(&api, r#"{"kind":"v1a"}"#)
        .await
        .problem(409, "incompatible");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .starts_with("3 secrets sign already, the first ends at ")
    );
    assert_eq!(stored(&api), before);
    api.clock.advance(22 * HOUR);
    assert_eq!(rotate(&api, r#"{"kind":"v1a"}"#).await.status, 200);
    assert_eq!(stored(&api)["secrets"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_masked_secret_keeps_its_time_when_it_is_written_back() {
    let api = Api::with_billing().await;
    rotate(&api, "").await;
    let before = stored(&api);
    let shown = api.get(PATH).await.json();
    assert_eq!(api.put(PATH, shown.clone()).await.status, 200);
    assert_eq!(stored(&api), before);
    assert_eq!(api.put(PATH, billing()).await.status, 200);
    assert_eq!(stored(&api), before);
    api.clock.advance(24 * HOUR);
    for written in [shown, billing()] {
        assert_eq!(api.put(PATH, written).await.status, 200);
        assert_eq!(stored(&api), json!({ "secrets": [before["secrets"][0]] }));
    }
}

/// Settings that were read before a rotation do not take the new secret away.
#[tokio::test]
async fn writing_an_older_view_does_not_remove_the_new_secret() {
    let api = Api::with_billing().await;
    let mut shown = api.get(PATH).await.json();
    rotate(&api, "").await;
    let before = stored(&api);
    for secrets in [shown["signing"]["secrets"].clone(), json!(["(masked)"])] {
        shown["signing"]["secrets"] = secrets;
        api.put(PATH, shown.clone())
            .await
            .problem(400, "bad-settings");
        assert_eq!(stored(&api), before);
    }
}
