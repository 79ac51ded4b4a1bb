//! Partial acknowledgement: which events of a batch are tried again, and as what.

use std::time::Duration;

use posthaste_core::model::{DeadLetterReason, OutcomeName};
use posthaste_core::stored::dead_letter_message::parse_dead_letter;
use posthaste_ports::QueueName;
use posthaste_simulation::{Answer, World, event};
use serde_json::{Value, json};

const DAY: Duration = Duration::from_hours(24);

/// Longer than the first wait with its jitter.
const WAIT: Duration = Duration::from_secs(14);

async fn world(batching: Value, retry: Value) -> World {
    let world = World::new();
    world
        .subscribe(json!({ "batching": batching, "retryPolicy": retry }))
        .await;
    world
}

async fn partial_world() -> World {
    world(
        json!({ "maxEventsPerBatch": 10, "partialAcknowledgement": true }),
        json!({}),
    )
    .await
}

fn report(ids: &[&str]) -> Answer {
    let items: Vec<_> = ids
        .iter()
        .map(|id| json!({ "itemIdentifier": id }))
        .collect();
    Answer::Body(json!({ "batchItemFailures": items }).to_string())
}

/// The ids of the events in each request since the last time, and the delivery count.
fn requests(world: &World) -> Vec<(Vec<String>, String)> {
    let ids = |body: &str| {
        let events: Vec<Value> = serde_json::from_str(body).unwrap();
        events
            .iter()
            .map(|event| event["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let count =
        |headers: &http::HeaderMap| headers["aeg-delivery-count"].to_str().unwrap().to_owned();
    world
        .endpoint
        .take()
        .iter()
        .map(|request| (ids(&request.body), count(&request.headers)))
        .collect()
}

fn request(ids: &[&str], count: &str) -> (Vec<String>, String) {
    (
        ids.iter().map(|id| (*id).to_owned()).collect(),
        count.to_owned(),
    )
}

async fn is_done(world: &World) -> bool {
    let queues = [QueueName::Deliveries, QueueName::DeadLetters];
    let mut waiting = 0;
    for queue in queues {
        waiting += world.visible(queue).await + world.delayed(queue).await;
    }
    waiting == 0
}

#[tokio::test]
async fn only_the_events_that_are_named_are_tried_again() {
    let world = partial_world().await;
    world
        .endpoint
        .answer([report(&["e1", "e3"]), report(&["e3"]), report(&[])]);
    let events: Vec<_> = (0..4).map(|n| event(&format!("e{n}"))).collect();
    world.publish(&events, DAY).await;
    world.deliver().await;
    world.clock.advance(WAIT);
    world.deliver().await;
    world.clock.advance(Duration::from_secs(40));
    world.deliver().await;
    assert_eq!(
        requests(&world),
        [
            request(&["e0", "e1", "e2", "e3"], "0"),
            request(&["e1", "e3"], "1"),
            request(&["e3"], "2")
        ]
    );
    assert!(is_done(&world).await);
}

#[tokio::test]
async fn events_that_share_an_id_are_both_tried_again() {
    let world = partial_world().await;
    world
        .endpoint
        .answer([report(&["same"]), Answer::Status(204)]);
    world
        .publish(&[event("same"), event("other"), event("same")], DAY)
        .await;
    world.deliver().await;
    world.clock.advance(WAIT);
    world.deliver().await;
    let [first, second] = requests(&world).try_into().unwrap();
    assert_eq!(
        (first.0.len(), second),
        (3, request(&["same", "same"], "1"))
    );
    assert!(is_done(&world).await);
}

#[tokio::test]
async fn a_report_that_cannot_be_understood_loses_nothing() {
    let cut_off = Answer::BodyCutOff(r#"{"batchItemFailures":["#.to_owned());
    let broken = Answer::Body(r#"{"batchItemFailures":[{"id":"e0"}]}"#.to_owned());
    for answer in [
        cut_off,
        broken,
        report(&["e0", "unknown"]),
        report(&[""]),
        Answer::BodyCutOff(String::new()),
    ] {
        let world = partial_world().await;
        world.endpoint.answer([answer.clone(), Answer::Status(200)]);
        world.publish(&[event("e0"), event("e1")], DAY).await;
        world.deliver().await;
        world.clock.advance(WAIT);
        world.deliver().await;
        assert_eq!(
            requests(&world),
            [request(&["e0", "e1"], "0"), request(&["e0", "e1"], "1")],
            "{answer:?}"
        );
        assert!(is_done(&world).await);
    }
}

#[tokio::test]
async fn an_ordinary_success_acknowledges_the_whole_batch() {
    for body in ["OK", "", r#"{"status":"ok"}"#] {
        let world = partial_world().await;
        world.endpoint.answer([Answer::Body(body.to_owned())]);
        world.publish(&[event("e0"), event("e1")], DAY).await;
        world.deliver().await;
        assert!(is_done(&world).await, "{body}");
    }
}

#[tokio::test]
async fn a_compressed_answer_is_not_taken_for_a_success() {
    let world = partial_world().await;
    world
        .endpoint
        .answer([Answer::Coded("gzip", b"\x1f\x8b\x08\0\0"), report(&[])]);
    world.publish(&[event("e0"), event("e1")], DAY).await;
    world.deliver().await;
    world.clock.advance(WAIT);
    world.deliver().await;
    assert_eq!(
        requests(&world),
        [request(&["e0", "e1"], "0"), request(&["e0", "e1"], "1")]
    );
    assert!(is_done(&world).await);
}

/// A subscription that does not allow reports takes any success as one of the whole batch.
#[tokio::test]
async fn success_is_whole_without_partial_acknowledgement() {
    let world = world(json!({ "maxEventsPerBatch": 10 }), json!({})).await;
    world.endpoint.answer([report(&["e0"])]);
    world.publish(&[event("e0"), event("e1")], DAY).await;
    world.deliver().await;
    assert!(is_done(&world).await);
}

/// An event that is never acknowledged is dead-lettered with the status that it got.
#[tokio::test]
async fn unacknowledged_event_is_dead_lettered_with_its_status() {
    let batching = json!({ "maxEventsPerBatch": 10, "partialAcknowledgement": true });
    let world = world(batching, json!({ "maxDeliveryAttempts": 1 })).await;
    world.endpoint.answer([report(&["e1"])]);
    world.publish(&[event("e0"), event("e1")], DAY).await;
    world.deliver().await;
    world.clock.advance(Duration::from_mins(5));
    let [message] = world
        .receive(QueueName::DeadLetters)
        .await
        .try_into()
        .unwrap();
    let letter = parse_dead_letter(&message.body).unwrap();
    assert_eq!(
        (letter.reason, letter.delivery.events.len()),
        (DeadLetterReason::MaxDeliveryAttemptsExceeded, 1)
    );
    let last = letter.delivery.last.unwrap();
    assert_eq!(
        (last.outcome, last.status),
        (OutcomeName::GenericError, Some(200))
    );
}
