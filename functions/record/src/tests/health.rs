//! The tries that records are about, as they get into the book of failing subscriptions.

use posthaste_core::health::{HealthBook, SubscriptionTries};
use posthaste_core::stored::{HEALTH, WAKE_SIGNAL};
use posthaste_ports::{ErrorKind, ObjectStore};
use posthaste_testkit::{CallFault, FaultPlan};

use super::*;

fn tried(number: u64, result: LogResult) -> LogRecord {
    LogRecord {
        kind: RecordKind::Attempt,
        result,
        reason: (result != LogResult::Delivered).then(|| "Busy".to_owned()),
        status: Some(503),
        subscription: "billing".to_owned(),
        ..record(number, at("2026-03-07T03:05:00Z"))
    }
}

fn many(from: u64, count: u64, result: LogResult) -> Vec<LogRecord> {
    (from..from + count).map(|n| tried(n, result)).collect()
}

async fn tries(kit: &Kit) -> Option<SubscriptionTries> {
    let object = kit.state.get(HEALTH).await.unwrap()?;
    let book = HealthBook::parse(&object.bytes).unwrap();
    let (_, health) = book.subscriptions().next()?;
    Some(health.tries.clone())
}

#[tokio::test]
async fn records_of_what_is_healthy_write_no_health() {
    let kit = Kit::new();
    kit.handle("a", &many(0, 100, LogResult::Delivered)).await;
    assert_eq!(kit.state.keys(""), [""; 0]);
}

#[tokio::test]
async fn failures_are_counted_and_wake_is_signalled() {
    let kit = Kit::new();
    kit.handle("a", &many(0, 3, LogResult::Retry)).await;
    kit.handle("b", &many(3, 7, LogResult::DeadLettered)).await;
    let found = tries(&kit).await.unwrap();
    assert_eq!(found.in_row(), 10);
    assert_eq!(found.last_failure().unwrap().status, Some(503));
    assert_eq!(kit.state.keys(""), [HEALTH, WAKE_SIGNAL]);
    kit.handle("c", &many(10, 1, LogResult::Delivered)).await;
    assert_eq!(tries(&kit).await.unwrap().in_row(), 0);
}

/// The process dies before the batch is acknowledged, and another one gets it.
#[tokio::test]
async fn batch_that_comes_again_counts_once() {
    let mut kit = Kit::new();
    for _ in 0..3 {
        kit.handle("a", &many(0, 4, LogResult::Retry)).await;
        kit.start_again();
    }
    assert_eq!(tries(&kit).await.unwrap().in_row(), 4);
}

/// Another instance wrote the failures, a minute ago at most.
#[tokio::test]
async fn arrival_in_another_instance_is_counted() {
    let mut kit = Kit::new();
    kit.handle("a", &many(0, 4, LogResult::Retry)).await;
    kit.start_again();
    kit.handle("b", &many(4, 1, LogResult::Delivered)).await;
    assert_eq!(tries(&kit).await.unwrap().in_row(), 0);
}

#[tokio::test]
async fn failing_store_costs_no_record_and_tries_count_later() {
    let plan = FaultPlan::by(|effect| {
        let is_first = effect.key == HEALTH && effect.number < 6;
        is_first.then_some(CallFault::Before(ErrorKind::TimedOut))
    });
    let kit = Kit::with(&plan);
    kit.handle("a", &many(0, 4, LogResult::Retry)).await;
    assert_eq!(kit.ids().await.len(), 4);
    for n in 1..5 {
        kit.handle(&format!("b{n}"), &many(n * 10, 1, LogResult::Retry))
            .await;
    }
    assert_eq!(tries(&kit).await.unwrap().in_row(), 8);
}

/// Another instance wrote the record of the second attempt first.
#[tokio::test]
async fn late_record_of_an_event_that_arrived_leaves_none_waiting() {
    let mut kit = Kit::new();
    let arrived = LogRecord {
        attempt: 2,
        ..tried(1, LogResult::Delivered)
    };
    kit.handle("b", &[arrived]).await;
    kit.start_again();
    kit.handle("a", &many(1, 1, LogResult::Retry)).await;
    assert_eq!(tries(&kit).await.unwrap().oldest_undelivered(), None);
}

/// Of an event that was tried once, the record of its end has one attempt, as that of a first
/// attempt has.
#[tokio::test]
async fn event_that_ended_without_an_attempt_waits_no_more() {
    for (kind, result) in [
        (RecordKind::AnsweredLate, LogResult::Delivered),
        (RecordKind::Expired, LogResult::DeadLettered),
        (RecordKind::GivenUp, LogResult::DeadLettered),
    ] {
        for is_late in [false, true] {
            let kit = Kit::new();
            let end = LogRecord {
                kind,
                ..tried(1, result)
            };
            let mut batches = [many(1, 1, LogResult::Retry), vec![end]];
            if is_late {
                batches.reverse();
            }
            for (n, batch) in batches.iter().enumerate() {
                kit.handle(&n.to_string(), batch).await;
            }
            let waits = tries(&kit).await.unwrap().oldest_undelivered().is_some();
            assert!(!waits, "{kind:?}, {is_late}");
        }
    }
}
