use axum::body::Body;
use futures_util::future::join;
use http::Request;
use posthaste_core::stored::layout;
use posthaste_ports::QueueName;
use posthaste_testkit::records::TOPIC_KEY;
use posthaste_tests_models::check::{holds, refutes};
use posthaste_tests_models::idempotency::{Answer, Idempotency, Key, Request as OfModel, Variant};
use posthaste_tests_models::step::Actor;
use posthaste_tests_models::trace::{Run, follow};
use serde_json::json;

use crate::kit::{Kit, ask};
use crate::report;

#[test]
fn a_name_is_published_once_in_every_order() {
    for contents in [&[0, 0, 0][..], &[0, 0, 1]] {
        let model = Idempotency::of_the_code(contents);
        report("idempotency", holds("idempotency", model));
    }
}

#[test]
fn variants_without_a_part_are_refuted() {
    for (variant, property) in [
        (
            Variant::PutWithoutMatch,
            "one request of a name publishes at a time",
        ),
        (Variant::SettlesBeforeSend, "an accepted request was sent"),
        (Variant::NewIds, "copies of a request have one id"),
    ] {
        let model = Idempotency {
            variant,
            ..Idempotency::of_the_code(&[0, 0, 0])
        };
        refutes("idempotency", model, property);
    }
}

/// A limit of the code: a store deletes without a condition, so that a name which is used again more
/// than a day later, between wake's look and its delete, is claimed by nobody afterwards.
#[test]
fn a_name_that_is_swept_while_it_is_claimed_again_is_free() {
    let model = Idempotency {
        sweeps: true,
        faults: 0,
        deaths: 0,
        steps: 0,
        ..Idempotency::of_the_code(&[0, 0, 0])
    };
    refutes(
        "idempotency",
        model,
        "one request of a name publishes at a time",
    );
}

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#;

async fn publish(kit: &Kit, actor: Actor) -> u16 {
    let request = Request::post("/topics/orders/events")
        .header("aeg-sas-key", TOPIC_KEY)
        .header("content-type", "application/cloudevents+json")
        .header("idempotency-key", "8e03978e-40d5")
        .body(Body::from(EVENT))
        .unwrap();
    ask(kit.publish(actor), request).await.0
}

/// Two requests of a name at once, and one more when the name is settled.
#[tokio::test]
async fn calls_of_requests_are_steps_of_the_model() {
    let kit = Kit::new(&json!({}));
    let both = join(publish(&kit, 0), publish(&kit, 1)).await;
    assert_eq!(both, (200, 200));
    assert_eq!(publish(&kit, 2).await, 200);
    let store_key = |key: &str| key.starts_with(layout::IDEMPOTENCY).then_some(Key::Name);
    let queue_key = |queue| (queue == QueueName::Deliveries).then_some(Key::Deliveries);
    let run = Run::of(&kit.notes, store_key, queue_key, None);
    assert_eq!(run.calls().len(), 7, "{run:#?}");
    let model = Idempotency::of_the_code(&[0, 0, 0]);
    let ends = follow("idempotency", &model, &run, (1, 3));
    let answers = [Answer::Accepted; 3].map(OfModel::Answered);
    assert!(ends.iter().any(|end| end.requests == answers));
}
