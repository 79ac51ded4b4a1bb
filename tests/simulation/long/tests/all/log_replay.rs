//! Replays from the delivery log: events whose deliveries ended in a time are sent again, and
//! nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use posthaste_core::api::{LeftOutReason, ReplayState};
use posthaste_core::model::DeliveryLogMode;
use posthaste_core::stored::ReplayRecord;
use posthaste_ports::{Clock, ErrorKind, QueueName};
use posthaste_simulation::{Answer, Faults, World, event};
use posthaste_testkit::faulty::{CallFault, FaultPlan};
use serde_json::{Value, json};

const MINUTE: Duration = Duration::from_mins(1);

/// Publishes events, one after the other, to an endpoint that gives each of them this answer.
async fn publish(world: &World, ids: &[&str], status: u16) {
    world.endpoint.answer([Answer::Status(status)]);
    for id in ids {
        world.publish(&[event(id)], Duration::from_hours(24)).await;
        world.deliver_all().await;
        world.clock.advance(Duration::from_millis(10));
    }
    world.clock.advance(MINUTE);
    while world.visible(QueueName::DeadLetters).await > 0 {
        world.bury().await;
    }
    record(world).await;
    world.clock.advance(Duration::from_millis(10));
}

/// Writes the records that are there into the log.
async fn record(world: &World) {
    while world.visible(QueueName::Records).await > 0 {
        world.record_some(100).await;
    }
}

async fn world(faults: &Faults) -> World {
    let world = World::with(faults);
    world
        .subscribe(json!({ "deadLetter": { "delay": "PT0S" } }))
        .await;
    world
}

/// A world with two events that were delivered, one that is a dead letter, and one that is tried
/// again.
async fn mixed() -> World {
    let world = world(&Faults::none()).await;
    publish(&world, &["0", "1"], 200).await;
    publish(&world, &["2"], 400).await;
    publish(&world, &["3"], 503).await;
    world.endpoint.take();
    world
}

/// Replays, and answers the requests by event, each with its webhook id, and the replay at its end.
async fn replay(world: &World, request: Value) -> (BTreeMap<String, Vec<String>>, ReplayRecord) {
    let id = world.replay(request).await;
    world.endpoint.answer([Answer::Status(200)]);
    for _ in 0..10 {
        // A run that fails is the next one's to make good.
        drop(world.try_wake().await);
        world.clock.advance(MINUTE);
        world.deliver_all().await;
    }
    let mut requests = BTreeMap::<String, Vec<String>>::new();
    for request in world.endpoint.take() {
        if request.headers.get("posthaste-replayed").is_some() {
            let event: Value = serde_json::from_str(&request.body).expect("an event");
            let id = event["id"].as_str().expect("an id").to_owned();
            let webhook_id = request.headers["webhook-id"]
                .to_str()
                .expect("a text")
                .to_owned();
            requests.entry(id).or_default().push(webhook_id);
        }
    }
    (requests, world.replayed(&id).await)
}

/// Checks which events a replay sends.
async fn check(world: &World, request: Value, expected: &[&str]) {
    let (requests, record) = replay(world, request.clone()).await;
    assert_eq!(record.state, ReplayState::Done, "{request}");
    let counts = [
        record.progress.found,
        record.progress.queued,
        record.progress.failed,
    ];
    let sent = expected.len() as u64;
    assert_eq!(counts, [sent, sent, 0], "{request}");
    assert_eq!(
        requests.keys().map(String::as_str).collect::<Vec<_>>(),
        expected,
        "{request}"
    );
}

/// A replay of the log sends everything that ended, but not what is still tried.
#[tokio::test]
async fn log_replay_sends_all_ended_events_and_none_still_tried() {
    check(&mixed().await, json!({ "source": "log" }), &["0", "1", "2"]).await;
}

#[tokio::test]
async fn log_replay_sends_exactly_the_selected_events() {
    let selected = |more: Value| {
        let mut request = json!({ "source": "log" });
        request
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        request
    };
    for (more, expected) in [
        (json!({ "result": "failed" }), &["2"][..]),
        (json!({ "result": "dead-lettered" }), &["2"]),
        (json!({ "result": "dropped" }), &[]),
        (json!({ "result": "delivered" }), &["0", "1"]),
        (json!({ "status": "4xx" }), &["2"]),
        (json!({ "status": "200" }), &["0", "1"]),
        (json!({ "types": ["other"] }), &[]),
        (json!({ "reason": "UndeliverableDueToClientError" }), &["2"]),
    ] {
        check(&mixed().await, selected(more), expected).await;
    }
}

#[tokio::test]
async fn a_time_selects_what_ended_in_it() {
    let world = world(&Faults::none()).await;
    publish(&world, &["0"], 200).await;
    let from = world.clock.now();
    publish(&world, &["1"], 400).await;
    let to = world.clock.now();
    publish(&world, &["2"], 200).await;
    world.endpoint.take();
    let request = json!({ "source": "log", "from": from.to_string(), "to": to.to_string() });
    check(&world, request, &["1"]).await;
    // What the replay sent is no part of another one, nor is the dead letter that it delivered.
    world.bury().await;
    record(&world).await;
    let request = json!({ "source": "log", "from": from.to_string() });
    let (requests, record) = replay(&world, request).await;
    assert_eq!(requests.into_keys().collect::<Vec<_>>(), ["2"]);
    assert_eq!(record.progress.resolved, 1);
}

/// A delivery ends when it is given up, and not when its dead letter is written.
#[tokio::test]
async fn delivery_ends_when_given_up_not_at_its_dead_letter() {
    let world = World::with(&Faults::none());
    // A dead letter is written five minutes after the event is given up.
    world.subscribe(json!({})).await;
    let from = world.clock.now();
    publish(&world, &["0"], 400).await;
    let to = world.clock.now();
    world.clock.advance(5 * MINUTE);
    world.bury().await;
    record(&world).await;
    world.clock.advance(MINUTE);
    world.endpoint.take();
    let later = json!({ "source": "log", "from": to.to_string() });
    check(&world, later, &[]).await;
    let at_its_time = json!({ "source": "log", "from": from.to_string(), "to": to.to_string() });
    check(&world, at_its_time, &["0"]).await;
}

#[tokio::test]
async fn a_replay_waits_until_the_log_has_all_of_its_time() {
    let world = world(&Faults::none()).await;
    world.endpoint.answer([Answer::Status(200)]);
    world.publish(&[event("0")], Duration::from_hours(24)).await;
    world.deliver_all().await;
    world.clock.advance(Duration::from_millis(10));
    let id = world.replay(json!({ "source": "log" })).await;
    // The log is still empty.
    world.wake().await;
    assert_eq!(world.replayed(&id).await.state, ReplayState::Running);
    record(&world).await;
    world.clock.advance(MINUTE);
    world.wake().await;
    let replayed = world.replayed(&id).await;
    assert_eq!(
        (replayed.state, replayed.progress.queued),
        (ReplayState::Done, 1)
    );
}

#[tokio::test]
async fn events_keep_their_webhook_ids() {
    let world = world(&Faults::none()).await;
    publish(&world, &["0"], 200).await;
    let first = world.endpoint.take().remove(0).headers["webhook-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let (requests, _) = replay(&world, json!({ "source": "log" })).await;
    assert_eq!(requests["0"], [first]);
}

/// Events without a payload in the log are counted as failed, unless a dead letter has it.
#[tokio::test]
async fn event_without_a_logged_payload_is_taken_from_its_dead_letter() {
    let world = world(&Faults::none()).await;
    world.log(DeliveryLogMode::Attempts).await;
    publish(&world, &["0"], 200).await;
    publish(&world, &["1"], 400).await;
    world.endpoint.take();
    let (requests, record) = replay(&world, json!({ "source": "log" })).await;
    assert_eq!(requests.into_keys().collect::<Vec<_>>(), ["1"]);
    let progress = &record.progress;
    assert_eq!(
        [progress.found, progress.queued, progress.failed],
        [2, 1, 1]
    );
    assert_eq!(progress.failures[0].key, "0");
}

#[tokio::test]
async fn a_replay_slower_than_a_minute_goes_on_where_it_was() {
    let world = world(&Faults::none()).await;
    let ids: Vec<String> = (0..130).map(|id| id.to_string()).collect();
    publish(
        &world,
        &ids.iter().map(String::as_str).collect::<Vec<_>>(),
        200,
    )
    .await;
    world.endpoint.take();
    let (requests, record) = replay(&world, json!({ "source": "log", "ratePerSecond": 1 })).await;
    assert_eq!(
        (record.state, record.progress.queued),
        (ReplayState::Done, 130)
    );
    assert_eq!(
        (
            requests.len(),
            requests.values().map(Vec::len).sum::<usize>()
        ),
        (130, 130)
    );
}

#[tokio::test]
async fn events_left_out_of_a_log_replay_are_counted() {
    let world = world(&Faults::none()).await;
    publish(&world, &["0", "1"], 200).await;
    publish(&world, &["2"], 400).await;
    let to = world.clock.now() + Duration::from_secs(1);
    publish(&world, &["3"], 503).await;
    world.endpoint.take();
    let request = json!({ "source": "log", "result": "failed", "to": to.to_string() });
    let (requests, record) = replay(&world, request).await;
    assert_eq!(requests.into_keys().collect::<Vec<_>>(), ["2"]);
    assert_eq!(
        record.progress.left_out.iter().collect::<Vec<_>>(),
        [
            (LeftOutReason::NotEnded, 1),
            (LeftOutReason::OtherResult, 2)
        ]
    );
}

#[tokio::test]
async fn left_out_events_count_once_in_a_replay_of_many_runs() {
    let world = world(&Faults::none()).await;
    publish(&world, &["before"], 400).await;
    let ids: Vec<String> = (0..130).map(|id| id.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    publish(&world, &ids, 200).await;
    publish(&world, &["behind"], 400).await;
    world.endpoint.take();
    let request = json!({ "source": "log", "status": "200", "ratePerSecond": 1 });
    let (requests, record) = replay(&world, request).await;
    assert_eq!(requests.len(), 130);
    assert_eq!(
        record.progress.left_out.iter().collect::<Vec<_>>(),
        [(LeftOutReason::OtherStatus, 2)]
    );
}

#[tokio::test]
async fn more_records_than_one_read_has_are_all_sent() {
    let world = world(&Faults::none()).await;
    world.endpoint.answer([Answer::Status(200)]);
    // All of one moment.
    for id in 0..450 {
        world
            .publish(&[event(&id.to_string())], Duration::from_hours(24))
            .await;
    }
    world.deliver_all().await;
    world.clock.advance(MINUTE);
    record(&world).await;
    world.endpoint.take();
    let (requests, record) =
        replay(&world, json!({ "source": "log", "ratePerSecond": 1000 })).await;
    assert_eq!((requests.len(), record.progress.queued), (450, 450));
}

#[tokio::test]
async fn a_fault_at_any_effect_passes_nothing_over() {
    let ids = ["0", "1", "2", "3"];
    let quiet = Faults::none();
    let world_with = async |faults: &Faults| {
        let world = world(faults).await;
        publish(&world, &ids[..2], 200).await;
        publish(&world, &ids[2..], 400).await;
        world.endpoint.take();
        world
    };
    world_with(&quiet).await;
    let before = [
        quiet.queues.effects(),
        quiet.state.effects(),
        quiet.bucket.effects(),
        quiet.log.effects(),
    ];
    for fault in [
        CallFault::Before(ErrorKind::Other),
        CallFault::After(ErrorKind::Other),
    ] {
        for (port, before) in before.into_iter().enumerate() {
            for number in 0..8 {
                let plan = FaultPlan::nth(before + number, fault.clone());
                let of = [
                    Faults::in_queues,
                    Faults::in_state,
                    Faults::in_bucket,
                    Faults::in_log,
                ][port];
                let world = world_with(&of(&plan)).await;
                let (requests, record) = replay(&world, json!({ "source": "log" })).await;
                let label = format!("{fault:?} at {number} of port {port}");
                assert_eq!(
                    (record.state, record.progress.failed),
                    (ReplayState::Done, 0),
                    "{label}"
                );
                let arrived: BTreeSet<_> = requests.keys().map(String::as_str).collect();
                assert_eq!(arrived, ids.into(), "{label}");
            }
        }
    }
}
