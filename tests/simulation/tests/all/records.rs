//! Records of the delivery log: what deliver sends, and that no fault of their queue sends a
//! webhook twice.

use std::collections::BTreeSet;
use std::time::Duration;

use posthaste_core::delivery_log::{AttemptOrigin, LogRecord, LogResult, RecordKind};
use posthaste_core::model::Timestamp;
use posthaste_deliver::{DeliverSettings, RecordsSettings};
use posthaste_ports::ErrorKind;
use posthaste_simulation::{Answer, Faults, World, event};
use posthaste_testkit::PortOperation;
use posthaste_testkit::faulty::{CallFault, FaultPlan};
use serde_json::json;

const DAY: Duration = Duration::from_hours(24);

#[tokio::test]
async fn every_attempt_of_an_event_is_recorded_and_its_payload_once() {
    let world = World::new();
    world.subscribe(json!({})).await;
    world
        .endpoint
        .answer([Answer::Status(503), Answer::Status(200)]);
    world.publish(&[event("e1")], DAY).await;
    world.deliver().await;
    world.clock.advance(Duration::from_secs(34));
    world.deliver().await;
    let records = world.log_records().await;
    let shown = |it: &LogRecord| {
        (
            it.attempt,
            it.origin,
            it.result,
            it.status,
            it.payload.is_some(),
        )
    };
    let expected = [
        (1, AttemptOrigin::First, LogResult::Retry, Some(503), true),
        (
            2,
            AttemptOrigin::Retry,
            LogResult::Delivered,
            Some(200),
            false,
        ),
    ];
    assert_eq!(records.iter().map(shown).collect::<Vec<_>>(), expected);
    assert_eq!(records[0].webhook_id, records[1].webhook_id);
    assert_eq!(records[0].delivery_key, records[1].delivery_key);
    assert_ne!(records[0].record_id, records[1].record_id);
}

#[tokio::test]
async fn a_topic_without_a_log_makes_no_record() {
    let world = World::new();
    world.subscribe(json!({})).await;
    let mut record = world.record().await;
    record.settings.delivery_log = Some(posthaste_core::model::DeliveryLogMode::Off);
    world.write_record(record.render()).await;
    world.publish(&[event("e1")], DAY).await;
    world.deliver().await;
    assert_eq!(
        (world.endpoint.take().len(), world.log_records().await.len()),
        (1, 0)
    );
}

fn answer(body: &str, _: Timestamp) -> u16 {
    if body.contains("refused") { 400 } else { 200 }
}

/// Publishes events for an hour, of which one arrives and one is refused. Answers the bodies of all
/// requests.
async fn an_hour(world: &World) -> Vec<String> {
    world.subscribe(json!({})).await;
    world.endpoint.answer([Answer::By(answer)]);
    for minute in 0..60 {
        let ids = ["arrives", "refused"].map(|what| event(&format!("{what}-{minute}")));
        world.publish(&ids, DAY).await;
        assert_eq!(world.deliver().await.failures, []);
        world.clock.advance(Duration::from_mins(1));
    }
    world
        .endpoint
        .take()
        .into_iter()
        .map(|request| request.body)
        .collect()
}

/// A queue that refuses records for an hour costs the log, and nobody else.
async fn check(plan: &FaultPlan, settings: RecordsSettings) {
    let settings = DeliverSettings {
        records: settings,
        ..DeliverSettings::default()
    };
    let world = World::bounded(&Faults::in_queues(plan), settings);
    let bodies = an_hour(&world).await;
    assert_eq!(bodies.iter().collect::<BTreeSet<_>>().len(), 120);
    assert_eq!(bodies.len(), 120, "a webhook was sent twice");
    assert!(plan.faults() >= 60, "{}", plan.faults());
    plan.switch(false);
    world.publish(&[event("after")], DAY).await;
    world.deliver().await;
    let after = world.log_records().await;
    assert!(
        after
            .iter()
            .any(|it| it.event_id.as_deref() == Some("after") && it.kind == RecordKind::Attempt)
    );
}

#[tokio::test]
async fn queue_that_refuses_records_for_an_hour_repeats_no_webhook() {
    let refuses = FaultPlan::at(CallFault::Before(ErrorKind::Other), |effect| {
        effect.port == "records"
    });
    check(&refuses, RecordsSettings::AWS).await;
}

/// A transaction that refuses records for an hour sends no webhook twice.
#[tokio::test]
async fn transaction_without_records_for_an_hour_repeats_no_webhook() {
    // Each invocation has one message: its first transaction has the records, and its second has
    // none.
    let is_odd = std::sync::atomic::AtomicBool::new(false);
    let refuses = FaultPlan::at(CallFault::Before(ErrorKind::Other), move |effect| {
        effect.operation == PortOperation::Replace
            && !is_odd.fetch_xor(true, std::sync::atomic::Ordering::SeqCst)
    });
    check(&refuses, RecordsSettings::EMBEDDED).await;
}
