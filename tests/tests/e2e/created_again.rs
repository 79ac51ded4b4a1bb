//! A subscription or topic that is deleted and created again under its name gets nothing that was
//! accepted for the old one.

use posthaste_tests::endpoint::Endpoint;
use posthaste_tests::events::{cloud_event, subscription, subscription_with};
use posthaste_tests::home::Home;
use posthaste_tests::patience::wait_until;
use posthaste_tests::server::Server;
use serde_json::{Value, json};

/// The lines of the log about events that go to the dead letters. Their object comes five minutes
/// later: the delay that was set is gone with its subscription.
fn given_up(server: &Server) -> Vec<Value> {
    let lines = server
        .log()
        .into_iter()
        .filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    lines
        .filter(|line| line["message"] == "events on their way to the dead letters")
        .collect()
}

/// Deletes what is at `path` and creates the subscription again, with another endpoint, while an
/// event waits for its retry.
fn check(path: &str) {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let policy = json!({ "retryPolicy": { "schedule": ["PT3S"] } });
    let old = subscription_with(&endpoint.on("/old", &[503]), &policy);
    let topic = server.api().create_topic_with("orders", "billing", &old);
    topic.publish(&cloud_event("1"));
    endpoint.wait_for_one("/old");
    server.api().manage("DELETE", path, None).expect(204);
    let new = json!({ "subscriptions": { "billing": subscription(&endpoint.url("/new")) } });
    server.api().manage("PUT", "/topics/orders", Some(&new));
    let line = wait_until("the old event to be given up", || {
        given_up(&server).into_iter().next()
    });
    assert_eq!(
        [
            &line["reason"],
            &line["topic"],
            &line["subscription"],
            &line["events"]
        ],
        [
            &json!("SubscriptionDeleted"),
            &json!("orders"),
            &json!("billing"),
            &json!(1)
        ]
    );
    server.api().topic("orders").publish(&cloud_event("2"));
    assert_eq!(endpoint.wait_for_one("/new").ids(), ["2"]);
    assert_eq!(
        (endpoint.received("/new").len(), given_up(&server).len()),
        (1, 1)
    );
}

/// A subscription created again gets nothing that waited for the old one.
#[test]
fn recreated_subscription_gets_nothing_of_the_old_one() {
    check("/topics/orders/subscriptions/billing");
}

/// A subscription of a topic created again gets nothing that waited for the old one.
#[test]
fn subscription_of_a_recreated_topic_gets_nothing_old() {
    check("/topics/orders");
}
