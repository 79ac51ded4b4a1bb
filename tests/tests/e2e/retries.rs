//! Attempts, waits between them, and their end.

use std::time::Duration;

use posthaste_tests::endpoint::{Answer, Endpoint, Received};
use posthaste_tests::events::{cloud_event, subscription, subscription_with};
use posthaste_tests::home::Home;
use posthaste_tests::patience::{now, wait_until};
use posthaste_tests::server::Server;
use serde_json::{Value, json};

/// The time between two requests as the endpoint saw them.
fn waits(requests: &[Received]) -> Vec<Duration> {
    requests
        .windows(2)
        .map(|two| two[1].at.saturating_sub(two[0].at))
        .collect()
}

#[test]
fn event_after_two_503_is_delivered_at_the_third_attempt() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let url = endpoint.on("/a", &[503, 503, 200]);
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &subscription(&url));
    topic.publish(&cloud_event("1"));
    let requests = endpoint.wait_for("/a", 3);
    let headers = |name| {
        requests
            .iter()
            .map(|request| request.header(name).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(headers("aeg-delivery-count"), ["0", "1", "2"]);
    let ids = headers("webhook-id");
    assert!(
        !ids[0].is_empty() && ids.iter().all(|id| *id == ids[0]),
        "{ids:?}"
    );
    assert!(
        requests
            .iter()
            .all(|request| request.body == requests[0].body)
    );
    assert!(
        waits(&requests)
            .iter()
            .all(|wait| *wait >= Duration::from_secs(1)),
        "{:?}",
        waits(&requests)
    );
    assert!(home.dead_letter_files("orders", "billing").is_empty());
}

#[test]
fn two_events_have_two_ids() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let topic =
        server
            .api()
            .create_topic_with("orders", "billing", &subscription(&endpoint.url("/a")));
    topic.publish(&cloud_event("same"));
    topic.publish(&cloud_event("same"));
    let requests = endpoint.wait_for("/a", 2);
    assert_ne!(
        requests[0].header("webhook-id"),
        requests[1].header("webhook-id")
    );
}

#[test]
fn the_last_failed_attempt_is_a_dead_letter_in_a_file() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let policy = json!({ "retryPolicy": { "maxDeliveryAttempts": 3 } });
    let settings = subscription_with(&endpoint.on("/a", &[500]), &policy);
    let topic = server
        .api()
        .create_topic_with("Orders", "Billing", &settings);
    topic.publish(&cloud_event("1"));
    let letter = home.wait_for_dead_letter("orders", "billing");
    assert_eq!(endpoint.received("/a").len(), 3);
    assert_eq!(letter["deadletterreason"], "MaxDeliveryAttemptsExceeded");
    assert_eq!(letter["deliveryattempts"], 3);
    assert_eq!(letter["lastdeliveryoutcome"], "GenericError");
    assert_eq!(letter["lasthttpstatuscode"], 500);
    assert!(letter["publishtime"].is_string() && letter["lastdeliveryattempttime"].is_string());
    let mut event = letter;
    let names = [
        "deadletterreason",
        "deliveryattempts",
        "lastdeliveryoutcome",
        "lasthttpstatuscode",
        "publishtime",
        "lastdeliveryattempttime",
        "subscriptionidentity",
        "deliverykey",
        "webhookid",
    ];
    for name in names {
        assert!(
            event.as_object_mut().unwrap().remove(name).is_some(),
            "{name}"
        );
    }
    assert_eq!(event, cloud_event("1"));
    let [file] = &home.dead_letter_files("orders", "billing")[..] else {
        panic!("one file")
    };
    let key = file.strip_prefix(home.path().join("dead-letters")).unwrap();
    let parts: Vec<_> = key.iter().map(|part| part.to_str().unwrap()).collect();
    let [topic, subscription, date @ .., name] = &parts[..] else {
        panic!("{parts:?}")
    };
    assert_eq!((*topic, *subscription), ("ORDERS", "BILLING"));
    assert!(
        date.len() == 4
            && date
                .iter()
                .all(|part| part.parse::<u32>().is_ok_and(|n| n.to_string() == **part))
    );
    assert_eq!(
        name.len(),
        "00000000-0000-0000-0000-000000000000.json".len()
    );
}

#[test]
fn retry_after_is_a_floor_in_seconds() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    endpoint.script(
        "/429",
        [
            Answer::With(429, "retry-after", "3".into()),
            Answer::Status(200),
        ],
    );
    endpoint.script(
        "/503",
        [
            Answer::With(503, "retry-after", "3".into()),
            Answer::Status(200),
        ],
    );
    // Whatever the schedule says, which is a second.
    let subscriptions = json!({
        "a": subscription(&endpoint.url("/429")),
        "b": subscription(&endpoint.url("/503")),
    });
    let topic = server
        .api()
        .create_topic("orders", &json!({ "subscriptions": subscriptions }));
    topic.publish(&cloud_event("1"));
    for path in ["/429", "/503"] {
        let wait = waits(&endpoint.wait_for(path, 2))[0];
        assert!(wait >= Duration::from_secs(3), "{path}: {wait:?}");
    }
}

#[test]
fn retry_after_may_be_a_date() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = subscription(&endpoint.url("/a"));
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    let at = now().as_secs() + 4;
    let date = http_date(at);
    endpoint.script(
        "/a",
        [Answer::With(503, "retry-after", date), Answer::Status(200)],
    );
    topic.publish(&cloud_event("1"));
    let second = &endpoint.wait_for("/a", 2)[1];
    assert!(
        second.at >= Duration::from_secs(at),
        "{:?} is before {at}",
        second.at
    );
}

fn http_date(secs: u64) -> String {
    let at = jiff::Timestamp::from_second(i64::try_from(secs).expect("it is small"));
    let at = at.expect("it is near");
    jiff::fmt::rfc2822::DateTimePrinter::new()
        .timestamp_to_rfc9110_string(&at)
        .expect("it has a date")
}

#[test]
fn a_floor_of_a_status_lengthens_the_wait_after_it() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let floors = json!({ "retryPolicy": { "waitFloors": { "503": "PT3S", "default": "PT2S" } } });
    let subscriptions = json!({
        "a": subscription_with(&endpoint.on("/503", &[503, 200]), &floors),
        "b": subscription_with(&endpoint.on("/500", &[500, 200]), &floors),
    });
    let topic = server
        .api()
        .create_topic("orders", &json!({ "subscriptions": subscriptions }));
    topic.publish(&cloud_event("1"));
    assert!(waits(&endpoint.wait_for("/500", 2))[0] >= Duration::from_secs(2));
    assert!(waits(&endpoint.wait_for("/503", 2))[0] >= Duration::from_secs(3));
}

/// The line of the log about an attempt at this event, as soon as it is there.
fn attempt_line(server: &Server, message: &str, event: &str) -> Value {
    let is_meant = |line: &Value| line["message"] == message && line["event_id"] == event;
    wait_until("a line about the attempt", || {
        server
            .log()
            .iter()
            .filter_map(|line| serde_json::from_str(line).ok())
            .find(is_meant)
    })
}

/// The log says as data what the endpoint answered and what comes next.
#[test]
fn log_says_as_data_the_answer_and_the_next_step() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = Server::start(
        home.path(),
        &["--log-filter", "info,posthaste_deliver=debug"],
    );
    let policy = json!({ "retryPolicy": { "maxDeliveryAttempts": 2 } });
    let settings = subscription_with(&endpoint.on("/a", &[503, 500]), &policy);
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&cloud_event("first"));
    home.wait_for_dead_letter("orders", "billing");
    let webhook_id = endpoint.received("/a")[0]
        .header("webhook-id")
        .unwrap()
        .to_owned();
    let line = attempt_line(&server, "delivery attempt failed", "first");
    let expected = json!({
        "webhook_id": webhook_id, "topic": "orders", "subscription": "billing",
        "link": endpoint.url(""), "attempt": 1, "status": 503, "outcome": "Busy", "verdict": "retry",
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(line[name], *value, "{name} in {line}");
    }
    assert!(
        line["took_ms"].is_f64() && line["retry_at"].is_string() && line["reason"].is_null(),
        "{line}"
    );
    endpoint.on("/a", &[204]);
    topic.publish(&cloud_event("second"));
    let line = attempt_line(&server, "delivered", "second");
    let shown = (&line["status"], &line["verdict"], &line["attempt"]);
    assert_eq!(
        shown,
        (&json!(204), &json!("delivered"), &json!(1)),
        "{line}"
    );
    assert!(
        line["link"].is_string() && line["webhook_id"].is_string() && line["took_ms"].is_f64(),
        "{line}"
    );
    let last = server
        .log()
        .into_iter()
        .find(|line| line.contains("MaxDeliveryAttemptsExceeded"))
        .unwrap();
    assert!(last.contains(r#""verdict":"dead letter""#), "{last}");
}

/// An event judged by the answer to others has a log line without a webhook id.
#[test]
fn event_judged_by_others_is_logged_without_a_webhook_id() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = Server::start(home.path(), &[]);
    let batching = json!({ "batching": { "maxEventsPerBatch": 12 } });
    let settings = subscription_with(&endpoint.on("/a", &[400]), &batching);
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    let ids: Vec<_> = (0..12).map(|n| format!("e-{n}")).collect();
    topic.publish_batch(&ids.iter().map(|id| cloud_event(id)).collect::<Vec<_>>());
    let lines: Vec<_> = ids
        .iter()
        .map(|id| attempt_line(&server, "delivery attempt failed", id))
        .collect();
    let (sent, judged): (Vec<_>, Vec<_>) = lines
        .iter()
        .partition(|line| line["webhook_id"].is_string());
    assert!(!sent.is_empty() && !judged.is_empty(), "{lines:?}");
    assert!(sent.iter().all(|line| line["took_ms"].is_f64()), "{sent:?}");
    let is_judged = |line: &&&Value| line["took_ms"].is_null() && line["status"] == 400;
    assert_eq!(
        judged.iter().filter(is_judged).count(),
        judged.len(),
        "{judged:?}"
    );
}
