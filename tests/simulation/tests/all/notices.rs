//! Failure notices: every event that is dead-lettered or dropped has one, and no notice has one.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::Timestamp;
use posthaste_ports::{ErrorKind, ObjectStore, PutCondition, QueueName};
use posthaste_simulation::{Answer, Faults, World, event};
use posthaste_testkit::faulty::{CallFault, FaultPlan, PortEffect, at_every_effect};
use posthaste_testkit::recorded::PortOperation;
use serde_json::{Value, json};

const DAY: Duration = Duration::from_hours(24);

fn is_notice(body: &str) -> bool {
    body.contains("dev.posthaste.")
}

/// Refuses events, and takes notices.
fn refuse(body: &str, _: Timestamp) -> u16 {
    if is_notice(body) { 204 } else { 400 }
}

/// Answers events with 410 and takes notices.
fn gone(body: &str, _: Timestamp) -> u16 {
    if is_notice(body) { 204 } else { 410 }
}

/// A world in which `billing`, of these settings, refuses its events, and `pager` gets the notices.
async fn refusing(faults: &Faults, billing: Value) -> World {
    let world = World::with(faults);
    world.subscribe(billing).await;
    world.tell_ops(json!({})).await;
    world.endpoint.answer([Answer::By(refuse)]);
    world
}

/// Lets a quarter of an hour pass, in which everything has its turn.
async fn pass(world: &World) {
    for _ in 0..15 {
        world.deliver_all().await;
        world.bury().await;
        world.clock.advance(Duration::from_mins(1));
    }
}

/// The notices that arrived since the last time.
fn told(world: &World) -> Vec<Value> {
    let requests = world.endpoint.take();
    let notices = requests
        .iter()
        .filter(|request| request.url.contains("pager"));
    notices
        .map(|request| serde_json::from_str(&request.body).expect("a notice"))
        .collect()
}

#[tokio::test]
async fn a_dead_letter_is_told_of_once_its_object_is_there() {
    let world = refusing(&Faults::none(), json!({})).await;
    world.publish(&[event("a"), event("b")], DAY).await;
    world.deliver_all().await;
    assert_eq!(told(&world), [Value::Null; 0]);
    pass(&world).await;
    let objects = world.buried().await;
    let [one, other] = &*told(&world) else {
        panic!("expected two notices")
    };
    for (notice, id) in [(one, "a"), (other, "b")] {
        let data = &notice["data"];
        assert_eq!(notice["type"], "dev.posthaste.delivery.failed");
        assert_eq!(
            (&data["id"], &data["event"]["id"]),
            (&json!(id), &json!(id))
        );
        assert_eq!(data["deadLetterReason"], "UndeliverableDueToClientError");
        assert_eq!(
            (&data["lastHttpStatusCode"], &data["deliveryAttempts"]),
            (&json!(400), &json!(1))
        );
        assert_eq!(data["deadLetterObject"], objects[0].0);
    }
    assert_eq!(objects.len(), 1);
    assert_eq!(
        world.visible(QueueName::DeadLetters).await + world.delayed(QueueName::DeadLetters).await,
        0
    );
}

#[tokio::test]
async fn undeliverable_notice_is_a_dead_letter_and_nothing_more() {
    for is_told_of_itself in [false, true] {
        let world = World::new();
        world.subscribe(json!({})).await;
        world.tell_ops(json!({})).await;
        if is_told_of_itself {
            let mut record = world.record().await;
            record.settings.notices_topic = Some(record.name.clone());
            world.write_record(record.render()).await;
        }
        world.endpoint.answer([Answer::Status(400)]);
        world.publish(&[event("a")], DAY).await;
        for _ in 0..4 {
            pass(&world).await;
        }
        assert_eq!(world.endpoint.take().len(), 2, "the event and its notice");
        let buried = world.buried().await;
        let place = if is_told_of_itself {
            "ORDERS/BILLING/"
        } else {
            "OPS/PAGER/"
        };
        let is_of_notice = |object: &Bytes| is_notice(&String::from_utf8_lossy(object));
        let of_notices: Vec<_> = buried
            .iter()
            .filter(|(_, object)| is_of_notice(object))
            .collect();
        assert_eq!((buried.len(), of_notices.len()), (2, 1));
        assert!(of_notices[0].0.starts_with(place), "{}", of_notices[0].0);
    }
}

/// A dropped event is announced at once, with all that is known of it.
#[tokio::test]
async fn dropped_event_is_announced_at_once_with_its_data() {
    let world = refusing(
        &Faults::none(),
        json!({ "deadLetter": { "enabled": false } }),
    )
    .await;
    let text = Bytes::from(event("stored"));
    world
        .local
        .state_store()
        .put("payloads/x", text, PutCondition::Always)
        .await
        .unwrap();
    world.publish(&[event("a")], DAY).await;
    world.publish_stored("payloads/x", &event("stored")).await;
    world
        .publish_stored("payloads/missing", &event("lost"))
        .await;
    world.deliver_all().await;
    let mut notices = told(&world);
    notices.sort_by_key(|notice| notice["data"]["id"].to_string());
    let ids: Vec<_> = notices.iter().map(|notice| &notice["data"]["id"]).collect();
    assert_eq!(ids, [&json!("a"), &json!("stored"), &Value::Null]);
    let reasons: Vec<_> = notices
        .iter()
        .map(|notice| &notice["data"]["deadLetterReason"])
        .collect();
    assert_eq!(
        reasons,
        [
            "UndeliverableDueToClientError",
            "UndeliverableDueToClientError",
            "MalformedMessage"
        ]
    );
    assert!(
        notices
            .iter()
            .all(|notice| notice["data"].get("deadLetterObject").is_none())
    );
    assert_eq!(world.buried().await, []);
}

/// An event that the bucket refused for too long is announced when it is dropped.
#[tokio::test]
async fn event_refused_by_the_bucket_is_announced_when_dropped() {
    let is_put = |effect: &PortEffect<'_>| effect.operation == PortOperation::Put;
    let bucket = FaultPlan::by(move |effect| {
        is_put(&effect).then_some(CallFault::Before(ErrorKind::Denied))
    });
    let faults = Faults::in_bucket(&bucket);
    let world = refusing(&faults, json!({ "deadLetter": { "giveUpAfter": "PT1H" } })).await;
    world.publish(&[event("a")], DAY).await;
    for _ in 0..3 {
        pass(&world).await;
        assert_eq!(told(&world), [Value::Null; 0]);
    }
    for _ in 0..4 {
        pass(&world).await;
    }
    let notices = told(&world);
    assert_eq!(
        (notices.len(), notices[0]["data"].get("deadLetterObject")),
        (1, None)
    );
}

#[tokio::test]
async fn a_subscription_whose_endpoint_is_gone_is_told_of() {
    let world = refusing(&Faults::none(), json!({})).await;
    world.endpoint.answer([Answer::By(gone)]);
    world.publish(&[event("a")], DAY).await;
    world.deliver_all().await;
    let notices = told(&world);
    let disabled: Vec<_> = notices
        .iter()
        .map(|n| (&n["type"], &n["data"]["subscription"]))
        .collect();
    assert_eq!(
        disabled,
        [(
            &json!("dev.posthaste.subscription.disabled"),
            &json!("billing")
        )]
    );
    pass(&world).await;
    assert_eq!(told(&world)[0]["data"]["deadLetterReason"], "EndpointGone");
}

#[tokio::test]
async fn notices_that_cannot_be_sent_yet_leave_one_object() {
    // From the object on, whatever goes into the delivery queue is refused, ten times.
    let is_notice = |effect: &PortEffect<'_>| {
        effect.port == "deliveries" && effect.operation == PortOperation::SendBatch
    };
    let left = std::sync::atomic::AtomicU32::new(10);
    let queues = FaultPlan::by(move |effect| {
        let fails =
            is_notice(&effect) && left.fetch_sub(1, std::sync::atomic::Ordering::SeqCst) > 0;
        fails.then_some(CallFault::Before(ErrorKind::Other))
    });
    let world = refusing(&Faults::in_queues(&queues), json!({})).await;
    world.publish(&[event("a")], DAY).await;
    pass(&world).await;
    assert_eq!((told(&world).len(), world.buried().await.len()), (0, 1));
    // Ten tries, the waits of which double up to a quarter of an hour.
    for _ in 0..8 {
        pass(&world).await;
    }
    assert_eq!(queues.faults(), 10);
    assert_eq!((told(&world).len(), world.buried().await.len()), (1, 1));
}

/// Refuses the event `a` alone.
fn refuse_one(body: &str, _: Timestamp) -> u16 {
    if body.contains(r#""id":"a""#) && !is_notice(body) {
        400
    } else {
        204
    }
}

/// Dropped events whose notices fail do not bring their neighbours back.
#[tokio::test]
async fn failed_notices_of_dropped_events_do_not_return_neighbours() {
    let left = std::sync::atomic::AtomicU32::new(3);
    let queues = FaultPlan::by(move |effect| {
        let is_notice = effect.port == "deliveries" && effect.operation == PortOperation::SendBatch;
        let fails = is_notice && left.fetch_sub(1, std::sync::atomic::Ordering::SeqCst) > 0;
        fails.then_some(CallFault::Before(ErrorKind::Other))
    });
    let faults = Faults::in_queues(&queues);
    let world = refusing(&faults, json!({ "deadLetter": { "enabled": false } })).await;
    world.endpoint.answer([Answer::By(refuse_one)]);
    world.publish(&[event("a"), event("b")], DAY).await;
    assert_eq!(world.deliver().await.failures, []);
    assert_eq!(queues.faults(), 1);
    let events = world.endpoint.take();
    assert_eq!(events.len(), 2);
    pass(&world).await;
    pass(&world).await;
    let notices = told(&world);
    assert_eq!((notices.len(), &notices[0]["data"]["id"]), (1, &json!("a")));
    assert_eq!(notices[0]["data"].get("deadLetterObject"), None);
    assert_eq!(world.buried().await, []);
}

/// A crash between the object and the notice makes a second object and a notice.
#[tokio::test]
async fn crash_between_object_and_notice_repeats_the_object() {
    // Nothing reaches a queue after the object was written, once.
    let queues = FaultPlan::by(move |effect| {
        let is_first = |at: u64| effect.number < at;
        let is_after = effect.operation == PortOperation::SendBatch
            || (effect.port == "deadletters" && effect.operation == PortOperation::Replace);
        (is_after && is_first(CRASHED_EFFECTS)).then_some(CallFault::Before(ErrorKind::Other))
    });
    let world = refusing(&Faults::in_queues(&queues), json!({})).await;
    world.publish(&[event("a")], DAY).await;
    pass(&world).await;
    pass(&world).await;
    let notices = told(&world);
    let objects: Vec<_> = world
        .buried()
        .await
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    assert_eq!((notices.len(), objects.len()), (1, 2));
    assert!(
        objects.contains(
            &notices[0]["data"]["deadLetterObject"]
                .as_str()
                .unwrap()
                .to_owned()
        )
    );
}

/// The effects on queues up to and with the failed replacement of the dead letter: deliver's
/// replacement, the records, the notice, the replacement.
const CRASHED_EFFECTS: u64 = 4;

/// True if a refused event has a notice, in the hour and a half after something failed.
async fn is_told(faults: &Faults, billing: Value) -> bool {
    let world = refusing(faults, billing).await;
    world.publish(&[event("a")], DAY).await;
    for _ in 0..6 {
        pass(&world).await;
    }
    let notices = told(&world);
    notices.iter().any(|notice| notice["data"]["id"] == "a")
}

/// Every event that is given up is announced, whichever effect fails.
#[tokio::test]
async fn given_up_event_is_always_announced_whichever_effect_fails() {
    for billing in [json!({}), json!({ "deadLetter": { "enabled": false } })] {
        for (part, faults_of) in Faults::PARTS {
            at_every_effect(async |plan, place| {
                assert!(
                    is_told(&faults_of(plan), billing.clone()).await,
                    "{part}: {place}"
                );
            })
            .await;
        }
    }
}
