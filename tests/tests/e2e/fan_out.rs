//! One event, many subscriptions: each gets what its filter lets through, and none waits for
//! another.

use posthaste_tests::endpoint::{Answer, Endpoint, Received};
use posthaste_tests::events::{cloud_event, subscription, subscription_with};
use posthaste_tests::home::Home;
use serde_json::{Value, json};

fn ids(requests: &[Received]) -> Vec<String> {
    let mut ids: Vec<_> = requests.iter().flat_map(Received::ids).collect();
    ids.sort();
    ids
}

#[test]
fn each_subscription_gets_what_its_filter_lets_through() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let filtered = |path: &str, filter: Value| {
        subscription_with(&endpoint.url(path), &json!({ "filter": filter }))
    };
    let subscriptions = json!({
        "all": subscription(&endpoint.url("/all")),
        "paid": filtered("/paid", json!({ "includedEventTypes": ["order.paid"] })),
        "eu": filtered("/eu", json!({ "subjectBeginsWith": "/EU/" })),
        "exact": filtered("/exact", json!({ "subjectBeginsWith": "/EU/", "isSubjectCaseSensitive": true })),
        "images": filtered("/images", json!({ "subjectBeginsWith": "/eu/", "subjectEndsWith": ".jpg" })),
        "none": filtered("/none", json!({ "includedEventTypes": ["never"] })),
    });
    let topic = server
        .api()
        .create_topic("orders", &json!({ "subscriptions": subscriptions }));
    let event = |id: &str, kind: &str, subject: &str| {
        let mut event = cloud_event(id);
        event["type"] = json!(kind);
        event["subject"] = json!(subject);
        event
    };
    topic.publish_batch(&[
        event("1", "order.paid", "/eu/1.jpg"),
        event("2", "order.paid", "/us/2.jpg"),
        event("3", "order.shipped", "/eu/3"),
    ]);
    // The last event matches every filter that could match at all, so it marks the end for each of
    // them.
    topic.publish(&event("9", "order.paid", "/EU/9.JPG"));
    assert_eq!(ids(&endpoint.wait_for("/all", 4)), ["1", "2", "3", "9"]);
    assert_eq!(ids(&endpoint.wait_for("/paid", 3)), ["1", "2", "9"]);
    assert_eq!(ids(&endpoint.wait_for("/eu", 3)), ["1", "3", "9"]);
    assert_eq!(ids(&endpoint.wait_for("/exact", 1)), ["9"]);
    assert_eq!(ids(&endpoint.wait_for("/images", 2)), ["1", "9"]);
    assert_eq!(endpoint.all().len(), 13);
}

#[test]
fn a_hundred_subscriptions_of_one_topic_get_every_event() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let subscriptions: serde_json::Map<String, Value> = (0..100)
        .map(|n| {
            (
                format!("s{n}"),
                subscription(&endpoint.url(&format!("/{n}"))),
            )
        })
        .collect();
    let topic = server
        .api()
        .create_topic("orders", &json!({ "subscriptions": subscriptions }));
    topic.publish_batch(&[cloud_event("1"), cloud_event("2"), cloud_event("3")]);
    for n in 0..100 {
        assert_eq!(
            ids(&endpoint.wait_for(&format!("/{n}"), 3)),
            ["1", "2", "3"]
        );
    }
    assert_eq!(endpoint.all().len(), 300);
}

#[test]
fn an_endpoint_that_does_not_answer_delays_no_other() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    endpoint.script("/stuck", [Answer::Held(200)]);
    let both = json!({
        "stuck": subscription(&endpoint.url("/stuck")),
        "healthy": subscription(&endpoint.url("/healthy")),
    });
    let topic = server
        .api()
        .create_topic("orders", &json!({ "subscriptions": both }));
    for n in 0..50 {
        topic.publish(&cloud_event(&n.to_string()));
    }
    endpoint.wait_for("/healthy", 50);
    endpoint.wait_for_one("/stuck");
    endpoint.open();
    endpoint.wait_for("/stuck", 50);
}

#[test]
fn an_event_that_matches_nothing_is_accepted() {
    let home = Home::new();
    let server = home.serve();
    let topic = server.api().create_topic("orders", &json!({}));
    topic.publish(&cloud_event("1"));
}
