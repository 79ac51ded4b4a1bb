//! deliver, invocation by invocation: what it sends, and where it puts what did not arrive.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::api::StatusState;
use posthaste_core::model::{DeadLetter, DeadLetterReason, SendFailure};
use posthaste_core::stored::WIRE_VERSION;
use posthaste_core::stored::dead_letter_message::parse_dead_letter;
use posthaste_core::stored::delivery::parse_delivery;
use posthaste_ports::{ErrorKind, ObjectStore, PutCondition, QueueName};
use posthaste_simulation::{Answer, Faults, World, event, start};
use posthaste_testkit::faulty::{CallFault, FaultPlan, PortEffect};
use serde_json::json;

const DAY: Duration = Duration::from_hours(24);

fn events(count: usize) -> Vec<String> {
    (0..count).map(|n| event(&format!("e{n}"))).collect()
}

async fn world(settings: serde_json::Value) -> World {
    let world = World::new();
    world.subscribe(settings).await;
    world
}

/// The one dead letter that waits in its queue, once its delay is over.
async fn dead_letter(world: &World) -> DeadLetter {
    world.clock.advance(Duration::from_mins(5));
    let messages = world.receive(QueueName::DeadLetters).await;
    assert_eq!(messages.len(), 1);
    parse_dead_letter(&messages[0].body).expect("a dead letter")
}

#[tokio::test]
async fn delivered_event_leaves_nothing_behind() {
    let world = world(json!({})).await;
    world.publish(&events(3), DAY).await;
    assert_eq!(world.deliver().await.failures, []);
    assert_eq!(world.endpoint.take().len(), 3);
    world.clock.advance(DAY);
    for queue in [QueueName::Deliveries, QueueName::DeadLetters] {
        assert_eq!(world.visible(queue).await, 0);
    }
}

#[tokio::test]
async fn a_busy_endpoint_is_tried_again_after_its_wait() {
    let world = world(json!({})).await;
    world
        .endpoint
        .answer([Answer::Status(503), Answer::Status(200)]);
    world.publish(&events(1), DAY).await;
    world.deliver().await;
    assert_eq!(
        (
            world.visible(QueueName::Deliveries).await,
            world.delayed(QueueName::Deliveries).await
        ),
        (0, 1)
    );
    world.clock.advance(Duration::from_secs(34));
    world.deliver().await;
    let requests = world.endpoint.take();
    let header = |n: usize, name: &str| requests[n].headers[name].to_str().unwrap().to_owned();
    assert_eq!(
        (
            header(0, "aeg-delivery-count"),
            header(1, "aeg-delivery-count")
        ),
        ("0".into(), "1".into())
    );
    assert_eq!(header(0, "webhook-id"), header(1, "webhook-id"));
    assert_eq!(requests.len(), 2);
}

/// A refused event is dead-lettered after the delay of its subscription.
#[tokio::test]
async fn refused_event_is_dead_lettered_after_its_delay() {
    let world = world(json!({ "deadLetter": { "delay": "PT5M" } })).await;
    world.endpoint.answer([Answer::Status(404)]);
    world.publish(&events(1), DAY).await;
    world.deliver().await;
    assert_eq!(world.visible(QueueName::DeadLetters).await, 0);
    let letter = dead_letter(&world).await;
    assert_eq!(
        letter.reason,
        DeadLetterReason::UndeliverableDueToClientError
    );
    assert_eq!(
        (
            letter.delivery.attempts,
            letter.delivery.last.unwrap().status
        ),
        (1, Some(404))
    );
}

#[tokio::test]
async fn a_refused_batch_is_split_until_only_the_offender_is_left() {
    let world = world(json!({ "batching": { "maxEventsPerBatch": 8 } })).await;
    world.endpoint.answer([Answer::By(
        |body, _| if body.contains("\"e5\"") { 400 } else { 204 },
    )]);
    world.publish(&events(8), DAY).await;
    world.deliver().await;
    let letter = dead_letter(&world).await;
    assert_eq!(letter.delivery.events.len(), 1);
    assert_eq!(letter.delivery.attempts, 1);
    let sizes: Vec<_> = world
        .endpoint
        .take()
        .iter()
        .map(|request| request.body.matches("specversion").count())
        .collect();
    assert_eq!(sizes, [8, 4, 4, 2, 1, 1, 2]);
}

#[tokio::test]
async fn messages_of_one_subscription_and_attempt_are_merged() {
    let world = world(json!({ "batching": { "maxEventsPerBatch": 5 } })).await;
    world.publish(&events(3), DAY).await;
    world.publish(&events(4), DAY).await;
    world.deliver().await;
    let sizes: Vec<_> = world
        .endpoint
        .take()
        .iter()
        .map(|request| request.body.matches("specversion").count())
        .collect();
    assert_eq!(sizes, [5, 2]);
}

/// A request that cannot end before the deadline goes back without an attempt.
#[tokio::test]
async fn request_too_long_for_the_deadline_goes_back_unattempted() {
    let world = world(json!({})).await;
    world.publish(&events(1), DAY).await;
    world.deliver_within(Duration::from_secs(29)).await;
    assert_eq!(world.endpoint.take().len(), 0);
    let messages = world.receive(QueueName::Deliveries).await;
    assert_eq!(parse_delivery(&messages[0].body).unwrap().attempts, 0);
}

#[tokio::test]
async fn wait_longer_than_the_queue_delay_is_parked_in_one_object() {
    let world = world(json!({ "retryPolicy": { "schedule": ["PT1H"] } })).await;
    // A status that says nothing about the endpoint: its deliveries do not pause after it.
    world.endpoint.answer([Answer::Status(422)]);
    world.publish(&events(2), DAY).await;
    world.publish(&events(1), DAY).await;
    world.deliver().await;
    let parked = world.parked().await;
    assert_eq!(parked.len(), 1, "{parked:?}");
    assert_eq!(
        (
            world.visible(QueueName::Deliveries).await,
            world.delayed(QueueName::Deliveries).await
        ),
        (0, 0)
    );
    assert_eq!(world.wake().await.sent, 0);
    world.endpoint.answer([Answer::Status(200)]);
    world.endpoint.take();
    world.clock.advance(Duration::from_mins(67));
    let report = world.wake().await;
    assert_eq!((report.released, report.sent, report.left), (1, 2, 0));
    world.deliver_all().await;
    assert_eq!(world.endpoint.take().len(), 3);
    assert_eq!(world.parked().await, Vec::<String>::new());
}

#[tokio::test]
async fn events_of_a_deleted_subscription_are_dead_lettered() {
    let world = world(json!({})).await;
    world.publish(&events(2), DAY).await;
    world.unsubscribe().await;
    world.deliver().await;
    let letter = dead_letter(&world).await;
    assert_eq!(
        (letter.reason, letter.delivery.attempts),
        (DeadLetterReason::SubscriptionDeleted, 0)
    );
    assert_eq!(letter.delivery.events.len(), 2);
}

#[tokio::test]
async fn a_topic_that_cannot_be_read_hands_its_messages_back() {
    let always = |kind| FaultPlan::by(move |_| Some(CallFault::Before(kind)));
    let world = World::with(&Faults::in_state(&always(ErrorKind::TimedOut)));
    world.subscribe(json!({})).await;
    world.publish(&events(1), DAY).await;
    assert_eq!(world.deliver().await.failures.len(), 1);
    assert_eq!(world.endpoint.take().len(), 0);
    world.clock.advance(Duration::from_mins(6));
    assert_eq!(world.visible(QueueName::Deliveries).await, 1);
}

#[tokio::test]
async fn gone_disables_the_subscription_and_what_waits_follows() {
    let world = world(json!({})).await;
    world.endpoint.answer([Answer::Status(410)]);
    world.publish(&events(1), DAY).await;
    world.deliver().await;
    assert_eq!(
        dead_letter(&world).await.reason,
        DeadLetterReason::EndpointGone
    );
    let record = world.record().await;
    let status = record
        .settings
        .subscriptions
        .values()
        .next()
        .unwrap()
        .status
        .clone()
        .unwrap();
    assert_eq!(
        (status.state, status.since.0),
        (StatusState::Disabled, start())
    );
    world.endpoint.take();
    world.publish(&events(1), DAY).await;
    world.deliver().await;
    assert_eq!(world.endpoint.take().len(), 0);
    world.clock.advance(Duration::from_mins(5));
    assert_eq!(world.receive(QueueName::DeadLetters).await.len(), 1);
}

#[tokio::test]
async fn an_expired_event_is_not_tried() {
    let world = world(json!({})).await;
    world.publish(&events(1), Duration::from_mins(1)).await;
    world.clock.advance(Duration::from_mins(1));
    world.deliver().await;
    assert_eq!(world.endpoint.take().len(), 0);
    assert_eq!(
        dead_letter(&world).await.reason,
        DeadLetterReason::TimeToLiveExceeded
    );
}

#[tokio::test]
async fn an_expired_event_is_dropped_where_the_subscription_says_so() {
    let world = world(json!({ "deadLetter": { "onExpiry": false } })).await;
    world.publish(&events(1), Duration::from_mins(1)).await;
    world.clock.advance(Duration::from_mins(1));
    world.deliver().await;
    world.clock.advance(DAY);
    assert_eq!(
        (
            world.visible(QueueName::DeadLetters).await,
            world.visible(QueueName::Deliveries).await
        ),
        (0, 0)
    );
}

/// An attempt that outlasts the time to live counts if it succeeds.
#[tokio::test]
async fn attempt_that_outlasts_the_time_to_live_counts_as_success() {
    let world = world(json!({})).await;
    world
        .endpoint
        .answer([Answer::After(Duration::from_secs(20), 200)]);
    world.publish(&events(1), Duration::from_secs(10)).await;
    world.deliver().await;
    world.clock.advance(DAY);
    assert_eq!(world.visible(QueueName::DeadLetters).await, 0);
}

/// A foreign message goes to the dead letters byte for byte, and its neighbour is delivered.
#[tokio::test]
async fn foreign_message_goes_to_dead_letters_byte_for_byte() {
    let world = world(json!({})).await;
    let foreign = Bytes::from_static("{\"not\": \"ours\", ü".as_bytes());
    world.send(QueueName::Deliveries, foreign.clone()).await;
    world.publish(&events(1), DAY).await;
    world.deliver().await;
    assert_eq!(world.endpoint.take().len(), 1);
    let messages = world.receive(QueueName::DeadLetters).await;
    assert_eq!(
        messages.iter().map(|m| m.body.clone()).collect::<Vec<_>>(),
        [foreign]
    );
}

#[tokio::test]
async fn a_newer_message_waits_for_a_newer_reader() {
    let world = world(json!({})).await;
    let newer = Bytes::from(format!("{{\"v\":{}}}", WIRE_VERSION + 1));
    world.send(QueueName::Deliveries, newer.clone()).await;
    world.deliver().await;
    assert_eq!(world.visible(QueueName::Deliveries).await, 0);
    world.clock.advance(Duration::from_mins(15));
    assert_eq!(world.receive(QueueName::Deliveries).await[0].body, newer);
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_tried_twice() {
    let world = world(json!({})).await;
    world
        .endpoint
        .answer([Answer::Failure(SendFailure::Resolution {
            does_not_exist: true,
        })]);
    world.publish(&events(1), DAY).await;
    world.deliver().await;
    world.clock.advance(Duration::from_mins(6));
    world.deliver().await;
    assert_eq!(world.endpoint.take().len(), 2);
    let letter = dead_letter(&world).await;
    assert_eq!(
        (letter.reason, letter.delivery.attempts),
        (DeadLetterReason::UndeliverableDueToClientError, 2)
    );
}

#[tokio::test]
async fn a_stored_payload_is_sent_like_any_other() {
    let world = world(json!({})).await;
    let key = "payloads/20231114/x";
    let text = Bytes::from(event("stored"));
    world
        .local
        .state_store()
        .put(key, text.clone(), PutCondition::Always)
        .await
        .expect("a write");
    world.publish_stored(key, &event("stored")).await;
    world.deliver().await;
    assert_eq!(world.endpoint.take()[0].body.as_bytes(), text);
}

#[tokio::test]
async fn event_with_a_missing_payload_is_kept_as_far_as_it_is_known() {
    let world = world(json!({})).await;
    world
        .publish_stored("payloads/20231114/gone", &event("stored"))
        .await;
    world.deliver().await;
    world.clock.advance(Duration::from_mins(5));
    world.bury().await;
    let buried = world.buried().await;
    assert_eq!(buried.len(), 1);
    let text = String::from_utf8_lossy(&buried[0].1);
    assert!(
        buried[0].0.starts_with("MALFORMED/") && text.contains("payloads/20231114/gone"),
        "{buried:?}"
    );
}

#[tokio::test]
async fn unreadable_payload_postpones_its_event_without_an_attempt() {
    let rule = |effect: PortEffect<'_>| {
        effect
            .key
            .starts_with("payloads/")
            .then_some(CallFault::Before(ErrorKind::Denied))
    };
    let world = World::with(&Faults::in_state(&FaultPlan::by(rule)));
    world.subscribe(json!({})).await;
    world
        .publish_stored("payloads/20231114/x", &event("stored"))
        .await;
    world.deliver().await;
    assert_eq!(
        (
            world.visible(QueueName::Deliveries).await,
            world.delayed(QueueName::Deliveries).await
        ),
        (0, 1)
    );
    world.clock.advance(Duration::from_secs(30));
    let messages = world.receive(QueueName::Deliveries).await;
    assert_eq!(
        parse_delivery(&messages[0].body)
            .expect("a delivery")
            .attempts,
        0
    );
}

#[tokio::test]
async fn answers_milliseconds_apart_leave_one_message() {
    let world = world(json!({})).await;
    world
        .endpoint
        .answer([Answer::After(Duration::from_millis(1), 503)]);
    world.publish(&events(10), DAY).await;
    world.deliver().await;
    assert_eq!(world.delayed(QueueName::Deliveries).await, 1);
}

/// An event with more attributes than headers can be is sent structured beside its neighbour.
#[tokio::test]
async fn event_with_too_many_attributes_is_sent_structured() {
    let world = world(json!({ "contentMode": "binary" })).await;
    let many: String = (0..40_000)
        .map(|n| [",\"a", &n.to_string(), "\":1"].concat())
        .collect();
    let event_of_many = event("many").replace('}', &(many + "}"));
    world.publish(&events(1), DAY).await;
    world.publish(&[event_of_many], DAY).await;
    assert_eq!(world.deliver().await.failures, []);
    let requests = world.endpoint.take();
    let structured = requests.iter().map(|request| {
        request.headers["content-type"]
            .as_bytes()
            .starts_with(b"application/cloudevents+json")
    });
    assert_eq!(structured.collect::<Vec<_>>(), [true, true]);
}

#[tokio::test]
async fn a_machine_without_sockets_costs_no_attempt() {
    let world = world(json!({})).await;
    world
        .endpoint
        .answer([Answer::Failure(SendFailure::Exhausted), Answer::Status(204)]);
    world.publish(&events(1), DAY).await;
    world.deliver().await;
    world.clock.advance(Duration::from_secs(30));
    world.deliver().await;
    let counts: Vec<_> = world
        .endpoint
        .take()
        .iter()
        .map(|request| request.headers["aeg-delivery-count"].clone())
        .collect();
    assert_eq!(counts, ["0", "0"]);
}
