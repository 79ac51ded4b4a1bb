//! A delivery log that cannot be written for a day: it costs records, which are counted, and
//! nothing else.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use posthaste_core::delivery_log::{LogRecord, RecordFilter, RecordKind};
use posthaste_core::model::Timestamp;
use posthaste_delivery_log::{LogFile, LogReader};
use posthaste_ports::{ErrorKind, ObjectStore};
use posthaste_simulation::{Answer, Faults, VISIBILITY, World, event};
use posthaste_testkit::faulty::{CallFault, FaultPlan};
use serde_json::{Value, json};

const DAY: Duration = Duration::from_hours(24);

/// Time between two events that are published.
const STEP: Duration = Duration::from_mins(5);

const STEPS_A_DAY: usize = 24 * 60 / 5;

/// Bytes of records that may wait: those of some twenty steps.
const RECORDS_BYTES_MAX: u64 = 30_000;

fn answer(body: &str, _: Timestamp) -> u16 {
    if body.contains("refused") { 400 } else { 200 }
}

/// A step: two events are published, of which one arrives and one is refused, and all functions
/// run.
async fn step(world: &World, name: &str) {
    let ids = ["arrives", "refused"].map(|what| event(&format!("{what}-{name}")));
    for id in ids {
        world.publish(&[id], DAY).await;
        assert_eq!(world.deliver().await.failures, []);
        world.clock.advance(Duration::from_millis(1));
    }
    drop(world.record_some(usize::MAX).await);
    assert_eq!(world.bury().await.failures, []);
    assert_eq!(world.bury_redriven().await.failures, []);
    world.clock.advance(STEP);
}

/// All records of the log.
async fn written(world: &World) -> Vec<LogRecord> {
    let mut files = Vec::new();
    let mut after = None;
    loop {
        let page = world
            .log
            .list("date=", after.as_deref(), 1000)
            .await
            .expect("a listing");
        files.extend(
            page.objects
                .into_iter()
                .filter_map(|object| LogFile::new(object.key, object.size)),
        );
        after = page.next_after;
        if after.is_none() {
            break;
        }
    }
    let reader = LogReader::new(&world.log, 1 << 20);
    let page = reader
        .list_records(&files, &RecordFilter::default(), 10_000)
        .await
        .expect("records");
    page.records
}

fn lost(metrics: &PrometheusHandle) -> usize {
    let text = metrics.render();
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("LogRecordsLostCount{"));
    let counts = lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<usize>().ok());
    counts.sum()
}

async fn dead_letters(world: &World) -> usize {
    let events = |(_, object): &(String, Bytes)| {
        serde_json::from_slice::<Vec<Value>>(object)
            .expect("a list")
            .len()
    };
    world.buried().await.iter().map(events).sum()
}

async fn an_outage_of_a_day(metrics: &PrometheusHandle) {
    let refuses = FaultPlan::at(CallFault::Before(ErrorKind::Denied), |_| true);
    let world = World::with_records_bytes_max(&Faults::in_log(&refuses), RECORDS_BYTES_MAX);
    world.subscribe(json!({})).await;
    world.endpoint.answer([Answer::By(answer)]);
    let mut stored = Vec::new();
    for number in 0..STEPS_A_DAY {
        step(&world, &number.to_string()).await;
        stored.push(world.stored_bytes());
    }
    let lost_in_outage = lost(metrics);
    assert!(lost_in_outage > STEPS_A_DAY, "{lost_in_outage}");
    // What was stored in the first two hours is about all that is ever stored.
    let early = stored[24];
    let late = stored[STEPS_A_DAY - 1];
    assert!(
        late <= early + (1 << 20),
        "{early} bytes after two hours, {late} after a day"
    );

    refuses.switch(false);
    drop(world.record_some(usize::MAX).await);
    for number in 0..12 {
        step(&world, &format!("mended-{number}")).await;
    }
    world.clock.advance(VISIBILITY);
    drop(world.record_some(usize::MAX).await);

    let bodies: Vec<_> = world
        .endpoint
        .take()
        .into_iter()
        .map(|request| request.body)
        .collect();
    assert_eq!(bodies.len(), 2 * (STEPS_A_DAY + 12));
    assert_eq!(
        bodies.iter().collect::<BTreeSet<_>>().len(),
        bodies.len(),
        "a webhook was sent twice"
    );
    let written = written(&world).await;
    let is_mended = |it: &&LogRecord| {
        it.event_id
            .as_deref()
            .is_some_and(|id| id.contains("mended"))
    };
    let mended = written
        .iter()
        .filter(is_mended)
        .filter(|it| it.kind == RecordKind::Attempt);
    assert_eq!(mended.count(), 2 * 12);
    let made = bodies.len() + dead_letters(&world).await;
    assert_eq!(
        written.len() + lost(metrics),
        made,
        "each record is in the log or counted as lost"
    );
}

#[test]
fn log_outage_of_a_day_stops_no_delivery_and_fills_no_disk() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let metrics = recorder.handle();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    metrics::with_local_recorder(&recorder, || runtime.block_on(an_outage_of_a_day(&metrics)));
}
