//! Records of dead letters: where each lies, that each is found, and that no fault on the way loses
//! a dead letter.

use std::time::Duration;

use posthaste_core::delivery_log::{
    DeliveryState, LogRecord, LogResult, RecordKind, gather_by_delivery,
};
use posthaste_core::model::DeliveryLogMode;
use posthaste_ports::{ErrorKind, QueueName};
use posthaste_services::delivery_log::RECORDS_TIME;
use posthaste_simulation::{Answer, Faults, VISIBILITY, World, event};
use posthaste_testkit::faulty::{CallFault, FaultPlan, at_every_effect};
use posthaste_testkit::recorded::PortOperation;
use serde_json::json;

const DAY: Duration = Duration::from_hours(24);

/// Time for which a dead letter waits by default.
const DELAY: Duration = Duration::from_mins(5);

/// Receives after which a message goes to the redrive queue, and more.
const RECEIVES: u32 = 60;

async fn refuse(world: &World, ids: &[&str]) {
    world.endpoint.answer([Answer::Status(400)]);
    for id in ids {
        world.publish(&[event(id)], DAY).await;
    }
    world.deliver_all().await;
    world.clock.advance(DELAY);
}

fn of_kind(records: Vec<LogRecord>, kind: RecordKind) -> Vec<LogRecord> {
    records
        .into_iter()
        .filter(|record| record.kind == kind)
        .collect()
}

#[tokio::test]
async fn a_dead_letter_is_recorded_with_its_object() {
    let world = World::new();
    world.subscribe(json!({})).await;
    refuse(&world, &["a"]).await;
    assert_eq!(world.bury().await.failures, []);
    let object = world.buried().await.remove(0).0;
    let records = world.log_records().await;
    let history = gather_by_delivery(records.clone()).remove(0);
    assert_eq!(history.state, DeliveryState::DeadLettered);
    assert_eq!(history.dead_letter_object.as_ref(), Some(&object));
    assert_eq!(
        (history.attempts().count(), history.payload.is_some()),
        (1, true)
    );
    let letters = of_kind(records, RecordKind::DeadLettered);
    let shown = |it: &LogRecord| {
        (
            it.event_id.clone(),
            it.attempt,
            it.reason.clone(),
            it.payload.is_some(),
        )
    };
    let reason = Some("UndeliverableDueToClientError".to_owned());
    let expected = (Some("a".to_owned()), 1, reason, false);
    assert_eq!(letters.iter().map(shown).collect::<Vec<_>>(), [expected]);
}

#[tokio::test]
async fn event_on_which_deliver_failed_is_recorded_with_its_payload() {
    let world = World::new();
    world.subscribe(json!({})).await;
    world.publish(&[event("a")], DAY).await;
    for _ in 0..RECEIVES {
        world.receive(QueueName::Deliveries).await;
        world.clock.advance(VISIBILITY);
    }
    assert_eq!(world.bury_redriven().await.failures, []);
    let record = world.log_records().await.remove(0);
    assert_eq!(
        (record.kind, record.result),
        (RecordKind::DeadLettered, LogResult::DeadLettered)
    );
    assert_eq!(
        (record.reason.as_deref(), record.attempt),
        (Some("HandlerFailed"), 0)
    );
    assert_eq!(
        record.dead_letter_object,
        Some(world.buried().await.remove(0).0)
    );
    assert!(
        record
            .payload
            .is_some_and(|payload| payload.as_str().contains(r#""id":"a""#))
    );
}

#[tokio::test]
async fn a_letter_that_is_given_up_is_recorded_as_dropped() {
    let refuses = FaultPlan::at(CallFault::Before(ErrorKind::Denied), |effect| {
        effect.operation == PortOperation::Put
    });
    let world = World::with(&Faults::in_bucket(&refuses));
    world
        .subscribe(json!({ "deadLetter": { "giveUpAfter": "PT5M" } }))
        .await;
    refuse(&world, &["a"]).await;
    for _ in 0..3 {
        world.bury().await;
        world.clock.advance(Duration::from_mins(15));
    }
    let records = world.log_records().await;
    let history = gather_by_delivery(records.clone()).remove(0);
    assert_eq!(
        (history.state, history.dead_letter_object.as_ref()),
        (DeliveryState::Dropped, None)
    );
    let reasons: Vec<_> = of_kind(records, RecordKind::Dropped)
        .into_iter()
        .map(|record| record.reason)
        .collect();
    assert_eq!(reasons, [Some("DeadLetterStorageUnavailable".to_owned())]);
}

#[tokio::test]
async fn a_topic_without_a_log_has_no_record_of_its_dead_letters() {
    let world = World::new();
    world.subscribe(json!({})).await;
    let mut record = world.record().await;
    record.settings.delivery_log = Some(DeliveryLogMode::Off);
    world.write_record(record.render()).await;
    refuse(&world, &["a"]).await;
    world.bury().await;
    assert_eq!(
        (world.buried().await.len(), world.log_records().await.len()),
        (1, 0)
    );
}

#[tokio::test]
async fn queue_that_refuses_records_never_repeats_a_dead_letter() {
    let refuses = FaultPlan::at(CallFault::Before(ErrorKind::Other), |effect| {
        effect.port == "records"
    });
    let world = World::with(&Faults::in_queues(&refuses));
    world.subscribe(json!({})).await;
    refuse(&world, &["a", "b"]).await;
    assert_eq!(world.bury().await.failures, []);
    world.clock.advance(DAY);
    assert_eq!(
        (
            world.visible(QueueName::DeadLetters).await,
            world.buried().await.len()
        ),
        (0, 1)
    );
    assert_eq!(
        of_kind(world.log_records().await, RecordKind::DeadLettered),
        []
    );
}

#[tokio::test]
async fn a_queue_of_records_that_hangs_costs_an_object_two_seconds() {
    let hangs = FaultPlan::at(CallFault::HangBefore, |effect| effect.port == "records");
    let world = World::with(&Faults::in_queues(&hangs));
    world.subscribe(json!({})).await;
    refuse(&world, &["a", "b", "c"]).await;
    let time = async {
        while hangs.faults() == 0 {
            tokio::task::yield_now().await;
        }
        world.clock.advance(RECORDS_TIME);
    };
    let (response, ()) = tokio::join!(world.bury(), time);
    assert_eq!(
        (
            response.failures,
            hangs.faults(),
            world.buried().await.len()
        ),
        (Vec::new(), 1, 1)
    );
    assert_eq!(world.visible(QueueName::DeadLetters).await, 0);
}

/// A dead letter survives every fault, and each that is recorded is there.
#[tokio::test]
async fn dead_letter_survives_every_fault_and_its_record_is_true() {
    at_every_effect(async |plan, place| {
        let world = World::with(&Faults::in_queues(plan));
        world.subscribe(json!({})).await;
        refuse(&world, &["a"]).await;
        for _ in 0..3 {
            world.bury().await;
            world.clock.advance(VISIBILITY);
        }
        let objects: Vec<_> = world
            .buried()
            .await
            .into_iter()
            .map(|(key, _)| key)
            .collect();
        assert!(!objects.is_empty(), "{place}");
        for record in of_kind(world.log_records().await, RecordKind::DeadLettered) {
            assert!(
                objects.contains(&record.dead_letter_object.expect("an object")),
                "{place}"
            );
        }
    })
    .await;
}
