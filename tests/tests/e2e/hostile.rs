//! Endpoints that misbehave: each costs an attempt and nothing else.

use posthaste_tests::endpoint::{Answer, Endpoint, Received, nobody};
use posthaste_tests::events::{cloud_event, subscription, subscription_with};
use posthaste_tests::home::Home;
use posthaste_tests::patience::wait_until;
use posthaste_tests::server::Server;
use serde_json::{Value, json};

/// The dead letter of an event whose only attempt met `answer`. A busy machine takes no such time
/// for an answer.
fn dead_letter_after(answer: Answer) -> Value {
    dead_letter_within("PT10S", answer)
}

/// The dead letter of an event whose only attempt met `answer`, or nothing until the timeout.
fn dead_letter_within(timeout: &str, answer: Answer) -> Value {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    endpoint.script("/a", [answer]);
    let once =
        json!({ "endpoint": { "timeout": timeout }, "retryPolicy": { "maxDeliveryAttempts": 1 } });
    let settings = subscription_with(&endpoint.url("/a"), &once);
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&cloud_event("1"));
    let letter = home.wait_for_dead_letter("orders", "billing");
    assert_eq!(endpoint.received("/a").len(), 1);
    assert_eq!(letter["deadletterreason"], "MaxDeliveryAttemptsExceeded");
    assert_eq!(letter["deliveryattempts"], 1);
    letter
}

#[test]
fn endpoint_that_never_answers_has_timed_out() {
    let letter = dead_letter_within("PT1S", Answer::Never);
    assert_eq!(letter["lastdeliveryoutcome"], "TimedOut");
    assert_eq!(letter.get("lasthttpstatuscode"), None);
}

#[test]
fn endpoint_that_closes_without_a_word_is_a_broken_connection() {
    let letter = dead_letter_after(Answer::Close);
    assert_eq!(letter["lastdeliveryoutcome"], "SocketError");
    assert_eq!(letter.get("lasthttpstatuscode"), None);
}

#[test]
fn endpoint_that_closes_in_the_head_counts_by_its_status() {
    let letter = dead_letter_after(Answer::CloseInHead);
    assert_eq!(letter["lastdeliveryoutcome"], "GenericError");
    assert_eq!(letter["lasthttpstatuscode"], 500);
}

#[test]
fn endpoint_that_does_not_speak_http_is_a_broken_connection() {
    assert_eq!(
        dead_letter_after(Answer::Garbage)["lastdeliveryoutcome"],
        "SocketError"
    );
}

#[test]
fn endpoint_that_floods_interim_answers_is_a_broken_connection() {
    let letter = dead_letter_after(Answer::InterimForEver);
    assert_eq!(letter["lastdeliveryoutcome"], "SocketError");
    assert_eq!(letter.get("lasthttpstatuscode"), None);
}

/// A test event answers what happened, and an end by SIGTERM is a clean one, while the endpoint floods.
#[test]
fn flood_of_interim_answers_delays_no_test_event_and_no_end() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    endpoint.script("/a", [Answer::InterimForEver]);
    let topic =
        server
            .api()
            .create_topic_with("orders", "billing", &subscription(&endpoint.url("/a")));
    let tested = server
        .api()
        .manage("POST", "/topics/orders/subscriptions/billing/test", None)
        .expect(200)
        .json();
    assert_eq!(tested["outcome"], "SocketError");
    topic.publish(&cloud_event("1"));
    endpoint.wait_for("/a", 2);
    server.stop();
}

#[test]
fn an_endless_body_after_a_failure_does_not_hide_the_status() {
    let letter = dead_letter_after(Answer::Endless(500));
    assert_eq!(letter["lastdeliveryoutcome"], "GenericError");
    assert_eq!(letter["lasthttpstatuscode"], 500);
}

#[test]
fn an_endless_body_after_a_success_is_a_success() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    endpoint.script("/a", [Answer::Endless(200)]);
    let topic =
        server
            .api()
            .create_topic_with("orders", "billing", &subscription(&endpoint.url("/a")));
    topic.publish(&cloud_event("1"));
    endpoint.wait_for("/a", 1);
    topic.publish(&cloud_event("2"));
    let requests = endpoint.wait_for("/a", 2);
    assert_eq!(
        requests.iter().flat_map(Received::ids).collect::<Vec<_>>(),
        ["1", "2"]
    );
    assert!(home.dead_letter_files("orders", "billing").is_empty());
}

/// Publishes 150 events to an endpoint that answers so, and waits until they are delivered.
fn deliver_150(answer: Answer) {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    endpoint.script("/a", [answer]);
    let topic =
        server
            .api()
            .create_topic_with("orders", "billing", &subscription(&endpoint.url("/a")));
    let events: Vec<_> = (0..150).map(|id| cloud_event(&id.to_string())).collect();
    topic.publish_batch(&events);
    wait_until("all events are delivered", || {
        (server.api().delivered() >= 150.0).then_some(())
    });
    assert_eq!(endpoint.received("/a").len(), 150);
    assert!(home.dead_letter_files("orders", "billing").is_empty());
}

#[test]
fn endless_bodies_hold_up_no_other_event() {
    deliver_150(Answer::Endless(200));
}

#[test]
fn bodies_that_stall_hold_up_no_other_event_for_long() {
    deliver_150(Answer::Raw(
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf",
    ));
}

/// Two subscriptions of one host answer as curl takes it and hyper does not. Neither costs the host
/// its health, and each event one request.
#[test]
fn odd_answers_stop_no_neighbour_of_the_endpoint() {
    const ODD: &str =
        "HTTP/1.1 200 OK\r\nfolded: 1\r\n 2\r\nno header\r\ncontent-length: 0\r\n\r\n";
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    for path in ["/a", "/b"] {
        endpoint.script(path, [Answer::Raw(ODD)]);
    }
    let subscriptions = ["a", "b", "healthy"].map(|name| {
        (
            name.to_owned(),
            subscription(&endpoint.url(&format!("/{name}"))),
        )
    });
    let subscriptions: serde_json::Map<String, Value> = subscriptions.into_iter().collect();
    let topic = server
        .api()
        .create_topic("orders", &json!({ "subscriptions": subscriptions }));
    let events: Vec<_> = (0..12).map(|id| cloud_event(&id.to_string())).collect();
    topic.publish_batch(&events);
    wait_until("all events are delivered", || {
        (server.api().delivered() >= 36.0).then_some(())
    });
    assert_eq!(endpoint.all().len(), 36);
    let links = server
        .api()
        .manage("GET", "/links", None)
        .expect(200)
        .json();
    assert_eq!(links["links"], json!([]));
}

/// A balancer forgets 24 kept connections, without a word. An event meets one of them, and no
/// other attempt of it does.
#[test]
fn event_meets_one_kept_connection_that_went_silent() {
    const KEPT: usize = 24;
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = Server::start(home.path(), &["--requests-per-link-start", "24"]);
    endpoint.script(
        "/a",
        vec![Answer::Held(204); KEPT]
            .into_iter()
            .chain([Answer::OncePerConnection(204)]),
    );
    let hasty = json!({
        "endpoint": { "timeout": "PT10S" },
        "retryPolicy": { "schedule": ["PT1S"], "maxDeliveryAttempts": 4 },
    });
    let settings = subscription_with(&endpoint.url("/a"), &hasty);
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    let events: Vec<_> = (0..KEPT).map(|id| cloud_event(&id.to_string())).collect();
    topic.publish_batch(&events);
    endpoint.wait_for("/a", KEPT);
    endpoint.open();
    let delivered = |count: f64| {
        wait_until("events are delivered", || {
            (server.api().delivered() >= count).then_some(())
        });
    };
    delivered(24.0);
    topic.publish(&cloud_event("late"));
    delivered(25.0);
    let requests = endpoint.received("/a");
    let attempts: Vec<_> = requests[KEPT..]
        .iter()
        .map(|request| (request.ids(), request.header("aeg-delivery-count")))
        .collect();
    let late = || vec!["late".to_owned()];
    assert_eq!(attempts, [(late(), Some("0")), (late(), Some("1"))]);
    server.stop();
    assert!(home.dead_letter_files("orders", "billing").is_empty());
}

#[test]
fn a_redirect_is_not_followed() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    for status in [301, 302, 303, 307, 308] {
        endpoint.script(
            &format!("/{status}"),
            [Answer::With(status, "location", endpoint.url("/elsewhere"))],
        );
    }
    let once = json!({ "retryPolicy": { "maxDeliveryAttempts": 1 } });
    let subscribe = |status: &u16| {
        (
            format!("s{status}"),
            subscription_with(&endpoint.url(&format!("/{status}")), &once),
        )
    };
    let subscriptions: serde_json::Map<String, Value> =
        [301, 302, 303, 307, 308].iter().map(subscribe).collect();
    let topic = server
        .api()
        .create_topic("orders", &json!({ "subscriptions": subscriptions }));
    topic.publish(&cloud_event("1"));
    for status in [301, 302, 303, 307, 308] {
        let letter = home.wait_for_dead_letter("orders", &format!("s{status}"));
        assert_eq!(letter["lastdeliveryoutcome"], "Redirected");
        assert_eq!(letter["lasthttpstatuscode"], status);
        assert_eq!(letter["lastredirectlocation"], endpoint.url("/elsewhere"));
    }
    assert_eq!(endpoint.received("/elsewhere").len(), 0);
    assert_eq!(endpoint.all().len(), 5);
}

#[test]
fn a_port_where_nobody_listens_is_a_broken_connection() {
    let home = Home::new();
    let server = home.serve();
    let twice = json!({ "retryPolicy": { "maxDeliveryAttempts": 2 } });
    let topic =
        server
            .api()
            .create_topic_with("orders", "billing", &subscription_with(&nobody(), &twice));
    topic.publish(&cloud_event("1"));
    let letter = home.wait_for_dead_letter("orders", "billing");
    assert_eq!(letter["lastdeliveryoutcome"], "SocketError");
    assert_eq!(letter["deliveryattempts"], 2);
    assert_eq!(letter.get("lasthttpstatuscode"), None);
}

#[test]
fn endpoint_that_recovers_from_all_of_it_gets_its_event() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let bad = [
        Answer::Never,
        Answer::Close,
        Answer::CloseInHead,
        Answer::Garbage,
        Answer::Endless(500),
    ];
    endpoint.script("/a", bad.into_iter().chain([Answer::Status(200)]));
    let hasty = json!({ "endpoint": { "timeout": "PT1S" } });
    let settings = subscription_with(&endpoint.url("/a"), &hasty);
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&cloud_event("1"));
    let requests = endpoint.wait_for("/a", 6);
    let counts: Vec<_> = requests
        .iter()
        .filter_map(|request| request.header("aeg-delivery-count"))
        .collect();
    assert_eq!(counts, ["0", "1", "2", "3", "4", "5"]);
    assert!(home.dead_letter_files("orders", "billing").is_empty());
}
