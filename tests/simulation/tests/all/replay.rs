//! Replay: dead letters are delivered again, to their subscription alone, at a rate, and once each
//! unless something failed on the way.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::api::{ReplayReason, ReplayState};
use posthaste_core::pressure::{
    ByteUsage, PressureSettings, PressureState, ResourceReadings, evaluate_pressure,
};
use posthaste_core::stored::{PRESSURE_KEY, layout};
use posthaste_ports::{Clock, ErrorKind, ObjectStore, PutCondition, QueueName};
use posthaste_simulation::{Answer, Faults, World, event};
use posthaste_testkit::faulty::{CallFault, FaultPlan, PortEffect};
use posthaste_testkit::recorded::PortOperation;
use serde_json::{Value, json};

const DAY: Duration = Duration::from_hours(24);
const MINUTE: Duration = Duration::from_mins(1);

/// A world with the dead letters of events of these ids, in one object.
async fn world(ids: &[&str], faults: &Faults) -> World {
    let world = World::with(faults);
    world.subscribe(json!({})).await;
    die(&world, ids).await;
    world
}

async fn die(world: &World, ids: &[&str]) {
    world.endpoint.answer([Answer::Status(400)]);
    for id in ids {
        world.publish(&[event(id)], DAY).await;
    }
    world.deliver_all().await;
    world.clock.advance(Duration::from_mins(5));
    while world.visible(QueueName::DeadLetters).await > 0 {
        world.bury().await;
    }
    world.endpoint.take();
    world.clock.advance(Duration::from_hours(1));
}

/// The state that a monitor writes when nearly all memory is used.
fn medium(world: &World) -> Bytes {
    let now = world.clock.now();
    let memory = Some(ByteUsage {
        used: 93,
        total: 100,
    });
    let readings = ResourceReadings {
        memory,
        ..ResourceReadings::default()
    };
    let (state, _) = evaluate_pressure(
        &PressureState::normal(now),
        &readings,
        &PressureSettings::default(),
        now,
    );
    state.render().into()
}

/// The state, the events found, queued and failed of a replay.
async fn standing(world: &World, id: &str) -> (ReplayState, [u64; 3]) {
    let record = world.replayed(id).await;
    (
        record.state,
        [
            record.progress.found,
            record.progress.queued,
            record.progress.failed,
        ],
    )
}

/// The ids of what the endpoint received since the last time, in order.
fn received(world: &World) -> Vec<String> {
    let id = |body: &str| {
        let event: Value = serde_json::from_str(body).expect("an event");
        event["id"].as_str().expect("an id").to_owned()
    };
    let mut ids: Vec<_> = world
        .endpoint
        .take()
        .iter()
        .map(|request| id(&request.body))
        .collect();
    ids.sort_by_key(|id| id.parse::<u32>().unwrap_or(0));
    ids
}

/// A receiver gets the event as it was, with a header that says that it is replayed.
#[tokio::test]
async fn replayed_event_is_unchanged_with_a_header_that_says_so() {
    let world = world(&["a"], &Faults::none()).await;
    let before = world.buried().await;
    let id = world.replay(json!({})).await;
    world.wake().await;
    world.endpoint.answer([Answer::Status(200)]);
    world.deliver_all().await;
    let requests = world.endpoint.take();
    let [request] = &requests[..] else {
        panic!("one request: {requests:?}")
    };
    assert_eq!(request.body, event("a"));
    assert_eq!(request.headers["posthaste-replayed"], "true");
    assert_eq!(request.headers["aeg-delivery-count"], "0");
    assert_eq!(standing(&world, &id).await, (ReplayState::Done, [1, 1, 0]));
    assert_eq!(world.replaying().await, Vec::<String>::new());
    assert_eq!(
        world.buried().await,
        before,
        "the dead letter stays where it is"
    );
}

/// A replayed event that fails again is a new dead letter and no part of the replay.
#[tokio::test]
async fn replayed_event_that_fails_again_is_a_new_dead_letter() {
    let world = world(&["a"], &Faults::none()).await;
    let id = world.replay(json!({})).await;
    for _ in 0..3 {
        world.wake().await;
        world.endpoint.answer([Answer::Status(400)]);
        world.deliver_all().await;
        world.clock.advance(Duration::from_mins(5));
        world.bury().await;
    }
    assert_eq!(
        (received(&world), world.buried().await.len()),
        (vec!["a".to_owned()], 2)
    );
    assert_eq!(standing(&world, &id).await, (ReplayState::Done, [1, 1, 0]));
    let again = world.replay(json!({})).await;
    world.wake().await;
    // The first letter is resolved: the second stands for it.
    assert_eq!(
        standing(&world, &again).await,
        (ReplayState::Done, [1, 1, 0])
    );
}

#[tokio::test]
async fn only_what_was_asked_for_is_replayed() {
    let world = world(&["a"], &Faults::none()).await;
    let old = world.buried().await[0].0.clone();
    die(&world, &["b"]).await;
    let check = async |request: Value, expected: &[&str]| {
        world.clock.advance(MINUTE);
        world.endpoint.take();
        world.replay(request.clone()).await;
        world.wake().await;
        world.clock.advance(Duration::from_secs(1));
        world.endpoint.answer([Answer::Status(200)]);
        world.deliver_all().await;
        assert_eq!(received(&world), expected, "{request}");
    };
    check(json!({ "keys": [old] }), &["a"]).await;
    check(json!({ "to": "2023-11-14T22:30:00Z" }), &["a"]).await;
    check(json!({ "from": "2023-11-14T23:00:00Z" }), &["b"]).await;
    check(json!({ "reason": "TimeToLiveExceeded" }), &[]).await;
    check(json!({ "types": ["order.paid"] }), &["a", "b"]).await;
    check(json!({ "types": ["order.refunded"] }), &[]).await;
}

/// Events fall due at the rate, and the next minute continues where this one ended.
#[tokio::test]
async fn replayed_events_fall_due_at_the_rate_minute_after_minute() {
    let ids: Vec<_> = (0..150).map(|id| id.to_string()).collect();
    let world = world(
        &ids.iter().map(String::as_str).collect::<Vec<_>>(),
        &Faults::none(),
    )
    .await;
    let id = world.replay(json!({ "ratePerSecond": 2 })).await;
    world.wake().await;
    assert_eq!(
        standing(&world, &id).await,
        (ReplayState::Running, [120, 120, 0])
    );
    // Looked at once more in the same minute, as after a restart, it sends no more than its rate.
    world.wake().await;
    assert_eq!(standing(&world, &id).await.1, [120, 120, 0]);
    world.endpoint.answer([Answer::Status(200)]);
    let mut all = Vec::new();
    for second in 0..60 {
        world.deliver_all().await;
        all.extend(received(&world));
        assert_eq!(all.len(), 2 * (second + 1), "after {second} s");
        world.clock.advance(Duration::from_secs(1));
    }
    world.wake().await;
    assert_eq!(
        standing(&world, &id).await,
        (ReplayState::Done, [150, 150, 0])
    );
    world.clock.advance(MINUTE);
    world.deliver_all().await;
    all.extend(received(&world));
    all.sort_by_key(|id| id.parse::<u32>().unwrap());
    assert_eq!(all, ids);
}

#[tokio::test]
async fn unsendable_letters_are_counted_and_hold_up_nothing() {
    let world = world(&["a"], &Faults::none()).await;
    let put = async |name: &str, text: &'static str| {
        let key = format!("ORDERS/BILLING/2023/11/14/22/{name}.json");
        world
            .bucket
            .put(
                &key,
                Bytes::from_static(text.as_bytes()),
                PutCondition::Always,
            )
            .await
            .unwrap();
    };
    put("0-broken", "not ours").await;
    put(
        "1-mixed",
        r#"[{"id":"1"},{"specversion":"1.0","id":"m","source":"/s","type":"t","deadletterreason":"x"}]"#,
    )
    .await;
    let id = world.replay(json!({})).await;
    world.wake().await;
    assert_eq!(standing(&world, &id).await, (ReplayState::Done, [2, 2, 2]));
    let failures = world.replayed(&id).await.progress.failures;
    let shown: Vec<_> = failures
        .iter()
        .map(|f| (f.index, f.detail.as_str()))
        .collect();
    let broken = "not a JSON array of dead letters: expected ident at line 1 column 2";
    assert_eq!(
        shown,
        [
            (None, broken),
            (
                Some(0),
                "not a dead letter: there is no deadLetterReason in it"
            )
        ]
    );
}

#[tokio::test]
async fn a_named_object_that_is_not_there_is_counted() {
    let world = world(&["a"], &Faults::none()).await;
    let id = world
        .replay(json!({ "keys": ["ORDERS/BILLING/2023/1/1/1/none.json"] }))
        .await;
    world.wake().await;
    assert_eq!(standing(&world, &id).await, (ReplayState::Done, [0, 0, 1]));
}

#[tokio::test]
async fn under_pressure_a_replay_waits_and_then_goes_on_by_itself() {
    let world = world(&["a"], &Faults::none()).await;
    let state = world.local.state_store();
    state
        .put(PRESSURE_KEY, medium(&world), PutCondition::Always)
        .await
        .unwrap();
    // While one part of a run reads the pressure, the others go by what the run before knew.
    world.wake().await;
    let id = world.replay(json!({})).await;
    world.wake().await;
    assert_eq!(
        standing(&world, &id).await,
        (ReplayState::Waiting, [0, 0, 0])
    );
    assert_eq!(
        world.replayed(&id).await.reason,
        Some(ReplayReason::Pressure)
    );
    state.delete(PRESSURE_KEY).await.unwrap();
    world.wake().await;
    world.wake().await;
    assert_eq!(standing(&world, &id).await, (ReplayState::Done, [1, 1, 0]));
}

/// A wait that every acknowledgement has is no sign of pressure.
#[tokio::test]
async fn a_replay_does_not_wait_for_the_base_of_the_tarpit() {
    let world = world(&["a"], &Faults::none()).await;
    let mut state = PressureState::normal(world.clock.now());
    state.tarpit_ms = 2000;
    state.base_ms = 2000;
    world
        .local
        .state_store()
        .put(PRESSURE_KEY, state.render().into(), PutCondition::Always)
        .await
        .unwrap();
    let id = world.replay(json!({})).await;
    world.wake().await;
    assert_eq!(standing(&world, &id).await, (ReplayState::Done, [1, 1, 0]));
}

#[tokio::test]
async fn a_subscription_that_is_gone_ends_its_replay() {
    let world = world(&["a"], &Faults::none()).await;
    world.unsubscribe().await;
    let id = world.replay(json!({})).await;
    world.wake().await;
    assert_eq!(
        standing(&world, &id).await,
        (ReplayState::Cancelled, [0, 0, 0])
    );
    assert_eq!(
        world.replayed(&id).await.reason,
        Some(ReplayReason::SubscriptionDeleted)
    );
    assert_eq!(world.replaying().await, Vec::<String>::new());
}

#[tokio::test]
async fn replay_of_an_inactive_subscription_waits_until_it_is_active() {
    let world = world(&["a"], &Faults::none()).await;
    let id = world.replay(json!({})).await;
    for state in ["Disabled", "Failed", "Paused", "Pending"] {
        world
            .subscribe(json!({ "status": { "state": state, "since": "2023-11-14T22:13:20Z" } }))
            .await;
        world.wake().await;
        assert_eq!(
            world.replayed(&id).await.reason,
            Some(ReplayReason::SubscriptionNotActive),
            "{state}"
        );
    }
    world.subscribe(json!({})).await;
    world.wake().await;
    assert_eq!(standing(&world, &id).await, (ReplayState::Done, [1, 1, 0]));
}

#[tokio::test]
async fn a_cancelled_replay_sends_nothing_more() {
    let world = world(&["a"], &Faults::none()).await;
    let id = world.replay(json!({})).await;
    let now = world.clock.now();
    let record = world.replayed(&id).await.with_state(
        ReplayState::Cancelled,
        Some(ReplayReason::Requested),
        now,
    );
    let key = layout::replay_record_key(&id);
    world
        .local
        .state_store()
        .put(&key, record.render(), PutCondition::Always)
        .await
        .unwrap();
    world.wake().await;
    assert_eq!(world.visible(QueueName::Deliveries).await, 0);
    assert_eq!(world.replaying().await, Vec::<String>::new());
}

/// Fails the effects of one operation on one resource, the first so many times.
fn failing(operation: PortOperation, prefix: &'static str, times: usize) -> FaultPlan {
    let seen = std::sync::atomic::AtomicUsize::new(0);
    FaultPlan::by(move |effect: PortEffect<'_>| {
        let is_meant = effect.operation == operation && effect.key.starts_with(prefix);
        let is_early = is_meant && seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < times;
        is_early.then_some(CallFault::Before(ErrorKind::TimedOut))
    })
}

#[tokio::test]
async fn an_object_that_cannot_be_read_for_a_while_is_read_later() {
    let bucket = failing(PortOperation::Get, "ORDERS/", 2);
    let world = world(&["a"], &Faults::in_bucket(&bucket)).await;
    let id = world.replay(json!({})).await;
    world.wake().await;
    assert_eq!(
        world.replayed(&id).await.reason,
        Some(ReplayReason::Unavailable)
    );
    world.wake().await;
    world.wake().await;
    assert_eq!(standing(&world, &id).await, (ReplayState::Done, [1, 1, 0]));
}

#[tokio::test]
async fn an_object_that_is_never_read_is_given_up_in_the_end() {
    let bucket = failing(PortOperation::Get, "ORDERS/", usize::MAX);
    let world = world(&["a"], &Faults::in_bucket(&bucket)).await;
    let id = world.replay(json!({})).await;
    for _ in 0..4 {
        world.wake().await;
        assert_eq!(
            standing(&world, &id).await,
            (ReplayState::Waiting, [0, 0, 0])
        );
    }
    world.wake().await;
    assert_eq!(standing(&world, &id).await, (ReplayState::Done, [0, 0, 1]));
}

/// A replay sends later what the queue did not take, and passes over nothing.
#[tokio::test]
async fn replay_sends_later_what_the_queue_refused() {
    let queues = failing(PortOperation::SendBatch, "", 1);
    let ids: Vec<_> = (0..150).map(|id| id.to_string()).collect();
    let world = world(
        &ids.iter().map(String::as_str).collect::<Vec<_>>(),
        &Faults::in_queues(&queues),
    )
    .await;
    let id = world.replay(json!({ "ratePerSecond": 1000 })).await;
    for _ in 0..2 {
        world.wake().await;
        world.clock.advance(MINUTE);
    }
    assert_eq!(
        standing(&world, &id).await,
        (ReplayState::Done, [150, 150, 0])
    );
    world.endpoint.answer([Answer::Status(200)]);
    world.deliver_all().await;
    let mut all = received(&world);
    all.dedup();
    assert_eq!(all, ids);
}
