//! Endpoints' host names, as a name server of the test's own has them.

use std::fs;

use posthaste_tests::endpoint::Endpoint;
use posthaste_tests::events::{cloud_event, subscription, subscription_with};
use posthaste_tests::home::Home;
use posthaste_tests::name_server::NameServer;
use posthaste_tests::server::Server;
use serde_json::json;

/// A server that asks this name server, to which one failure of a link is enough.
fn serve(home: &Home, names: &NameServer) -> Server {
    let settings = home.path().join("links.yaml");
    fs::write(&settings, "failuresInARow: 1\n").expect("a file of settings");
    let names = names.address().to_string();
    let settings = settings.to_string_lossy().into_owned();
    Server::start(
        home.path(),
        &["--dns-server", &names, "--link-settings", &settings],
    )
}

#[test]
fn an_event_goes_where_the_name_server_says() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let names = NameServer::start();
    // No server listens on the first.
    names.resolve("hooks.example.com", &["127.0.0.2", "127.0.0.1"]);
    let server = serve(&home, &names);
    let url = endpoint.url("/a").replace("127.0.0.1", "hooks.example.com");
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &subscription(&url));
    topic.publish(&cloud_event("1"));
    let request = endpoint.wait_for_one("/a");
    assert!(
        request
            .header("host")
            .unwrap()
            .starts_with("hooks.example.com:"),
        "{request:?}"
    );
    assert_eq!(
        names.asked(),
        ["hooks.example.com"; 2],
        "once for each kind of address"
    );
}

/// The retry comes after five minutes, whatever the subscription's own waits: the simulation has
/// it, on a manual clock. Here the one attempt is the last.
#[test]
fn event_to_an_unknown_name_is_a_dead_letter_that_says_so() {
    let home = Home::new();
    let names = NameServer::start();
    let server = serve(&home, &names);
    let policy = json!({ "retryPolicy": { "maxDeliveryAttempts": 1 } });
    let settings = subscription_with("https://gone.example.com/hooks", &policy);
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&cloud_event("1"));
    let letter = home.wait_for_dead_letter("orders", "billing");
    assert_eq!(
        (&letter["deliveryattempts"], &letter["lastdeliveryoutcome"]),
        (&json!(1), &json!("ResolutionError"))
    );
    assert_eq!(names.asked(), ["gone.example.com"; 2]);
    let told = |line: &String| line.contains("the host name does not exist");
    assert_eq!(server.log().iter().filter(|line| told(line)).count(), 1);
    assert_eq!(
        home.run_json(&server, &["links"])["links"],
        json!([]),
        "the name says nothing about its link"
    );
}
