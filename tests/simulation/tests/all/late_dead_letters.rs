//! A late success on the last attempt: the event counts as delivered, also where its dead letter is
//! on its way.

use std::future::Future;
use std::time::Duration;

use posthaste_core::stored::dead_letter_message::parse_dead_letter;
use posthaste_core::stored::delivery::{parse_delivery, render_delivery};
use posthaste_core::stored::layout;
use posthaste_ports::{ErrorKind, ObjectStore, QueueName};
use posthaste_simulation::{Answer, Faults, World, event};
use posthaste_testkit::faulty::{CallFault, FaultPlan, PortEffect};
use posthaste_testkit::recorded::{PortOperation, RecordedCalls};
use serde_json::{Value, json};

const DAY: Duration = Duration::from_hours(24);
const TURNS_MAX: usize = 100_000;

/// The time of an invocation: longer than that of its request, which is 30 s.
const INVOCATION: Duration = Duration::from_mins(2);

/// The time at which the request times out.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The time at which its endpoint says yes.
const ANSWERED: Duration = Duration::from_secs(45);

/// Time for which a dead letter waits by default.
const DELAY: Duration = Duration::from_mins(5);

/// A world in which one attempt is the last one, and `pager` receives failure notices.
async fn world(faults: &Faults, settings: Value) -> World {
    let world = World::with(faults);
    let mut billing = json!({ "retryPolicy": { "maxDeliveryAttempts": 1 } });
    billing
        .as_object_mut()
        .expect("an object")
        .extend(settings.as_object().expect("an object").clone());
    world.subscribe(billing).await;
    world.tell_ops(json!({})).await;
    world
        .endpoint
        .answer_at("billing", Answer::Late(ANSWERED, 204));
    world
}

/// Runs a script beside what listens for late answers.
async fn while_listening(world: &World, script: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = script => {}
        () = world.hear_late_answers() => panic!("it listened no more"),
    }
}

/// One invocation, in which the clock moves to the timeout once so many requests are with the
/// endpoint.
async fn time_out(world: &World, requests: usize) {
    let time = async {
        while world.endpoint.seen() < requests {
            tokio::task::yield_now().await;
        }
        world.clock.advance(TIMEOUT);
    };
    let (response, ()) = tokio::join!(world.deliver_within(INVOCATION), time);
    assert_eq!(response.failures, []);
}

/// Lets the late answer come, until so many events are noted.
async fn answer_late(world: &World, notes: usize) {
    world.clock.advance(ANSWERED.saturating_sub(TIMEOUT));
    for _ in 0..TURNS_MAX {
        if world.late_notes().await.len() == notes {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("there are {:?}", world.late_notes().await);
}

/// The ids of the events in all dead letters.
async fn buried(world: &World) -> Vec<String> {
    let objects = world.buried().await;
    let letters = objects.iter().flat_map(|(_, bytes)| {
        let array: Vec<Value> = serde_json::from_slice(bytes).expect("an array of dead letters");
        array
    });
    letters
        .map(|letter| letter["id"].as_str().expect("an id").to_owned())
        .collect()
}

/// The number of failure notices that wait to be delivered.
async fn notices(world: &World) -> u64 {
    world.visible(QueueName::Deliveries).await + world.delayed(QueueName::Deliveries).await
}

async fn dead_letters_waiting(world: &World) -> u64 {
    world.visible(QueueName::DeadLetters).await + world.delayed(QueueName::DeadLetters).await
}

/// The number of times that notes of late answers were read and listed since the last call.
fn looked_up(calls: &RecordedCalls) -> [usize; 2] {
    let calls = calls.take();
    let count = |operation| {
        calls
            .iter()
            .filter(|it| it.operation == operation && it.key.starts_with(layout::LATE))
            .count()
    };
    [count(PortOperation::Get), count(PortOperation::List)]
}

/// A late success on the last attempt makes no dead letter and no notice.
#[tokio::test]
async fn late_success_of_the_last_attempt_prevents_a_dead_letter() {
    let world = world(&Faults::none(), json!({})).await;
    while_listening(&world, async {
        world.publish(&[event("e")], DAY).await;
        time_out(&world, 1).await;
        assert_eq!(world.delayed(QueueName::DeadLetters).await, 1);
        answer_late(&world, 1).await;
    })
    .await;
    world.clock.advance(DELAY);
    world.calls.take();
    assert_eq!(world.bury().await.failures, []);
    assert_eq!(looked_up(&world.calls), [1, 0], "one read for one event");
    assert_eq!((buried(&world).await, notices(&world).await), (vec![], 0));
    world.clock.advance(DAY);
    assert_eq!(dead_letters_waiting(&world).await, 0);
    assert_eq!(world.visible(QueueName::Redrive).await, 0);
}

#[tokio::test]
async fn a_dead_letter_written_before_the_late_answer_stands() {
    let world = world(
        &Faults::none(),
        json!({ "deadLetter": { "delay": "PT0S" } }),
    )
    .await;
    while_listening(&world, async {
        world.publish(&[event("e")], DAY).await;
        time_out(&world, 1).await;
        assert_eq!(world.bury().await.failures, []);
        answer_late(&world, 1).await;
    })
    .await;
    world.clock.advance(DELAY);
    world.bury().await;
    assert_eq!(
        (buried(&world).await, notices(&world).await),
        (vec!["e".to_owned()], 1)
    );
}

#[tokio::test]
async fn letters_answered_late_are_left_out_of_many() {
    let world = world(&Faults::none(), json!({})).await;
    while_listening(&world, async {
        world.publish(&[event("a")], DAY).await;
        world.clock.advance(Duration::from_millis(1));
        world.publish(&[event("b")], DAY).await;
        time_out(&world, 2).await;
        answer_late(&world, 2).await;
        world.endpoint.answer_at("billing", Answer::Status(400));
        world.publish(&[event("c")], DAY).await;
        world.deliver().await;
    })
    .await;
    world.clock.advance(DELAY);
    world.calls.take();
    assert_eq!(world.bury().await.failures, []);
    assert_eq!(
        looked_up(&world.calls),
        [0, 1],
        "one list for several events"
    );
    assert_eq!(
        (buried(&world).await, notices(&world).await),
        (vec!["c".to_owned()], 1)
    );
    assert_eq!(dead_letters_waiting(&world).await, 0);
}

#[tokio::test]
async fn events_that_arrived_late_are_left_out_of_a_letter() {
    let batching = json!({ "batching": { "maxEventsPerBatch": 10 } });
    let world = world(&Faults::none(), batching).await;
    while_listening(&world, async {
        world
            .publish(&[event("a"), event("b"), event("c")], DAY)
            .await;
        time_out(&world, 1).await;
        answer_late(&world, 3).await;
    })
    .await;
    // The note of one is lost.
    let [_, note, _] = &*world.late_notes().await else {
        panic!("expected three notes")
    };
    world
        .local
        .state_store()
        .delete(note)
        .await
        .expect("a deletion");
    world.clock.advance(DELAY);
    assert_eq!(world.bury().await.failures, []);
    assert_eq!(
        (buried(&world).await, notices(&world).await),
        (vec!["b".to_owned()], 1)
    );
    assert_eq!(dead_letters_waiting(&world).await, 0);
}

#[tokio::test]
async fn letter_of_a_delivery_without_a_timeout_looks_for_no_notes() {
    let world = world(&Faults::none(), json!({})).await;
    world.endpoint.answer_at("billing", Answer::Status(400));
    world.publish(&[event("a")], DAY).await;
    world.deliver().await;
    world.clock.advance(DELAY);
    world.calls.take();
    assert_eq!(world.bury().await.failures, []);
    assert_eq!(looked_up(&world.calls), [0, 0]);
    assert_eq!(buried(&world).await, ["a"]);
}

/// A store that cannot be asked for notes.
fn unreadable() -> FaultPlan {
    let reads = [PortOperation::Get, PortOperation::List];
    FaultPlan::by(move |effect: PortEffect<'_>| {
        let is_asked = reads.contains(&effect.operation) && effect.key.starts_with(layout::LATE);
        is_asked.then_some(CallFault::Before(ErrorKind::Other))
    })
}

#[tokio::test]
async fn while_notes_cannot_be_read_the_dead_letter_waits() {
    let world = world(&Faults::in_state(&unreadable()), json!({})).await;
    while_listening(&world, async {
        world.publish(&[event("e")], DAY).await;
        time_out(&world, 1).await;
    })
    .await;
    world.endpoint.answer_at("billing", Answer::Status(400));
    world.publish(&[event("refused")], DAY).await;
    world.deliver().await;
    world.clock.advance(DELAY);
    assert_eq!(world.bury().await.failures.len(), 1);
    assert_eq!(buried(&world).await, ["refused"]);
}

/// An event on which a function failed after a timeout is looked for too.
#[tokio::test]
async fn event_a_function_failed_on_after_a_timeout_is_looked_for() {
    let world = world(
        &Faults::none(),
        json!({ "retryPolicy": { "schedule": ["PT10M"] } }),
    )
    .await;
    while_listening(&world, async {
        world.publish(&[event("e")], DAY).await;
        time_out(&world, 1).await;
        answer_late(&world, 1).await;
    })
    .await;
    world.clock.advance(Duration::from_mins(11));
    let [retry] = &*world.receive(QueueName::Deliveries).await else {
        panic!("expected the retry")
    };
    let delivery = parse_delivery(&retry.body).expect("a delivery");
    assert!(delivery.timed_out && parse_dead_letter(&retry.body).is_err());
    world
        .send(QueueName::Redrive, render_delivery(&delivery))
        .await;
    assert_eq!(world.bury_redriven().await.failures, []);
    assert_eq!(buried(&world).await, [""; 0]);
}

/// A dead letter near the end of its queue is written without a look for late answers.
#[tokio::test]
async fn letter_near_the_end_of_its_queue_is_written_without_a_look() {
    let world = world(&Faults::in_state(&unreadable()), json!({})).await;
    while_listening(&world, async {
        world.publish(&[event("e")], DAY).await;
        time_out(&world, 1).await;
    })
    .await;
    world.clock.advance(DELAY);
    let [letter] = &*world.receive(QueueName::DeadLetters).await else {
        panic!("expected the letter")
    };
    world.send(QueueName::Redrive, letter.body.clone()).await;
    assert_eq!(world.bury_redriven().await.failures.len(), 1);
    world.clock.advance(DAY * 13);
    assert_eq!(world.bury_redriven().await.failures, []);
    assert_eq!(buried(&world).await, ["e"]);
}
