//! Records on their way through queue, files and merge: whatever fails, and wherever the process is
//! killed, each is found, and once.

use std::collections::BTreeSet;
use std::time::Duration;

use posthaste_core::delivery_log::{
    LogHour, LogRecord, RecordFilter, RecordKind, record_id, render_records,
};
use posthaste_core::model::Timestamp;
use posthaste_delivery_log::{LogFile, LogReader};
use posthaste_ports::{ObjectStore, OutgoingMessage, QueueName, QueueSender};
use posthaste_simulation::{Faults, VISIBILITY, World, start};
use posthaste_testkit::faulty::{CallFault, FaultPlan, at_every_effect};

const RECORDS: u64 = 40;

/// Messages in which the records come.
const MESSAGES: usize = 4;

/// Longer than a lease of the merge.
const LAPSE: Duration = Duration::from_mins(3);

fn record(n: u64) -> LogRecord {
    let key = format!("{n:08x}-0");
    let time = start() + Duration::from_secs(n);
    LogRecord {
        record_id: record_id("message", 1, &key, 1, RecordKind::Attempt, time),
        time,
        topic: "orders".to_owned(),
        subscription: "billing".to_owned(),
        delivery_key: key,
        event_id: Some(format!("event-{n}")),
        ..LogRecord::default()
    }
}

async fn send(world: &World) {
    let records: Vec<_> = (0..RECORDS).map(record).collect();
    for some in records.chunks(records.len() / MESSAGES) {
        let message = OutgoingMessage {
            body: render_records(some).remove(0),
            group: None,
            delay: Duration::ZERO,
        };
        let sent = world
            .local
            .queue(QueueName::Records)
            .send_batch(vec![message])
            .await;
        assert!(sent.expect("an answer").iter().all(Result::is_ok));
    }
}

/// A file for each message. Then time passes until what failed is received again.
async fn record_all(world: &World) {
    for _ in 0..MESSAGES {
        world.record_some(1).await;
    }
    for _ in 0..2 {
        world.clock.advance(VISIBILITY);
        world.record_some(MESSAGES).await;
    }
}

/// The end of the hour in which all records lie, and some minutes.
fn closed() -> Timestamp {
    LogHour::containing(start()).end() + Duration::from_mins(6)
}

async fn files(world: &World) -> Vec<LogFile> {
    let page = world
        .log
        .list("date=", None, 1000)
        .await
        .expect("a listing");
    page.objects
        .into_iter()
        .filter_map(|object| LogFile::new(object.key, object.size))
        .collect()
}

/// Whether a reader finds every record once.
async fn check(world: &World, place: &str) {
    let reader = LogReader::new(&world.log, 1 << 20);
    let page = reader
        .list_records(&files(world).await, &RecordFilter::default(), 1000)
        .await
        .expect("records");
    let found: Vec<_> = page
        .records
        .into_iter()
        .map(|record| record.record_id)
        .collect();
    let expected: BTreeSet<_> = (0..RECORDS).map(|n| record(n).record_id).collect();
    assert_eq!(found.len(), expected.len(), "{place}");
    assert_eq!(
        found.into_iter().collect::<BTreeSet<_>>(),
        expected,
        "{place}"
    );
}

#[tokio::test]
async fn log_record_survives_whichever_effect_fails() {
    for faults_of in [Faults::in_log, Faults::in_state] {
        at_every_effect(async |plan, place| {
            let world = World::with(&faults_of(plan));
            send(&world).await;
            record_all(&world).await;
            world.clock.advance_to(closed());
            for _ in 0..3 {
                drop(world.try_merge().await);
                world.clock.advance(LAPSE);
            }
            check(&world, place).await;
            assert_eq!(files(&world).await.len(), 1, "{place}");
        })
        .await;
    }
}

/// Runs until the fault hangs a call, and kills the process there. Another one goes on. False if
/// nothing was left to hang.
async fn is_killed(number: u64, fault: CallFault) -> bool {
    let plan = FaultPlan::nth(number, fault.clone());
    let place = format!("{fault:?} at {number}");
    let world = World::with(&Faults::in_log(&plan));
    send(&world).await;
    let work = async {
        record_all(&world).await;
        world.clock.advance_to(closed());
        world.try_merge().await
    };
    let is_hit = async {
        while plan.faults() == 0 {
            tokio::task::yield_now().await;
        }
    };
    let is_killed = tokio::select! {
        _ = work => false,
        () = is_hit => true,
    };
    let world = World::over(world.end().await, closed() + LAPSE);
    record_all(&world).await;
    world.try_merge().await.expect("a merge");
    check(&world, &place).await;
    assert_eq!(files(&world).await.len(), 1, "{place}");
    is_killed
}

#[tokio::test]
async fn log_record_survives_wherever_the_process_is_killed() {
    for fault in [CallFault::HangBefore, CallFault::HangAfter] {
        let mut number = 0;
        while Box::pin(is_killed(number, fault.clone())).await {
            number += 1;
        }
        assert!(number > MESSAGES as u64 * 2, "only {number} effects");
    }
}
