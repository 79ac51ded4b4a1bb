//! Endpoints that are asked before they get events, by either way, and the states an operator moves
//! a subscription to.

use std::io::Write;
use std::net::TcpStream;

use posthaste_tests::endpoint::{Answer, Endpoint, Received, Reply};
use posthaste_tests::events::{cloud_event, subscription_with};
use posthaste_tests::home::Home;
use posthaste_tests::patience::wait_until;
use posthaste_tests::server::Server;
use serde_json::{Value, json};

const PATH: &str = "/topics/orders/subscriptions/billing";

/// A server that says where it is reached.
fn serve(home: &Home) -> Server {
    Server::start(home.path(), &["--public-url", "http://hooks.example"])
}

fn asked(url: &str, validation: &str) -> Value {
    subscription_with(url, &json!({ "endpoint": { "validation": validation } }))
}

/// The answer of an endpoint that knows both ways: its consent to a handshake, and 204 to an event.
fn consents(request: &Received) -> Reply {
    if request.method == "OPTIONS" {
        let origin = request
            .header("webhook-request-origin")
            .unwrap_or_default()
            .to_owned();
        let headers = vec![
            ("WebHook-Allowed-Origin", origin),
            ("WebHook-Allowed-Rate", "12".to_owned()),
        ];
        return Reply {
            status: 200,
            headers,
            body: String::new(),
        };
    }
    if request.header("aeg-event-type") == Some("SubscriptionValidation") {
        let code = &request.json()[0]["data"]["validationCode"];
        return Reply {
            status: 200,
            headers: vec![],
            body: json!({ "validationResponse": code }).to_string(),
        };
    }
    Reply {
        status: 204,
        headers: vec![],
        body: String::new(),
    }
}

fn state(server: &Server) -> Value {
    server.api().show(PATH)["status"]["state"].clone()
}

/// An endpoint that consents to OPTIONS gets events no faster than it allowed.
#[test]
fn endpoint_that_consents_gets_events_at_its_allowed_rate() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = serve(&home);
    endpoint.script("/a", [Answer::Reply(consents)]);
    let topic = server.api().create_topic_with(
        "orders",
        "billing",
        &asked(&endpoint.url("/a"), "CloudEvents"),
    );
    let status = server.api().show(PATH)["status"].clone();
    assert_eq!(
        (
            &status["state"],
            &status["consent"]["allowedRequestsPerMinute"]
        ),
        (&json!("Active"), &json!(12))
    );
    for id in ["1", "2", "3"] {
        topic.publish(&cloud_event(id));
    }
    let requests = endpoint.wait_for("/a", 4);
    assert_eq!(requests[0].method, "OPTIONS");
    // Ten seconds, of which a first request that is late takes some.
    let took = requests[3].at.saturating_sub(requests[1].at);
    assert!(
        took.as_secs() >= 4,
        "three requests at 12 a minute within {took:?}"
    );
}

#[test]
fn an_endpoint_that_gives_event_grid_s_code_back_gets_events() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = serve(&home);
    endpoint.script("/a", [Answer::Reply(consents)]);
    let topic = server.api().create_topic_with(
        "orders",
        "billing",
        &asked(&endpoint.url("/a"), "EventGrid"),
    );
    assert_eq!(state(&server), "Active");
    topic.publish(&cloud_event("1"));
    let requests = endpoint.wait_for("/a", 2);
    assert_eq!(
        requests[0].header("aeg-event-type"),
        Some("SubscriptionValidation")
    );
    assert_eq!(requests[1].ids(), ["1"]);
}

#[test]
fn an_endpoint_that_answers_nothing_may_call_back() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = serve(&home);
    endpoint.script("/a", [Answer::Status(405), Answer::Status(204)]);
    server.api().create_topic_with(
        "orders",
        "billing",
        &asked(&endpoint.url("/a"), "CloudEvents"),
    );
    assert_eq!(state(&server), "Pending");
    let request = endpoint.wait_for_one("/a");
    let callback = request.header("webhook-request-callback").unwrap();
    let path = callback.strip_prefix("http://hooks.example").unwrap();
    server
        .api()
        .send("GET", path, &[], b"")
        .unwrap()
        .expect(200);
    assert_eq!(state(&server), "Active");
    server.api().topic("orders").publish(&cloud_event("1"));
    assert_eq!(endpoint.wait_for("/a", 2)[1].ids(), ["1"]);
}

#[test]
fn an_operator_moves_a_subscription_from_state_to_state() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = serve(&home);
    endpoint.script("/a", [Answer::Status(405)]);
    let file = home.path().join("topics.yaml");
    let url = endpoint.url("/a");
    let yaml = format!(
        "topics:\n  orders:\n    subscriptions:\n      billing:\n        endpoint: {{ url: {url}, \
            validation: EventGrid }}\n"
    );
    std::fs::write(&file, yaml).unwrap();
    let applied = home.run(&server, &["apply", "-f", file.to_str().unwrap()]);
    let text = String::from_utf8(applied.stdout).unwrap();
    assert!(
        text.contains("Failed: the endpoint answered 405 to the validation event"),
        "{text}"
    );

    let act = |action: &str| {
        home.run_json(&server, &["subscriptions", action, "orders", "billing"])["status"]["state"]
            .clone()
    };
    let failed = home.run(&server, &["subscriptions", "validate", "orders", "billing"]);
    let told = String::from_utf8(failed.stdout).unwrap();
    let error = String::from_utf8(failed.stderr).unwrap();
    assert_eq!(failed.status.code(), Some(3), "{error}");
    assert!(
        told.contains("orders/billing is Failed") && error.contains("the endpoint answered 405"),
        "{told}{error}"
    );
    endpoint.script("/a", [Answer::Reply(consents)]);
    for (action, state) in [
        ("enable", "Active"),
        ("pause", "Paused"),
        ("resume", "Active"),
        ("disable", "Disabled"),
    ] {
        assert_eq!(act(action), state, "{action}");
    }
    let refused = home.run(&server, &["subscriptions", "resume", "orders", "billing"]);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(3), "{error}");
    assert!(
        error.contains("only a Paused one can be resumed"),
        "{error}"
    );
}

/// A client that closes its connection while the endpoint is asked: what the endpoint says counts.
#[test]
fn client_that_gives_up_loses_no_answer_of_the_endpoint() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = serve(&home);
    server.api().create_topic("orders", &json!({}));
    endpoint.script("/a", [Answer::Held(405)]);
    let body = asked(&endpoint.url("/a"), "EventGrid").to_string();
    let address = server.url().trim_start_matches("http://").to_owned();
    let mut client = TcpStream::connect(&address).expect("the server listens");
    let head = format!(
        "PUT {PATH} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\ncontent-type: \
         application/json\r\ncontent-length: {}\r\n\r\n",
        server.api().admin_key(),
        body.len()
    );
    client
        .write_all((head + &body).as_bytes())
        .expect("a request");
    endpoint.wait_for("/a", 1);
    drop(client);
    // Its server has noticed that by the time that it answers another connection.
    assert_eq!(state(&server), "Pending");
    endpoint.open();
    wait_until("the endpoint's answer to be written", || {
        (state(&server) == "Failed").then_some(())
    });
}
