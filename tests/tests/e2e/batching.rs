//! Several events in one request.

use posthaste_tests::api::CLOUD_EVENTS_BATCH;
use posthaste_tests::endpoint::{Answer, Endpoint, Received};
use posthaste_tests::events::{cloud_event, event_grid_event, subscription_with};
use posthaste_tests::home::Home;
use serde_json::{Value, json};

fn events(count: usize) -> Vec<Value> {
    (0..count).map(|n| cloud_event(&format!("e{n}"))).collect()
}

/// Refuses whatever holds the event `e13`.
fn refuse_e13(request: &Received) -> u16 {
    if request.ids().iter().any(|id| id == "e13") {
        400
    } else {
        200
    }
}

/// Refuses whatever holds more than two events.
fn too_large_over_two(request: &Received) -> u16 {
    if request.ids().len() > 2 { 413 } else { 200 }
}

#[test]
fn a_batch_never_exceeds_its_count() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let batching = json!({ "batching": { "maxEventsPerBatch": 10 } });
    let settings = subscription_with(&endpoint.url("/a"), &batching);
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish_batch(&events(25));
    let requests = endpoint.wait_for("/a", 3);
    let mut sizes: Vec<_> = requests.iter().map(|request| request.ids().len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [5, 10, 10]);
    assert!(requests.iter().all(|request| {
        request
            .header("content-type")
            .is_some_and(|found| found.starts_with(CLOUD_EVENTS_BATCH))
    }));
    let mut ids: Vec<_> = requests.iter().flat_map(Received::ids).collect();
    ids.sort_by_key(|id| id[1..].parse::<u32>().unwrap());
    assert_eq!(ids, (0..25).map(|n| format!("e{n}")).collect::<Vec<_>>());
}

#[test]
fn a_batch_exceeds_its_preferred_size_for_a_single_event_only() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let batching =
        json!({ "batching": { "maxEventsPerBatch": 100, "preferredBatchSizeInKilobytes": 4 } });
    let settings = subscription_with(&endpoint.url("/a"), &batching);
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    let mut events = events(20);
    for event in &mut events {
        event["data"] = json!("x".repeat(1000));
    }
    events[7]["data"] = json!("y".repeat(10_000));
    topic.publish_batch(&events);
    let requests = posthaste_tests::patience::wait_until("all twenty events", || {
        let requests = endpoint.received("/a");
        (requests
            .iter()
            .map(|request| request.ids().len())
            .sum::<usize>()
            >= 20)
            .then_some(requests)
    });
    assert_eq!(
        requests
            .iter()
            .map(|request| request.ids().len())
            .sum::<usize>(),
        20
    );
    for request in requests {
        assert!(
            request.body.len() <= 4096 || request.ids() == ["e7"],
            "{} bytes",
            request.body.len()
        );
    }
}

#[test]
fn a_refused_batch_is_split_until_only_the_offender_is_left() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    endpoint.script("/a", [Answer::Judge(refuse_e13)]);
    let batching = json!({ "batching": { "maxEventsPerBatch": 100 } });
    let settings = subscription_with(&endpoint.url("/a"), &batching);
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish_batch(&events(50));
    let letter = home.wait_for_dead_letter("orders", "billing");
    assert_eq!(letter["id"], "e13");
    assert_eq!(letter["deadletterreason"], "UndeliverableDueToClientError");
    assert_eq!(letter["lasthttpstatuscode"], 400);
    let mut accepted = posthaste_tests::patience::wait_until("the forty-nine others", || {
        let good = endpoint
            .received("/a")
            .into_iter()
            .filter(|request| refuse_e13(request) == 200);
        let ids: Vec<_> = good.flat_map(|request| request.ids()).collect();
        (ids.len() >= 49).then_some(ids)
    });
    accepted.sort_by_key(|id| id[1..].parse::<u32>().unwrap());
    let others: Vec<_> = (0..50)
        .filter(|n| *n != 13)
        .map(|n| format!("e{n}"))
        .collect();
    assert_eq!(accepted, others);
}

/// Refuses whatever holds the event `e3`, as frameworks do that validate.
fn does_not_validate_e3(request: &Received) -> u16 {
    if request.ids().iter().any(|id| id == "e3") {
        422
    } else {
        200
    }
}

#[test]
fn a_batch_refused_twice_for_one_event_loses_that_one_only() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    endpoint.script("/a", [Answer::Judge(does_not_validate_e3)]);
    let policy = json!({ "batching": { "maxEventsPerBatch": 10 }, "retryPolicy": { "maxDeliveryAttempts": 3 } });
    let settings = subscription_with(&endpoint.url("/a"), &policy);
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish_batch(&events(10));
    let letter = home.wait_for_dead_letter("orders", "billing");
    assert_eq!(
        (&letter["id"], &letter["deliveryattempts"]),
        (&json!("e3"), &json!(3))
    );
    let requests = endpoint.received("/a").into_iter();
    let mut accepted: Vec<_> = requests
        .filter(|request| does_not_validate_e3(request) == 200)
        .flat_map(|request| request.ids())
        .collect();
    accepted.sort();
    let others: Vec<_> = (0..10)
        .filter(|n| *n != 3)
        .map(|n| format!("e{n}"))
        .collect();
    assert_eq!(accepted, others);
}

#[test]
fn a_batch_that_is_too_large_is_split_and_all_of_it_delivered() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    endpoint.script("/a", [Answer::Judge(too_large_over_two)]);
    let batching = json!({ "batching": { "maxEventsPerBatch": 8 } });
    let settings = subscription_with(&endpoint.url("/a"), &batching);
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish_batch(&events(8));
    let mut accepted = posthaste_tests::patience::wait_until("all eight events", || {
        let good = endpoint
            .received("/a")
            .into_iter()
            .filter(|request| too_large_over_two(request) == 200);
        let ids: Vec<_> = good.flat_map(|request| request.ids()).collect();
        (ids.len() >= 8).then_some(ids)
    });
    accepted.sort();
    assert_eq!(accepted, ["e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7"]);
    assert!(home.dead_letter_files("orders", "billing").is_empty());
}

#[test]
fn a_batch_is_retried_whole_and_under_the_same_id() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let batching = json!({ "batching": { "maxEventsPerBatch": 10 } });
    let settings = subscription_with(&endpoint.on("/a", &[500, 200]), &batching);
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish_batch(&events(3));
    let requests = endpoint.wait_for("/a", 2);
    assert_eq!(requests[0].body, requests[1].body);
    assert_eq!(
        requests[0].header("webhook-id"),
        requests[1].header("webhook-id")
    );
}

#[test]
fn event_grid_events_share_an_array() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let batching = json!({ "batching": { "maxEventsPerBatch": 10 } });
    let settings = subscription_with(&endpoint.url("/a"), &batching);
    let topic = json!({ "inputSchema": "EventGrid", "subscriptions": { "all": settings } });
    let topic = server.api().create_topic("blobs", &topic);
    let events = json!([
        event_grid_event("1"),
        event_grid_event("2"),
        event_grid_event("3")
    ]);
    topic
        .send("application/json", events.to_string().as_bytes())
        .unwrap()
        .expect(200);
    let request = endpoint.wait_for_one("/a");
    assert_eq!(request.ids(), ["1", "2", "3"]);
    assert!(
        request
            .header("content-type")
            .unwrap()
            .starts_with("application/json")
    );
}
