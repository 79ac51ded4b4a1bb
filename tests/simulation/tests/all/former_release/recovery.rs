//! Recovery by itself beside a program of release 0.1.0. It knows neither outages nor the earlier life
//! of an event that was sent again: it drops both from a message with a retry, and from a dead letter
//! that it writes. What it drops begins anew: nothing is lost, and nothing recovers forever.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::{RECOVERIES_MAX, SendFailure};
use posthaste_core::stored::{RecoveryMark, layout};
use posthaste_ports::{Clock, ObjectStore, PutCondition, QueueName, QueueReceiver};
use posthaste_simulation::{Answer, World, event};
use posthaste_testkit::records::{subscription_name, topic_name};
use serde_json::{Value, json};

use super::{MINUTE, SECOND};

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

const DOWN: Answer = Answer::Failure(SendFailure::Socket);
const WELL: Answer = Answer::Status(204);

/// A world whose events are given up after a few attempts, and all at once.
async fn world() -> World {
    let world = World::new();
    world.chance.hold(0.0);
    let retries = json!({ "schedule": ["PT1M"], "maxDeliveryAttempts": 2 });
    let settings = json!({ "deadLetter": { "delay": "PT0S" }, "retryPolicy": retries });
    world.subscribe(settings).await;
    world
}

async fn pass(world: &World, step: Duration, length: Duration) {
    let end = world.clock.now() + length;
    while world.clock.now() < end {
        world.pass_by(step, step).await;
        while world.visible(QueueName::DeadLetters).await > 0 {
            world.bury().await;
        }
    }
}

/// An outage in which events of these ids are given up.
async fn outage(world: &World, ids: &[String]) {
    world.endpoint.answer([DOWN]);
    publish(world, ids).await;
    pass(world, 20 * SECOND, 5 * MINUTE).await;
    pass(world, 20 * MINUTE, DAY + 2 * HOUR).await;
    assert_eq!(world.unresolved().await.len(), ids.len());
    world.endpoint.take();
}

async fn publish(world: &World, ids: &[String]) {
    for id in ids {
        world.publish(&[event(id)], DAY).await;
        // Keys are made of the time.
        world.clock.advance(Duration::from_millis(1));
    }
}

fn ids(prefix: &str, count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("{prefix}{number}"))
        .collect()
}

fn id_of(event: &Value) -> String {
    event["id"].as_str().unwrap().to_owned()
}

/// The ids of what was sent since the last call.
fn sent(world: &World) -> Vec<String> {
    let requests = world.endpoint.take();
    let id = |body: &String| id_of(&serde_json::from_str(body).unwrap());
    requests.iter().map(|request| id(&request.body)).collect()
}

/// The mark, unless it only remembers what is on its way as a probe.
async fn mark(world: &World) -> Option<RecoveryMark> {
    let key = layout::recovery_mark_key(&topic_name("orders"), &subscription_name("billing"));
    let found = world.local.state_store().get(&key).await.unwrap();
    let mark = found.map(|object| RecoveryMark::parse(&object.bytes).unwrap());
    mark.filter(|mark| !mark.is_empty() || mark.cancelled_at.is_some())
}

/// Leaves of a letter what this program and release 0.1.0 write alike.
fn as_of_0_1_0(letters: &Bytes) -> Bytes {
    let mut letters: Vec<Value> = serde_json::from_slice(letters).unwrap();
    for letter in &mut letters {
        let members = letter.as_object_mut().unwrap();
        for later in ["deliverykey", "webhookid", "outagesince"] {
            members.remove(later).expect("a later member");
        }
        for later in ["firstpublishtime", "recoveries"] {
            members.remove(later);
        }
    }
    serde_json::to_vec(&letters).unwrap().into()
}

/// A delivery as release 0.1.0 puts it back.
fn put_back_by_0_1_0(body: &Bytes) -> Bytes {
    let mut delivery: Value = serde_json::from_slice(body).unwrap();
    delivery.as_object_mut().unwrap().remove("n");
    for event in delivery["events"].as_array_mut().unwrap() {
        let members = event.as_object_mut().unwrap();
        for later in ["earlier", "outageSince", "matched", "counted", "scheduled"] {
            members.remove(later);
        }
    }
    serde_json::to_vec(&delivery).unwrap().into()
}

/// A worker of release 0.1.0 puts back all that is visible.
async fn put_back(world: &World) {
    let queue = world.local.queue(QueueName::Deliveries);
    let mut bodies = Vec::new();
    while world.visible(QueueName::Deliveries).await > 0 {
        for message in world.receive(QueueName::Deliveries).await {
            bodies.push(put_back_by_0_1_0(&message.body));
            queue.acknowledge(&message.receipt).await.unwrap();
        }
    }
    for body in bodies {
        world.send(QueueName::Deliveries, body).await;
    }
}

/// Time passes, and everything is put back once by a worker of release 0.1.0 before this program
/// delivers it.
async fn pass_beside_0_1_0(world: &World, step: Duration, length: Duration) {
    let end = world.clock.now() + length;
    while world.clock.now() < end {
        let minute = world.clock.now().minute_rounded_down();
        world.clock.advance(step);
        put_back(world).await;
        world.deliver_all().await;
        if world.clock.now().minute_rounded_down() > minute {
            world.wake().await;
            put_back(world).await;
            world.deliver_all().await;
        }
        world.bury().await;
    }
}

#[tokio::test]
async fn letter_of_0_1_0_is_left_to_a_replay_by_hand() {
    let world = world().await;
    let ids = ids("", 20);
    outage(&world, &ids).await;
    assert!(mark(&world).await.is_some());
    for (key, letters) in world.buried().await {
        let former = as_of_0_1_0(&letters);
        let put = world.bucket.put(&key, former, PutCondition::Always).await;
        put.unwrap();
    }
    world.endpoint.answer([WELL]);
    pass(&world, MINUTE, 2 * HOUR).await;
    assert_eq!(mark(&world).await, None);
    // What was on its way as a probe arrives, and no other.
    let mut arrived = sent(&world);
    let left: BTreeSet<_> = world.unresolved().await.iter().map(id_of).collect();
    assert!(left.len() > ids.len() / 2, "{left:?}");
    assert!(arrived.iter().all(|id| !left.contains(id)));
    world.replay(json!({})).await;
    pass(&world, MINUTE, HOUR).await;
    arrived.extend(sent(&world));
    assert_eq!(arrived.len(), ids.len());
    assert_eq!(BTreeSet::from_iter(arrived), BTreeSet::from_iter(ids));
    assert_eq!(world.unresolved().await, Vec::<Value>::new());
}

fn is_poison(body: &str) -> bool {
    body.contains("\"id\":\"poison\"")
}

/// A minute in which the host is in use.
async fn pass_in_use(world: &World, minute: usize, is_beside: bool) {
    publish(world, &ids(&format!("{minute}-"), 12)).await;
    for _ in 0..6 {
        if is_beside {
            pass_beside_0_1_0(world, 5 * SECOND, 10 * SECOND).await;
        } else {
            world.pass_by(5 * SECOND, 10 * SECOND).await;
            world.bury().await;
        }
    }
}

/// An event that brings its host down is recovered again while release 0.1.0 drops how often it was,
/// and three times once that is gone.
#[tokio::test]
async fn event_whose_recoveries_0_1_0_dropped_ends_without_it() {
    let world = world().await;
    let mut first = ids("", 20);
    first.push("poison".to_owned());
    outage(&world, &first).await;
    let crashes = Answer::CrashesFor(is_poison, 10 * MINUTE);
    world.endpoint.answer([crashes]);
    let mut arrived = Vec::new();
    for minute in 0..4 * 60 {
        pass_in_use(&world, minute, true).await;
        arrived.extend(sent(&world));
    }
    let poisoned = |arrived: &[String]| arrived.iter().filter(|id| *id == "poison").count();
    let beside = poisoned(&arrived);
    assert!(beside > 2 * usize::from(RECOVERIES_MAX) + 2, "{beside}");
    for minute in 4 * 60..12 * 60 {
        pass_in_use(&world, minute, false).await;
        arrived.extend(sent(&world));
    }
    let letters = world.unresolved().await;
    let ends: Vec<_> = letters.iter().map(id_of).collect();
    assert!(ends.contains(&"poison".to_owned()), "{letters:?}");
    // An event that shared its recoveries may end with it.
    let recovered = |letter: &Value| letter["recoveries"] == json!(3);
    assert!(letters.iter().all(recovered), "{letters:?}");
    assert_eq!(mark(&world).await, None);
    let alone = poisoned(&arrived) - beside;
    assert!(alone > 2 && alone < 12, "{alone}");
}
