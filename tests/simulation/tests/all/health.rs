//! Health of subscriptions: from the tries that deliver sees to the notices that arrive.

use std::time::Duration;

use posthaste_core::model::{SendFailure, SubscriptionName, Timestamp, message_group_id};
use posthaste_core::stored::HEALTH;
use posthaste_core::stored::delivery::{parse_delivery, render_delivery};
use posthaste_ports::{Clock, OutgoingMessage, QueueName, QueueSender};
use posthaste_simulation::{Answer, Faults, World, event, start};
use posthaste_testkit::faulty::{PortEffect, at_every_effect_of};
use serde_json::{Value, json};

const DAY: Duration = Duration::from_hours(24);
const STEP: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_mins(1);
/// Shorter than what makes the damped notices of a link: it is not in Retry yet.
const OUTAGE: Duration = Duration::from_secs(150);
const HOST: &str = "billing.example.com";
const BILLING: &str = "/topics/orders/subscriptions/billing";

/// A world as it is with a new topic `orders`, which has its notices sent to `ops`.
async fn told_ops(world: World) -> World {
    world.subscribe(json!({})).await;
    world.tell_ops(json!({})).await;
    let mut record = world.record().await;
    record.settings.delivery_failed_notices = Some(false);
    world.write_record(record.render()).await;
    world.endpoint.answer([Answer::Status(204)]);
    world
}

fn events(count: usize) -> Vec<String> {
    (0..count).map(|n| event(&n.to_string())).collect()
}

async fn publish(world: &World, count: usize) {
    for part in events(count).chunks(10) {
        world.publish(part, DAY).await;
        // The keys of deliveries in this world are made of the time.
        world.clock.advance(Duration::from_millis(1));
    }
}

/// Lets time pass, in which every function has its turn: deliver at all times, wake once a minute.
/// Answers the notices that arrived, with the time of each.
async fn pass(world: &World, length: Duration) -> Vec<(Timestamp, Value)> {
    let end = world.clock.now() + length;
    let mut told = Vec::new();
    while world.clock.now() < end {
        world.clock.advance(STEP);
        let _ = world.deliver_within(MINUTE).await;
        world.deliver_all().await;
        world.bury().await;
        if world.clock.now().as_secs() % 60 < STEP.as_secs() {
            let _: Result<_, _> = world.try_wake().await;
            world.deliver_all().await;
        }
        told.extend(notices(world));
    }
    told
}

fn notices(world: &World) -> Vec<(Timestamp, Value)> {
    let now = world.clock.now();
    let requests = world.endpoint.take();
    let notices = requests.iter().filter(|it| it.url.contains("pager"));
    notices
        .map(|request| (now, serde_json::from_str(&request.body).unwrap()))
        .collect()
}

fn kinds(told: &[(Timestamp, Value)]) -> Vec<&str> {
    let kind = |notice: &Value| notice["type"].as_str().map(str::len);
    told.iter()
        .filter(|(_, notice)| kind(notice).is_some())
        .map(|(_, notice)| notice["type"].as_str().unwrap_or_default())
        .map(|kind| kind.strip_prefix("dev.posthaste.").unwrap_or(kind))
        .collect()
}

async fn health(world: &World) -> Value {
    let (status, shown) = world.api().ask("GET", BILLING, &Value::Null).await;
    assert_eq!(status, 200, "{shown}");
    shown["health"].clone()
}

/// A secret was rotated on one side only: every event is refused, and a dead letter at once.
#[tokio::test]
async fn thousand_failed_events_at_one_endpoint_make_two_notices() {
    let world = told_ops(World::new()).await;
    world.endpoint.answer_at(HOST, Answer::Status(401));
    publish(&world, 1000).await;
    let mut told = pass(&world, OUTAGE).await;
    let [(at, failing)] = &*told else {
        panic!("expected one notice: {told:?}")
    };
    assert!(at.since(start()) <= 2 * MINUTE, "the first notice at {at}");
    assert_eq!(failing["data"]["lastHttpStatusCode"], 401);
    assert_eq!(failing["data"]["state"], "down");
    assert_eq!(health(&world).await["state"], "down");
    world.endpoint.answer_at(HOST, Answer::Status(204));
    told.extend(pass(&world, 25 * MINUTE).await);
    assert_eq!(
        kinds(&told),
        ["subscription.failing", "subscription.recovered"]
    );
    assert_eq!(health(&world).await["state"], "healthy");
}

/// Seconds from the first failure to the first notice, where the first failure is in the first, the
/// second … sixth 10 s after a run of wake.
async fn seconds_to_the_first_notice(answer: Answer) -> [u64; 6] {
    let mut seconds = [0; 6];
    for (seconds, wait) in seconds.iter_mut().zip(0..) {
        let world = told_ops(World::new()).await;
        world.endpoint.answer_at(HOST, answer.clone());
        let _ = pass(&world, MINUTE + wait * STEP).await;
        publish(&world, 20).await;
        let failed_at = world.clock.now();
        world.deliver_all().await;
        let told = pass(&world, 4 * MINUTE).await;
        let (at, _) = told.first().expect("a notice");
        *seconds = at.since(failed_at).as_secs();
    }
    seconds
}

/// Measured: at most a minute after the tenth failure in a row, which is the first notice of an endpoint
/// that refuses and of one where nobody listens.
#[tokio::test]
async fn first_notice_comes_within_two_minutes_of_the_first_failure() {
    let refused = Box::pin(seconds_to_the_first_notice(Answer::Status(401))).await;
    assert_eq!(refused, [40, 30, 20, 10, 60, 50]);
    let nobody = Answer::Failure(SendFailure::Refused);
    let nobody = Box::pin(seconds_to_the_first_notice(nobody)).await;
    assert_eq!(nobody, [40, 30, 20, 10, 60, 50]);
    let bound = 2 * MINUTE.as_secs();
    assert!(
        refused
            .iter()
            .chain(&nobody)
            .all(|seconds| *seconds <= bound)
    );
}

/// The subscriptions of a host: a hundred of them, each with three events.
async fn hundred_subscriptions(world: &World) {
    let mut record = world.record().await;
    let (_, billing) = record.settings.subscriptions.first_key_value().unwrap();
    let billing = billing.clone();
    for n in 0..99 {
        let name = SubscriptionName::parse(&format!("s{n:02}")).unwrap();
        record.settings.subscriptions.insert(name, billing.clone());
    }
    world.write_record(record.render()).await;
    let queue = world.local.queue(QueueName::Deliveries);
    for name in record.settings.subscriptions.into_keys() {
        for event in events(3) {
            let message = world.message(&[event], DAY);
            let mut delivery = parse_delivery(&message.body).unwrap();
            delivery.subscription = name.clone();
            delivery.identity = None;
            delivery.events[0].key = format!("{name}-{}", world.clock.now().as_millis());
            let message = OutgoingMessage {
                body: render_delivery(&delivery),
                group: Some(message_group_id(&delivery.topic, &name)),
                ..message
            };
            assert!(queue.send_batch(vec![message]).await.unwrap()[0].is_ok());
            world.clock.advance(Duration::from_millis(1));
        }
    }
}

#[tokio::test]
async fn host_with_a_hundred_subscriptions_makes_two_notices() {
    let world = told_ops(World::new()).await;
    world
        .endpoint
        .answer_at(HOST, Answer::Failure(SendFailure::Refused));
    hundred_subscriptions(&world).await;
    let mut told = pass(&world, OUTAGE).await;
    let [(at, failing)] = &*told else {
        panic!("expected one notice: {told:?}")
    };
    assert!(at.since(start()) <= 2 * MINUTE, "the first notice at {at}");
    let data = &failing["data"];
    assert_eq!(data["subscriptionCount"], 100);
    assert_eq!(data["subscriptions"].as_array().unwrap().len(), 20);
    world.endpoint.answer_at(HOST, Answer::Status(204));
    told.extend(pass(&world, 25 * MINUTE).await);
    assert_eq!(kinds(&told), ["link.failing", "link.recovered"]);
}

/// record gets its batches after a minute, and wake runs once a minute.
#[tokio::test]
async fn first_notice_comes_from_records_within_five_minutes() {
    let world = told_ops(World::new().knowing_health_from_records()).await;
    world.endpoint.answer_at(HOST, Answer::Status(401));
    publish(&world, 100).await;
    let mut told = Vec::new();
    for _ in 0..5 {
        told.extend(pass(&world, MINUTE).await);
        world.record_some(10_000).await;
    }
    let [(at, failing)] = &*told else {
        panic!("expected one notice: {told:?}")
    };
    assert!(at.since(start()) <= 5 * MINUTE, "the first notice at {at}");
    assert_eq!(failing["data"]["lastHttpStatusCode"], 401);
    assert_eq!(health(&world).await["state"], "down");
    world.endpoint.answer_at(HOST, Answer::Status(204));
    for _ in 0..25 {
        told.extend(pass(&world, MINUTE).await);
        world.record_some(10_000).await;
    }
    let mut kinds = kinds(&told);
    kinds.retain(|kind| !["link.down", "link.up"].contains(kind));
    assert_eq!(kinds, ["subscription.failing", "subscription.recovered"]);
}

/// The damped notices of the source documents come beside them, in an outage that is long enough.
#[tokio::test]
async fn long_outage_of_a_link_has_its_damped_notices_too() {
    let world = told_ops(World::new()).await;
    world
        .endpoint
        .answer_at(HOST, Answer::Failure(SendFailure::Refused));
    publish(&world, 30).await;
    let mut told = pass(&world, 12 * MINUTE).await;
    world.endpoint.answer_at(HOST, Answer::Status(204));
    told.extend(pass(&world, 30 * MINUTE).await);
    let mut kinds = kinds(&told);
    kinds.sort_unstable();
    assert_eq!(
        kinds,
        ["link.down", "link.failing", "link.recovered", "link.up"]
    );
}

#[tokio::test]
async fn event_that_is_late_has_one_notice() {
    let world = told_ops(World::new()).await;
    world.endpoint.answer_at(HOST, Answer::Status(500));
    publish(&world, 1).await;
    let told = pass(&world, 65 * MINUTE).await;
    let kinds = kinds(&told);
    let delayed = kinds.iter().filter(|kind| **kind == "delivery.delayed");
    assert_eq!(delayed.count(), 1, "{kinds:?}");
    let (at, _) = told
        .iter()
        .find(|(_, notice)| notice["type"] == "dev.posthaste.delivery.delayed")
        .unwrap();
    let late = at.since(start());
    assert!(late >= 60 * MINUTE && late <= 62 * MINUTE, "{late:?}");
}

#[tokio::test]
async fn restart_in_an_incident_tells_nothing_again() {
    let world = told_ops(World::new()).await;
    world.endpoint.answer_at(HOST, Answer::Status(401));
    publish(&world, 20).await;
    assert_eq!(
        kinds(&pass(&world, 2 * MINUTE).await),
        ["subscription.failing"]
    );
    let now = world.clock.now();
    let world = World::over(world.end().await, now);
    world.endpoint.answer([Answer::Status(204)]);
    world.endpoint.answer_at(HOST, Answer::Status(401));
    assert_eq!(health(&world).await["state"], "down");
    assert_eq!(kinds(&pass(&world, 3 * MINUTE).await), [""; 0]);
}

/// The first notice of a topic that release 0.1 wrote, which has one for each failed event.
#[tokio::test]
async fn topic_of_release_0_1_keeps_its_notices_of_each_event() {
    let world = told_ops(World::new()).await;
    let text = String::from_utf8(world.record().await.render().to_vec()).unwrap();
    let of_0_1 = text.replace(r#""deliveryFailedNotices":false,"#, "");
    assert_ne!(text, of_0_1);
    world.write_record(of_0_1.into()).await;
    world.endpoint.answer_at(HOST, Answer::Status(400));
    publish(&world, 2).await;
    let told = pass(&world, 10 * MINUTE).await;
    assert_eq!(kinds(&told), ["delivery.failed"; 2]);
}

#[tokio::test]
async fn healthy_deliveries_neither_read_nor_write_health() {
    let world = told_ops(World::new()).await;
    publish(&world, 50).await;
    world.deliver_all().await;
    world.wake().await;
    world.calls.take();
    publish(&world, 50).await;
    world.deliver_all().await;
    let calls = world.calls.take();
    assert!(calls.iter().all(|call| call.key != HEALTH), "{calls:?}");
}

/// Lets minutes pass, in which every function has its turn once. Answers the notices that arrived.
async fn minutes(world: &World, count: u32) -> Vec<(Timestamp, Value)> {
    let mut told = Vec::new();
    for _ in 0..count {
        world.clock.advance(MINUTE);
        world.deliver_all().await;
        world.bury().await;
        let _: Result<_, _> = world.try_wake().await;
        world.deliver_all().await;
        told.extend(notices(world));
    }
    told
}

/// The notices of a short incident while something fails, each id once. A run opens or closes it,
/// and in another one nothing happens, unless it makes good what failed before.
async fn incident(faults: &Faults) -> Vec<String> {
    let world = told_ops(World::with(faults)).await;
    world.endpoint.answer_at(HOST, Answer::Status(400));
    publish(&world, 10).await;
    let mut told = minutes(&world, 2).await;
    world.endpoint.answer_at(HOST, Answer::Status(204));
    // What was refused is a dead letter, so nothing waits that could arrive.
    publish(&world, 5).await;
    told.extend(minutes(&world, 2).await);
    let mut ids: Vec<_> = told
        .iter()
        .filter(|(_, it)| {
            it["type"]
                .as_str()
                .is_some_and(|it| it.contains("subscription."))
        })
        .map(|(_, it)| it["id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids.iter()
        .map(|id| id.rsplit_once('.').unwrap().0.to_owned())
        .collect()
}

fn is_of_health(effect: PortEffect<'_>) -> bool {
    effect.key == HEALTH
}

/// Notices of health are neither lost nor new, whichever effect fails.
#[tokio::test]
async fn health_notices_are_neither_lost_nor_new_on_any_fault() {
    let expected = ["orders.billing.failing", "orders.billing.recovered"];
    assert_eq!(Box::pin(incident(&Faults::none())).await, expected);
    at_every_effect_of(is_of_health, async |plan, place| {
        let faults = Faults::in_state(plan);
        assert_eq!(Box::pin(incident(&faults)).await, expected, "{place}");
    })
    .await;
}
