//! Azure Event Grid's page "Delivery and retry" (2021-07-27) and what it says of batches, answers
//! and the policy. <https://learn.microsoft.com/azure/event-grid/delivery-and-retry>

use posthaste_tests::endpoint::{Answer, Received};
use posthaste_tests::events::{cloud_event, event_grid_event};
use posthaste_tests_conformance::{HOOK, SUBSCRIPTION, TOPIC, World};
use serde_json::{Value, json};

fn events(count: usize) -> Vec<Value> {
    (0..count)
        .map(|n| event_grid_event(&n.to_string()))
        .collect()
}

/// The sizes of the requests that a batching policy makes of one publish request's events, sorted.
fn sizes(events: &[Value], batching: &Value, requests: usize) -> Vec<usize> {
    let world = World::new();
    world.deliver_event_grid(events, &json!({ "batching": batching }));
    let received = world.endpoint.wait_for(HOOK, requests);
    let mut sizes: Vec<_> = received.iter().map(|request| request.ids().len()).collect();
    sizes.sort_unstable();
    sizes
}

/// The member that the door names when a subscription has these settings.
fn refused_member(more: &Value) -> Value {
    World::new().refusal(more)["member"].clone()
}

#[test]
fn each_message_is_delivered_to_each_matching_subscription() {
    let world = World::new();
    let topic = world.topic("EventGrid", &json!({}));
    let more = json!({ "endpoint": { "url": world.endpoint.url("/second") } });
    let second = world.subscription(&more);
    world
        .server
        .api()
        .manage("PUT", "/topics/orders/subscriptions/second", Some(&second))
        .expect(201);
    let body = Value::from(events(1)).to_string();
    topic
        .send("application/json", body.as_bytes())
        .expect("an answer")
        .expect(200);
    for path in [HOOK, "/second"] {
        assert_eq!(world.endpoint.wait_for_one(path).ids(), ["0"]);
    }
}

#[test]
fn by_default_one_event_is_sent_at_a_time_as_an_array_of_one() {
    let world = World::new();
    world.deliver_event_grid(&events(3), &json!({}));
    for request in world.endpoint.wait_for(HOOK, 3) {
        assert_eq!(request.json().as_array().map(Vec::len), Some(1));
        assert_eq!(
            request.header("content-type"),
            Some("application/json; charset=utf-8")
        );
        assert_eq!(request.header("aeg-event-type"), Some("Notification"));
    }
}

#[test]
fn an_endpoint_that_does_not_answer_is_tried_again() {
    let world = World::new();
    world
        .endpoint
        .script(HOOK, [Answer::Never, Answer::Status(200)]);
    world.deliver_event_grid(&events(1), &json!({ "endpoint": { "timeout": "PT1S" } }));
    let requests = world.endpoint.wait_for(HOOK, 2);
    assert_eq!(requests[1].header("aeg-delivery-count"), Some("1"));
}

#[test]
fn the_greatest_number_of_attempts_is_1_to_30() {
    for attempts in [0, 31] {
        let more = json!({ "retryPolicy": { "maxDeliveryAttempts": attempts } });
        assert_eq!(
            refused_member(&more),
            "subscriptions.billing.retryPolicy.maxDeliveryAttempts"
        );
    }
    let world = World::new();
    // A status that says nothing about the endpoint, whose deliveries would pause after ten
    // failures in a row.
    world.endpoint.on(HOOK, &[422]);
    world
        .topic("CloudEvents", &json!({}))
        .publish(&cloud_event("1"));
    let letter = world.dead_letter();
    assert_eq!(letter["deliveryattempts"], 30);
    assert_eq!(letter["deadletterreason"], "MaxDeliveryAttemptsExceeded");
    assert_eq!(world.endpoint.received(HOOK).len(), 30);
}

#[test]
fn the_time_to_live_is_1_to_1440_minutes() {
    for minutes in [0, 1441] {
        let more = json!({ "retryPolicy": { "eventTimeToLiveInMinutes": minutes } });
        assert_eq!(
            refused_member(&more),
            "subscriptions.billing.retryPolicy.eventTimeToLiveInMinutes"
        );
    }
}

#[test]
fn batching_is_off_by_default() {
    let world = World::new();
    world.deliver_event_grid(&events(4), &json!({}));
    let received = world.endpoint.wait_for(HOOK, 4);
    assert!(received.iter().all(|request| request.ids().len() == 1));
}

#[test]
fn the_greatest_number_of_events_in_a_batch_is_never_exceeded() {
    assert_eq!(
        sizes(&events(9), &json!({ "maxEventsPerBatch": 4 }), 3),
        [1, 4, 4]
    );
}

#[test]
fn a_batch_is_sent_with_fewer_events_rather_than_later() {
    assert_eq!(
        sizes(&events(2), &json!({ "maxEventsPerBatch": 5000 }), 1),
        [2]
    );
}

#[test]
fn event_of_10_kb_is_its_own_batch_where_4_kb_are_preferred() {
    let mut events = events(3);
    events[1]["data"] = json!("x".repeat(10 * 1024));
    let policy = json!({ "maxEventsPerBatch": 10, "preferredBatchSizeInKilobytes": 4 });
    let world = World::new();
    world.deliver_event_grid(&events, &json!({ "batching": policy }));
    let of_the_large_one = |requests: &[Received]| {
        requests
            .iter()
            .map(Received::ids)
            .find(|ids| ids.iter().any(|id| id == "1"))
    };
    let requests = world.endpoint.wait_for(HOOK, 2);
    assert_eq!(
        of_the_large_one(&requests).or_else(|| of_the_large_one(&world.endpoint.wait_for(HOOK, 3))),
        Some(vec!["1".to_owned()])
    );
}

#[test]
fn a_batch_stays_below_its_preferred_size() {
    let mut events = events(8);
    for event in &mut events {
        event["data"] = json!("x".repeat(1500));
    }
    let world = World::new();
    let policy = json!({ "maxEventsPerBatch": 100, "preferredBatchSizeInKilobytes": 4 });
    world.deliver_event_grid(&events, &json!({ "batching": policy }));
    for request in world.endpoint.wait_for(HOOK, 4) {
        assert!(request.body.len() <= 4 * 1024, "{}", request.body.len());
    }
}

#[test]
fn a_batch_has_1_to_5000_events_and_1_to_1024_kilobytes() {
    for (member, values) in [
        ("maxEventsPerBatch", [0, 5001]),
        ("preferredBatchSizeInKilobytes", [0, 1025]),
    ] {
        for value in values {
            let more = json!({ "batching": { member: value } });
            assert_eq!(
                refused_member(&more),
                format!("subscriptions.billing.batching.{member}")
            );
        }
    }
}

#[test]
fn a_batch_is_acknowledged_or_tried_again_as_a_whole() {
    let world = World::new();
    world.endpoint.on(HOOK, &[500, 200]);
    world.deliver_event_grid(
        &events(3),
        &json!({ "batching": { "maxEventsPerBatch": 3 } }),
    );
    let ids: Vec<_> = world
        .endpoint
        .wait_for(HOOK, 2)
        .iter()
        .map(Received::ids)
        .collect();
    assert_eq!(ids, [["0", "1", "2"], ["0", "1", "2"]]);
}

#[test]
fn single_setting_of_batching_is_enough() {
    assert_eq!(
        sizes(&events(3), &json!({ "maxEventsPerBatch": 3 }), 1),
        [3]
    );
    // The greatest number is 1 where it is not said.
    assert_eq!(
        sizes(
            &events(2),
            &json!({ "preferredBatchSizeInKilobytes": 64 }),
            2
        ),
        [1, 1]
    );
}

#[test]
fn success_is_200_to_204_only() {
    let world = World::new();
    world
        .endpoint
        .on(HOOK, &[205, 206, 299, 304, 200, 201, 202, 203, 204]);
    let topic = world.topic("CloudEvents", &json!({}));
    topic.publish(&cloud_event("first"));
    world.endpoint.wait_for(HOOK, 5);
    for id in ["201", "202", "203", "204"] {
        topic.publish(&cloud_event(id));
    }
    let requests = world.endpoint.wait_for(HOOK, 9);
    let count = |id: &str| {
        requests
            .iter()
            .filter(|request| request.ids() == [id])
            .count()
    };
    assert_eq!(
        ["first", "201", "202", "203", "204"].map(count),
        [5, 1, 1, 1, 1]
    );
}

#[test]
fn after_400_401_403_404_and_413_there_is_no_retry() {
    let world = World::new();
    let topic = world.topic(
        "CloudEvents",
        &json!({ "endpoint": { "url": world.endpoint.url("/none") } }),
    );
    for status in [400, 401, 403, 404, 413] {
        let path = format!("/{status}");
        world.endpoint.on(&path, &[status]);
        let settings =
            world.subscription(&json!({ "endpoint": { "url": world.endpoint.url(&path) } }));
        let subscription = format!("/topics/{TOPIC}/subscriptions/s{status}");
        world
            .server
            .api()
            .manage("PUT", &subscription, Some(&settings))
            .expect(201);
    }
    topic.publish(&cloud_event("1"));
    for status in [400, 401, 403, 404, 413] {
        let letter = world
            .home
            .wait_for_dead_letter(TOPIC, &format!("s{status}"));
        assert_eq!(
            (&letter["deliveryattempts"], &letter["lasthttpstatuscode"]),
            (&json!(1), &json!(status))
        );
        assert_eq!(world.endpoint.received(&format!("/{status}")).len(), 1);
    }
}

/// Every delivery says its subscription, and how often it was tried before.
#[test]
fn delivery_says_its_subscription_and_its_attempt_count() {
    let world = World::new();
    world.endpoint.on(HOOK, &[500, 200]);
    world.deliver_event_grid(&events(1), &json!({}));
    let requests = world.endpoint.wait_for(HOOK, 2);
    let counts: Vec<_> = requests
        .iter()
        .map(|request| request.header("aeg-delivery-count"))
        .collect();
    assert_eq!(counts, [Some("0"), Some("1")]);
    assert!(
        requests
            .iter()
            .all(|request| request.header("aeg-subscription-name") == Some(SUBSCRIPTION))
    );
}

#[test]
fn event_changes_schema_only_where_event_grid_converts_it() {
    let world = World::new();
    let all = ["CloudEvents", "EventGrid", "Custom"];
    let can = |input: &str, output: &str| {
        let subscriptions =
            json!({ SUBSCRIPTION: world.subscription(&json!({ "deliverySchema": output })) });
        let settings = json!({ "inputSchema": input, "subscriptions": subscriptions });
        world
            .server
            .api()
            .manage("PUT", &format!("/topics/{input}-{output}"), Some(&settings))
            .status
            == 201
    };
    let answers = all.map(|input| all.map(|output| can(input, output)));
    assert_eq!(
        answers,
        [
            [true, false, false],
            [true, true, false],
            [true, true, true]
        ]
    );
}

fn header(name: &str, value: &str) -> Value {
    json!({ "name": name, "value": value })
}

#[test]
fn a_subscription_has_up_to_ten_headers_of_up_to_4096_bytes() {
    let headers = |count: usize, bytes: usize| {
        let value = "x".repeat(bytes);
        let headers: Vec<_> = (0..count)
            .map(|n| header(&format!("x-{n}"), &value))
            .collect();
        json!({ "deliveryHeaders": headers })
    };
    let request = World::new().deliver(&cloud_event("1"), &headers(10, 4096));
    assert!((0..10).all(|n| {
        request
            .header(&format!("x-{n}"))
            .is_some_and(|value| value.len() == 4096)
    }));
    assert_eq!(
        refused_member(&headers(11, 1)),
        "subscriptions.billing.deliveryHeaders"
    );
    assert_eq!(
        refused_member(&headers(1, 4097)),
        "subscriptions.billing.deliveryHeaders[0].value"
    );
}

#[test]
fn a_header_may_take_a_string_number_or_boolean_of_the_event() {
    let mut event = cloud_event("1");
    event["data"] = json!({ "system": "eu", "n": 7, "yes": true, "object": {} });
    let from =
        |name: &str| json!({ "name": format!("x-{name}"), "fromEvent": format!("/data/{name}") });
    let headers: Vec<_> = ["system", "n", "yes", "object", "missing"].map(from).into();
    let request = World::new().deliver(&event, &json!({ "deliveryHeaders": headers }));
    let values =
        ["x-system", "x-n", "x-yes", "x-object", "x-missing"].map(|name| request.header(name));
    assert_eq!(values, [Some("eu"), Some("7"), Some("true"), None, None]);
}

#[test]
fn a_secret_header_is_sent_and_not_shown() {
    let world = World::new();
    let headers = json!([{ "name": "x-key", "value": "s3cret", "isSecret": true }]);
    let request = world.deliver(&cloud_event("1"), &json!({ "deliveryHeaders": headers }));
    assert_eq!(request.header("x-key"), Some("s3cret"));
    assert!(!world.shown().to_string().contains("s3cret"));
    assert!(!world.server.log().join("\n").contains("s3cret"));
}

#[test]
fn the_system_s_own_headers_cannot_be_set() {
    for name in [
        "aeg-mine",
        "webhook-id",
        "ce-id",
        "Content-Type",
        "Host",
        "Transfer-Encoding",
        "Connection",
    ] {
        let more = json!({ "deliveryHeaders": [header(name, "x")] });
        assert_eq!(
            refused_member(&more),
            "subscriptions.billing.deliveryHeaders[0].name",
            "{name}"
        );
    }
}
