//! An event of a subscription that was not delivered has one dead letter that is not resolved,
//! however often and by whom it was sent again and given up. Once one of its deliveries arrives, none
//! is left.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use posthaste_core::model::{DeliveryLogMode, LetterPlace, SendFailure};
use posthaste_core::stored::resolved_message::render_failed_again;
use posthaste_ports::{Clock, ErrorKind, ObjectStore, QueueName};
use posthaste_simulation::{Answer, Faults, World, event};
use posthaste_testkit::faulty::{CallFault, FaultPlan, PortEffect};
use posthaste_testkit::recorded::PortOperation;
use serde_json::{Value, json};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

const REPLAY: &str = "/topics/orders/subscriptions/billing/dead-letters/replay";
const RESEND: &str = "/topics/orders/subscriptions/billing/events/e/resend";
const LIST: &str = "/topics/orders/subscriptions/billing/dead-letters";

const FAILS: Answer = Answer::Status(503);
const ARRIVES: Answer = Answer::Status(204);

/// A world whose subscription tries each event twice, half an hour apart, and that has the dead
/// letter of one event.
async fn world(faults: &Faults) -> World {
    let world = World::with(faults);
    world.chance.hold(0.0);
    let retries = json!({ "schedule": ["PT30M"], "maxDeliveryAttempts": 2 });
    let settings = json!({ "deadLetter": { "delay": "PT0S" }, "retryPolicy": retries });
    world.subscribe(settings).await;
    world.log(DeliveryLogMode::Payloads).await;
    world.endpoint.answer([Answer::Status(400)]);
    world.publish(&[event("e")], DAY).await;
    settle(&world, HOUR).await;
    assert_eq!(statuses(&world).await, [400]);
    world.endpoint.take();
    world
}

/// Time passes, and each function does its work.
async fn settle(world: &World, length: Duration) {
    let end = world.clock.now() + length;
    while world.clock.now() < end {
        world.pass_by(MINUTE, MINUTE).await;
        world.bury().await;
    }
    while world.visible(QueueName::Records).await > 0 {
        world.record_some(100).await;
    }
}

/// Asks manage to send what is not resolved again.
async fn ask(world: &World, path: &str, body: Value) {
    let (status, view) = world.api().ask("POST", path, &body).await;
    assert_eq!(status, 202, "{path} {body}: {view}");
}

/// The statuses of the letters that are not resolved.
async fn statuses(world: &World) -> Vec<u64> {
    let letters = world.unresolved().await;
    let status = |letter: &Value| letter["lasthttpstatuscode"].as_u64().unwrap();
    let own: Vec<_> = letters.iter().map(status).collect();
    let (_, page) = world.api().ask("GET", LIST, &Value::Null).await;
    let listed = page["deadLetters"].as_array().unwrap().len();
    assert_eq!(listed, own.len(), "{page}");
    own
}

/// The number of letters, also those that are resolved.
async fn written(world: &World) -> usize {
    let objects = world.buried().await;
    let letters = |bytes| serde_json::from_slice::<Vec<Value>>(bytes).unwrap().len();
    objects.iter().map(|(_, bytes)| letters(bytes)).sum()
}

/// Replays to an endpoint that is well what is not resolved, and returns the number of requests.
async fn arrive(world: &World) -> usize {
    world.endpoint.take();
    world.endpoint.answer([ARRIVES]);
    ask(world, REPLAY, json!({})).await;
    settle(world, HOUR).await;
    assert_eq!(world.unresolved().await, Vec::<Value>::new());
    world.endpoint.take().len()
}

#[tokio::test]
async fn event_that_fails_in_each_replay_has_one_letter() {
    let world = world(&Faults::none()).await;
    for status in [503, 500] {
        world.endpoint.answer([Answer::Status(status)]);
        ask(&world, REPLAY, json!({})).await;
        settle(&world, HOUR).await;
        assert_eq!(statuses(&world).await, [u64::from(status)]);
    }
    assert_eq!(arrive(&world).await, 1);
}

#[tokio::test]
async fn event_that_is_sent_by_its_id_and_fails_has_one_letter() {
    let world = world(&Faults::none()).await;
    for status in [503, 500] {
        world.endpoint.answer([Answer::Status(status)]);
        ask(&world, RESEND, json!({})).await;
        settle(&world, HOUR).await;
        assert_eq!(statuses(&world).await, [u64::from(status)]);
    }
    assert_eq!(arrive(&world).await, 1);
}

/// The second replay begins while the event of the first waits for its last attempt.
async fn replay_twice_at_once(world: &World) {
    world.endpoint.answer([FAILS]);
    for _ in 0..2 {
        ask(world, REPLAY, json!({})).await;
        settle(world, 5 * MINUTE).await;
    }
}

#[tokio::test]
async fn event_of_two_replays_at_once_that_fail_has_one_letter() {
    let world = world(&Faults::none()).await;
    replay_twice_at_once(&world).await;
    settle(&world, HOUR).await;
    assert_eq!(written(&world).await, 3);
    assert_eq!(statuses(&world).await, [503]);
    assert_eq!(arrive(&world).await, 1);
}

/// The delivery that arrives resolves the letter of the one that has failed.
#[tokio::test]
async fn event_of_two_replays_of_which_one_arrives_has_no_letter() {
    let world = world(&Faults::none()).await;
    replay_twice_at_once(&world).await;
    world.endpoint.answer([FAILS, ARRIVES]);
    settle(&world, HOUR).await;
    assert_eq!(written(&world).await, 2);
    assert_eq!(statuses(&world).await, Vec::<u64>::new());
}

/// An operator resolved the letter, and sends it again all the same: what fails then is listed.
#[tokio::test]
async fn event_that_fails_after_it_was_resolved_has_a_letter() {
    let world = world(&Faults::none()).await;
    for _ in 0..2 {
        let (status, _) = world
            .api()
            .ask("POST", &format!("{LIST}/resolve"), &json!({}))
            .await;
        assert_eq!(status, 200);
        assert_eq!(statuses(&world).await, Vec::<u64>::new());
        let (key, _) = world.buried().await.remove(0);
        world.endpoint.answer([FAILS]);
        let again = json!({ "keys": [key], "includeResolved": true });
        ask(&world, REPLAY, again).await;
        settle(&world, HOUR).await;
        assert_eq!(statuses(&world).await, [503]);
    }
}

#[tokio::test]
async fn event_that_fails_again_and_is_not_kept_has_its_letter() {
    let world = world(&Faults::none()).await;
    let dropped =
        json!({ "retryPolicy": { "maxDeliveryAttempts": 1 }, "deadLetter": { "enabled": false } });
    world.subscribe(dropped).await;
    world.endpoint.answer([FAILS]);
    for path in [REPLAY, RESEND] {
        ask(&world, path, json!({})).await;
        settle(&world, HOUR).await;
        assert_eq!(statuses(&world).await, [400]);
    }
    world.unsubscribe().await;
    settle(&world, HOUR).await;
    assert_eq!(world.unresolved().await.len(), 1);
}

/// A letter that others put there, or whose object an operator deleted, has nothing to resolve.
#[tokio::test]
async fn event_that_fails_after_its_object_was_deleted_has_a_letter() {
    let world = world(&Faults::none()).await;
    world.endpoint.answer([FAILS]);
    ask(&world, REPLAY, json!({})).await;
    world.wake().await;
    let (key, _) = world.buried().await.remove(0);
    world.bucket.delete(&key).await.unwrap();
    settle(&world, HOUR).await;
    assert_eq!(statuses(&world).await, [503]);
    assert_eq!(world.resolved().await, []);
    assert_eq!(arrive(&world).await, 1);
}

/// Fails the first calls of one kind that resolve letters, once it is armed.
fn failing(armed: &Arc<AtomicUsize>, operation: PortOperation, fault: CallFault) -> FaultPlan {
    let left = Arc::clone(armed);
    FaultPlan::by(move |effect: PortEffect<'_>| {
        let is_of_list = effect.key.starts_with("resolved/") || operation == PortOperation::List;
        if effect.operation != operation || !is_of_list {
            return None;
        }
        let taken = left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        taken.ok().map(|_| fault.clone())
    })
}

/// The faults of a kind, one after the other: of the first try, and of the message that it leaves.
const FAULTS: usize = 2;

/// A letter that cannot be resolved when the newer one is written is resolved a minute later.
#[tokio::test]
async fn fault_while_the_earlier_letter_is_resolved_leaves_one_letter() {
    for operation in [PortOperation::List, PortOperation::Get, PortOperation::Put] {
        for fault in [CallFault::Before, CallFault::After] {
            let label = format!("{operation:?}");
            let armed = Arc::new(AtomicUsize::new(0));
            let plan = failing(&armed, operation, fault(ErrorKind::TimedOut));
            let world = world(&Faults::in_bucket(&plan)).await;
            replay_twice_at_once(&world).await;
            armed.store(FAULTS, Relaxed);
            settle(&world, HOUR).await;
            assert_eq!(armed.load(Relaxed), 0, "{label}");
            assert_eq!(statuses(&world).await, [503], "{label}");
            assert_eq!(arrive(&world).await, 1, "{label}");
        }
    }
}

/// The same where an event arrives, whose other delivery was given up.
#[tokio::test]
async fn fault_while_letters_of_an_arrived_event_resolve_leaves_none() {
    for operation in [PortOperation::List, PortOperation::Get, PortOperation::Put] {
        for fault in [CallFault::Before, CallFault::After] {
            let label = format!("{operation:?}");
            let armed = Arc::new(AtomicUsize::new(0));
            let plan = failing(&armed, operation, fault(ErrorKind::TimedOut));
            let world = world(&Faults::in_bucket(&plan)).await;
            replay_twice_at_once(&world).await;
            world.endpoint.answer([FAILS, ARRIVES]);
            settle(&world, 22 * MINUTE).await;
            armed.store(FAULTS, Relaxed);
            settle(&world, HOUR).await;
            assert!(armed.load(Relaxed) < FAULTS, "{label}");
            assert_eq!(statuses(&world).await, Vec::<u64>::new(), "{label}");
        }
    }
}

/// A message of letters that failed again comes twice, as a queue that promises "at least once" may
/// bring it, and late: it resolves nothing that stands.
#[tokio::test]
async fn message_of_letters_that_failed_again_may_come_again() {
    let world = world(&Faults::none()).await;
    replay_twice_at_once(&world).await;
    settle(&world, HOUR).await;
    let place = |object: &str| LetterPlace {
        object: object.to_owned(),
        index: 0,
    };
    let mut objects: Vec<_> = world.buried().await.into_iter().map(|it| it.0).collect();
    let (former, _) = oldest(&world).await;
    objects.retain(|key| *key != former);
    for _ in 0..2 {
        for newer in &objects {
            let body = render_failed_again(vec![(place(&former), 0)], newer);
            world.send(QueueName::DeadLetters, body).await;
        }
        settle(&world, MINUTE).await;
        assert_eq!(statuses(&world).await, [503]);
    }
    assert_eq!(arrive(&world).await, 1);
}

/// The first letter, and its object.
async fn oldest(world: &World) -> (String, Value) {
    let letters = world.buried().await.into_iter().map(|(key, bytes)| {
        let mut letters: Vec<Value> = serde_json::from_slice(&bytes).unwrap();
        (key, letters.remove(0))
    });
    let published = |letter: &Value| letter["publishtime"].as_str().unwrap().to_owned();
    letters.min_by_key(|(_, letter)| published(letter)).unwrap()
}

/// An event that an outage gave up again after its recovery, or as a probe, is one letter of the
/// new outage.
#[tokio::test]
async fn event_that_an_outage_gives_up_again_has_one_letter() {
    let world = World::new();
    world.chance.hold(0.0);
    let settings = json!({ "deadLetter": { "delay": "PT0S" } });
    world.subscribe(settings).await;
    world
        .endpoint
        .answer([Answer::Failure(SendFailure::Socket)]);
    for number in 0..20 {
        world.publish(&[event(&number.to_string())], DAY).await;
        world.clock.advance(Duration::from_millis(1));
    }
    // Letters probe, and each probe is given up a day later.
    for _ in 0..5 * 24 {
        world.pass_by(30 * MINUTE, HOUR).await;
        while world.visible(QueueName::DeadLetters).await > 0 {
            world.bury().await;
        }
    }
    let letters = world.unresolved().await;
    assert!(written(&world).await > 20, "some were given up again");
    assert_eq!(letters.len(), 20, "{letters:?}");
    assert!(letters.iter().all(|it| it["outagesince"].is_string()));
}
