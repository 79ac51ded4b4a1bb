//! The document's section on output batching, sentence by sentence.

use std::time::Duration;

use posthaste_simulation::World;
use serde_json::{Value, json};

/// A CloudEvent whose text has exactly so many bytes.
fn event_of(id: &str, bytes: usize) -> String {
    let head = format!(
        r#"{{"specversion":"1.0","id":"{id}","source":"/shop","type":"order.paid","data":""#
    );
    format!("{head}{}\"}}", "x".repeat(bytes - head.len() - 2))
}

/// The ids of the events in each request, for events of these sizes published at once.
async fn requests(batching: Value, bytes: &[usize]) -> Vec<Vec<String>> {
    let world = World::new();
    world.subscribe(json!({ "batching": batching })).await;
    let events: Vec<_> = bytes
        .iter()
        .enumerate()
        .map(|(n, bytes)| event_of(&format!("{n}"), *bytes))
        .collect();
    world.publish(&events, Duration::from_hours(24)).await;
    world.deliver_all().await;
    let ids = |body: &str| match serde_json::from_str(body).expect("JSON") {
        Value::Array(events) => events.iter().map(id).collect(),
        event => vec![id(&event)],
    };
    world
        .endpoint
        .take()
        .iter()
        .map(|request| ids(&request.body))
        .collect()
}

fn id(event: &Value) -> String {
    event["id"].as_str().expect("an id").to_owned()
}

async fn check(batching: Value, bytes: &[usize], expected: &[&[&str]]) {
    assert_eq!(requests(batching, bytes).await, expected);
}

/// "By default, Event Grid sends each event individually to subscribers."
#[tokio::test]
async fn each_event_is_sent_individually_by_default() {
    check(Value::Null, &[200, 200, 200], &[&["0"], &["1"], &["2"]]).await;
}

/// "If preferred size is 4 KB and a 10-KB event is pushed to Event Grid, the 10-KB event will still
/// be delivered in its own batch rather than being dropped."
#[tokio::test]
async fn event_of_10_kb_has_its_own_batch_at_4_kb_preferred_size() {
    let batching = json!({ "maxEventsPerBatch": 100, "preferredBatchSizeInKilobytes": 4 });
    check(batching.clone(), &[10 * 1024], &[&["0"]]).await;
    check(
        batching,
        &[1000, 1000, 10 * 1024, 1000, 1000],
        &[&["0", "1"], &["2"], &["3", "4"]],
    )
    .await;
}

/// "Maximum number of events per batch … this number will never be exceeded; however fewer events
/// may be delivered if no other events are available at the time of publish."
#[tokio::test]
async fn batch_never_exceeds_its_greatest_number_and_never_waits() {
    let batching = json!({ "maxEventsPerBatch": 2 });
    check(batching, &[200, 200, 200], &[&["0", "1"], &["2"]]).await;
}

/// "It isn't mandatory to specify both the settings."
#[tokio::test]
async fn unspecified_batching_setting_has_its_default() {
    check(
        json!({ "preferredBatchSizeInKilobytes": 4 }),
        &[200, 200],
        &[&["0"], &["1"]],
    )
    .await;
    let kilobytes_64 = 64 * 1024;
    check(
        json!({ "maxEventsPerBatch": 10 }),
        &[kilobytes_64 / 2 - 2, kilobytes_64 / 2 - 2, 200],
        &[&["0", "1"], &["2"]],
    )
    .await;
}
