//! Every form in which events are published, and every form in which they arrive.

use posthaste_tests::api::{CLOUD_EVENT, CLOUD_EVENTS_BATCH};
use posthaste_tests::endpoint::{Endpoint, Received};
use posthaste_tests::events::{cloud_event, event_grid_event, subscription, subscription_with};
use posthaste_tests::home::Home;
use serde_json::{Value, json};

#[test]
fn a_structured_cloud_event_arrives_as_it_was_written() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let topic =
        server
            .api()
            .create_topic_with("orders", "billing", &subscription(&endpoint.url("/a")));
    // Order, spacing, number forms, escapes and unknown extensions are the producer's.
    let body = br#"{"type":"t", "specversion":"1.0","source":"/s","id":"1","myextension":7,"data":{"b":1.50,"a":"\u00e9","n":90071992547409931}}"#;
    topic.send(CLOUD_EVENT, body).unwrap().expect(200);
    let request = endpoint.wait_for_one("/a");
    assert_eq!(request.method, "POST");
    assert_eq!(
        String::from_utf8_lossy(&request.body),
        String::from_utf8_lossy(body)
    );
    assert!(
        request
            .header("content-type")
            .unwrap()
            .starts_with(CLOUD_EVENT)
    );
    assert_eq!(request.header("aeg-event-type"), Some("Notification"));
    assert_eq!(request.header("aeg-subscription-name"), Some("billing"));
    assert_eq!(request.header("aeg-delivery-count"), Some("0"));
}

#[test]
fn a_batch_of_cloud_events_arrives_one_by_one() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let topic =
        server
            .api()
            .create_topic_with("orders", "billing", &subscription(&endpoint.url("/a")));
    let events: Vec<Value> = (0..25).map(|n| cloud_event(&format!("e{n}"))).collect();
    topic
        .send(
            CLOUD_EVENTS_BATCH,
            Value::from(events.clone()).to_string().as_bytes(),
        )
        .unwrap()
        .expect(200);
    let mut arrived: Vec<Value> = endpoint
        .wait_for("/a", 25)
        .iter()
        .map(Received::json)
        .collect();
    arrived.sort_by_key(|event| event["id"].as_str().unwrap()[1..].parse::<u32>().unwrap());
    assert_eq!(arrived, events);
}

#[test]
fn a_binary_cloud_event_arrives_structured_or_binary() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let binary = subscription_with(
        &endpoint.url("/binary"),
        &json!({ "contentMode": "binary" }),
    );
    let both =
        json!({ "structured": subscription(&endpoint.url("/structured")), "binary": binary });
    let topic = server
        .api()
        .create_topic("orders", &json!({ "subscriptions": both }));
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let headers = [
        ("authorization", &*format!("Bearer {}", topic.keys[1])),
        ("content-type", "application/json"),
        ("ce-specversion", "1.0"),
        ("ce-id", "1"),
        ("ce-source", "/s"),
        ("ce-type", "t"),
        ("ce-traceparent", traceparent),
        ("ce-mine", "kept"),
    ];
    topic.send_with(&headers, br#"{"n":1}"#).expect(200);
    let structured = endpoint.wait_for_one("/structured");
    let event = structured.json();
    assert_eq!(
        (&event["id"], &event["data"], &event["mine"]),
        (&json!("1"), &json!({"n": 1}), &json!("kept"))
    );
    assert_eq!(structured.header("traceparent"), Some(traceparent));
    let binary = endpoint.wait_for_one("/binary");
    assert_eq!(binary.body, br#"{"n":1}"#);
    let header = |name| binary.header(name);
    assert_eq!(
        [header("ce-id"), header("ce-type"), header("ce-mine")],
        [Some("1"), Some("t"), Some("kept")]
    );
}

#[test]
fn event_grid_events_arrive_as_arrays_of_one() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = json!({ "inputSchema": "EventGrid", "subscriptions": { "all": subscription(&endpoint.url("/a")) } });
    let topic = server.api().create_topic("blobs", &settings);
    let events = json!([event_grid_event("1"), event_grid_event("2")]);
    topic
        .send("application/json", events.to_string().as_bytes())
        .unwrap()
        .expect(200);
    topic
        .send(
            "application/json; charset=utf-8",
            event_grid_event("3").to_string().as_bytes(),
        )
        .unwrap()
        .expect(200);
    let requests = endpoint.wait_for("/a", 3);
    let mut ids: Vec<_> = requests.iter().flat_map(Received::ids).collect();
    ids.sort();
    assert_eq!(ids, ["1", "2", "3"]);
    for request in &requests {
        let body = request.json();
        assert_eq!(body.as_array().map(Vec::len), Some(1));
        assert_eq!(body[0]["data"], json!({ "n": 1 }));
        assert!(
            request
                .header("content-type")
                .unwrap()
                .starts_with("application/json")
        );
    }
}

#[test]
fn both_keys_open_a_topic_and_a_new_key_replaces_one() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let topic =
        server
            .api()
            .create_topic_with("orders", "billing", &subscription(&endpoint.url("/a")));
    let publish = |key: &str, id: &str| {
        let headers = [("aeg-sas-key", key), ("content-type", CLOUD_EVENT)];
        topic.send_with(&headers, cloud_event(id).to_string().as_bytes())
    };
    publish(&topic.keys[0], "1").expect(200);
    publish(&topic.keys[1], "2").expect(200);
    server
        .api()
        .manage("POST", "/topics/orders/keys/key1/regenerate", None)
        .expect(200);
    let renewed = server.api().topic("orders");
    assert_ne!(renewed.keys[0], topic.keys[0]);
    assert_eq!(renewed.keys[1], topic.keys[1]);
    publish(&topic.keys[0], "3").problem(401);
    publish(&renewed.keys[0], "4").expect(200);
    publish(&topic.keys[1], "5").expect(200);
}
