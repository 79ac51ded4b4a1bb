//! One `webhook-id` for an event, on every path: a receiver that drops what it has seen by that id
//! is right.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::{DeliveryLogMode, SendFailure};
use posthaste_ports::{ObjectStore, PutCondition, QueueName};
use posthaste_simulation::{Answer, Request, World, event};
use serde_json::{Value, json};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

const REPLAY: &str = "/topics/orders/subscriptions/billing/dead-letters/replay";
const RESEND: &str = "/topics/orders/subscriptions/billing/events/e/resend";

/// A subscription whose dead letters are written at once.
async fn world(more: Value) -> World {
    let world = World::new();
    world.chance.hold(0.0);
    let mut settings = json!({ "deadLetter": { "delay": "PT0S" } });
    let members = settings.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    world.subscribe(settings).await;
    world.log(DeliveryLogMode::Payloads).await;
    world
}

/// Lets time pass until nothing is left to do, with what each function does meanwhile.
async fn settle(world: &World, length: Duration) {
    world.pass(length).await;
    while world.visible(QueueName::DeadLetters).await > 0 {
        world.bury().await;
    }
    while world.visible(QueueName::Records).await > 0 {
        world.record_some(100).await;
    }
}

/// Publishes events, one delivery of all, to an endpoint that answers this from then on.
async fn publish(world: &World, ids: &[&str], answer: Answer) {
    world.endpoint.answer([answer]);
    let events: Vec<_> = ids.iter().map(|id| event(id)).collect();
    world.publish(&events, DAY).await;
    settle(world, HOUR).await;
}

/// Asks manage, which must accept it, and lets an hour pass at an endpoint that answers this.
async fn ask(world: &World, path: &str, body: Value, answer: Answer) -> Value {
    world.endpoint.answer([answer]);
    let (status, view) = world.api().ask("POST", path, &body).await;
    assert_eq!(status, 202, "{path} {body}: {view}");
    settle(world, HOUR).await;
    view
}

fn header<'a>(request: &'a Request, name: &str) -> &'a str {
    request
        .headers
        .get(name)
        .map_or("", |value| value.to_str().expect("a text"))
}

/// The `webhook-id` of each request since the last call, in order.
fn ids(world: &World) -> Vec<String> {
    let requests = world.endpoint.take();
    let id = |request| header(request, "webhook-id").to_owned();
    requests.iter().map(id).collect()
}

/// The one id of all requests since the last call, and their number.
fn one_id(world: &World) -> (String, usize) {
    let all = ids(world);
    let different: BTreeSet<_> = all.iter().cloned().collect();
    let [id] = &different.into_iter().collect::<Vec<_>>()[..] else {
        panic!("one id: {all:?}")
    };
    (id.clone(), all.len())
}

/// The dead-letter objects, the oldest first.
async fn objects(world: &World) -> Vec<String> {
    let mut keys: Vec<_> = world
        .buried()
        .await
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    keys.sort();
    keys
}

/// From the first attempt on over retries, parking, a dead letter, replays that fail again, the log,
/// and resends.
#[tokio::test]
async fn event_keeps_its_webhook_id_on_every_path() {
    let retries =
        json!({ "retryPolicy": { "schedule": ["PT10S", "PT30M"], "maxDeliveryAttempts": 3 } });
    let world = world(retries).await;
    publish(&world, &["e"], Answer::Status(503)).await;
    let (id, attempts) = one_id(&world);
    assert_eq!((attempts, world.buried().await.len()), (3, 1));
    let same = |requests| (id.clone(), requests);
    // Replayed, and given up once more: its own dead letter hands the id on.
    ask(&world, REPLAY, json!({}), Answer::Status(503)).await;
    assert_eq!(one_id(&world), same(3));
    ask(&world, REPLAY, json!({}), Answer::Status(200)).await;
    assert_eq!(one_id(&world), same(1));
    ask(
        &world,
        REPLAY,
        json!({ "includeResolved": true }),
        Answer::Status(200),
    )
    .await;
    assert_eq!(one_id(&world), same(2));
    let log = json!({ "source": "log", "includeResolved": true });
    ask(&world, REPLAY, log, Answer::Status(200)).await;
    assert_eq!(one_id(&world), same(1));
    for object in objects(&world).await {
        let letter = json!({ "deadLetter": { "object": object, "index": 0 } });
        let view = ask(&world, RESEND, letter, Answer::Status(200)).await;
        assert_eq!(
            (view["webhookId"].as_str(), one_id(&world)),
            (Some(&*id), same(1))
        );
    }
    let view = ask(&world, RESEND, json!({}), Answer::Status(400)).await;
    assert_eq!(
        (view["webhookId"].as_str(), one_id(&world)),
        (Some(&*id), same(1))
    );
    // The dead letter of a resend is replayed like any other.
    ask(&world, REPLAY, json!({}), Answer::Status(200)).await;
    assert_eq!(one_id(&world), same(1));
}

/// An event that an outage gave up is sent again by itself, twice where the endpoint fails again.
#[tokio::test]
async fn event_keeps_its_webhook_id_where_it_recovers() {
    let world = world(json!({})).await;
    world
        .endpoint
        .answer([Answer::Failure(SendFailure::Socket)]);
    for id in ["a", "b", "c"] {
        world.publish(&[event(id)], DAY).await;
        settle(&world, MINUTE).await;
    }
    for _ in 0..25 {
        settle(&world, HOUR).await;
    }
    world.endpoint.answer([Answer::Status(204)]);
    settle(&world, HOUR).await;
    let mut ids = BTreeMap::<String, BTreeSet<String>>::new();
    for request in world.endpoint.take() {
        let id = header(&request, "webhook-id").to_owned();
        ids.entry(request.body).or_default().insert(id);
    }
    let different: Vec<_> = ids.values().map(BTreeSet::len).collect();
    assert_eq!(different, [1, 1, 1], "{ids:?}");
}

#[tokio::test]
async fn event_keeps_its_webhook_id_where_it_is_held() {
    let world = world(json!({})).await;
    let refused = Answer::Failure(SendFailure::Socket);
    for number in 0..10 {
        publish(&world, &[&number.to_string()], refused.clone()).await;
    }
    world.endpoint.take();
    world.publish(&[event("e")], DAY).await;
    world.pass(2 * MINUTE).await;
    assert!(!world.held_deliveries().await.is_empty());
    let is_of_e = |request: &Request| request.body == event("e");
    world.endpoint.answer([Answer::Status(200)]);
    settle(&world, 3 * HOUR).await;
    let requests = world.endpoint.take();
    let of_e: BTreeSet<_> = requests
        .iter()
        .filter(|request| is_of_e(request))
        .map(|request| header(request, "webhook-id"))
        .collect();
    assert_eq!(of_e.len(), 1, "{of_e:?}");
}

#[tokio::test]
async fn event_has_the_same_webhook_id_at_the_fallback() {
    let endpoint = json!({ "url": "https://first.example.com/", "fallbackUrl": "https://second.example.com/" });
    let world = world(json!({ "endpoint": endpoint })).await;
    let refused = Answer::Failure(SendFailure::Socket);
    world.endpoint.answer_at("first", refused.clone());
    world.endpoint.answer_at("second", Answer::Status(204));
    for number in 0..10 {
        world.publish(&[event(&number.to_string())], DAY).await;
        world.deliver_all().await;
        // A key is made of the time.
        world.clock.advance(Duration::from_millis(1));
    }
    settle(&world, HOUR).await;
    let requests = world.endpoint.take();
    let ids_at = |place: &str| -> BTreeSet<String> {
        let there = requests
            .iter()
            .filter(|request| request.url.contains(place));
        there
            .map(|request| header(request, "webhook-id").to_owned())
            .collect()
    };
    assert_eq!(ids_at("first").len(), 10);
    assert_eq!(ids_at("second"), ids_at("first"));
}

/// A batch that is refused is sent in parts. What is given up alone has its own id from then on.
#[tokio::test]
async fn event_of_a_split_batch_keeps_its_own_webhook_id() {
    let world = world(json!({ "batching": { "maxEventsPerBatch": 10 } })).await;
    let refuses = |body: &str, _| {
        if body.contains("\"id\":\"bad\"") {
            400
        } else {
            200
        }
    };
    publish(&world, &["a", "bad", "c", "d"], Answer::By(refuses)).await;
    let requests = world.endpoint.take();
    let alone = requests
        .iter()
        .find(|request| request.body == format!("[{}]", event("bad")))
        .expect("a part of one event");
    let id = header(alone, "webhook-id").to_owned();
    assert!(id.starts_with("msg_k"), "made of its key: {id}");
    ask(&world, REPLAY, json!({}), Answer::Status(200)).await;
    assert_eq!(one_id(&world), (id, 1));
}

#[tokio::test]
async fn replay_of_a_batch_has_the_webhook_id_of_the_batch() {
    let settings = json!({
        "batching": { "maxEventsPerBatch": 3 }, "retryPolicy": { "maxDeliveryAttempts": 1 },
    });
    let world = world(settings).await;
    publish(&world, &["a", "b", "c"], Answer::Status(503)).await;
    let (id, requests) = one_id(&world);
    assert_eq!(requests, 1);
    ask(&world, REPLAY, json!({}), Answer::Status(503)).await;
    assert_eq!(one_id(&world), (id.clone(), 1));
    ask(&world, REPLAY, json!({}), Answer::Status(200)).await;
    assert_eq!(one_id(&world), (id, 1));
}

/// Strips what release 0.1 did not write.
fn as_of_0_1_0(letters: &Bytes) -> Bytes {
    let mut letters: Vec<Value> = serde_json::from_slice(letters).unwrap();
    for letter in &mut letters {
        let members = letter.as_object_mut().unwrap();
        members.remove("deliverykey").expect("a key");
        members.remove("webhookid").expect("an id");
    }
    serde_json::to_vec(&letters).unwrap().into()
}

#[tokio::test]
async fn letter_of_0_1_0_has_one_webhook_id_over_all_replays() {
    let world = world(json!({})).await;
    publish(&world, &["e", "f"], Answer::Status(400)).await;
    for (key, letters) in world.buried().await {
        let former = as_of_0_1_0(&letters);
        world
            .bucket
            .put(&key, former, PutCondition::Always)
            .await
            .unwrap();
    }
    world.endpoint.take();
    let again = json!({ "includeResolved": true });
    ask(&world, REPLAY, again.clone(), Answer::Status(200)).await;
    let first = ids(&world);
    assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 2, "{first:?}");
    world.clock.advance(MINUTE);
    ask(&world, REPLAY, again, Answer::Status(200)).await;
    assert_eq!(ids(&world), first);
}

#[tokio::test]
async fn new_webhook_id_is_given_where_it_is_asked_for() {
    let world = world(json!({})).await;
    publish(&world, &["e"], Answer::Status(400)).await;
    let (first, _) = one_id(&world);
    ask(
        &world,
        REPLAY,
        json!({ "newId": true }),
        Answer::Status(400),
    )
    .await;
    let (second, _) = one_id(&world);
    assert_ne!(second, first);
    // It fails again: its new dead letter keeps the new one.
    let view = ask(
        &world,
        RESEND,
        json!({ "newId": true }),
        Answer::Status(200),
    )
    .await;
    let (third, _) = one_id(&world);
    assert_eq!(view["webhookId"].as_str(), Some(&*third));
    assert!(third != first && third != second);
    let last = objects(&world).await.pop().unwrap();
    ask(
        &world,
        REPLAY,
        json!({ "keys": [last], "includeResolved": true }),
        Answer::Status(200),
    )
    .await;
    assert_eq!(one_id(&world), (second, 1));
}

/// One invocation of deliver, in which this time passes once the request is with the endpoint.
async fn deliver_for(world: &World, length: Duration) {
    let before = world.endpoint.seen();
    let time = async {
        while world.endpoint.seen() == before {
            tokio::task::yield_now().await;
        }
        world.clock.advance(length);
    };
    let (response, ()) = tokio::join!(world.deliver_within(2 * MINUTE), time);
    assert_eq!(response.failures, []);
}

/// A receiver without batches that drops what it has seen by its `webhook-id`, and whose every answer
/// may be lost: what it does for an event, it does at the first request.
#[derive(Default)]
struct Receiver {
    seen: BTreeSet<String>,
    /// The events that it did something for.
    effects: Vec<String>,
    /// The requests for each event.
    requests: BTreeMap<String, usize>,
}

impl Receiver {
    /// Takes what was sent since the last call, and answers its number.
    fn take(&mut self, world: &World) -> usize {
        let requests = world.endpoint.take();
        for request in &requests {
            let event: Value = serde_json::from_str(&request.body).expect("an event");
            let id = event["id"].as_str().expect("an id").to_owned();
            *self.requests.entry(id.clone()).or_default() += 1;
            if self.seen.insert(header(request, "webhook-id").to_owned()) {
                self.effects.push(id);
            }
        }
        requests.len()
    }
}

/// Over a retry, a timeout, an answer that comes too late, a message whose events part, replays,
/// a resend and recoveries.
#[tokio::test]
async fn receiver_that_drops_by_webhook_id_sees_each_event_once() {
    let retries = json!({ "schedule": ["PT10M", "PT20M"], "maxDeliveryAttempts": 3 });
    let recovery = json!({ "ratePerSecond": 1 });
    let world = world(json!({ "retryPolicy": retries, "recovery": recovery })).await;
    let mut receiver = Receiver::default();
    // An answer that comes after the timeout, and too late for its retry.
    world
        .endpoint
        .answer([Answer::Late(5 * MINUTE, 204), Answer::Status(204)]);
    tokio::select! {
        biased;
        () = async {
            world.publish(&[event("late")], DAY).await;
            deliver_for(&world, MINUTE / 2).await;
            settle(&world, HOUR).await;
        } => {}
        () = world.hear_late_answers() => panic!("it listened no more"),
    }
    assert_eq!(receiver.take(&world), 2);
    // One message of four events that part: the first arrives, of the second the answer is lost. Two
    // are given up, one at once and one after its retries.
    let answers = [
        Answer::Status(204),
        Answer::Failure(SendFailure::TimedOut),
        Answer::Status(503),
        Answer::Status(400),
    ];
    world.endpoint.answer(answers);
    let ids = ["arrives", "e", "retried", "refused"].map(event);
    world.publish(&ids, DAY).await;
    world.deliver_all().await;
    let status = |body: &str, _| if body.contains("retried") { 503 } else { 204 };
    world.endpoint.answer([Answer::By(status)]);
    settle(&world, HOUR).await;
    assert_eq!(receiver.take(&world), 7);
    assert_eq!(world.unresolved().await.len(), 2);
    // The first replay fails again, the second arrives.
    for answer in [Answer::Status(500), Answer::Status(204)] {
        ask(&world, REPLAY, json!({}), answer).await;
    }
    assert_eq!(
        (receiver.take(&world), world.unresolved().await.len()),
        (8, 0)
    );
    for again in [REPLAY, RESEND] {
        let body = if again == REPLAY {
            json!({ "includeResolved": true })
        } else {
            json!({})
        };
        ask(&world, again, body, Answer::Status(204)).await;
    }
    assert_eq!(receiver.take(&world), 5);
    // An outage that gives events up, and another one in the recovery.
    for number in 0..100 {
        world
            .publish(&[event(&format!("outage-{number}"))], DAY)
            .await;
        world.clock.advance(Duration::from_millis(1));
    }
    for _ in 0..2 {
        world
            .endpoint
            .answer([Answer::Failure(SendFailure::Socket)]);
        for _ in 0..26 * 3 {
            world.pass_by(20 * MINUTE, 20 * MINUTE).await;
            world.bury().await;
        }
        assert!(!world.unresolved().await.is_empty());
        receiver.take(&world);
        world.endpoint.answer([Answer::Status(204)]);
        for _ in 0..60 {
            settle(&world, MINUTE).await;
            if receiver.take(&world) > 2 {
                break;
            }
        }
    }
    // What is on its way as a probe arrives within twelve hours.
    for _ in 0..13 * 6 {
        world.pass_by(10 * MINUTE, 10 * MINUTE).await;
        world.bury().await;
    }
    receiver.take(&world);
    assert_eq!(world.unresolved().await.len(), 0);
    let mut effects = receiver.effects.clone();
    effects.sort();
    effects.dedup();
    assert_eq!(
        effects.len(),
        receiver.effects.len(),
        "{:?}",
        receiver.effects
    );
    assert_eq!(effects.len(), 105);
    let most = receiver.requests.values().max();
    assert!(most > Some(&4), "{:?}", receiver.requests);
}

#[tokio::test]
async fn header_says_which_attempt_it_is_and_whether_it_is_sent_again() {
    let retries = json!({ "retryPolicy": { "schedule": ["PT10S"], "maxDeliveryAttempts": 2 } });
    let world = world(retries).await;
    publish(&world, &["e"], Answer::Status(503)).await;
    ask(&world, REPLAY, json!({}), Answer::Status(200)).await;
    let requests = world.endpoint.take();
    let said: Vec<_> = requests
        .iter()
        .map(|request| {
            let [attempt, replayed] =
                ["posthaste-attempt", "posthaste-replayed"].map(|name| header(request, name));
            (attempt, replayed)
        })
        .collect();
    assert_eq!(said, [("1", ""), ("2", ""), ("1", "true")]);
}
