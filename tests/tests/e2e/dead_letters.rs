//! The ways to dead letters: in files, through the API, and with the command line.

use std::fs;

use posthaste_tests::endpoint::{Answer, Endpoint};
use posthaste_tests::events::{cloud_event, event_grid_event, subscription, subscription_with};
use posthaste_tests::home::Home;
use posthaste_tests::patience::wait_until;
use posthaste_tests::server::Server;
use serde_json::{Value, json};

#[test]
fn api_and_command_line_list_and_show_the_file_of_letters() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = subscription(&endpoint.on("/a", &[400]));
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&cloud_event("1"));
    let letter = home.wait_for_dead_letter("orders", "billing");

    let page = server
        .api()
        .show("/topics/orders/subscriptions/billing/dead-letters");
    let [listed] = &page["deadLetters"].as_array().unwrap()[..] else {
        panic!("one letter: {page}")
    };
    let key = listed["object"].as_str().unwrap();
    assert!(
        home.path().join("dead-letters").join(key).is_file(),
        "{key}"
    );
    assert_eq!(
        [&listed["id"], &listed["reason"]],
        ["1", "UndeliverableDueToClientError"]
    );
    assert_eq!([&listed["status"], &listed["attempts"]], [400, 1]);
    assert_eq!(
        server.api().show(&format!("/dead-letters/{key}")),
        json!([letter])
    );

    let by_command = home.run_json(&server, &["dead-letters", "list", "orders", "billing"]);
    assert_eq!(by_command["deadLetters"][0], *listed);
    assert_eq!(
        home.run_json(&server, &["dead-letters", "list"])["deadLetters"][0],
        *listed
    );
    assert_eq!(
        home.run_json(&server, &["dead-letters", "list", "orders"])["deadLetters"][0],
        *listed
    );
    assert_eq!(
        home.run_json(&server, &["dead-letters", "show", key]),
        json!([letter])
    );
    let table = home.run(&server, &["dead-letters", "list", "Orders", "Billing"]);
    assert!(table.status.success() && String::from_utf8(table.stdout).unwrap().contains(key));
    let unknown = home.run(
        &server,
        &[
            "dead-letters",
            "show",
            "ORDERS/BILLING/2026/1/1/1/none.json",
        ],
    );
    assert_eq!(unknown.status.code(), Some(4));
}

#[test]
fn they_are_filtered_by_reason_and_time() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = subscription(&endpoint.on("/a", &[400]));
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&cloud_event("1"));
    home.wait_for_dead_letter("orders", "billing");
    let count = |query: &str| {
        let page = server.api().show(&format!(
            "/topics/orders/subscriptions/billing/dead-letters?{query}"
        ));
        page["deadLetters"].as_array().unwrap().len()
    };
    assert_eq!(count("reason=UndeliverableDueToClientError"), 1);
    assert_eq!(count("reason=TimeToLiveExceeded"), 0);
    assert_eq!(count("from=2026-01-01T00:00:00Z"), 1);
    assert_eq!(count("to=2026-01-01T00:00:00Z"), 0);
    let wrong = "/topics/orders/subscriptions/billing/dead-letters?reason=Bored";
    server.api().manage("GET", wrong, None).problem(400);
}

/// Waits until the log says that an event of `orders/billing` was given up because its subscription
/// is gone. The subscription's own `deadLetter.delay` is gone too, so the file comes after the
/// default five minutes: the simulation has it, on a manual clock.
fn wait_for_subscription_deleted(server: &Server) -> Value {
    wait_until("the event to be given up", || {
        let log = server.log();
        let mut lines = log
            .iter()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.find(|line| line["reason"] == "SubscriptionDeleted")
    })
}

#[test]
fn deleting_a_subscription_ends_what_waits_for_it() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = subscription(&endpoint.on("/a", &[503]));
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&cloud_event("1"));
    endpoint.wait_for("/a", 1);
    server
        .api()
        .manage("DELETE", "/topics/orders/subscriptions/billing", None)
        .expect(204);
    let line = wait_for_subscription_deleted(&server);
    assert_eq!(
        (&line["topic"], &line["subscription"]),
        (&json!("orders"), &json!("billing"))
    );
    assert_eq!(
        (&line["events"], &line["attempts"]),
        (&json!(1), &json!(endpoint.received("/a").len()))
    );
}

#[test]
fn deleting_a_topic_ends_what_waits_for_its_subscriptions() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = subscription(&endpoint.on("/a", &[503]));
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&cloud_event("1"));
    endpoint.wait_for("/a", 1);
    server
        .api()
        .manage("DELETE", "/topics/orders", None)
        .expect(204);
    let line = wait_for_subscription_deleted(&server);
    assert_eq!(
        (&line["topic"], &line["subscription"]),
        (&json!("orders"), &json!("billing"))
    );
    let refused = topic.send(
        "application/cloudevents+json",
        cloud_event("2").to_string().as_bytes(),
    );
    refused.unwrap().problem(401);
}

#[test]
fn late_answer_to_the_last_attempt_prevents_a_dead_letter() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    endpoint.script("/a", [Answer::Held(204)]);
    let once = json!({
        "endpoint": { "timeout": "PT1S" },
        "retryPolicy": { "maxDeliveryAttempts": 1 },
        // So long this test has to let the endpoint answer.
        "deadLetter": { "delay": "PT30S" },
    });
    let settings = subscription_with(&endpoint.url("/a"), &once);
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&cloud_event("1"));
    let says = |what: &str| {
        wait_until(what, || {
            server
                .log()
                .iter()
                .any(|it| it.contains(what))
                .then_some(())
        });
    };
    says("events on their way to the dead letters");
    endpoint.open();
    says("not dead-lettered, the endpoint answered late");
    assert!(home.dead_letter_files("orders", "billing").is_empty());
    assert_eq!(endpoint.received("/a").len(), 1);
}

#[test]
fn event_grid_events_keep_event_grid_s_names() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = subscription(&endpoint.on("/a", &[404]));
    let topic = json!({ "inputSchema": "EventGrid", "subscriptions": { "all": settings } });
    let topic = server.api().create_topic("blobs", &topic);
    topic
        .send(
            "application/json",
            json!([event_grid_event("1")]).to_string().as_bytes(),
        )
        .unwrap()
        .expect(200);
    let letter = home.wait_for_dead_letter("blobs", "all");
    assert_eq!(letter["deadLetterReason"], "UndeliverableDueToClientError");
    assert_eq!(letter["deliveryAttempts"], 1);
    assert_eq!(letter["lastDeliveryOutcome"], "NotFound");
    assert_eq!(letter["lastHttpStatusCode"], 404);
    assert!(letter["publishTime"].is_string() && letter["lastDeliveryAttemptTime"].is_string());
    assert_eq!(
        (&letter["id"], &letter["data"]),
        (&json!("1"), &json!({ "n": 1 }))
    );
}

/// With `refusalsInRow: 0` an endpoint may refuse as many events as it likes.
#[test]
fn many_are_gathered_into_few_files() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let links = home.path().join("links.yaml");
    fs::write(&links, "refusalsInRow: 0\n").unwrap();
    let server = Server::start(home.path(), &["--link-settings", links.to_str().unwrap()]);
    let settings = subscription(&endpoint.on("/a", &[400]));
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    let events: Vec<Value> = (0..200).map(|n| cloud_event(&n.to_string())).collect();
    topic.publish_batch(&events);
    let mut letters = home.wait_for_dead_letters("orders", "billing", 200);
    letters.sort_by_key(|letter| letter["id"].as_str().unwrap().parse::<u32>().unwrap());
    let ids: Vec<_> = letters.iter().map(|letter| letter["id"].clone()).collect();
    assert_eq!(
        ids,
        (0..200).map(|n| json!(n.to_string())).collect::<Vec<_>>()
    );
    let files = home.dead_letter_files("orders", "billing").len();
    assert!(files <= 100, "{files} files");
}

#[test]
fn a_subscription_that_keeps_none_has_none() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let none = json!({ "deadLetter": { "enabled": false } });
    let both = json!({
        "dropping": subscription_with(&endpoint.on("/a", &[400]), &none),
        "keeping": subscription(&endpoint.on("/b", &[400])),
    });
    let topic = server
        .api()
        .create_topic("orders", &json!({ "subscriptions": both }));
    topic.publish(&cloud_event("1"));
    endpoint.wait_for("/a", 1);
    home.wait_for_dead_letter("orders", "keeping");
    wait_until("the drop to be logged", || {
        server
            .log()
            .iter()
            .any(|line| line.contains("drop") && line.contains("dropping"))
            .then_some(())
    });
    assert!(home.dead_letter_files("orders", "dropping").is_empty());
}
