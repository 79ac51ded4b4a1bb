//! Times of which the log may lack records, in answers about them.

use std::time::Duration;

use posthaste_core::delivery_log::{GapCause, LogGap};
use posthaste_core::model::Timestamp;
use serde_json::{Value, json};

use super::lists::{LIST, filled, list};
use crate::tests::Api;

fn at(time: &str) -> Timestamp {
    Timestamp::parse(&format!("2026-11-21T{time}:00Z")).unwrap()
}

/// A log with records from 07:50 to 09:57, that knows nothing of the time from 08:00 to 09:30.
async fn with_gap() -> Api {
    let gap = LogGap {
        from: at("08:00"),
        to: at("09:30"),
        cause: GapCause::Copy,
        attempts_max: None,
    };
    filled().await.then_with_gaps(vec![gap])
}

fn shown() -> Value {
    json!([{ "from": "2026-11-21T08:00:00.000Z", "to": "2026-11-21T09:30:00.000Z", "cause": "copy" }])
}

#[tokio::test]
async fn list_has_the_gaps_of_its_time() {
    let api = with_gap().await;
    let page = list(&api, LIST, "").await;
    assert_eq!(page["gaps"], shown());
    let said =
        "The log is unknown from 2026-11-21T08:00:00.000Z to 2026-11-21T09:30:00.000Z: the data";
    assert!(page["note"].as_str().unwrap().starts_with(said), "{page}");
    let check = async |query: &str, has_gap: bool| {
        let page = list(&api, LIST, query).await;
        assert_eq!(page.get("gaps").is_some(), has_gap, "{query}");
        assert_eq!(page.get("note").is_some(), has_gap, "{query}");
    };
    check("from=2026-11-21T09:00:00Z", true).await;
    check("from=2026-11-21T09:31:00Z", false).await;
    check("to=2026-11-21T08:01:00Z", true).await;
    check("to=2026-11-21T08:00:00Z", false).await;
    // The first page ends at 09:57, and a later one has the rest.
    check("limit=1", false).await;
    let first = list(&api, LIST, "limit=1").await;
    let cursor = first["cursor"].as_str().unwrap();
    check(&format!("cursor={cursor}"), true).await;
}

#[tokio::test]
async fn event_has_the_gaps_in_which_it_may_have_had_attempts() {
    let api = with_gap().await;
    let check = async |id: &str, has_gap: bool| {
        let event = api.get(&format!("{LIST}/{id}")).await.json();
        assert_eq!(event.get("gaps").is_some(), has_gap, "{event}");
    };
    // Accepted after it, delivered before it, and waiting since before it.
    check("e", false).await;
    check("b", false).await;
    check("a", true).await;
    check("nothing-is-known-of-this", true).await;
}

/// A server may run for months.
#[tokio::test]
async fn gap_before_the_retention_is_no_gap_any_more() {
    let api = with_gap().await;
    let unknown = format!("{LIST}/nothing-is-known-of-this");
    assert_eq!(api.get(&unknown).await.json()["gaps"], shown());
    api.clock.advance(Duration::from_hours(8 * 24));
    let page = list(&api, LIST, "").await;
    assert_eq!(page.get("gaps"), None, "{page}");
    let event = api.get(&unknown).await.json();
    assert_eq!(event.get("gaps"), None, "{event}");
}

#[tokio::test]
async fn answer_has_the_newest_gaps() {
    let gaps = (0..59).map(|minute| LogGap {
        from: at(&format!("08:{minute:02}")),
        to: at(&format!("08:{minute:02}")),
        cause: GapCause::Killed,
        attempts_max: Some(1),
    });
    let api = filled().await.then_with_gaps(gaps.collect());
    let page = list(&api, LIST, "").await;
    let shown = page["gaps"].as_array().unwrap();
    assert_eq!(shown.len(), 20);
    assert_eq!(shown[0]["from"], "2026-11-21T08:39:00.000Z");
    assert_eq!(shown[19]["from"], "2026-11-21T08:58:00.000Z");
}
