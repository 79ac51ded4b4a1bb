//! Standard Webhooks signatures, verified without the program's own code.

use posthaste_tests::endpoint::Endpoint;
use posthaste_tests::events::{cloud_event, subscription, subscription_with};
use posthaste_tests::home::Home;
use posthaste_tests::signature;
use serde_json::json;

const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW: &str = "whsec_bm90IGEgc2VjcmV0LCBidXQgYSBuZXcgb25lISEh";

#[test]
fn a_secret_is_made_shown_once_and_signs() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let topic = server.api().create_topic("orders", &json!({}));
    let settings = subscription(&endpoint.url("/a"));
    let created = server
        .api()
        .manage(
            "PUT",
            "/topics/orders/subscriptions/billing",
            Some(&settings),
        )
        .expect(201);
    let secret = created.json()["signing"]["secrets"][0]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(secret.starts_with("whsec_"));
    let shown = server.api().show("/topics/orders/subscriptions/billing");
    assert!(!shown.to_string().contains(&secret["whsec_".len()..]));
    topic.publish(&cloud_event("1"));
    let request = endpoint.wait_for_one("/a");
    assert_eq!(signature::count_by(&secret, &request), 1);
    assert_eq!(signature::count_by(OLD, &request), 0);
}

#[test]
fn each_attempt_is_signed_for_its_own_time_under_the_same_id() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = subscription_with(
        &endpoint.on("/a", &[503, 200]),
        &json!({ "signing": { "secrets": [OLD] } }),
    );
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&cloud_event("1"));
    let requests = endpoint.wait_for("/a", 2);
    let seconds = |at: usize| {
        requests[at]
            .header("webhook-timestamp")
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    for (at, request) in requests.iter().enumerate() {
        assert_eq!(signature::count_by(OLD, request), 1);
        assert!(seconds(at) <= request.at.as_secs());
    }
    assert!(seconds(1) > seconds(0));
    assert_eq!(
        requests[0].header("webhook-id"),
        requests[1].header("webhook-id")
    );
}

#[test]
fn during_a_rotation_both_secrets_sign() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let both =
        json!({ "signing": { "secrets": [NEW, OLD] }, "batching": { "maxEventsPerBatch": 5 } });
    let settings = subscription_with(&endpoint.url("/a"), &both);
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish_batch(&[cloud_event("1"), cloud_event("2")]);
    let request = endpoint.wait_for_one("/a");
    assert_eq!(
        (
            signature::count_by(OLD, &request),
            signature::count_by(NEW, &request)
        ),
        (1, 1)
    );
}

#[test]
fn after_a_third_rotation_all_but_the_first_secret_sign() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = subscription_with(
        &endpoint.url("/a"),
        &json!({ "signing": { "secrets": [OLD] } }),
    );
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    let path = "/topics/orders/subscriptions/billing/rotate-secret";
    let rotate = |body| server.api().manage("POST", path, body).expect(200).json();
    let drop = json!({ "drop": true });
    let rotated = [rotate(None), rotate(None), rotate(Some(&drop))];
    assert_eq!(
        rotated
            .each_ref()
            .map(|it| it["ended"].as_array().map(Vec::len)),
        [None, None, Some(1)]
    );
    topic.publish(&cloud_event("1"));
    let request = endpoint.wait_for_one("/a");
    let signed = |secret: &str| signature::count_by(secret, &request);
    assert_eq!(
        rotated
            .each_ref()
            .map(|it| signed(it["secret"].as_str().unwrap())),
        [1, 1, 1]
    );
    assert_eq!(signed(OLD), 0);
    assert_eq!(
        request
            .header("webhook-signature")
            .map(|value| value.split(' ').count()),
        Some(3)
    );
}

#[test]
fn a_binary_event_is_signed_over_its_body() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let binary = json!({ "signing": { "secrets": [OLD] }, "contentMode": "binary" });
    let settings = subscription_with(&endpoint.url("/a"), &binary);
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&cloud_event("1"));
    let request = endpoint.wait_for_one("/a");
    assert_eq!(request.json(), json!({ "n": 1 }));
    assert_eq!(signature::count_by(OLD, &request), 1);
}

#[test]
fn secrets_are_never_logged() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = posthaste_tests::server::Server::start(home.path(), &["--log-filter", "trace"]);
    let settings = subscription_with(
        &endpoint.on("/a", &[503, 400]),
        &json!({ "signing": { "secrets": [OLD] } }),
    );
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&cloud_event("1"));
    home.wait_for_dead_letter("orders", "billing");
    let admin_key = std::fs::read_to_string(home.path().join("admin.key")).unwrap();
    let log = server.log().join("\n");
    for secret in [
        &OLD["whsec_".len()..],
        admin_key.trim(),
        &topic.keys[0],
        &topic.keys[1],
    ] {
        assert!(!log.contains(secret));
    }
}
