//! Dead letters that were delivered again, or failed again and were written anew: the next replay
//! leaves them out, whatever fails on the way, and none is lost.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::stored::ResolvedLetters;
use posthaste_ports::{ErrorKind, QueueName};
use posthaste_simulation::{Answer, Faults, World, event};
use posthaste_testkit::faulty::{CallFault, FaultPlan};
use serde_json::{Value, json};

const IDS: [&str; 4] = ["0", "1", "2", "3"];

/// A world with the dead letters of some events in one object.
async fn world(faults: &Faults) -> World {
    let world = World::with(faults);
    world
        .subscribe(json!({ "deadLetter": { "delay": "PT0S" } }))
        .await;
    world.endpoint.answer([Answer::Status(400)]);
    for id in IDS {
        world.publish(&[event(id)], Duration::from_hours(24)).await;
    }
    settle(&world).await;
    world.endpoint.take();
    world
}

/// Delivers and buries until both queues are empty, and an hour passes.
async fn settle(world: &World) {
    for _ in 0..10 {
        world.deliver_all().await;
        world.bury().await;
        world.clock.advance(Duration::from_mins(15));
    }
    for queue in [QueueName::Deliveries, QueueName::DeadLetters] {
        assert_eq!(
            (world.visible(queue).await, world.delayed(queue).await),
            (0, 0),
            "{queue}"
        );
    }
}

/// Replays what is not resolved, to an endpoint that answers this. Answers the number of requests
/// by event.
async fn replay(world: &World, answer: Answer) -> BTreeMap<String, usize> {
    world.replay(json!({ "ratePerSecond": 1000 })).await;
    world.endpoint.answer([answer]);
    for _ in 0..3 {
        // A run that fails is the next one's to make good.
        drop(world.try_wake().await);
        world.clock.advance(Duration::from_mins(2));
    }
    settle(world).await;
    let mut requests = BTreeMap::new();
    for request in world.endpoint.take() {
        let event: Value = serde_json::from_str(&request.body).expect("an event");
        *requests
            .entry(event["id"].as_str().expect("an id").to_owned())
            .or_default() += 1;
    }
    requests
}

/// The number of letters in the bucket, and of those that are resolved.
async fn letters(world: &World) -> [usize; 2] {
    let letters = |bytes: &Bytes| {
        serde_json::from_slice::<Vec<Value>>(bytes)
            .expect("letters")
            .len()
    };
    let resolved = |bytes: &Bytes| ResolvedLetters::parse(bytes).expect("a list").places.len();
    let all = world.buried().await;
    let ended = world.resolved().await;
    [
        all.iter().map(|(_, bytes)| letters(bytes)).sum(),
        ended.iter().map(|(_, bytes)| resolved(bytes)).sum(),
    ]
}

fn each(times: usize) -> BTreeMap<String, usize> {
    IDS.map(|id| (id.to_owned(), times)).into()
}

/// An event that was delivered again is left out of the next replay, unless asked for.
#[tokio::test]
async fn event_delivered_again_is_left_out_of_the_next_replay() {
    let world = world(&Faults::none()).await;
    assert_eq!(letters(&world).await, [4, 0]);
    assert_eq!(replay(&world, Answer::Status(200)).await, each(1));
    assert_eq!(letters(&world).await, [4, 4]);
    assert_eq!(replay(&world, Answer::Status(200)).await, BTreeMap::new());
    let id = world.replay(json!({ "includeResolved": true })).await;
    world.wake().await;
    assert_eq!(world.replayed(&id).await.progress.found, 4);
}

#[tokio::test]
async fn only_the_new_letter_of_an_event_that_fails_again_is_replayed() {
    let world = world(&Faults::none()).await;
    assert_eq!(replay(&world, Answer::Status(400)).await, each(1));
    assert_eq!(letters(&world).await, [8, 4]);
    assert_eq!(replay(&world, Answer::Status(200)).await, each(1));
    assert_eq!(letters(&world).await, [8, 8]);
}

/// A letter stays as it was if its event fails again where no dead letters are kept.
#[tokio::test]
async fn letter_stays_if_its_event_fails_again_and_is_not_kept() {
    let world = world(&Faults::none()).await;
    world
        .subscribe(json!({ "deadLetter": { "enabled": false } }))
        .await;
    assert_eq!(replay(&world, Answer::Status(400)).await, each(1));
    assert_eq!(letters(&world).await, [4, 0]);
}

/// Checks two replays, the first to an endpoint that gives this answer. Every event is delivered in
/// the end, and what is not resolved is sent again.
async fn check(faults: &Faults, status: u16, label: &str) {
    let world = world(faults).await;
    let is_delivered = status == 200;
    let first = replay(&world, Answer::Status(status)).await;
    let [all, resolved] = letters(&world).await;
    let second = replay(&world, Answer::Status(200)).await;
    assert!(
        IDS.iter().all(|id| first.contains_key(*id)),
        "{label}: {first:?}"
    );
    // At least once: a fault in the second replay sends some twice.
    assert!(
        second.values().sum::<usize>() >= all - resolved,
        "{label}: {second:?}"
    );
    assert!(
        is_delivered || IDS.iter().all(|id| second.contains_key(*id)),
        "{label}: {second:?}"
    );
}

#[tokio::test]
async fn a_fault_at_any_effect_loses_no_letter() {
    let quiet = Faults::none();
    world(&quiet).await;
    let before = [
        quiet.queues.effects(),
        quiet.state.effects(),
        quiet.bucket.effects(),
    ];
    for fault in [
        CallFault::Before(ErrorKind::Other),
        CallFault::After(ErrorKind::Other),
    ] {
        for (port, before) in before.into_iter().enumerate() {
            for number in 0..12 {
                for status in [200, 400] {
                    let plan = FaultPlan::nth(before + number, fault.clone());
                    let faults =
                        [Faults::in_queues, Faults::in_state, Faults::in_bucket][port](&plan);
                    let label = format!("{status}, {fault:?} at {number} of port {port}");
                    check(&faults, status, &label).await;
                }
            }
        }
    }
}
