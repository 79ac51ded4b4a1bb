//! Addresses of their own: each answers what belongs to it, and nothing else.

use posthaste_tests::api::Api;
use posthaste_tests::endpoint::Endpoint;
use posthaste_tests::events::{cloud_event, subscription};
use posthaste_tests::home::Home;
use posthaste_tests::patience::wait_until;
use posthaste_tests::server::Server;
use serde_json::{Value, json};

const FREE: &str = "127.0.0.1:0";

/// A URL of the line that says where the server listens.
fn url_of(server: &Server, member: &str) -> String {
    let mut lines = server.log().into_iter();
    let line = lines.find_map(|line| {
        let line: Value = serde_json::from_str(&line).ok()?;
        line[member].as_str().map(str::to_owned)
    });
    line.expect("the log says it")
}

#[test]
fn producers_operators_and_metrics_have_addresses_of_their_own() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let file = home.path().join("topics.yaml");
    std::fs::write(&file, "topics: { bills: {} }\n").expect("a file of topics");
    let config = file.to_str().expect("a path of ASCII");
    let arguments = [
        "--manage-listen",
        FREE,
        "--metrics-listen",
        FREE,
        "--config",
        config,
    ];
    let server = Server::start(home.path(), &arguments);
    let key = server.api().admin_key();
    let management = Api::new(url_of(&server, "manage_url"), key);
    let metrics_url = url_of(&server, "metrics_url");
    let metrics = Api::new(metrics_url.trim_end_matches("/metrics").to_owned(), key);

    let orders = management.create_topic_with("orders", "a", &subscription(&endpoint.url("/a")));
    // The file of the command line comes by the address of operators, before the server is ready.
    wait_until("a ready server", || {
        let answer = management.manage("GET", "/readyz", None);
        (answer.status == 200).then_some(())
    });
    management.manage("GET", "/topics/bills", None).expect(200);
    let keyed = [
        ("aeg-sas-key", orders.keys[0].as_str()),
        ("content-type", "application/cloudevents+json"),
    ];
    let event = cloud_event("1").to_string();
    for (api, status) in [(server.api(), 200), (&management, 200), (&metrics, 404)] {
        let answer = api.send("POST", &orders.path(), &keyed, event.as_bytes());
        answer.expect("an answer").expect(status);
    }
    endpoint.wait_for("/a", 2);

    let check = |path: &str, expected: [u16; 3]| {
        for (api, status) in [server.api(), &management, &metrics]
            .into_iter()
            .zip(expected)
        {
            api.manage("GET", path, None).expect(status);
        }
    };
    check("/health", [200; 3]);
    check("/readyz", [200; 3]);
    check("/metrics", [404, 404, 200]);
    check("/topics", [404, 200, 404]);
    let console = [server.api(), &management, &metrics].map(|api| {
        let answer = api.send("GET", "/console/sign-in", &[], b"");
        answer.expect("an answer").status
    });
    assert_eq!(console, [404, 200, 404]);
    let elsewhere = server.api().manage("PUT", "/topics/new", Some(&json!({})));
    assert!(
        elsewhere.problem(404)["detail"]
            .as_str()
            .expect("a text")
            .contains("--manage-listen")
    );
    server.stop();
}
