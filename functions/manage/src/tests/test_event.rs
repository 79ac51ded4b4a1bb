use posthaste_core::model::{CertificateFault, SendFailure};
use posthaste_testkit::endpoint::answered;
use serde_json::{Value, json};

use super::{Answer, Api};

const TEST: &str = "/topics/orders/subscriptions/billing/test";

/// An API with a subscription that has these settings besides an endpoint.
async fn api(more: Value) -> Api {
    let api = Api::new();
    let mut settings = json!({
        "endpoint": { "url": "https://billing.example.com/hooks", "timeout": "PT1M" },
        "filter": { "includedEventTypes": ["other"] },
    });
    settings
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    assert_eq!(api.put("/topics/orders", json!({})).await.status, 201);
    assert_eq!(
        api.put("/topics/orders/subscriptions/billing", settings)
            .await
            .status,
        201
    );
    api.endpoint.take();
    api
}

async fn test(api: &Api, body: &str) -> Answer {
    api.call("POST", TEST, &[], body.to_owned()).await
}

/// A sample is sent once, and the attempt's request and response are shown.
#[tokio::test]
async fn sample_is_sent_once_and_request_and_response_are_shown() {
    let headers = json!([
        { "name": "X-Tenant", "value": "acme" },
        { "name": "Authorization", "value": "Bearer s3cret", "isSecret": true },
    ]);
    let api = api(json!({ "deliveryHeaders": headers })).await;
    api.endpoint
        .answer(|_| answered(202, &[("x-request-id", "7")], "thanks"));
    let answer = test(&api, "").await;
    let attempt = answer.json();
    assert_eq!(
        (answer.status, &attempt["delivered"], &attempt["outcome"]),
        (200, &json!(true), &json!("Delivered"))
    );
    let response = json!({ "status": 202, "headers": { "x-request-id": "7" }, "body": "thanks", "bodyIsWhole": true });
    assert_eq!(attempt["response"], response);
    let sent = api.endpoint.take();
    let [sent] = &sent[..] else {
        panic!("one request")
    };
    let request = &attempt["request"];
    let headers = &request["headers"];
    assert_eq!(
        request["body"].as_str().unwrap().as_bytes(),
        sent.body.concat()
    );
    assert_eq!(
        (&request["method"], &request["url"]),
        (&json!("POST"), &json!("https://billing.example.com/hooks"))
    );
    assert_eq!(
        (&headers["x-tenant"], &headers["aeg-delivery-count"]),
        (&json!("acme"), &json!("0"))
    );
    assert_eq!(
        headers["webhook-signature"],
        sent.headers["webhook-signature"].to_str().unwrap()
    );
    assert_eq!(sent.headers["authorization"], "Bearer s3cret");
    assert!(headers["authorization"].is_string() && !attempt.to_string().contains("s3cret"));
    let event: Value = serde_json::from_str(request["body"].as_str().unwrap()).unwrap();
    assert_eq!(event["type"], "dev.posthaste.test");
    assert_eq!(sent.timeout.as_secs(), 20);
}

#[tokio::test]
async fn a_secret_that_the_endpoint_echoes_is_masked() {
    let headers = json!([
        { "name": "Authorization", "value": "Bearer s3cret/+", "isSecret": true },
        { "name": "x-tenant", "value": "acme" },
    ]);
    let api = api(json!({ "deliveryHeaders": headers })).await;
    api.endpoint.answer(|request| {
        let echo = |name: &str| request.headers[name].to_str().unwrap().to_owned();
        let body = json!({ "got": echo("authorization"), "of": echo("x-tenant") }).to_string();
        answered(200, &[("x-echo", &echo("authorization"))], &body)
    });
    let attempt = test(&api, "").await.json();
    assert!(!attempt.to_string().contains("s3cret"), "{attempt}");
    assert_eq!(attempt["response"]["headers"]["x-echo"], "(masked)");
    assert_eq!(
        attempt["response"]["body"],
        r#"{"got":"(masked)","of":"acme"}"#
    );
}

#[tokio::test]
async fn the_caller_s_event_is_sent_as_it_is() {
    let api = api(json!({})).await;
    api.endpoint.answer(|_| answered(404, &[], ""));
    let event = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t", "n": 1.00}"#;
    let attempt = test(&api, event).await.json();
    assert_eq!(
        (&attempt["request"]["body"], &attempt["delivered"]),
        (&json!(event), &json!(false))
    );
    assert_eq!(
        (&attempt["outcome"], &attempt["response"]["status"]),
        (&json!("NotFound"), &json!(404))
    );
}

#[tokio::test]
async fn an_answer_that_reports_the_event_as_failed_is_no_delivery() {
    let check = async |partial: bool, body: &'static str, outcome: &str, failure: Option<&str>| {
        let api = api(
            json!({ "batching": { "maxEventsPerBatch": 10, "partialAcknowledgement": partial } }),
        )
        .await;
        api.endpoint.answer(move |_| answered(200, &[], body));
        let event = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#;
        let attempt = test(&api, event).await.json();
        let found = (
            attempt["delivered"].as_bool(),
            attempt["outcome"].as_str(),
            attempt["failure"].as_str(),
        );
        assert_eq!(
            found,
            (Some(failure.is_none()), Some(outcome), failure),
            "{body}"
        );
        assert_eq!(attempt["response"]["status"], 200);
    };
    let report = r#"{"batchItemFailures":[{"itemIdentifier":"1"}]}"#;
    check(
        true,
        report,
        "GenericError",
        Some("the answer reports the event as failed"),
    )
    .await;
    let unknown = r#"{"batchItemFailures":[{"itemIdentifier":"2"}]}"#;
    let unknown_event = "an itemIdentifier is not the id of an event of the batch";
    check(true, unknown, "GenericError", Some(unknown_event)).await;
    check(true, r#"{"batchItemFailures":[]}"#, "Delivered", None).await;
    check(false, report, "Delivered", None).await;
}

#[tokio::test]
async fn a_failure_is_shown_by_its_name() {
    let api = api(json!({})).await;
    let check = async |failure: SendFailure, outcome: &str, text: &str| {
        api.endpoint.answer(move |_| Err(failure));
        let attempt = test(&api, "").await.json();
        assert_eq!(
            (&attempt["outcome"], &attempt["failure"]),
            (&json!(outcome), &json!(text))
        );
        assert_eq!(attempt.get("response"), None);
    };
    check(
        SendFailure::TimedOut,
        "TimedOut",
        "timed out without an answer",
    )
    .await;
    check(SendFailure::Refused, "SocketError", "connection refused").await;
    let untrusted = SendFailure::Certificate(CertificateFault::UnknownIssuer);
    check(
        untrusted,
        "TlsError",
        "TLS certificate not trusted: its issuer is unknown",
    )
    .await;
    check(
        SendFailure::AddressRefused,
        "AddressRefused",
        "the endpoint's address is not allowed",
    )
    .await;
}

#[tokio::test]
async fn invalid_test_events_are_refused_and_nothing_is_sent() {
    let api = api(json!({})).await;
    for body in ["{}", "[]", "not JSON"] {
        test(&api, body).await.problem(400, "bad-event");
    }
    api.call("POST", &TEST.replace("billing", "biling"), &[], "")
        .await
        .problem(404, "unknown-subscription");
    api.call("POST", &TEST.replace("orders", "order"), &[], "")
        .await
        .problem(404, "unknown-topic");
    assert_eq!(api.endpoint.take().len(), 0);
}
