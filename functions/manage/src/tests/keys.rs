use serde_json::json;

use super::Api;

#[tokio::test]
async fn keys_are_made_with_the_topic_and_stay_when_it_is_replaced() {
    let api = Api::with_billing().await;
    let shown = api.get("/topics/orders/keys").await;
    assert_eq!(
        (shown.status, shown.header("cache-control")),
        (200, "no-store")
    );
    let key1 = shown.json()["key1"].clone();
    let key2 = shown.json()["key2"].clone();
    // 32 bytes in base64.
    assert_eq!(
        (key1.as_str().map(str::len), key2.as_str().map(str::len)),
        (Some(44), Some(44))
    );
    assert_ne!(key1, key2);
    api.put("/topics/orders", json!({ "inputSchema": "CloudEvents" }))
        .await;
    assert_eq!(
        api.get("/topics/ORDERS/keys").await.json(),
        json!({ "key1": key1, "key2": key2 })
    );
}

#[tokio::test]
async fn regenerating_one_key_keeps_the_other() {
    let api = Api::with_billing().await;
    let before = api.get("/topics/orders/keys").await.json();
    let answer = api
        .call("POST", "/topics/orders/keys/key2/regenerate", &[], "")
        .await;
    let after = answer.json();
    assert_eq!((answer.status, &after["key1"]), (200, &before["key1"]));
    assert_ne!(after["key2"], before["key2"]);
    assert_eq!(api.get("/topics/orders/keys").await.json(), after);
    let answer = api
        .call("POST", "/topics/orders/keys/key1/regenerate", &[], "")
        .await
        .json();
    assert_eq!(answer["key2"], after["key2"]);
    assert_ne!(answer["key1"], after["key1"]);
}

/// A key of another tier exists from when it is made until it is taken away.
#[tokio::test]
async fn keys_of_other_tiers_exist_from_creation_to_removal() {
    let api = Api::with_billing().await;
    let standard = api.get("/topics/orders/keys").await.json();
    let mut keys = standard.clone();
    for name in ["internalKey1", "internalKey2", "bulkKey1", "bulkKey2"] {
        let answer = api
            .call(
                "POST",
                &format!("/topics/orders/keys/{name}/regenerate"),
                &[],
                "",
            )
            .await;
        assert_eq!(answer.status, 200, "{name}");
        let made = answer.json()[name].clone();
        assert_eq!(made.as_str().map(str::len), Some(44), "{name}");
        keys[name] = made;
        assert_eq!(answer.json(), keys);
    }
    // They stay when the topic is replaced, and are made anew like the others.
    api.put("/topics/orders", json!({ "inputSchema": "CloudEvents" }))
        .await;
    assert_eq!(api.get("/topics/orders/keys").await.json(), keys);
    let anew = api
        .call("POST", "/topics/orders/keys/bulkKey1/regenerate", &[], "")
        .await
        .json();
    assert_ne!(anew["bulkKey1"], keys["bulkKey1"]);
    assert_eq!(
        (&anew["bulkKey2"], &anew["key1"]),
        (&keys["bulkKey2"], &keys["key1"])
    );
    for name in ["internalKey1", "internalKey2", "bulkKey1", "bulkKey2"] {
        let path = format!("/topics/ORDERS/keys/{name}");
        assert_eq!(
            api.call("DELETE", &path, &[], "").await.status,
            204,
            "{name}"
        );
        api.call("DELETE", &path, &[], "")
            .await
            .problem(404, "about:blank");
    }
    assert_eq!(api.get("/topics/orders/keys").await.json(), standard);
}

#[tokio::test]
async fn the_two_keys_of_every_topic_cannot_be_taken_away() {
    let api = Api::with_billing().await;
    let before = api.state.read("topics/orders.json");
    for name in ["key1", "key2"] {
        let answer = api
            .call("DELETE", &format!("/topics/orders/keys/{name}"), &[], "")
            .await;
        let problem = answer.problem(400, "about:blank");
        assert_eq!(problem["member"], "key");
        let detail = format!("every topic has a {name}: it can be replaced, not taken away");
        assert_eq!(problem["detail"], detail);
    }
    assert_eq!(api.state.read("topics/orders.json"), before);
}

#[tokio::test]
async fn a_topic_or_key_that_is_not_there_has_none() {
    let api = Api::new();
    api.get("/topics/orders/keys")
        .await
        .problem(404, "unknown-topic");
    let post = async |path| api.call("POST", path, &[], "").await;
    post("/topics/orders/keys/key1/regenerate")
        .await
        .problem(404, "unknown-topic");
    post("/topics/orders/keys/key3/regenerate")
        .await
        .problem(400, "about:blank");
    let delete = async |path| api.call("DELETE", path, &[], "").await;
    delete("/topics/orders/keys/bulkKey1")
        .await
        .problem(404, "unknown-topic");
    delete("/topics/orders/keys/key3")
        .await
        .problem(400, "about:blank");
    assert_eq!(api.state.read("topics/orders.json"), None);
}
