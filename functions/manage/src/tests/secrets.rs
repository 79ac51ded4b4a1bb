use std::sync::Arc;

use axum::http::HeaderValue;
use posthaste_core::api::SecretText;
use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::{AddressPolicy, KeyDigest, PublishUrls, SenderHeaders};
use posthaste_services::{ActivityNotes, LinkHealth};
use posthaste_testkit::MemoryEndpoint;
use posthaste_testkit::memory::MemoryQueue;
use serde_json::{Value, json};

use super::memory::{FixedClock, Memory, Numbers};
use super::{Answer, Api, billing};
use crate::{BegunRequests, DeliveryLog, Manage, ManageSettings, RequestCaches};

const ONE: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const TWO: &str = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

fn with_secrets(secrets: &[&str]) -> Value {
    let mut settings = billing();
    settings["signing"] = json!({ "secrets": secrets });
    settings
}

fn secrets(answer: &Answer) -> Value {
    answer.json()["signing"]["secrets"].clone()
}

/// The masks that are shown for these secrets.
fn masks(secrets: &Value) -> Value {
    let texts = secrets
        .as_array()
        .unwrap()
        .iter()
        .map(|secret| SecretText::new(secret.as_str().unwrap()));
    texts
        .map(|text| json!(text.masked_as_one_of_several()))
        .collect()
}

/// The secrets as they are stored.
fn stored(api: &Api) -> Value {
    let record: Value =
        serde_json::from_slice(&api.state.read("topics/orders.json").unwrap()).unwrap();
    record["settings"]["subscriptions"]["Billing"]["signing"]["secrets"].clone()
}

#[tokio::test]
async fn a_secret_that_is_made_is_shown_once() {
    let api = Api::new();
    api.put("/topics/orders", json!({})).await;
    let path = "/topics/orders/subscriptions/Billing";
    let made = api.put(path, billing()).await;
    assert!(secrets(&made)[0].as_str().unwrap().starts_with("whsec_"));
    assert_eq!(secrets(&made), stored(&api));
    let kept = stored(&api);
    for answer in [api.get(path).await, api.put(path, billing()).await] {
        assert_eq!(secrets(&answer), masks(&kept));
    }
    assert_eq!(stored(&api), kept);
}

#[tokio::test]
async fn a_secret_that_is_made_with_its_topic_is_shown_once_too() {
    let api = Api::new();
    let body = json!({ "subscriptions": { "Billing": billing(), "own": with_secrets(&[ONE]) } });
    let made = api.put("/topics/orders", body.clone()).await.json();
    assert_eq!(
        made["subscriptions"]["Billing"]["signing"]["secrets"],
        stored(&api)
    );
    assert_eq!(
        made["subscriptions"]["own"]["signing"]["secrets"],
        masks(&json!([ONE]))
    );
    for answer in [
        api.get("/topics/orders").await,
        api.put("/topics/orders", body).await,
    ] {
        assert!(!String::from_utf8_lossy(&answer.body).contains("whsec_"));
    }
}

#[tokio::test]
async fn a_masked_secret_stands_for_the_one_that_it_names() {
    let api = Api::with_billing().await;
    let path = "/topics/orders/subscriptions/billing";
    api.put(path, with_secrets(&[ONE])).await;
    let shown = masks(&json!([ONE]));
    let one = shown[0].as_str().unwrap();
    assert_eq!(
        secrets(&api.put(path, with_secrets(&[TWO, one])).await),
        masks(&json!([TWO, ONE]))
    );
    assert_eq!(stored(&api), json!([TWO, ONE]));
    let problem = api
        .put(path, with_secrets(&[ONE, "(masked)"]))
        .await
        .problem(400, "bad-settings");
    assert_eq!(problem["member"], "signing.secrets[1]");
    assert_eq!(
        api.put(path, with_secrets(&["(masked)", "(masked)"]))
            .await
            .status,
        200
    );
    assert_eq!(stored(&api), json!([TWO, ONE]));
    api.put(path, with_secrets(&[one])).await;
    assert_eq!(stored(&api), json!([ONE]));
    api.put(path, with_secrets(&[])).await;
    assert_eq!(stored(&api), json!([]));
    api.put(path, billing()).await;
    assert_eq!(stored(&api), json!([]));

    let problem = api
        .put(path, with_secrets(&["(masked)"]))
        .await
        .problem(400, "bad-settings");
    assert_eq!(problem["member"], "signing.secrets[0]");
    let body = json!({ "subscriptions": { "new": with_secrets(&[ONE, "(masked)"]) } });
    let problem = api
        .put("/topics/orders", body)
        .await
        .problem(400, "bad-settings");
    assert_eq!(problem["member"], "subscriptions.new.signing.secrets[1]");
}

#[tokio::test]
async fn responses_never_repeat_a_given_secret() {
    let api = Api::with_billing().await;
    let path = "/topics/orders/subscriptions/billing";
    let answers = [
        api.put(path, with_secrets(&[ONE, TWO])).await,
        api.get(path).await,
        api.get("/topics/orders/subscriptions").await,
        api.get("/topics/orders").await,
        api.get("/topics").await,
        api.put(path, with_secrets(&[ONE, "whsec_too-short"])).await,
        api.put(
            "/topics/orders",
            json!({ "subscriptions": { "a": with_secrets(&[ONE, ONE, ONE, ONE]) } }),
        )
        .await,
        api.put(
            path,
            json!({ "endpoint": billing()["endpoint"], "signing": { "secrets": ONE } }),
        )
        .await,
        api.put(
            path,
            json!({ "endpoint": billing()["endpoint"], "signing": ONE }),
        )
        .await,
        api.put(
            path,
            json!({ "endpoint": billing()["endpoint"], "contentMode": TWO }),
        )
        .await,
        api.call(
            "POST",
            &format!("{path}/rotate-secret"),
            &[],
            format!(r#"{{"kind":"{ONE}"}}"#),
        )
        .await,
    ];
    for answer in answers {
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(
            !body.contains("MfKQ9r8G") && !body.contains("AAAAAAAA") && !body.contains("too-short"),
            "{body}"
        );
    }
}

#[test]
fn debug_shows_no_admin_key() {
    let state = Memory::default();
    let manage = Arc::new(Manage::<super::TestPorts> {
        links: LinkHealth::new(
            state.clone(),
            FixedClock::default(),
            HealthSettings::default(),
        ),
        state,
        dead_letters: Memory::default(),
        log: DeliveryLog::new(Memory::default()),
        deliveries: MemoryQueue::default(),
        slow_deliveries: None,
        webhooks: MemoryEndpoint::default(),
        clock: FixedClock::default(),
        entropy: Numbers::default(),
        admin_key: KeyDigest::for_key(super::ADMIN_KEY),
        wrong_keys: posthaste_services::WrongKeys::default(),
        activity: ActivityNotes::default(),
        address_policy: AddressPolicy::default(),
        examiner: None,
        own_publish_urls: PublishUrls::default(),
        settings: ManageSettings {
            publish_url: None,
            public_url: None,
            origin: HeaderValue::from_static("posthaste"),
            sender_headers: SenderHeaders::default(),
            notices_topic: None,
            log: super::LOG,
        },
        work: BegunRequests::default(),
        caches: RequestCaches::default(),
    });
    assert!(!format!("{manage:?}").contains(super::ADMIN_KEY));
}
