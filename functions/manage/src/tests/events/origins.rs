//! The origins of attempts: which replays began by themselves.

use posthaste_core::delivery_log::{AttemptOrigin, LogRecord};
use posthaste_core::stored::layout;
use posthaste_ports::ErrorKind;
use serde_json::{Value, json};

use super::{another, before, delivered, write};
use crate::tests::Api;

/// The record of a replay of this id; a recovery if it names an outage.
fn replay_record(id: &str, outage_since: Option<&str>) -> String {
    let mut record = json!({
        "v": 6, "id": id, "topic": "orders", "subscription": "billing",
        "request": { "from": "2026-11-21T09:00:00.000Z" },
        "createdAt": 1_795_256_100_000_u64, "updatedAt": 1_795_256_100_000_u64, "state": "Running",
        "progress": { "pacedUntil": 1_795_256_100_000_u64, "objects": 0, "found": 0, "replayed": 0, "failed": 0 },
    });
    if let Some(since) = outage_since {
        record["recovery"] = json!({ "outageSince": since, "rampFrom": 1_795_256_100_000_u64 });
    }
    record.to_string()
}

/// An attempt of a replay, as a delivery of its own.
fn replayed(id: &str, run: &str, minutes: u64) -> LogRecord {
    LogRecord {
        delivery_key: format!("key-of-{run}"),
        record_id: format!("{run:0>32}"),
        origin: AttemptOrigin::Replay,
        run_id: Some(run.to_owned()),
        ..delivered(id, minutes)
    }
}

/// The attempts of the event `order-1`, by their runs.
async fn attempts(api: &Api) -> Vec<Value> {
    let answer = api.get("/topics/orders/events/order-1").await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let event = answer.json();
    let deliveries = event["deliveries"].as_array().unwrap().iter();
    deliveries
        .flat_map(|it| it["attempts"].as_array().unwrap().clone())
        .collect()
}

async fn recovered_runs(api: &Api) -> Vec<String> {
    let all = attempts(api).await.into_iter();
    all.filter(|attempt| attempt["recovery"].is_object())
        .map(|attempt| attempt["runId"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn attempts_of_a_recovery_name_its_outage() {
    let api = Api::with_billing().await;
    let since = "2026-11-21T09:15:00.000Z";
    let recovery = layout::replay_record_key("run-1");
    api.state
        .write(&recovery, replay_record("run-1", Some(since)));
    let asked = layout::replay_record_key("run-2");
    api.state.write(&asked, replay_record("run-2", None));
    write(
        &api,
        "a",
        &[
            delivered("order-1", 70),
            replayed("order-1", "run-1", 30),
            replayed("order-1", "run-2", 20),
            replayed("order-1", "run-3", 10),
        ],
    );
    let shown = attempts(&api).await;
    let runs: Vec<_> = shown.iter().map(|it| it["runId"].as_str()).collect();
    assert_eq!(runs, [Some("run-3"), Some("run-2"), Some("run-1"), None]);
    assert_eq!(shown[2]["recovery"], json!({ "outageSince": since }));
    assert_eq!(recovered_runs(&api).await, ["run-1"]);
}

/// An answer about an event does not fail for want of an origin.
#[tokio::test]
async fn unreadable_replay_is_shown_as_a_replay() {
    let api = Api::with_billing().await;
    write(
        &api,
        "a",
        &[
            replayed("order-1", "run-1", 30),
            replayed("order-1", "../topics/orders", 20),
        ],
    );
    api.state.write(&layout::replay_record_key("run-1"), "{");
    assert_eq!(attempts(&api).await.len(), 2);
    assert!(recovered_runs(&api).await.is_empty());
    api.state.fail(ErrorKind::TimedOut);
    assert_eq!(api.get("/topics/orders/events/order-1").await.status, 503);
}

/// An event that was replayed very often costs ten reads of replays, of the newest.
#[tokio::test]
async fn at_most_ten_replays_are_read_the_newest() {
    let api = Api::with_billing().await;
    let mut records = vec![delivered("order-1", 70)];
    for at in 10..25_u64 {
        let run = format!("run-{at}");
        let key = layout::replay_record_key(&run);
        api.state
            .write(&key, replay_record(&run, Some("2026-11-21T09:15:00.000Z")));
        let first = LogRecord {
            accepted_at: before(60 - at),
            ..replayed("order-1", &run, 60 - at)
        };
        records.push(another(first.clone(), 2));
        records.push(first);
    }
    write(&api, "a", &records);
    let before_reads = api.state.reads();
    let runs = recovered_runs(&api).await;
    let mut distinct = runs.clone();
    distinct.dedup();
    let newest: Vec<_> = (15..25).rev().map(|at| format!("run-{at}")).collect();
    assert_eq!(distinct, newest);
    assert_eq!(runs.len(), 20);
    // The topic's record, and ten replays.
    assert_eq!(api.state.reads() - before_reads, 11);
}
