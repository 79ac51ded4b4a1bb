//! Changes of a subscription while its requests wait in line for a slow endpoint: none begins by the
//! subscription as it was, and edits that change nothing of a request stop none.

use std::time::Duration;

use posthaste_core::stored::delivery::parse_delivery;
use posthaste_ports::QueueName;
use posthaste_simulation::{Answer, Faults, World, event};
use serde_json::{Value, json};

const DAY: Duration = Duration::from_hours(24);
const ANSWER_TIME: Duration = Duration::from_secs(8);
const INVOCATION: Duration = Duration::from_mins(2);
const EVENTS: usize = 100;

/// The requests that begin at once: 10, and 4 more for the 90 that wait.
const AT_ONCE: usize = 14;

const FIRST: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const SECOND: &str = "whsec_QUJDREVGR0hJSktMTU5PUFFSU1RVVldY";

/// The settings before every change.
fn before() -> Value {
    json!({
        "deliveryHeaders": [{ "name": "x-token", "value": "old" }],
        "signing": { "secrets": [FIRST] },
    })
}

/// The settings with these members in place of theirs.
fn with(more: Value) -> Value {
    let mut settings = before();
    let (Value::Object(settings_of), Value::Object(more)) = (&mut settings, more) else {
        panic!("settings are objects")
    };
    settings_of.extend(more);
    settings
}

fn status(state: &str) -> Value {
    with(json!({ "status": { "state": state, "since": "2023-01-01T00:00:00Z" } }))
}

async fn publish(world: &World) {
    let ids = 0..EVENTS;
    let events: Vec<_> = ids.map(|number| event(&number.to_string())).collect();
    let message = world.message(&events, DAY);
    world.send(QueueName::Deliveries, message.body).await;
}

/// Lets go on what can without time. Answers how many requests began since the last time.
async fn begun(world: &World) -> usize {
    let mut seen = usize::MAX;
    while seen != world.endpoint.seen() {
        seen = world.endpoint.seen();
        world.rest().await;
    }
    world.endpoint.take().len()
}

/// Makes this change while a hundred events are in line. Answers how many requests began in the
/// rest of the invocation, and how many events are due again without an attempt.
async fn after(world: &World, change: impl Future<Output = ()>) -> (usize, usize) {
    world.subscribe(before()).await;
    let slow = Answer::SlowAt("hooks", ANSWER_TIME);
    world.endpoint.answer([slow]);
    publish(world).await;
    let script = async {
        assert_eq!(begun(world).await, AT_ONCE);
        change.await;
        let mut later = 0;
        for _ in 0..8 {
            world.clock.advance(ANSWER_TIME);
            later += begun(world).await;
        }
        later
    };
    let (response, later) = tokio::join!(world.deliver_within(INVOCATION), script);
    assert_eq!(response.failures, []);
    let back = world.receive(QueueName::Deliveries).await;
    let back = back.iter().map(|it| parse_delivery(&it.body).unwrap());
    let untried = back.filter(|delivery| delivery.attempts == 0);
    (later, untried.map(|delivery| delivery.events.len()).sum())
}

#[tokio::test]
async fn changed_request_does_not_begin_and_goes_back() {
    let url = |url: &str| json!({ "url": url });
    for settings in [
        status("Paused"),
        status("Disabled"),
        with(json!({ "endpoint": url("https://billing.example.com/new") })),
        with(json!({ "deliveryHeaders": [{ "name": "x-token", "value": "new" }] })),
        with(json!({ "signing": { "secrets": [SECOND] } })),
        with(json!({ "endpoint": {
            "url": "https://billing.example.com/hooks", "timeout": "PT15S",
        } })),
        with(json!({ "batching": { "maxEventsPerBatch": 5 } })),
        with(json!({ "contentMode": "binary" })),
    ] {
        let world = World::new();
        let expected = (0, EVENTS - AT_ONCE);
        let changed = world.subscribe(settings.clone());
        assert_eq!(after(&world, changed).await, expected, "{settings}");
    }
}

#[tokio::test]
async fn deleted_subscription_gets_nothing_that_waited() {
    let expected = (0, EVENTS - AT_ONCE);
    let world = World::new();
    assert_eq!(after(&world, world.unsubscribe()).await, expected);
    let world = World::new();
    let again = world.subscribe_again(before());
    assert_eq!(after(&world, again).await, expected);
}

#[tokio::test]
async fn edits_of_something_else_starve_nothing() {
    let shipping = async |world: &World| {
        let mut record = world.record().await;
        let name = posthaste_core::model::SubscriptionName::parse("shipping").unwrap();
        let settings = json!({ "endpoint": { "url": "https://shipping.example.com/" } });
        let settings = serde_json::from_value(settings).unwrap();
        record.settings.subscriptions.insert(name, settings);
        world.write_record(record.render()).await;
    };
    let world = World::new();
    assert_eq!(after(&world, shipping(&world)).await, (EVENTS - AT_ONCE, 0));
    for settings in [
        with(json!({ "filter": { "includedEventTypes": ["other"] } })),
        with(json!({ "retryPolicy": { "maxDeliveryAttempts": 3 } })),
        with(json!({ "deadLetter": { "enabled": false } })),
    ] {
        let world = World::new();
        let edited = world.subscribe(settings);
        assert_eq!(after(&world, edited).await, (EVENTS - AT_ONCE, 0));
    }
}

/// A delivery that goes back is planned again by the subscription as it is: it is held, given up,
/// or sent with the new header.
#[tokio::test]
async fn returned_deliveries_are_planned_by_the_change() {
    let check = async |settings: Value, held: usize, given_up: u64, sent: usize| {
        let world = World::new();
        world.subscribe(before()).await;
        let slow = Answer::SlowAt("hooks", ANSWER_TIME);
        world.endpoint.answer([slow]);
        publish(&world).await;
        let script = async {
            assert_eq!(begun(&world).await, AT_ONCE);
            world.subscribe(settings).await;
            world.clock.advance(ANSWER_TIME);
            assert_eq!(begun(&world).await, 0);
        };
        let (response, ()) = tokio::join!(world.deliver_within(INVOCATION), script);
        assert_eq!(response.failures, []);
        world.endpoint.answer([Answer::Status(204)]);
        world.deliver_all().await;
        let requests = world.endpoint.take();
        let is_new = |token: &http::HeaderValue| token == "new";
        let tokens = requests.iter().map(|it| it.headers.get("x-token").unwrap());
        assert_eq!(tokens.filter(|it| is_new(it)).count(), sent);
        let dead = world.delayed(QueueName::DeadLetters).await;
        assert_eq!((world.held().await.len(), dead), (held, given_up));
        assert_eq!(requests.len(), sent);
    };
    check(status("Paused"), 1, 0, 0).await;
    check(status("Disabled"), 0, 1, 0).await;
    let new = json!({ "deliveryHeaders": [{ "name": "x-token", "value": "new" }] });
    check(with(new), 0, 0, EVENTS - AT_ONCE).await;
}

/// On AWS a worker may know the topic as it was `RegistryMaxAge` ago, and no longer.
#[tokio::test]
async fn request_begins_by_what_is_seconds_old_at_most() {
    const MAX_AGE: Duration = Duration::from_secs(5);
    const SECOND: Duration = Duration::from_secs(1);
    let world = World::remembering(&Faults::none(), MAX_AGE);
    world.subscribe(before()).await;
    let slow = Answer::SlowAt("hooks", SECOND);
    world.endpoint.answer([slow]);
    publish(&world).await;
    let script = async {
        assert_eq!(begun(&world).await, AT_ONCE);
        world.clock.advance(SECOND);
        assert_eq!(begun(&world).await, AT_ONCE);
        world.subscribe(status("Paused")).await;
        let mut began = Vec::new();
        for _ in 0..10 {
            world.clock.advance(SECOND);
            began.push(begun(&world).await);
        }
        began
    };
    let (_, began) = tokio::join!(world.deliver_within(INVOCATION), script);
    assert_eq!(began[3..], [0; 7], "{began:?}");
}

/// After an endpoint's own 410 the worker that saw it begins no further request.
#[tokio::test]
async fn gone_endpoint_gets_nothing_that_waited() {
    for max_age in [Duration::ZERO, Duration::from_mins(5)] {
        let world = World::remembering(&Faults::none(), max_age);
        world.subscribe(before()).await;
        world
            .endpoint
            .answer([Answer::SlowBy(ANSWER_TIME, |_| 410)]);
        publish(&world).await;
        let script = async {
            assert_eq!(begun(&world).await, AT_ONCE);
            world.clock.advance(ANSWER_TIME);
            assert_eq!(begun(&world).await, 0);
        };
        let (response, ()) = tokio::join!(world.deliver_within(INVOCATION), script);
        assert_eq!(response.failures, []);
        world.clock.advance(Duration::from_mins(5));
        world.deliver_all().await;
        assert_eq!(begun(&world).await, 0);
    }
}
