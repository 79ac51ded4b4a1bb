use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use serde_json::json;

use super::{Answer, Api, billing};

const KEYS: &str = "/.well-known/webhook-keys";
const PRIVATE: &str = "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
const SYMMETRIC: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Asks without a key.
async fn ask(api: &Api, query: &str) -> Answer {
    api.send(
        Request::get(format!("{KEYS}{query}"))
            .body(Body::empty())
            .unwrap(),
    )
    .await
}

async fn signing_with(secrets: &[&str]) -> Api {
    let api = Api::with_billing().await;
    let mut settings = billing();
    settings["signing"] = json!({ "secrets": secrets });
    assert_eq!(
        api.put("/topics/orders/subscriptions/billing", settings)
            .await
            .status,
        200
    );
    api
}

#[tokio::test]
async fn anybody_may_have_the_public_keys_of_a_subscription() {
    let api = signing_with(&[SYMMETRIC, PRIVATE]).await;
    let answer = ask(&api, "?topic=orders&subscription=BILLING").await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "application/jwk-set+json")
    );
    assert_eq!(
        answer.header("cache-control"),
        "public, max-age=60, must-revalidate"
    );
    insta::assert_json_snapshot!(answer.json(), @r#"
    {
      "keys": [
        {
          "alg": "EdDSA",
          "crv": "Ed25519",
          "kid": "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
          "kty": "OKP",
          "use": "sig",
          "whpk": "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
          "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
        }
      ]
    }
    "#);
}

#[tokio::test]
async fn during_a_rotation_both_keys_are_there_and_then_the_new_one() {
    let api = signing_with(&[PRIVATE]).await;
    let path = "/topics/orders/subscriptions/billing/rotate-secret";
    let made = api.call("POST", path, &[], "").await.json();
    let keys =
        async || ask(&api, "?topic=orders&subscription=billing").await.json()["keys"].clone();
    assert_eq!(
        (
            &keys().await[0]["whpk"],
            keys().await.as_array().unwrap().len()
        ),
        (&made["publicKey"], 2)
    );
    api.clock.advance(Duration::from_hours(24));
    assert_eq!(
        (
            &keys().await[0]["whpk"],
            keys().await.as_array().unwrap().len()
        ),
        (&made["publicKey"], 1)
    );
}

#[tokio::test]
async fn keys_do_not_tell_which_subscriptions_exist() {
    let api = signing_with(&[SYMMETRIC]).await;
    for query in [
        "?topic=orders&subscription=billing",
        "?topic=orders&subscription=x",
        "?topic=x&subscription=x",
    ] {
        let answer = ask(&api, query).await;
        assert_eq!(
            (answer.status, answer.json()),
            (200, json!({ "keys": [] })),
            "{query}"
        );
    }
}

#[tokio::test]
async fn keys_are_asked_for_one_subscription() {
    let api = Api::with_billing().await;
    for query in [
        "",
        "?topic=orders",
        "?subscription=billing",
        "?topic=a.b&subscription=x",
        "?topic=a&subscription=b&c=d",
    ] {
        ask(&api, query).await.problem(400, "about:blank");
    }
}
