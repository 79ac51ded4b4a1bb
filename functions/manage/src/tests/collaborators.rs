//! The collaborators by themselves, over stores in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::FromRef;
use bytes::Bytes;
use posthaste_core::api::problem::ProblemKind;
use posthaste_core::delivery_log::{GapCause, LogGap};
use posthaste_core::model::{SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::{TopicRecord, WAKE_SIGNAL, layout};
use posthaste_ports::Clock;
use serde_json::json;

use super::{Api, LOG};
use crate::force_requests::ForceRequests;
use crate::log_coverage::LogCoverage;
use crate::topic_records::TopicRecords;
use crate::validating_marks::ValidatingMarks;
use crate::wake_queue::WakeQueue;

fn orders() -> TopicName {
    TopicName::parse("orders").unwrap()
}

async fn load_orders(api: &Api) -> TopicRecord {
    let records = TopicRecords::from_ref(&api.manage);
    records.existing_record(&orders()).await.unwrap()
}

/// wake may rest: work that is written before the signal could lie there for a while.
#[tokio::test]
async fn wake_is_signalled_before_its_work_is_written() {
    let api = Api::new();
    let state = api.state.clone();
    let is_signalled = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_signalled);
    api.state.when_put("temporary/", move || {
        seen.store(state.read(WAKE_SIGNAL).is_some(), Ordering::Relaxed);
    });
    let wake = WakeQueue::from_ref(&api.manage);
    let key = layout::temporary_mark_key(&orders());
    wake.put_work(&key, Bytes::new()).await.unwrap();
    assert!(is_signalled.load(Ordering::Relaxed));
    assert_eq!(api.state.read(&key), Some(Bytes::new()));
}

#[tokio::test]
async fn unreadable_record_is_not_a_missing_topic() {
    let api = Api::new();
    let records = TopicRecords::from_ref(&api.manage);
    assert!(records.load_record(&orders()).await.unwrap().is_none());
    let missing = records.existing_record(&orders()).await.unwrap_err();
    assert_eq!(missing.0.kind, ProblemKind::UnknownTopic);
    api.state.write(&layout::topic_record_key(&orders()), "{");
    let broken = records.load_record(&orders()).await.unwrap_err();
    assert_eq!(broken.0.kind, ProblemKind::Internal);
}

#[tokio::test]
async fn force_request_that_is_open_keeps_its_id() {
    let api = Api::with_billing().await;
    let record = load_orders(&api).await;
    let name = SubscriptionName::parse("billing").unwrap();
    let forced = ForceRequests::from_ref(&api.manage);
    let first = forced.request_force(&record, &name).await.unwrap();
    let second = forced.request_force(&record, &name).await.unwrap();
    assert_eq!(first, second);
}

#[tokio::test]
async fn validating_mark_is_taken_over_once() {
    let api = Api::new();
    let marks = ValidatingMarks::from_ref(&api.manage);
    assert!(!marks.take_over(&orders()).await.unwrap());
    marks.put_mark(&orders()).await.unwrap();
    let topic = orders();
    let (one, other) = tokio::join!(marks.take_over(&topic), marks.take_over(&topic));
    assert_eq!(
        [one.unwrap(), other.unwrap()]
            .into_iter()
            .filter(|it| *it)
            .count(),
        1
    );
    marks.delete_mark(&orders()).await.unwrap();
    assert!(!marks.take_over(&orders()).await.unwrap());
}

#[tokio::test]
async fn log_of_a_topic_is_off_by_its_own_mode() {
    let api = Api::new();
    let coverage = LogCoverage::from_ref(&api.manage);
    assert!(!coverage.is_off(None));
    api.put("/topics/Orders", json!({})).await;
    assert!(!coverage.is_off(Some(&load_orders(&api).await)));
    api.put("/topics/Orders", json!({ "deliveryLog": "off" }))
        .await;
    assert!(coverage.is_off(Some(&load_orders(&api).await)));
}

#[test]
fn log_is_complete_up_to_its_delay() {
    let api = Api::new();
    api.clock.advance(Duration::from_hours(1));
    let coverage = LogCoverage::from_ref(&api.manage);
    let until = coverage.complete_until().0;
    assert_eq!(api.clock.now().since(until), LOG.delay);
}

/// The log has no records of that time anyway.
#[test]
fn gap_before_the_retention_is_not_shown() {
    let api = Api::new();
    let now = api.clock.now().as_millis();
    let hours_ago = |hours: u64| Timestamp::from_millis(now - hours * 3_600_000);
    let gap_until = |hours: u64| LogGap {
        from: hours_ago(hours + 1),
        to: hours_ago(hours),
        cause: GapCause::Copy,
        attempts_max: None,
    };
    let api = api.then_with_gaps(vec![gap_until(7 * 24 + 1), gap_until(2)]);
    let coverage = LogCoverage::from_ref(&api.manage);
    assert_eq!(coverage.gaps(None, None), [gap_until(2)]);
}
