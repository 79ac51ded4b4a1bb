use serde_json::{Value, json};

use super::{Api, billing};

const PATH: &str = "/topics/orders/subscriptions/billing";

fn with_headers(headers: &Value) -> Value {
    let mut settings = billing();
    settings["deliveryHeaders"] = headers.clone();
    settings
}

fn stored(api: &Api) -> Value {
    let record: Value =
        serde_json::from_slice(&api.state.read("topics/orders.json").unwrap()).unwrap();
    record["settings"]["subscriptions"]["Billing"]["deliveryHeaders"].clone()
}

#[tokio::test]
async fn a_secret_header_is_masked_and_kept_when_it_is_written_back() {
    let api = Api::with_billing().await;
    let written = json!([
        { "name": "X-Tenant", "value": "acme" },
        { "name": "Authorization", "value": "Bearer s3cret", "isSecret": true },
        { "name": "X-Order", "fromEvent": "/data/id" },
    ]);
    let answer = api.put(PATH, with_headers(&written)).await;
    assert_eq!(answer.status, 200);
    let mut shown = written.clone();
    shown[1]["value"] = json!("(masked)");
    for answer in [
        answer,
        api.get(PATH).await,
        api.put(PATH, with_headers(&shown)).await,
    ] {
        assert_eq!(answer.json()["deliveryHeaders"], shown);
        assert!(!String::from_utf8_lossy(&answer.body).contains("s3cret"));
    }
    assert_eq!(stored(&api), written);
}

#[tokio::test]
async fn a_secret_is_not_shown_by_calling_it_open() {
    let api = Api::with_billing().await;
    let secret = json!([{ "name": "x-key", "value": "s3cret", "isSecret": true }]);
    assert_eq!(api.put(PATH, with_headers(&secret)).await.status, 200);
    for header in [
        json!([{ "name": "x-key", "value": "(masked)" }]),
        json!([{ "name": "x-other", "value": "(masked)", "isSecret": true }]),
    ] {
        let problem = api
            .put(PATH, with_headers(&header))
            .await
            .problem(400, "bad-settings");
        assert_eq!(problem["member"], "deliveryHeaders[0].value");
    }
    assert_eq!(stored(&api), secret);
}

#[tokio::test]
async fn a_refusal_names_the_member_and_repeats_no_value() {
    let api = Api::with_billing().await;
    let check = async |header: Value, member: &str| {
        let answer = api.put(PATH, with_headers(&json!([header]))).await;
        assert!(!String::from_utf8_lossy(&answer.body).contains("s3cret"));
        assert_eq!(answer.problem(400, "bad-settings")["member"], member);
    };
    check(
        json!({ "name": "webhook-id", "value": "s3cret" }),
        "deliveryHeaders[0].name",
    )
    .await;
    check(
        json!({ "name": "x", "value": "s3cret\r\nhost: a", "isSecret": true }),
        "deliveryHeaders[0].value",
    )
    .await;
    check(
        json!({ "name": "x", "value": "s3cretä", "isSecret": true }),
        "deliveryHeaders[0].value",
    )
    .await;
    check(
        json!({ "name": "x", "fromEvent": "$.id" }),
        "deliveryHeaders[0].fromEvent",
    )
    .await;
    check(
        json!({ "name": "x", "value": 7 }),
        "deliveryHeaders[0].value",
    )
    .await;
    check(
        json!({ "name": "x", "val": "s3cret" }),
        "deliveryHeaders[0].val",
    )
    .await;
}
