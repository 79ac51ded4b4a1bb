//! Endpoints that publish what they receive: refused where that is known when they are written, and
//! ended by the count of hops where it is not.

use std::collections::BTreeSet;
use std::fs;

use posthaste_tests::api::{Answer, Topic};
use posthaste_tests::endpoint::{Endpoint, Received};
use posthaste_tests::events::{cloud_event, subscription, subscription_with};
use posthaste_tests::home::Home;
use posthaste_tests::server::Server;
use serde_json::{Value, json};

/// Publish requests whose events came through so many deliveries are refused.
const HOPS_MAX: u64 = 8;

/// The URL of the other topic, with its key: events that are published here are also published
/// there.
fn publishing_to(there: &Topic, url: &str) -> Value {
    let key = format!("Bearer {}", there.keys[0]);
    let headers = json!([{ "name": "Authorization", "value": key, "isSecret": true }]);
    subscription_with(
        &format!("{url}{}", there.path()),
        &json!({ "deliveryHeaders": headers }),
    )
}

fn put_subscription(server: &Server, name: &str, settings: &Value) -> Answer {
    server.api().manage(
        "PUT",
        &format!("/topics/orders/subscriptions/{name}"),
        Some(settings),
    )
}

/// An endpoint that is the server's own publish URL is refused, and the member is named.
#[test]
fn endpoint_at_the_own_publish_url_is_refused_by_member() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = Server::start(
        home.path(),
        &["--public-url", "https://posthaste.example.com/base"],
    );
    server.api().create_topic("orders", &json!({}));
    let localhost = server.url().replace("127.0.0.1", "localhost");
    for own in [
        server.url(),
        &localhost,
        "https://posthaste.example.com/base",
    ] {
        let url = format!("{own}/topics/orders/events");
        let problem = put_subscription(&server, "again", &subscription(&url)).problem(400);
        assert_eq!(
            [&problem["member"], &problem["type"]],
            ["endpoint.url", "urn:posthaste:problem:bad-settings"]
        );
        let with_fallback = subscription_with(
            &endpoint.url("/a"),
            &json!({ "endpoint": { "fallbackUrl": url } }),
        );
        let problem = put_subscription(&server, "again", &with_fallback).problem(400);
        assert_eq!(problem["member"], "endpoint.fallbackUrl", "{problem}");
    }
    // Another path of the server, and another port of its host, are no publish URLs.
    put_subscription(
        &server,
        "page",
        &subscription(&format!("{}/hooks", server.url())),
    )
    .expect(201);
    let elsewhere = endpoint.url("/topics/orders/events");
    put_subscription(&server, "elsewhere", &subscription(&elsewhere)).expect(201);
}

#[test]
fn apply_names_the_member_that_is_the_own_publish_url() {
    let home = Home::new();
    let server = home.serve();
    let file = home.path().join("topics.yaml");
    let url = server.url();
    let endpoint = format!("{{ url: '{url}/topics/orders/events' }}");
    let yaml = format!(
        "topics:\n  orders:\n    subscriptions:\n      again: {{ endpoint: {endpoint} }}\n"
    );
    fs::write(&file, yaml).expect("a file of topics");
    let refused = home.run(
        &server,
        &["apply", "-f", file.to_str().expect("a path of ASCII")],
    );
    let error = String::from_utf8(refused.stderr).expect("text");
    assert_eq!(refused.status.code(), Some(3), "{error}");
    assert!(
        error.contains("member: subscriptions.again.endpoint.url"),
        "{error}"
    );
    assert!(
        error.contains("write the URL of the service that is to receive the events"),
        "{error}"
    );
    server
        .api()
        .manage("GET", "/topics/orders", None)
        .problem(404);
}

/// Neither server can know that the other one publishes to it.
#[test]
fn two_servers_in_a_loop_stop_after_eight_deliveries() {
    loop_ends(&[], "posthaste-hops");
}

#[test]
fn a_loop_ends_though_one_of_them_sends_in_another_name() {
    let nameless =
        r#"{"prefix":"acme","omit":["eventGrid","subscriptionName","origin","attempt"]}"#;
    for request in loop_ends(&["--sender-headers", nameless], "webhook-hops") {
        assert_eq!(request.header("user-agent"), Some("acme"));
        let names = request.headers.iter().map(|(name, _)| name.to_lowercase());
        let told = |name: &String| {
            ["posthaste", "aeg", "origin"]
                .iter()
                .any(|it| name.contains(it))
        };
        assert_eq!(names.filter(told).collect::<Vec<_>>(), Vec::<String>::new());
    }
}

/// A loop of two servers, one of which is started with these arguments and says its hops in this
/// header. Answers the requests of that one to the witness.
fn loop_ends(arguments: &[&str], header: &str) -> Vec<Received> {
    let homes = [Home::new(), Home::new()];
    let endpoint = Endpoint::start();
    let other = Server::start(homes[1].path(), arguments);
    let one = homes[0].serve();
    let orders = one.api().create_topic("orders", &json!({}));
    let bills = other.api().create_topic("bills", &json!({}));
    // A witness beside the loop sees every publish with its hops.
    for (server, topic, next, url) in [
        (&one, "orders", &bills, other.url()),
        (&other, "bills", &orders, one.url()),
    ] {
        let subscriptions = json!({
            "next": publishing_to(next, url),
            "witness": subscription(&endpoint.url(&format!("/{topic}"))),
        });
        server
            .api()
            .manage(
                "PUT",
                &format!("/topics/{topic}"),
                Some(&json!({ "subscriptions": subscriptions })),
            )
            .expect(200);
    }
    orders.publish(&cloud_event("1"));
    // The producer's publish and seven of the loop are accepted; the loop's eighth is refused.
    let letter = homes[1].wait_for_dead_letter("bills", "next");
    assert_eq!(
        [
            &letter["id"],
            &letter["deadletterreason"],
            &letter["lastdeliveryoutcome"]
        ],
        ["1", "UndeliverableDueToClientError", "BadRequest"]
    );
    assert_eq!(
        [&letter["deliveryattempts"], &letter["lasthttpstatuscode"]],
        [&json!(1), &json!(400)]
    );
    let hops = |path: &str, header: &str| -> Vec<u64> {
        let received = endpoint.wait_for(path, 4);
        let of = |request: &Received| request.header(header)?.parse().ok();
        let hops = received
            .iter()
            .map(|request| of(request).expect("a delivery says its hops"));
        // A delivery to the witness may be overtaken by the loop.
        hops.collect::<BTreeSet<u64>>().into_iter().collect()
    };
    assert_eq!(hops("/orders", "posthaste-hops"), [1, 3, 5, 7]);
    assert_eq!(hops("/bills", header), [2, 4, 6, HOPS_MAX]);
    let published =
        [&one, &other].map(|server| server.api().metric("posthaste_events_accepted_total"));
    assert_eq!(
        (
            published,
            one.api().metric("posthaste_events_refused_total")
        ),
        ([4.0, 4.0], 1.0)
    );
    assert!(homes[0].dead_letter_files("orders", "next").is_empty());
    endpoint.received("/bills")
}
