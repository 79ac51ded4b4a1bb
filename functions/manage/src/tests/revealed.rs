//! Secrets in clear where they are asked for, and publish keys that are written with a topic.

use serde_json::{Value, json};

use super::{Api, billing};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const KEY: &str = "T3RoZXJPdGhlck90aGVyT3RoZXJPdGhl";
const OTHER: &str = "QW5vdGhlckFub3RoZXJBbm90aGVyQW5v";

fn topic() -> Value {
    let mut billing = billing();
    billing["signing"] = json!({ "secrets": [SECRET] });
    billing["deliveryHeaders"] = json!([{ "name": "X-Key", "value": "s3cret", "isSecret": true }]);
    json!({ "keys": { "key1": KEY, "bulkKey1": OTHER }, "subscriptions": { "Billing": billing } })
}

/// The entries of shown secrets, the newest first.
async fn reads(api: &Api) -> Vec<Value> {
    let page = api.get("/audit?limit=1000").await.json();
    let entries = page["entries"].as_array().unwrap().iter();
    entries
        .filter(|entry| entry["action"] == "topic.read-secrets")
        .cloned()
        .collect()
}

#[tokio::test]
async fn secrets_are_shown_where_they_are_asked_for_with_an_entry() {
    let api = Api::new();
    let made = api.put("/topics/Orders", topic()).await;
    assert_eq!((made.status, made.json().get("keys")), (201, None));
    for path in ["/topics/orders", "/topics?settings=true"] {
        let text = String::from_utf8(api.get(path).await.body.to_vec()).unwrap();
        let secrets = [SECRET, KEY, OTHER, "s3cret"];
        assert!(!secrets.iter().any(|it| text.contains(it)), "{text}");
    }
    assert_eq!(reads(&api).await, Vec::<Value>::new());
    let answer = api.get("/topics/orders?secrets=true").await;
    assert_eq!(answer.header("cache-control"), "no-store");
    let etag = api.get("/topics/orders").await.header("etag").to_owned();
    assert_eq!(answer.header("etag"), etag);
    let shown = answer.json();
    let billing = &shown["subscriptions"]["Billing"];
    assert_eq!(billing["signing"]["secrets"], json!([SECRET]));
    assert_eq!(billing["deliveryHeaders"][0]["value"], "s3cret");
    assert_eq!(shown["keys"], api.get("/topics/orders/keys").await.json());
    let entries = reads(&api).await;
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (&entries[0]["topic"], &entries[0]["outcome"]),
        (&json!("orders"), &json!("done"))
    );
    let page = api.get("/topics?settings=true&secrets=true&prefix=o").await;
    assert_eq!(page.json()["topics"][0]["settings"], shown);
    let entries = reads(&api).await;
    assert_eq!(entries.len(), 2);
    let listed = entries.iter().find(|it| it.get("topic").is_none()).unwrap();
    assert_eq!(
        (&listed["target"], &listed["detail"]),
        (
            &json!("names that begin with \"o\""),
            &json!("from Orders to Orders")
        )
    );
    assert!(!json!(entries).to_string().contains(SECRET));
}

#[tokio::test]
async fn secrets_of_a_list_are_asked_for_with_its_settings() {
    let answer = Api::new().get("/topics?secrets=true").await;
    assert_eq!(
        (answer.status, &answer.json()["member"]),
        (400, &json!("secrets"))
    );
}

#[tokio::test]
async fn keys_that_are_written_are_set_and_the_others_stay() {
    let api = Api::new();
    let made = api
        .put("/topics/orders", json!({ "keys": { "key1": KEY } }))
        .await;
    assert_eq!(made.status, 201);
    let first = api.get("/topics/orders/keys").await.json();
    assert_eq!((&first["key1"], first.get("bulkKey1")), (&json!(KEY), None));
    assert_eq!(first["key2"].as_str().map(str::len), Some(44));
    let body = json!({ "keys": { "bulkKey1": OTHER } });
    assert_eq!(api.put("/topics/orders", body).await.status, 200);
    assert_eq!(api.put("/topics/orders", json!({})).await.status, 200);
    let expected = json!({ "key1": KEY, "key2": first["key2"], "bulkKey1": OTHER });
    assert_eq!(api.get("/topics/orders/keys").await.json(), expected);
    let stored = api.state.read("topics/orders.json").unwrap();
    let stored: Value = serde_json::from_slice(&stored).unwrap();
    assert_eq!(
        stored["settings"].get("keys"),
        None,
        "0.1 knows no such member"
    );
}

#[tokio::test]
async fn key_that_cannot_be_one_leaves_the_topic_as_it_is() {
    let api = Api::new();
    api.put("/topics/orders", json!({ "keys": { "key1": KEY } }))
        .await;
    for (keys, member) in [
        (json!({ "key2": "short" }), "keys.key2"),
        (json!({ "internalKey1": KEY }), "keys.internalKey1"),
        (json!({ "key3": OTHER }), "keys.key3"),
    ] {
        let body = json!({ "recordUnmatched": true, "keys": keys });
        let answer = api.put("/topics/orders", body).await;
        assert_eq!(
            (answer.status, &answer.json()["member"]),
            (400, &json!(member))
        );
        assert!(!answer.json().to_string().contains(KEY));
    }
    let shown = api.get("/topics/orders").await.json();
    assert_eq!(shown.get("recordUnmatched"), None);
}

#[tokio::test]
async fn topic_that_is_revealed_is_the_same_on_another_installation() {
    let api = Api::new();
    let other = Api::new();
    api.put("/topics/orders", topic()).await;
    let path = "/topics/orders/subscriptions/Billing/rotate-secret";
    let json = [("content-type", "application/json")];
    assert_eq!(api.call("POST", path, &json, "{}").await.status, 200);
    let revealed = api.get("/topics/orders?secrets=true").await.json();
    assert!(revealed["subscriptions"]["Billing"]["signing"]["expiresAt"][1].is_string());
    assert_eq!(
        other.put("/topics/orders", revealed.clone()).await.status,
        201
    );
    let there = other.get("/topics/orders?secrets=true").await.json();
    assert_eq!(there, revealed);
}
