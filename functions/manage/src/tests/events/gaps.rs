//! Times of which the log may lack records, in answers about them.

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
