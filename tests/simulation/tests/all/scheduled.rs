//! Events that are published for later: sent once their minute has come and never before, by the
//! settings and within the life that begin then, unless they were taken back.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::Request;
use posthaste_core::model::{PAYLOAD_KEPT, Timestamp};
use posthaste_core::stored::layout::{PARKED, SCHEDULED_PAYLOADS};
use posthaste_local::{LocalQueue, StateStore};
use posthaste_ports::{Clock, ErrorKind, QueueName};
use posthaste_publish::{BodyBudget, Publish, PublishSettings, TarpitTurns};
use posthaste_services::{ActivityNotes, PressureReader, TopicRegistry, WrongKeys};
use posthaste_simulation::{Answer, Faults, World};
use posthaste_testkit::faulty::FaultPlan;
use posthaste_testkit::{CallFault, Faulty, ManualClock, SeededEntropy, TestPorts};
use serde_json::{Value, json};

type Ports = TestPorts<Faulty<LocalQueue<ManualClock>>, Faulty<StateStore>>;

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// publish over the world's queue and store, whose effects may fail.
fn publish(world: &World, plan: &FaultPlan) -> Arc<Publish<Ports>> {
    let clock = world.clock.clone();
    let state = || Faulty::new(world.local.state_store(), "state", plan);
    let queue = |name, label| Faulty::new(world.local.queue(name), label, plan);
    Arc::new(Publish {
        deliveries: queue(QueueName::Deliveries, "deliveries"),
        records: Some(queue(QueueName::Records, "records")),
        slow_lane: None,
        registry: TopicRegistry::new(state(), clock.clone(), Duration::ZERO),
        payloads: state(),
        pressure: PressureReader::new(state(), clock.clone(), Duration::ZERO),
        entropy: SeededEntropy::new(clock.now().as_millis()),
        clock,
        activity: ActivityNotes::default(),
        bodies: BodyBudget::new(10_000_000),
        advice: TarpitTurns::default(),
        wrong_keys: WrongKeys::default(),
        traces: posthaste_services::EventTraces::default(),
        settings: PublishSettings {
            stores_for_log: true,
            ..PublishSettings::default()
        },
    })
}

/// A world with a topic of these settings and one subscription of these.
async fn world_with(topic: Value, subscription: Value) -> World {
    world_over(&Faults::none(), topic, subscription).await
}

async fn world_over(faults: &Faults, mut topic: Value, mut subscription: Value) -> World {
    let world = World::with(faults);
    subscription["endpoint"]["url"] = json!("https://billing.example.com/");
    topic["subscriptions"] = json!({ "billing": subscription });
    let (status, answer) = world.api().ask("PUT", "/topics/orders", &topic).await;
    assert_eq!(status, 201, "{answer}");
    world
}

async fn world() -> World {
    world_with(json!({}), json!({})).await
}

fn event(id: &str) -> Value {
    json!({ "specversion": "1.0", "id": id, "source": "/s", "type": "t" })
}

/// Publishes events with these headers; answers the status.
async fn post(world: &World, plan: &FaultPlan, headers: &[(&str, &str)], events: &[Value]) -> u16 {
    let api = world.api();
    let (_, keys) = api.ask("GET", "/topics/orders/keys", &Value::Null).await;
    let mut request = Request::post("/")
        .header("content-type", "application/cloudevents-batch+json")
        .header("aeg-sas-key", keys["key1"].as_str().expect("a key"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = Body::from(json!(events).to_string());
    let publish = publish(world, plan);
    match publish.publish("orders", request.body(body).unwrap()).await {
        Ok(_) => 200,
        Err(error) => error.problem().status.as_u16(),
    }
}

/// Publishes an event for this long from now; answers that time.
async fn schedule(world: &World, id: &str, ahead: Duration) -> Timestamp {
    let not_before = world.clock.now() + ahead;
    let header = ("posthaste-not-before", &*not_before.to_string());
    assert_eq!(
        post(world, &FaultPlan::none(), &[header], &[event(id)]).await,
        200
    );
    // Requests of one millisecond have the same keys here.
    world.clock.advance(Duration::from_millis(1));
    not_before
}

/// The times and ids of the events that the endpoint got.
fn sent(world: &World) -> Vec<(Timestamp, String)> {
    let requests = world.endpoint.take();
    let id = |body: &str| {
        let event: Value = serde_json::from_str(body).expect("an event");
        event["id"].as_str().expect("an id").to_owned()
    };
    requests.iter().map(|it| (it.at, id(&it.body))).collect()
}

async fn cancel(world: &World, id: &str) {
    let path = format!("/topics/orders/events/{id}");
    let (status, answer) = world.api().ask("DELETE", &path, &Value::Null).await;
    assert_eq!((status, answer["id"].as_str()), (202, Some(id)), "{answer}");
}

/// The state of an event's one delivery, its reason, and the time of its next attempt.
async fn shown(world: &World, id: &str) -> [String; 3] {
    world.record_some(10).await;
    let path = format!("/topics/orders/events/{id}");
    let (status, event) = world.api().ask("GET", &path, &Value::Null).await;
    assert_eq!(status, 200, "{event}");
    let delivery = &event["deliveries"][0];
    let reason = &delivery["reason"];
    [&delivery["state"], reason, &delivery["nextAttemptAt"]]
        .map(|value| value.as_str().unwrap_or("none").to_owned())
}

#[tokio::test]
async fn event_goes_out_in_its_minute_and_never_before() {
    for ahead in [Duration::from_secs(1), MINUTE, 10 * MINUTE, HOUR] {
        let world = world().await;
        let not_before = schedule(&world, "e", ahead).await;
        world
            .pass(ahead.saturating_sub(Duration::from_secs(1)))
            .await;
        assert_eq!(sent(&world), [], "{ahead:?}");
        world.pass(2 * MINUTE).await;
        let [(at, _)] = &*sent(&world) else {
            panic!("one request");
        };
        assert!(
            *at >= not_before && *at <= not_before + 2 * MINUTE,
            "{ahead:?}: {at}"
        );
        assert!(world.is_at_rest().await);
    }
}

#[tokio::test]
async fn event_of_a_time_that_is_over_goes_out_at_once() {
    let world = world().await;
    let header = ("posthaste-not-before", "2020-01-01T00:00:00Z");
    assert_eq!(
        post(&world, &FaultPlan::none(), &[header], &[event("e")]).await,
        200
    );
    world.deliver().await;
    assert_eq!(sent(&world).len(), 1);
}

#[tokio::test]
async fn scheduled_event_is_shown_with_its_minute() {
    let world = world().await;
    let not_before = schedule(&world, "e", 3 * HOUR).await;
    let minute = not_before.rounded_up_to_minute().to_string();
    let expected = ["pending", "none", &minute].map(str::to_owned);
    assert_eq!(shown(&world, "e").await, expected);
    world.pass_by(MINUTE, 4 * HOUR).await;
    let [state, ..] = shown(&world, "e").await;
    assert_eq!(state, "delivered");
}

/// Jumps of a day, in each of which everything that is due happens.
async fn pass_days(world: &World, days: u32) {
    for _ in 0..days {
        world.clock.advance(DAY.saturating_sub(2 * MINUTE));
        world.wake().await;
        world.pass(2 * MINUTE).await;
    }
}

#[tokio::test]
async fn large_event_is_sent_whole_after_thirty_days() {
    let world = world().await;
    let not_before = world.clock.now() + 30 * DAY;
    let header = ("posthaste-not-before", &*not_before.to_string());
    let mut large = event("e");
    large["data"] = json!("x".repeat(200_000));
    assert_eq!(
        post(&world, &FaultPlan::none(), &[header], &[large]).await,
        200
    );
    let stored = world.all_keys(SCHEDULED_PAYLOADS).await;
    assert_eq!(stored.len(), 1, "{stored:?}");
    pass_days(&world, 29).await;
    assert_eq!(sent(&world), []);
    world.pass_by(MINUTE, DAY + 2 * MINUTE).await;
    let requests = world.endpoint.take();
    let sizes: Vec<_> = requests.iter().map(|it| it.body.len() / 100_000).collect();
    assert_eq!(sizes, [2]);
    assert!(requests.iter().all(|request| request.at >= not_before));
    // The delivery log may refer to it, and a dead letter that the bucket refuses.
    pass_days(&world, 14).await;
    assert_eq!(world.all_keys(SCHEDULED_PAYLOADS).await, stored);
    world.clock.advance(PAYLOAD_KEPT);
    world.pass_by(MINUTE, 2 * HOUR).await;
    assert_eq!(world.all_keys(SCHEDULED_PAYLOADS).await, [] as [String; 0]);
}

#[tokio::test]
async fn time_to_live_counts_from_the_time_named() {
    let world = world_with(
        json!({}),
        json!({ "retryPolicy": { "schedule": ["PT5M"] } }),
    )
    .await;
    world.chance.hold(0.0);
    world.endpoint.answer([Answer::Status(503)]);
    let not_before = world.clock.now() + 5 * HOUR;
    let not_before_text = not_before.to_string();
    let headers = [
        ("posthaste-not-before", &*not_before_text),
        ("posthaste-time-to-live", "PT1H"),
    ];
    assert_eq!(
        post(&world, &FaultPlan::none(), &headers, &[event("e")]).await,
        200
    );
    world.pass_by(Duration::from_secs(20), 7 * HOUR).await;
    let times: Vec<_> = sent(&world).into_iter().map(|(at, _)| at).collect();
    assert!(
        times
            .iter()
            .all(|at| *at >= not_before && *at < not_before + HOUR)
    );
    assert!(times.len() >= 10, "{times:?}");
    let letters = world.letters().await;
    assert_eq!(letters[0].reason, "TimeToLiveExceeded");
}

#[tokio::test]
async fn events_of_a_request_have_times_of_their_own() {
    let world = world_with(json!({ "notBeforeAttribute": "sendafter" }), json!({})).await;
    let at = |ahead: Duration| world.clock.now() + ahead;
    let scheduled = |id: &str, ahead| {
        let mut event = event(id);
        event["sendafter"] = json!(at(ahead).to_string());
        event
    };
    let events = [
        scheduled("hour", HOUR),
        event("request"),
        scheduled("now", Duration::ZERO),
    ];
    let of_request = at(2 * HOUR).to_string();
    let header = ("posthaste-not-before", &*of_request);
    assert_eq!(
        post(&world, &FaultPlan::none(), &[header], &events).await,
        200
    );
    let ids = || {
        sent(&world)
            .into_iter()
            .map(|(_, id)| id)
            .collect::<Vec<_>>()
    };
    world.deliver().await;
    assert_eq!(ids(), ["now"]);
    world.pass_by(MINUTE, HOUR + MINUTE).await;
    assert_eq!(ids(), ["hour"]);
    world.pass_by(MINUTE, HOUR + MINUTE).await;
    assert_eq!(ids(), ["request"]);
}

#[tokio::test]
async fn batch_of_a_minute_stays_a_batch() {
    let world = world_with(
        json!({}),
        json!({ "batching": { "maxEventsPerBatch": 10 } }),
    )
    .await;
    let header = (
        "posthaste-not-before",
        &*(world.clock.now() + HOUR).to_string(),
    );
    let events = ["a", "b", "c"].map(event);
    assert_eq!(
        post(&world, &FaultPlan::none(), &[header], &events).await,
        200
    );
    assert_eq!(world.all_keys(PARKED).await.len(), 1);
    world.pass_by(MINUTE, HOUR + 2 * MINUTE).await;
    let requests = world.endpoint.take();
    assert_eq!(requests.len(), 1);
    let events: Vec<Value> = serde_json::from_str(&requests[0].body).unwrap();
    assert_eq!(events.len(), 3);
}

#[tokio::test]
async fn event_that_was_taken_back_is_not_sent_and_has_a_record() {
    let world = world().await;
    schedule(&world, "kept", HOUR).await;
    schedule(&world, "cancelled", HOUR).await;
    cancel(&world, "cancelled").await;
    world.pass_by(MINUTE, 2 * HOUR).await;
    let ids: Vec<_> = sent(&world).into_iter().map(|(_, id)| id).collect();
    assert_eq!(ids, ["kept"]);
    let expected = ["dropped", "Cancelled", "none"].map(str::to_owned);
    assert_eq!(shown(&world, "cancelled").await, expected);
    assert_eq!(world.letters().await, []);
    assert!(world.is_at_rest().await);
}

/// The record of such an event is made without its text, which is stored beside its message.
#[tokio::test]
async fn large_event_that_was_taken_back_has_a_record() {
    let world = world().await;
    let not_before = (world.clock.now() + HOUR).to_string();
    let header = ("posthaste-not-before", &*not_before);
    let mut large = event("cancelled");
    large["data"] = json!("x".repeat(200_000));
    assert_eq!(
        post(&world, &FaultPlan::none(), &[header], &[large]).await,
        200
    );
    cancel(&world, "cancelled").await;
    world.pass_by(MINUTE, 2 * HOUR).await;
    assert_eq!(sent(&world), []);
    let expected = ["dropped", "Cancelled", "none"].map(str::to_owned);
    assert_eq!(shown(&world, "cancelled").await, expected);
}

#[tokio::test]
async fn only_what_was_accepted_before_it_is_taken_back() {
    let world = world().await;
    schedule(&world, "e", 2 * HOUR).await;
    world.clock.advance(Duration::from_secs(1));
    cancel(&world, "e").await;
    world.clock.advance(Duration::from_secs(1));
    let not_before = schedule(&world, "e", 3 * HOUR).await;
    world.pass_by(MINUTE, 4 * HOUR).await;
    let [(at, _)] = &*sent(&world) else {
        panic!("one request");
    };
    assert!(*at >= not_before);
}

#[tokio::test]
async fn event_whose_release_began_is_sent() {
    let world = world().await;
    world
        .endpoint
        .answer([Answer::Status(503), Answer::Status(204)]);
    schedule(&world, "e", HOUR).await;
    world.pass_by(MINUTE, HOUR + MINUTE).await;
    assert_eq!(sent(&world).len(), 1);
    cancel(&world, "e").await;
    world.pass_by(MINUTE, HOUR).await;
    assert_eq!(sent(&world).len(), 1);
}

#[tokio::test]
async fn force_sends_what_failed_and_not_what_is_scheduled() {
    let world = world().await;
    schedule(&world, "e", 5 * HOUR).await;
    let path = "/topics/orders/subscriptions/billing/force";
    let (status, answer) = world.api().ask("POST", path, &Value::Null).await;
    assert_eq!(status, 200, "{answer}");
    world.pass_by(MINUTE, HOUR).await;
    assert_eq!(sent(&world), []);
}

#[tokio::test]
async fn clock_that_is_set_back_moves_no_time_that_was_named() {
    let world = world().await;
    let not_before = schedule(&world, "e", 3 * DAY).await;
    world.wake().await;
    pass_days(&world, 2).await;
    assert_eq!(sent(&world), []);
    world.pass_by(MINUTE, DAY + 5 * MINUTE).await;
    let [(at, _)] = &*sent(&world) else {
        panic!("one request");
    };
    assert!(*at >= not_before && *at < not_before + 2 * MINUTE);
}

/// Recovery counts from the time at which the event was to be sent, however long before that it was
/// published.
#[tokio::test]
async fn letter_says_when_the_life_of_its_event_began() {
    let world = world_with(
        json!({}),
        json!({ "retryPolicy": { "maxDeliveryAttempts": 1 } }),
    )
    .await;
    world.endpoint.answer([Answer::Status(503)]);
    let not_before = schedule(&world, "e", 20 * DAY).await;
    pass_days(&world, 19).await;
    world.pass_by(MINUTE, DAY + 5 * MINUTE).await;
    assert_eq!(world.letters().await.len(), 1);
    let (_, object) = &world.buried().await[0];
    let letters: Value = serde_json::from_slice(object).unwrap();
    let begun = letters[0]["firstpublishtime"].as_str().expect("a time");
    let begun = Timestamp::parse(begun).unwrap();
    assert!(
        begun >= not_before && begun < not_before + 2 * MINUTE,
        "{begun}"
    );
}

#[tokio::test]
async fn subscription_that_was_deleted_gets_nothing_later() {
    let world = world().await;
    schedule(&world, "e", HOUR).await;
    let path = "/topics/orders/subscriptions/billing";
    let (status, answer) = world.api().ask("DELETE", path, &Value::Null).await;
    assert!(status < 300, "{status} {answer}");
    world.pass_by(MINUTE, 2 * HOUR).await;
    assert_eq!(sent(&world), []);
    let letters = world.letters().await;
    assert_eq!(letters[0].reason, "SubscriptionDeleted");
}

#[tokio::test]
async fn times_that_nothing_can_be_scheduled_for_are_refused_whole() {
    let world = world_with(json!({ "notBeforeAttribute": "sendafter" }), json!({})).await;
    let later = (world.clock.now() + 31 * DAY).to_string();
    for wrong in ["soon", "", &later] {
        let header = ("posthaste-not-before", wrong);
        assert_eq!(
            post(&world, &FaultPlan::none(), &[header], &[event("e")]).await,
            400
        );
        let mut second = event("f");
        second["sendafter"] = json!(wrong);
        assert_eq!(
            post(&world, &FaultPlan::none(), &[], &[event("e"), second]).await,
            400
        );
    }
    world.pass(2 * MINUTE).await;
    assert_eq!(sent(&world), []);
    assert!(world.is_at_rest().await);
}

/// A request that is answered 200 is delivered, and one that is not and comes again by its
/// idempotency key is delivered once, whatever publish could not do.
#[tokio::test]
async fn scheduled_event_is_durable_before_the_200_on_any_fault() {
    let effects = {
        let world = world().await;
        let plan = FaultPlan::none();
        let header = (
            "posthaste-not-before",
            &*(world.clock.now() + HOUR).to_string(),
        );
        let key = ("idempotency-key", "k");
        assert_eq!(
            post(&world, &plan, &[header, key], &[event("e")]).await,
            200
        );
        plan.effects()
    };
    assert!(effects >= 4, "{effects}");
    let faults = [
        CallFault::Before(ErrorKind::Other),
        CallFault::After(ErrorKind::Other),
    ];
    for number in 0..effects {
        for fault in &faults {
            let world = world().await;
            let header = (
                "posthaste-not-before",
                &*(world.clock.now() + HOUR).to_string(),
            );
            let key = ("idempotency-key", "k");
            let plan = FaultPlan::nth(number, fault.clone());
            let mut status = 0;
            for _ in 0..3 {
                status = post(&world, &plan, &[header, key], &[event("e")]).await;
                if status == 200 {
                    break;
                }
                // A claim that was left lapses.
                world.clock.advance(5 * MINUTE);
            }
            assert_eq!(status, 200, "{number} {fault:?}");
            world.pass_by(MINUTE, 2 * HOUR).await;
            assert_eq!(sent(&world).len(), 1, "{number} {fault:?}");
            assert!(world.is_at_rest().await);
        }
    }
}

/// An event that was taken back is never sent, and the rest is, whatever wake and deliver cannot
/// do.
#[tokio::test]
async fn scheduled_event_is_not_lost_or_early_whichever_effect_fails() {
    let run = async |plan: &FaultPlan| {
        plan.switch(false);
        let world = world_over(&Faults::in_state(plan), json!({}), json!({})).await;
        let kept = schedule(&world, "kept", HOUR).await;
        schedule(&world, "cancelled", HOUR).await;
        cancel(&world, "cancelled").await;
        world.clock.advance(HOUR.saturating_sub(2 * MINUTE));
        world.wake().await;
        plan.switch(true);
        let before = plan.effects();
        for _ in 0..6 {
            world.clock.advance(MINUTE);
            // A run that fails is made again in the next minute.
            let _ = world.try_wake().await;
            world.deliver_all().await;
        }
        plan.switch(false);
        world.pass_by(MINUTE, 20 * MINUTE).await;
        (sent(&world), kept, before)
    };
    let plan = FaultPlan::none();
    let (_, _, first) = run(&plan).await;
    let last = plan.effects();
    assert!(last > first);
    for number in first..last {
        for fault in [
            CallFault::Before(ErrorKind::Other),
            CallFault::After(ErrorKind::Other),
        ] {
            let (sent, not_before, _) = run(&FaultPlan::nth(number, fault.clone())).await;
            assert!(!sent.is_empty(), "{number} {fault:?}");
            for (at, id) in sent {
                assert!(
                    id == "kept" && at >= not_before,
                    "{number} {fault:?}: {id} {at}"
                );
            }
        }
    }
}
