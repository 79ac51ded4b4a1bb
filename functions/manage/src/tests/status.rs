use axum::body::Body;
use axum::http::Request;
use posthaste_ports::ErrorKind;
use serde_json::json;

use super::Api;

#[tokio::test]
async fn health_needs_no_key_and_asks_the_store() {
    let api = Api::new();
    let ask = async || api.send(Request::get("/health").body(Body::empty()).unwrap()).await;
    let answer = ask().await;
    assert_eq!((answer.status, answer.json()), (200, json!({ "status": "ok" })));
    api.state.fail(ErrorKind::Other);
    ask().await.problem(503, "unavailable");
}

#[tokio::test]
async fn pressure_is_shown_as_the_monitor_wrote_it() {
    let api = Api::new();
    assert_eq!(api.get("/pressure").await.status, 200);
    let written = r#"{"level":"Medium"}"#;
    api.state.write("pressure.json", written);
    let answer = api.get("/pressure").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"));
    assert_eq!(answer.body, written);
}
