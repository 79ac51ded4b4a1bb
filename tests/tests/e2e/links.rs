//! Links that are not well, as an operator sees them, and force.

#![allow(
    clippy::unwrap_used,
    reason = "the settings of clippy.toml for tests do not reach their helpers"
)]

use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use posthaste_tests::endpoint::{Answer, Endpoint};
use posthaste_tests::events::{cloud_event, subscription, subscription_with};
use posthaste_tests::home::Home;
use posthaste_tests::patience::wait_until;
use posthaste_tests::server::Server;
use serde_json::{Value, json};

/// An address at which no server listens.
const REFUSING: &str = "http://127.0.0.1:1";

/// A server to which one failure is enough.
fn serve(home: &Home) -> Server {
    let settings = home.path().join("links.yaml");
    fs::write(&settings, "failuresInARow: 1\n").unwrap();
    Server::start(
        home.path(),
        &["--link-settings", settings.to_str().unwrap()],
    )
}

fn links(home: &Home, server: &Server) -> Vec<Value> {
    home.run_json(server, &["links"])["links"]
        .as_array()
        .unwrap()
        .clone()
}

fn text(home: &Home, server: &Server, arguments: &[&str]) -> (Option<i32>, String) {
    let output = home.run(server, arguments);
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn an_endpoint_that_refuses_is_shown_until_it_is_forced() {
    let home = Home::new();
    let server = serve(&home);
    let well = "every link is well, and nothing is held\n";
    assert_eq!(text(&home, &server, &["links"]), (Some(0), well.to_owned()));
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &subscription(REFUSING));
    topic.publish(&cloud_event("1"));
    let row = wait_until("a link that is left alone", || {
        links(&home, &server).into_iter().next()
    });
    assert_eq!(
        [&row["link"], &row["scope"], &row["state"]],
        [REFUSING, "link", "glitch"]
    );
    assert_eq!(
        (&row["lastOutcome"], &row["failures"]),
        (&json!("SocketError"), &json!(1))
    );
    assert!(row["nextProbe"].as_str() > row["since"].as_str(), "{row}");
    let (_, shown) = text(&home, &server, &["links"]);
    assert!(
        shown.contains("glitch") && shown.contains(REFUSING),
        "{shown}"
    );
    let forced = home.run_json(&server, &["subscriptions", "force", "orders", "billing"]);
    assert_eq!(
        [&forced["forced"][0]["link"], &forced["forced"][0]["state"]],
        [REFUSING, "glitch"]
    );
    assert_eq!(links(&home, &server)[0]["state"], "recovering");
    let told = |line: &String| line.contains("subscription acted on") && line.contains("force");
    wait_until("a line of the log that says who was forced", || {
        server.log().iter().any(told).then_some(())
    });
}

/// The kernel takes the connection, and the TLS handshake is never answered.
#[test]
fn a_handshake_that_is_never_answered_is_the_link_s_failure() {
    let home = Home::new();
    let server = serve(&home);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let link = format!("https://{}", silent.local_addr().unwrap());
    let settings = json!({ "endpoint": { "url": link, "timeout": "PT1S" } });
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&cloud_event("1"));
    let row = wait_until("a link that is left alone", || {
        links(&home, &server).into_iter().next()
    });
    assert_eq!(
        [&row["link"], &row["scope"], &row["lastOutcome"]],
        [&json!(link), &json!("link"), &json!("TimedOut")]
    );
}

#[test]
fn the_log_names_the_link_that_fails() {
    let home = Home::new();
    let server = serve(&home);
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &subscription(REFUSING));
    topic.publish(&cloud_event("1"));
    let line = wait_until("a line of the log about the link", || {
        let lines = server
            .log()
            .into_iter()
            .filter_map(|line| serde_json::from_str::<Value>(&line).ok());
        lines.into_iter().find(|line| line["id"] == 4000)
    });
    assert_eq!(
        [&line["link"], &line["target"]],
        [REFUSING, "posthaste_deliver::circuit::report"],
        "{line}"
    );
}

#[test]
fn a_pause_that_an_endpoint_asks_for_is_shown_and_ends_by_force() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    endpoint.script(
        "/a",
        [
            Answer::With(429, "retry-after", "600".to_owned()),
            Answer::Status(204),
        ],
    );
    let settings = subscription(&endpoint.url("/a"));
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&cloud_event("1"));
    let row = wait_until("a subscription that pauses", || {
        links(&home, &server).into_iter().next()
    });
    assert_eq!(
        [&row["scope"], &row["subscription"], &row["state"]],
        ["subscription", "billing", "retryAfter"]
    );
    assert_eq!(
        (&row["lastHttpStatusCode"], &row["failures"]),
        (&json!(429), &json!(1))
    );
    let (_, shown) = text(&home, &server, &["links"]);
    assert!(shown.contains("retryAfter"), "{shown}");
    let waits = |line: &String| line.contains("the endpoint asked for a pause");
    wait_until("a line of the log that says so", || {
        server.log().iter().any(waits).then_some(())
    });
    home.run_json(&server, &["subscriptions", "force", "orders", "billing"]);
    topic.publish(&cloud_event("2"));
    endpoint.wait_for("/a", 2);
}

/// A gateway with a wrong key answers 401 to every event: ten become dead letters, and the eleventh
/// waits until an operator forces it.
#[test]
fn endpoint_that_refuses_ten_events_is_stopped_until_forced() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = subscription(&endpoint.on("/a", &[401]));
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    for number in 1..=10 {
        topic.publish(&cloud_event(&number.to_string()));
        endpoint.wait_for("/a", number);
    }
    let row = wait_until("a subscription that is stopped", || {
        links(&home, &server).into_iter().next()
    });
    assert_eq!(
        [&row["scope"], &row["subscription"], &row["state"]],
        ["subscription", "billing", "glitch"]
    );
    assert_eq!(
        [
            &row["lastOutcome"],
            &row["lastHttpStatusCode"],
            &row["failures"]
        ],
        [&json!("Unauthorized"), &json!(401), &json!(10)]
    );
    topic.publish(&cloud_event("11"));
    let waits = wait_until("an event that waits", || {
        let shown = home.run_json(&server, &["subscriptions", "show", "orders", "billing"]);
        (shown["waiting"]["count"] == 1).then_some(shown)
    });
    assert_eq!(waits["circuit"]["state"], "glitch", "{waits}");
    assert_eq!(endpoint.received("/a").len(), 10);
    endpoint.on("/a", &[200]);
    home.run_json(&server, &["subscriptions", "force", "orders", "billing"]);
    // A new event looks, and what waited comes back by itself.
    topic.publish(&cloud_event("12"));
    endpoint.wait_for("/a", 11);
}

#[test]
fn paused_subscription_is_not_forced_but_resumed() {
    let home = Home::new();
    let server = serve(&home);
    server
        .api()
        .create_topic_with("orders", "billing", &subscription(REFUSING));
    home.run_json(&server, &["subscriptions", "pause", "orders", "billing"]);
    let (code, said) = text(
        &home,
        &server,
        &["subscriptions", "force", "orders", "billing"],
    );
    assert!(
        code == Some(3) && said.contains("resume it, which forces as well"),
        "{said}"
    );
}

#[test]
fn settings_that_break_a_rule_end_the_start_by_line_and_name() {
    let home = Home::new();
    let settings = home.path().join("links.yaml");
    fs::write(&settings, "glitches: 3\nglitchHold: PT1H\n").unwrap();
    let arguments = ["--link-settings", settings.to_str().unwrap()];
    let (code, log) = Server::fail_to_start(home.path(), &arguments);
    assert_eq!(code, Some(3));
    assert!(
        log.contains("links.yaml:2:13") && log.contains("glitchHold is 3600s; expected 1s to 900s"),
        "{log}"
    );
}

/// A path that hangs leaves room for a newcomer on its host and port.
#[test]
fn hanging_path_leaves_room_for_a_newcomer_on_its_link() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    endpoint.script("/hangs", [Answer::Never]);
    // The longest there is, so that no timeout makes room.
    let timeout = Duration::from_mins(1);
    let patient = json!({ "endpoint": { "timeout": "PT1M" } });
    let hangs = subscription_with(&endpoint.url("/hangs"), &patient);
    let hanging = server.api().create_topic_with("orders", "billing", &hangs);
    let well =
        server
            .api()
            .create_topic_with("bills", "crm", &subscription(&endpoint.url("/well")));
    for batch in 0..30 {
        let events: Vec<_> = (0..100)
            .map(|number| cloud_event(&format!("{batch}-{number}")))
            .collect();
        hanging.publish_batch(&events);
    }
    // All places but the sixteen that are kept.
    endpoint.wait_for("/hangs", 48);
    well.publish(&cloud_event("1"));
    let arrived = endpoint.wait_for_one("/well").at;
    let waited = arrived.saturating_sub(endpoint.received("/hangs")[0].at);
    assert!(waited < timeout, "{waited:?}: a timeout has made room");
}
