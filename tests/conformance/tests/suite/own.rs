//! Offers of posthaste to receivers beyond those documents.

use posthaste_tests::api::CLOUD_EVENT;
use posthaste_tests::endpoint::{Answer, Received, Reply};
use posthaste_tests::events::cloud_event;
use posthaste_tests_conformance::{HOOK, ORIGIN, SUBSCRIPTION, TOPIC, World};
use serde_json::{Value, json};

fn batched(is_partial: bool) -> Value {
    json!({ "batching": { "maxEventsPerBatch": 10, "partialAcknowledgement": is_partial } })
}

/// Fails the event `2` of a batch, and takes it when it comes alone.
fn all_but_2(request: &Received) -> Reply {
    let is_alone = request.ids() == ["2"];
    let failures = if is_alone {
        json!([])
    } else {
        json!([{ "itemIdentifier": "2" }])
    };
    let headers = vec![("content-type", "application/json".to_owned())];
    Reply {
        status: 200,
        headers,
        body: json!({ "batchItemFailures": failures }).to_string(),
    }
}

/// The events of each request after a batch of three was published.
fn requests_of_three(is_partial: bool) -> (World, Vec<Vec<String>>) {
    let world = World::new();
    world.endpoint.script(HOOK, [Answer::Reply(all_but_2)]);
    let events = ["1", "2", "3"].map(cloud_event);
    world.deliver_batch(&events, &batched(is_partial));
    let count = if is_partial { 2 } else { 1 };
    let requests = world
        .endpoint
        .wait_for(HOOK, count)
        .iter()
        .map(Received::ids)
        .collect();
    (world, requests)
}

#[test]
fn only_events_named_by_a_batch_receiver_are_tried_again() {
    let (world, requests) = requests_of_three(true);
    assert_eq!(requests, [vec!["1", "2", "3"], vec!["2"]]);
    world.wait_for_successes(3);
    assert_eq!(world.endpoint.received(HOOK).len(), 2);
}

/// Without partial acknowledgement a response of success acknowledges the whole batch.
#[test]
fn success_acknowledges_the_whole_batch_unless_allowed_in_part() {
    let (world, requests) = requests_of_three(false);
    assert_eq!(requests, [vec!["1", "2", "3"]]);
    // Events after it would come after a retry too.
    world.server.api().topic(TOPIC).publish(&cloud_event("4"));
    assert_eq!(world.endpoint.wait_for(HOOK, 2)[1].ids(), ["4"]);
}

/// A test event is one real attempt, whose request and response are shown.
#[test]
fn test_event_is_a_real_attempt_with_request_and_response_shown() {
    let world = World::reachable();
    world.endpoint.script(
        HOOK,
        [Answer::With(404, "x-reason", "none such".to_owned())],
    );
    let headers = json!([{ "name": "Authorization", "value": "Bearer s3cret", "isSecret": true }]);
    world.topic("CloudEvents", &json!({ "deliveryHeaders": headers }));
    let path = format!("/topics/{TOPIC}/subscriptions/{SUBSCRIPTION}/test");
    let shown = world
        .server
        .api()
        .manage("POST", &path, Some(&cloud_event("1")))
        .expect(200)
        .json();
    let request = world.endpoint.wait_for_one(HOOK);
    assert_eq!(request.header("authorization"), Some("Bearer s3cret"));
    assert_eq!(request.header("webhook-request-origin"), Some(ORIGIN));
    assert_eq!(
        (&shown["delivered"], &shown["outcome"]),
        (&json!(false), &json!("NotFound"))
    );
    assert_eq!(shown["response"]["headers"]["x-reason"], "none such");
    assert_eq!(
        shown["request"]["headers"]["webhook-id"].as_str(),
        request.header("webhook-id")
    );
    assert_eq!(
        shown["request"]["body"].as_str().map(str::as_bytes),
        Some(request.body.as_slice())
    );
    assert!(!shown.to_string().contains("s3cret"));
    assert_eq!(world.endpoint.all().len(), 1);
}

/// Publishes an event with this header to a new world's topic.
fn publish_with_hops(hops: &str) -> (World, posthaste_tests::api::Answer) {
    let world = World::new();
    let topic = world.topic("CloudEvents", &json!({}));
    let headers = [
        ("aeg-sas-key", topic.keys[0].as_str()),
        ("content-type", CLOUD_EVENT),
        ("Posthaste-Hops", hops),
    ];
    let answer = topic.send_with(&headers, cloud_event("1").to_string().as_bytes());
    (world, answer)
}

#[test]
fn a_delivery_says_how_many_deliveries_its_event_came_through() {
    let world = World::new();
    assert_eq!(
        world
            .deliver(&cloud_event("1"), &json!({}))
            .header("posthaste-hops"),
        Some("1")
    );
    let (world, answer) = publish_with_hops("7");
    answer.expect(200);
    assert_eq!(
        world.endpoint.wait_for_one(HOOK).header("posthaste-hops"),
        Some("8")
    );
}

#[test]
fn an_event_that_came_through_eight_deliveries_is_refused() {
    let (world, answer) = publish_with_hops("8");
    let problem = answer.problem(400);
    assert_eq!(
        [&problem["type"], &problem["member"]],
        ["urn:posthaste:problem:loop-detected", "posthaste-hops"]
    );
    // An event that is published later arrives first.
    world.server.api().topic(TOPIC).publish(&cloud_event("2"));
    assert_eq!(world.endpoint.wait_for_one(HOOK).ids(), ["2"]);
}

#[test]
fn a_subscription_cannot_set_the_hops() {
    let headers = json!([{ "name": "Posthaste-Hops", "value": "0" }]);
    let problem = World::new().refusal(&json!({ "deliveryHeaders": headers }));
    assert!(
        problem["member"]
            .as_str()
            .is_some_and(|member| member.contains("deliveryHeaders[0]")),
        "{problem}"
    );
}
