use serde_json::{Value, json};

use super::{Answer, Api, billing};

const TOPIC: &str = "/topics/orders";
const SUBSCRIPTION: &str = "/topics/orders/subscriptions/billing";

async fn put(api: &Api, path: &str, header: (&str, &str), body: Value) -> Answer {
    api.call("PUT", path, &[header], body.to_string()).await
}

#[tokio::test]
async fn a_put_happens_only_to_the_version_it_asks_for() {
    let api = Api::with_billing().await;
    for (path, body) in [
        (TOPIC, json!({ "defaultTimeToLive": "P1D" })),
        (SUBSCRIPTION, {
            let mut settings = billing();
            settings["batching"] = json!({ "maxEventsPerBatch": 10 });
            settings
        }),
    ] {
        let etag = api.get(path).await.header("etag").to_owned();
        let changed = put(&api, path, ("if-match", &etag), body.clone()).await;
        assert_eq!(changed.status, 200);
        assert_ne!(changed.header("etag"), etag);
        put(&api, path, ("if-match", &etag), body.clone())
            .await
            .problem(412, "precondition-failed");
        assert_eq!(put(&api, path, ("if-match", "*"), body).await.status, 200);
    }
}

#[tokio::test]
async fn a_put_can_ask_for_nothing_to_be_there() {
    let api = Api::with_billing().await;
    put(&api, TOPIC, ("if-none-match", "*"), json!({}))
        .await
        .problem(412, "precondition-failed");
    put(&api, SUBSCRIPTION, ("if-none-match", "*"), billing())
        .await
        .problem(412, "precondition-failed");
    assert_eq!(
        put(&api, "/topics/new", ("if-none-match", "*"), json!({}))
            .await
            .status,
        201
    );
    assert_eq!(
        put(
            &api,
            "/topics/new/subscriptions/new",
            ("if-none-match", "*"),
            billing()
        )
        .await
        .status,
        201
    );
    put(&api, "/topics/absent", ("if-match", "*"), json!({}))
        .await
        .problem(412, "precondition-failed");
    api.get("/topics/absent")
        .await
        .problem(404, "unknown-topic");
}

#[tokio::test]
async fn another_subscription_s_change_does_not_change_the_version() {
    let api = Api::with_billing().await;
    let etag = api.get(SUBSCRIPTION).await.header("etag").to_owned();
    let topic_etag = api.get(TOPIC).await.header("etag").to_owned();
    api.put("/topics/orders/subscriptions/audit", billing())
        .await;
    assert_eq!(api.get(SUBSCRIPTION).await.header("etag"), etag);
    assert_ne!(api.get(TOPIC).await.header("etag"), topic_etag);
    assert_eq!(
        put(&api, SUBSCRIPTION, ("if-match", &etag), billing())
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_delete_happens_only_to_the_version_it_asks_for() {
    let api = Api::with_billing().await;
    for path in [SUBSCRIPTION, TOPIC] {
        let etag = api.get(path).await.header("etag").to_owned();
        let delete = async |etag| api.call("DELETE", path, &[("if-match", etag)], "").await;
        delete("\"other\"")
            .await
            .problem(412, "precondition-failed");
        assert_eq!(api.get(path).await.status, 200);
        assert_eq!(delete(&etag).await.status, 204);
    }
}

#[tokio::test]
async fn a_new_topic_of_an_old_name_is_another_version() {
    let api = Api::with_billing().await;
    let etag = api.get(TOPIC).await.header("etag").to_owned();
    let shown = api.get(TOPIC).await.json();
    api.delete(TOPIC).await;
    api.clock.advance(std::time::Duration::from_millis(1));
    let mut settings = shown;
    settings["subscriptions"] = json!({});
    assert_eq!(api.put(TOPIC, settings).await.status, 201);
    assert_ne!(api.get(TOPIC).await.header("etag"), etag);
}
