//! The request of an attempt, made again.

use std::time::Duration;

use posthaste_core::delivery_log::{AttemptOrigin, LogRecord, RecordPayload};
use posthaste_core::model::Timestamp;
use posthaste_ports::ErrorKind;
use serde_json::{Value, json};

use super::{another, delivered, refused, write};
use crate::tests::memory::MODIFIED_AT;
use crate::tests::{Answer, Api};

const ENDPOINT: &str = "https://billing.example.com/hooks";

const BILLING: &str = "/topics/Orders/subscriptions/Billing";

/// An event with a text that would do harm where it is not shown as text.
const EVENT: &str = r#"{"specversion":"1.0","id":"order-1","source":"/shop","type":"order.paid","data":"<script>"}"#;

/// A first attempt at the event, half an hour after the topic was made.
fn sent() -> LogRecord {
    let at = Timestamp::parse(MODIFIED_AT).unwrap() + Duration::from_mins(30);
    LogRecord {
        time: at,
        accepted_at: at,
        endpoint: Some(ENDPOINT.to_owned()),
        schema: Some("CloudEvents".to_owned()),
        payload: RecordPayload::parse(EVENT),
        ..refused("order-1", 0)
    }
}

/// An API whose clock is an hour after the topic was made, with a subscription of these settings.
async fn api_with(more: Value) -> Api {
    let api = Api::with_billing().await;
    let mut settings = json!({ "endpoint": { "url": ENDPOINT } });
    settings
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    assert_eq!(api.put(BILLING, settings).await.status, 200);
    api.clock.advance(Duration::from_hours(1));
    api
}

async fn ask(api: &Api, query: &str) -> Answer {
    api.get(&format!("/topics/orders/events/order-1/request?{query}"))
        .await
}

async fn made(api: &Api, query: &str) -> Value {
    let answer = ask(api, query).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    answer.json()
}

#[tokio::test]
async fn request_is_made_again_from_its_record_and_event() {
    let api = api_with(json!({})).await;
    let second = LogRecord {
        time: sent().time + Duration::from_mins(1),
        payload: None,
        ..another(sent(), 2)
    };
    write(&api, "a", &[sent(), second]);
    let view = made(&api, "subscription=billing").await;
    assert_eq!(
        (&view["subscription"], &view["key"], &view["attempt"]),
        (&json!("Billing"), &json!("key-of-order-1"), &json!(2))
    );
    assert_eq!(view["isBatch"], false);
    assert!(view.get("settingsChangedAt").is_none() && view.get("endpointThen").is_none());
    let request = &view["request"];
    assert_eq!(
        (&request["method"], &request["url"], &request["body"]),
        (&json!("POST"), &json!(ENDPOINT), &json!(EVENT))
    );
    let headers = &request["headers"];
    assert_eq!(headers["webhook-id"], "msg_key-of-order-1");
    assert_eq!(headers["posthaste-attempt"], "2");
    assert_eq!(headers["webhook-signature"], "(not shown)");
    assert!(headers.get("posthaste-replayed").is_none(), "{headers}");
    let first = made(&api, "subscription=BILLING&key=key-of-order-1&attempt=1").await;
    assert_eq!(first["request"]["headers"]["posthaste-attempt"], "1");
    // The timestamp is that of the beginning: 12 ms before the end is in the second before.
    let began = sent().time.as_millis() / 1_000 - 1;
    assert_eq!(
        first["request"]["headers"]["webhook-timestamp"],
        began.to_string()
    );
    assert!(
        api.endpoint
            .take()
            .iter()
            .all(|it| it.body.concat() != EVENT.as_bytes())
    );
}

/// Fixed headers, signing secrets and access tokens: none of them is in the answer.
#[tokio::test]
async fn secrets_of_every_kind_are_masked() {
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let api = api_with(json!({
        "endpoint": { "url": format!("{ENDPOINT}?tenant=acme&access_token=t0ken") },
        "signing": { "secrets": [secret] },
        "deliveryHeaders": [
            { "name": "Authorization", "value": "Bearer s3cret", "isSecret": true },
            { "name": "x-tenant", "value": "acme" },
            { "name": "x-type", "fromEvent": "/type" },
        ],
    }))
    .await;
    write(&api, "a", &[sent()]);
    let view = made(&api, "subscription=billing").await;
    let text = view.to_string();
    for hidden in ["s3cret", "t0ken", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "v1,"] {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
    let headers = &view["request"]["headers"];
    assert_eq!(
        [
            &headers["authorization"],
            &headers["x-tenant"],
            &headers["x-type"]
        ],
        ["(masked)", "acme", "order.paid"]
    );
    let url = format!("{ENDPOINT}?tenant=acme&access_token=(masked)");
    assert_eq!(view["request"]["url"], url);
}

/// The request is by today's settings, and says so where they changed after the attempt.
#[tokio::test]
async fn settings_saved_after_the_attempt_are_told() {
    let api = api_with(json!({})).await;
    write(&api, "a", &[sent()]);
    let other = json!({ "endpoint": { "url": "https://new.example.com/hooks" } });
    assert_eq!(api.put(BILLING, other).await.status, 200);
    let view = made(&api, "subscription=billing").await;
    assert_eq!(view["settingsChangedAt"], "2026-11-21T11:00:00.000Z");
    assert_eq!(view["endpointThen"], ENDPOINT);
    assert_eq!(view["request"]["url"], "https://new.example.com/hooks");
}

#[tokio::test]
async fn batch_is_shown_with_its_id_and_this_event_alone() {
    let api = api_with(json!({ "batching": { "maxEventsPerBatch": 10 } })).await;
    let batch = LogRecord {
        webhook_id: Some("msg_0123456789abcdef0123456789abcdef".to_owned()),
        ..sent()
    };
    write(&api, "a", &[batch]);
    let view = made(&api, "subscription=billing").await;
    assert_eq!(view["isBatch"], true);
    assert!(view["note"].as_str().unwrap().contains("other events too"));
    let request = &view["request"];
    assert_eq!(
        request["headers"]["webhook-id"],
        "msg_0123456789abcdef0123456789abcdef"
    );
    assert_eq!(request["body"], format!("[{EVENT}]"));
}

#[tokio::test]
async fn attempt_of_a_replay_keeps_its_id_and_says_replayed() {
    let api = api_with(json!({})).await;
    let replayed = LogRecord {
        delivery_key: "key-of-replay".to_owned(),
        own_webhook_id: Some("msg_key-of-order-1".to_owned()),
        origin: AttemptOrigin::Replay,
        record_id: format!("{:0>32}", "1"),
        ..sent()
    };
    write(&api, "a", &[replayed]);
    let view = made(&api, "subscription=billing&key=key-of-replay").await;
    assert_eq!(view["isBatch"], false);
    let headers = &view["request"]["headers"];
    assert_eq!(headers["webhook-id"], "msg_key-of-order-1");
    assert_eq!(headers["posthaste-replayed"], "true");
}

#[tokio::test]
async fn what_is_not_there_is_a_problem_with_its_name() {
    let api = api_with(json!({})).await;
    let without_payload = LogRecord {
        payload: None,
        ..sent()
    };
    write(&api, "a", &[without_payload, delivered("order-2", 0)]);
    let check = async |query: &str, status: u16, kind: &str| {
        ask(&api, query).await.problem(status, kind);
    };
    check("subscription=billing", 410, "payload-gone").await;
    check("subscription=billing&key=none", 404, "about:blank").await;
    check("subscription=billing&attempt=7", 404, "about:blank").await;
    check("subscription=audit", 404, "unknown-subscription").await;
    assert_eq!(ask(&api, "").await.status, 400);
    assert_eq!(
        ask(&api, "subscription=billing&attempt=x").await.status,
        400
    );
    assert_eq!(ask(&api, "subscription=billing&other=1").await.status, 400);
    let elsewhere = "/topics/none/events/order-1/request?subscription=billing";
    api.get(elsewhere).await.problem(404, "unknown-topic");
    api.log.fail(ErrorKind::TimedOut);
    assert_eq!(ask(&api, "subscription=billing").await.status, 503);
}

/// A deleted and created again subscription does not show what its namesake was sent.
#[tokio::test]
async fn event_of_a_former_subscription_is_not_shown() {
    let api = api_with(json!({})).await;
    write(&api, "a", &[sent()]);
    assert_eq!(api.delete(BILLING).await.status, 204);
    let again = json!({ "endpoint": { "url": ENDPOINT } });
    assert_eq!(api.put(BILLING, again).await.status, 201);
    let problem = ask(&api, "subscription=billing").await;
    let problem = problem.problem(404, "about:blank");
    assert!(problem["detail"].as_str().unwrap().contains("earlier"));
}
