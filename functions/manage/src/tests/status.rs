use axum::body::Body;
use axum::http::Request;
use posthaste_core::pressure::{PRESSURE_KEY, PressureState};
use posthaste_core::time::Timestamp;
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
async fn pressure_is_what_the_monitor_saw_last() {
    let api = Api::new();
    let before = api.get("/pressure").await;
    let normal = json!({
        "level": "normal", "monitored": true, "tarpit": "PT0S", "refusedTiers": [], "resources": [],
    });
    assert_eq!((before.status, before.json()), (200, normal));
    let state = PressureState::unmonitored(Timestamp::from_millis(1000)).render();
    api.state.write(PRESSURE_KEY, state);
    let shown = api.get("/pressure").await.json();
    assert_eq!(shown["monitored"], false);
    assert_eq!(shown["polledAt"], "1970-01-01T00:00:01.000Z");
}

#[tokio::test]
async fn a_pressure_state_that_cannot_be_read_is_never_normal() {
    let api = Api::new();
    api.state.write(PRESSURE_KEY, "{");
    api.get("/pressure").await.problem(500, "about:blank");
}
