//! Messages that come again from SQS, and a queue that gives out no more: an event may be delivered
//! again, and may become one more dead letter. It is never lost.

#![expect(clippy::unwrap_used, reason = "a harness that fails panics")]

#[path = "../conformance/clients.rs"]
#[expect(dead_code, reason = "these tests break no rules of SQS themselves")]
mod clients;
mod manage;
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_ports::ErrorKind;
use posthaste_simulation::Answer;
use serde_json::Value;

use crate::world::{BATCH_MAX, DELIVERIES, VISIBILITY, World};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

/// Time that the endpoint takes for an answer where requests of two workers are under way together.
const ANSWER_TIME: Duration = Duration::from_secs(5);

const REFUSED: &str = "UndeliverableDueToClientError";

/// The number of times each event was sent to the endpoint since the last call.
fn sent(world: &World) -> BTreeMap<String, usize> {
    let mut times = BTreeMap::new();
    for request in world.endpoint.take() {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        *times
            .entry(body["id"].as_str().unwrap().to_owned())
            .or_default() += 1;
    }
    times
}

fn times(count: usize) -> BTreeMap<String, usize> {
    BTreeMap::from([("e".to_owned(), count)])
}

/// A world with one event in its queue.
async fn one_event(answer: Answer) -> World {
    let world = World::start().await;
    world.endpoint.answer([answer]);
    world.publish(&["e".to_owned()]).await;
    world
}

/// Nothing waits for a delivery, and these are the dead letters.
fn check_left(world: &World, dead_letters: &[&str]) {
    assert_eq!(
        (world.queued(), world.dead_letters()),
        (0, dead_letters.iter().map(|it| (*it).to_owned()).collect())
    );
}

/// Every message of the queue comes once its time is over, and the endpoint takes its events from
/// now on.
async fn come_again(world: &World) {
    world.clock.advance(VISIBILITY);
    world.deliver_all().await;
}

/// An invocation that is killed before the mapping deletes its message delivers the event again.
#[tokio::test]
async fn invocation_killed_before_the_mapping_deletes_delivers_again() {
    let world = one_event(Answer::Status(204)).await;
    let batch = world.receive().await;
    assert_eq!(world.invoke(&world.worker(), &batch).await.failures, []);
    come_again(&world).await;
    assert_eq!(sent(&world), times(2));
    check_left(&world, &[]);
}

/// An invocation that is killed before its own delete writes one dead letter more.
#[tokio::test]
async fn invocation_killed_before_its_delete_adds_a_dead_letter() {
    let world = one_event(Answer::Status(400)).await;
    let batch = world.receive().await;
    world.invoke_and_kill(&world.worker(), &batch).await;
    assert_eq!((world.queued(), world.dead_letters().len()), (1, 1));
    come_again(&world).await;
    assert_eq!(sent(&world), times(2));
    check_left(&world, &[REFUSED, REFUSED]);
}

/// A kill before the delete leaves both the retry and the message, and both arrive.
#[tokio::test]
async fn invocation_killed_before_its_delete_leaves_a_retry_as_well() {
    let world = one_event(Answer::Status(503)).await;
    let batch = world.receive().await;
    world.invoke_and_kill(&world.worker(), &batch).await;
    assert_eq!((world.queued(), sent(&world)), (2, times(1)));
    world.endpoint.answer([Answer::Status(204)]);
    come_again(&world).await;
    assert_eq!(sent(&world), times(2));
    check_left(&world, &[]);
}

/// Two workers have the same message, under two receipts, and work on it at the same time.
async fn both_deliver(world: &World) {
    let first = world.receive().await;
    world.double.show_copies(DELIVERIES);
    let second = world.receive().await;
    assert_eq!((&first[0].id, second[0].receive_count), (&second[0].id, 2));
    let one = world.worker();
    let other = world.worker();
    let answers = async {
        while world.endpoint.seen() < 2 {
            tokio::task::yield_now().await;
        }
        world.clock.advance(ANSWER_TIME);
    };
    let (first_done, second_done, ()) = tokio::join!(
        world.invoke(&one, &first),
        world.invoke(&other, &second),
        answers
    );
    assert_eq!(
        (&first_done.failures[..], &second_done.failures[..]),
        (&[][..], &[][..])
    );
    assert_eq!(world.endpoint.most_at_once(), 2);
    world.settle(&first, &first_done).await;
    world.settle(&second, &second_done).await;
}

#[tokio::test]
async fn two_workers_with_one_message_deliver_its_event_twice() {
    let world = one_event(Answer::Late(ANSWER_TIME, 204)).await;
    both_deliver(&world).await;
    assert_eq!(sent(&world), times(2));
    check_left(&world, &[]);
}

#[tokio::test]
async fn two_workers_with_one_message_write_one_dead_letter_more() {
    let world = one_event(Answer::Late(ANSWER_TIME, 400)).await;
    both_deliver(&world).await;
    assert_eq!(sent(&world), times(2));
    check_left(&world, &[REFUSED, REFUSED]);
}

#[tokio::test]
async fn two_workers_with_one_message_retry_it_and_it_arrives() {
    let world = one_event(Answer::Late(ANSWER_TIME, 503)).await;
    both_deliver(&world).await;
    assert_eq!((sent(&world), world.queued()), (times(2), 2));
    world.endpoint.answer([Answer::Status(204)]);
    come_again(&world).await;
    assert_eq!(sent(&world), times(2));
    check_left(&world, &[]);
}

#[tokio::test]
async fn message_received_after_its_deletion_is_delivered_again() {
    let world = one_event(Answer::Status(204)).await;
    world.deliver_all().await;
    check_left(&world, &[]);
    world.clock.advance(3 * HOUR);
    world.double.show_copies(DELIVERIES);
    world.deliver_all().await;
    assert_eq!(sent(&world), times(2));
    check_left(&world, &[]);
}

/// A message that comes after its deletion and time to live is one dead letter and no request.
#[tokio::test]
async fn deleted_message_received_after_expiry_is_one_dead_letter() {
    let world = one_event(Answer::Status(204)).await;
    world.deliver_all().await;
    assert_eq!(sent(&world), times(1));
    world.clock.advance(25 * HOUR);
    world.double.show_copies(DELIVERIES);
    world.deliver_all().await;
    assert_eq!(sent(&world), BTreeMap::new());
    check_left(&world, &["TimeToLiveExceeded"]);
}

/// Refuses an event's first attempt.
fn busy_in_the_first_minute(_: &str, at: Timestamp) -> u16 {
    if at < posthaste_simulation::start() + MINUTE {
        503
    } else {
        204
    }
}

/// Past the limit in flight, retries are written, and the rest waits and arrives once.
#[tokio::test]
async fn retries_are_written_past_the_in_flight_limit_and_all_arrive() {
    const EVENTS: usize = 25;
    let world = World::start().await;
    world
        .endpoint
        .answer([Answer::By(busy_in_the_first_minute)]);
    world.double.limit_in_flight(DELIVERIES, BATCH_MAX);
    let ids: Vec<_> = (0..EVENTS).map(|id| format!("{id:02}")).collect();
    world.publish(&ids[..EVENTS - 1]).await;
    let worker = world.worker();
    let batch = world.receive().await;
    let refused = world.try_receive().await.unwrap_err();
    assert_eq!(
        (batch.len(), refused.kind),
        (BATCH_MAX, ErrorKind::Throttled { retry_after: None })
    );
    // A full queue takes what is sent to it, from publish and from deliver.
    world.publish(&ids[EVENTS - 1..]).await;
    let response = world.invoke(&worker, &batch).await;
    assert_eq!(
        (response.failures.len(), world.queued(), sent(&world).len()),
        (0, EVENTS, BATCH_MAX)
    );
    world.settle(&batch, &response).await;
    world.clock.advance(MINUTE);
    for _ in 0..10 {
        world.deliver_all().await;
        world.clock.advance(2 * MINUTE);
    }
    let sent = sent(&world);
    assert!(
        sent.len() == EVENTS && sent.values().all(|times| *times == 1),
        "{sent:?}"
    );
    check_left(&world, &[]);
}
