use serde_json::json;

use super::Api;

#[tokio::test]
async fn keys_are_made_with_the_topic_and_stay_when_it_is_replaced() {
    let api = Api::with_billing().await;
    let shown = api.get("/topics/orders/keys").await;
    assert_eq!((shown.status, shown.header("cache-control")), (200, "no-store"));
    let (key1, key2) = (shown.json()["key1"].clone(), shown.json()["key2"].clone());
    // 32 bytes in base64.
    assert_eq!((key1.as_str().map(str::len), key2.as_str().map(str::len)), (Some(44), Some(44)));
    assert_ne!(key1, key2);
    api.put("/topics/orders", json!({ "inputSchema": "CloudEvents" })).await;
    assert_eq!(api.get("/topics/ORDERS/keys").await.json(), json!({ "key1": key1, "key2": key2 }));
}

#[tokio::test]
async fn one_key_is_made_anew_and_the_other_stays() {
    let api = Api::with_billing().await;
    let before = api.get("/topics/orders/keys").await.json();
    let answer = api.call("POST", "/topics/orders/keys/key2/regenerate", &[], "").await;
    let after = answer.json();
    assert_eq!((answer.status, &after["key1"]), (200, &before["key1"]));
    assert_ne!(after["key2"], before["key2"]);
    assert_eq!(api.get("/topics/orders/keys").await.json(), after);
    let answer = api.call("POST", "/topics/orders/keys/key1/regenerate", &[], "").await.json();
    assert_eq!(answer["key2"], after["key2"]);
    assert_ne!(answer["key1"], after["key1"]);
}

#[tokio::test]
async fn a_topic_or_key_that_is_not_there_has_none() {
    let api = Api::new();
    api.get("/topics/orders/keys").await.problem(404, "unknown-topic");
    let post = async |path| api.call("POST", path, &[], "").await;
    post("/topics/orders/keys/key1/regenerate").await.problem(404, "unknown-topic");
    post("/topics/orders/keys/key3/regenerate").await.problem(400, "about:blank");
    assert_eq!(api.state.read("topics/orders.json"), None);
}
