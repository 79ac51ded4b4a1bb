use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use posthaste_core::model::Timestamp;
use posthaste_core::pressure::{
    ByteUsage, DatabaseSpace, PressureSettings, PressureState, ResourceReadings, evaluate_pressure,
};
use posthaste_core::stored::PRESSURE_KEY;
use posthaste_ports::{Clock, ErrorKind};
use serde_json::{Value, json};

use super::Api;

#[tokio::test]
async fn health_needs_no_key_and_asks_the_store() {
    let api = Api::new();
    let ask = async || {
        api.send(Request::get("/health").body(Body::empty()).unwrap())
            .await
    };
    let answer = ask().await;
    assert_eq!(
        (answer.status, answer.json()),
        (200, json!({ "status": "ok" }))
    );
    api.state.fail(ErrorKind::Other);
    ask().await.problem(503, "unavailable");
}

/// A state of this moment, in which a full disk refuses everybody.
fn refusing(at: Timestamp) -> PressureState {
    let disk = Some(DatabaseSpace::Disk(ByteUsage {
        used: 99 << 30,
        total: 100 << 30,
    }));
    let readings = ResourceReadings {
        database: disk,
        ..ResourceReadings::default()
    };
    evaluate_pressure(
        &PressureState::normal(at),
        &readings,
        &PressureSettings::default(),
        at,
    )
    .0
}

/// The view of this object: freshness, level, tarpit, and how many tiers are refused and how many
/// delayed.
async fn shown(object: Option<Vec<u8>>) -> (u16, Vec<Value>) {
    let api = Api::new();
    if let Some(bytes) = object {
        api.state.write(PRESSURE_KEY, bytes);
    }
    let answer = api.get("/pressure").await;
    let view = answer.json();
    let count = |name: &str| json!(view[name].as_array().unwrap().len());
    let said = ["freshness", "level", "tarpit"].map(|name| view[name].clone());
    (
        answer.status,
        said.into_iter()
            .chain([count("delayedTiers"), count("refusedTiers")])
            .collect(),
    )
}

async fn check(object: Option<Vec<u8>>, expected: Value) {
    assert_eq!(
        shown(object).await,
        (200, expected.as_array().unwrap().clone())
    );
}

#[tokio::test]
async fn a_state_is_shown_as_producers_get_it() {
    let now = Api::new().clock.now();
    let earlier = |ms| Timestamp::from_millis(now.as_millis() - ms);
    let normal = |freshness| json!([freshness, "normal", "PT0S", 0, 0]);
    check(
        Some(refusing(now).render()),
        json!(["current", "high", "PT0S", 0, 3]),
    )
    .await;
    check(
        Some(refusing(earlier(6_001)).render()),
        json!(["stale", "high", "PT10S", 3, 0]),
    )
    .await;
    check(
        Some(refusing(earlier(900_001)).render()),
        normal("forgotten"),
    )
    .await;
    let [ahead, far_ahead] = [7, 1000].map(|secs| now + Duration::from_secs(secs));
    check(
        Some(refusing(ahead).render()),
        json!(["stale", "high", "PT10S", 3, 0]),
    )
    .await;
    check(Some(refusing(far_ahead).render()), normal("forgotten")).await;
    check(None, normal("missing")).await;
    check(Some(b"{".to_vec()), normal("unreadable")).await;
    check(Some(br#"{"v":2}"#.to_vec()), normal("unreadable")).await;
    check(
        Some(PressureState::unmonitored(earlier(1_000_000)).render()),
        normal("current"),
    )
    .await;
}
