//! Events that are no longer wanted. The shortest time to live a subscription can set is a minute,
//! so these tests use the event's own `expirytime`.

use jiff::{SignedDuration, Timestamp};
use posthaste_tests::endpoint::Endpoint;
use posthaste_tests::events::{cloud_event, subscription, subscription_with};
use posthaste_tests::home::Home;
use posthaste_tests::patience::{now, wait_until};
use serde_json::{Value, json};

/// An event that expires so many milliseconds from now.
fn expiring(id: &str, in_ms: i64) -> Value {
    let since = SignedDuration::try_from(now()).expect("it is small");
    let now = Timestamp::from_duration(since).expect("it is near");
    let mut event = cloud_event(id);
    event["expirytime"] = json!((now + SignedDuration::from_millis(in_ms)).to_string());
    event
}

#[test]
fn expired_event_is_a_dead_letter_without_an_attempt() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let topic =
        server
            .api()
            .create_topic_with("orders", "billing", &subscription(&endpoint.url("/a")));
    topic.publish(&expiring("late", -60_000));
    let letter = home.wait_for_dead_letter("orders", "billing");
    assert_eq!(letter["id"], "late");
    assert_eq!(letter["deadletterreason"], "TimeToLiveExceeded");
    assert_eq!(letter["deliveryattempts"], 0);
    assert_eq!(letter["lastdeliveryoutcome"], "Probation");
    assert_eq!(endpoint.all().len(), 0);
}

#[test]
fn an_event_that_expires_while_it_waits_has_no_further_attempt() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let slow = json!({ "retryPolicy": { "schedule": ["PT21S"] } });
    let settings = subscription_with(&endpoint.on("/a", &[503]), &slow);
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&expiring("1", 20_000));
    let letter = home.wait_for_dead_letter("orders", "billing");
    assert_eq!(letter["deadletterreason"], "TimeToLiveExceeded");
    assert_eq!(letter["deliveryattempts"], 1);
    assert_eq!(letter["lastdeliveryoutcome"], "Busy");
    assert_eq!(letter["lasthttpstatuscode"], 503);
    assert_eq!(endpoint.all().len(), 1);
}

#[test]
fn an_event_that_expires_later_is_delivered() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let topic =
        server
            .api()
            .create_topic_with("orders", "billing", &subscription(&endpoint.url("/a")));
    let event = expiring("1", 600_000);
    topic.publish(&event);
    assert_eq!(endpoint.wait_for_one("/a").json(), event);
}

#[test]
fn expired_event_of_a_batch_takes_no_other_with_it() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let batching = json!({ "batching": { "maxEventsPerBatch": 10 } });
    let settings = subscription_with(&endpoint.url("/a"), &batching);
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish_batch(&[
        cloud_event("1"),
        expiring("late", -60_000),
        cloud_event("2"),
    ]);
    assert_eq!(home.wait_for_dead_letter("orders", "billing")["id"], "late");
    let requests = endpoint.wait_for("/a", 1);
    assert_eq!(requests[0].ids(), ["1", "2"]);
}

/// Expired events are dropped and counted where the subscription says so.
#[test]
fn expired_events_are_dropped_and_counted_if_asked() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let dropping = json!({ "deadLetter": { "onExpiry": false } });
    let settings = subscription_with(&endpoint.url("/a"), &dropping);
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&expiring("late", -60_000));
    wait_until("the dropped event to be counted", || {
        let text = server
            .api()
            .manage("GET", "/metrics", None)
            .expect(200)
            .body;
        let text = String::from_utf8(text)
            .unwrap()
            .to_lowercase()
            .replace('_', "");
        let mut lines = text.lines().filter(|line| {
            line.starts_with("droppedevent") || line.starts_with("posthastedroppedevent")
        });
        lines.any(|line| line.ends_with(" 1")).then_some(())
    });
    assert!(home.dead_letter_files("orders", "billing").is_empty());
    assert_eq!(endpoint.all().len(), 0);
}
