//! Settings compiled whole, and the members that errors name.

use super::*;
use crate::model::{BatchPolicy, RetryPolicy, Secret, SubscriptionStatus};
use serde_json::json;

fn compile(settings: serde_json::Value) -> Result<Subscription, SettingsError> {
    let settings: SubscriptionSettings = serde_json::from_value(settings).unwrap();
    let topic = TopicName::parse("orders").unwrap();
    let name = SubscriptionName::parse("billing").unwrap();
    compile_subscription(&topic, EventSchema::CloudEvents, &name, &settings)
}

#[expect(clippy::needless_pass_by_value, reason = "a literal at every call")]
fn with(member: &str, value: serde_json::Value) -> serde_json::Value {
    json!({ "endpoint": { "url": "https://billing.example.com/hooks" }, member: value })
}

fn check(member: &str, value: serde_json::Value, message: &str) {
    assert_eq!(
        compile(with(member, value)).unwrap_err().to_string(),
        message
    );
}

/// Checks what is said of each value of a member, behind the member's name.
fn check_each<const N: usize>(member: &str, cases: [(serde_json::Value, &str); N]) {
    for (value, said) in cases {
        check(member, value, &format!("{member}{said}"));
    }
}

#[test]
fn a_subscription_needs_no_more_than_an_endpoint() {
    let subscription = compile(json!({ "endpoint": { "url": "https://a.example/" } })).unwrap();
    assert_eq!(subscription.retry, RetryPolicy::default());
    assert_eq!(subscription.batching, BatchPolicy::default());
    assert_eq!(subscription.timeout, Duration::from_secs(30));
    assert_eq!(subscription.dead_letter.delay, Duration::from_mins(5));
    assert_eq!(subscription.status, SubscriptionStatus::Active);
}

#[test]
fn an_error_names_the_member_of_the_endpoint_at_fault() {
    let second = |url: &str| json!({ "url": "https://a.example", "fallbackUrl": url });
    let same_link = ".fallbackUrl: is on the scheme, host and port of endpoint.url, and would be left alone \
        with it";
    check_each(
        "endpoint",
        [
            (
                json!({ "url": "ftp://a.example" }),
                ".url: the scheme is \"ftp\", expected https",
            ),
            (
                second("ftp://b.example"),
                ".fallbackUrl: the scheme is \"ftp\", expected https",
            ),
            (second("https://A.example:443/"), same_link),
            (
                json!({ "url": "https://a.example", "timeout": "PT61S" }),
                ".timeout: expected PT1S to PT1M, found PT1M1S",
            ),
        ],
    );
}

#[test]
fn an_error_names_the_member_of_the_retry_policy_at_fault() {
    let no_status = ".waitFloors.x: expected an HTTP status, 100 to 599, or \"default\"";
    check_each(
        "retryPolicy",
        [
            (
                json!({ "maxDeliveryAttempts": 31 }),
                ".maxDeliveryAttempts: expected 1 to 30, found 31",
            ),
            (
                json!({ "eventTimeToLiveInMinutes": 0 }),
                ".eventTimeToLiveInMinutes: expected 1 to 1440, found 0",
            ),
            (
                json!({ "schedule": [] }),
                ".schedule: expected 1 to 30 items, found 0",
            ),
            (
                json!({ "schedule": ["PT1S", "P2D"] }),
                ".schedule[1]: expected PT0S to P1D, found P2D",
            ),
            (json!({ "waitFloors": { "x": "PT1S" } }), no_status),
            (
                json!({ "permanentStatuses": [204] }),
                ".permanentStatuses[0]: expected 300 to 599, found 204",
            ),
        ],
    );
}

#[test]
fn an_error_names_the_member_of_batching_at_fault() {
    let acknowledged =
        |events: u32| json!({ "maxEventsPerBatch": events, "partialAcknowledgement": true });
    let too_many =
        ".maxEventsPerBatch: expected 1 to 1000, the most with partialAcknowledgement, found 1001";
    let unbatched = ".partialAcknowledgement: needs batching: set maxEventsPerBatch or \
        preferredBatchSizeInKilobytes";
    check_each(
        "batching",
        [
            (
                json!({ "maxEventsPerBatch": 5001 }),
                ".maxEventsPerBatch: expected 1 to 5000, found 5001",
            ),
            (
                json!({ "preferredBatchSizeInKilobytes": 0 }),
                ".preferredBatchSizeInKilobytes: expected 1 to 1024, found 0",
            ),
            (json!({ "partialAcknowledgement": true }), unbatched),
            (acknowledged(1001), too_many),
        ],
    );
}

#[test]
fn an_error_names_any_other_member_at_fault() {
    let other_schema = ": events accepted as CloudEvents cannot be sent as EventGrid";
    check_each("deliverySchema", [(json!("EventGrid"), other_schema)]);
    check_each(
        "name",
        [(
            json!("other"),
            ": differs from the name in the path, \"billing\"",
        )],
    );
    check_each(
        "autoDeleteOnIdle",
        [(json!("PT4M"), ": expected PT5M or more, found PT4M")],
    );
    check_each(
        "deadLetter",
        [
            (
                json!({ "giveUpAfter": "PT0S" }),
                ".giveUpAfter: expected PT5M to P14D, found PT0S",
            ),
            (
                json!({ "delay": "PT16M" }),
                ".delay: expected PT0S to PT15M, found PT16M",
            ),
        ],
    );
    let nothing_masked =
        ".secrets[0]: a masked secret keeps the one that is there, and there is none";
    check_each(
        "signing",
        [
            (
                json!({ "secrets": ["x"] }),
                ".secrets[0]: a signing secret starts with whsec_ or whsk_",
            ),
            (json!({ "secrets": ["(masked)"] }), nothing_masked),
        ],
    );
}

#[test]
fn either_batching_member_turns_it_on_and_none_does_not() {
    let batching = |value| compile(with("batching", value)).unwrap().batching;
    assert_eq!(batching(json!({})), BatchPolicy::default());
    let by_count = BatchPolicy {
        enabled: true,
        events_max: 7,
        bytes_preferred: 65_536,
        ..BatchPolicy::default()
    };
    assert_eq!(batching(json!({ "maxEventsPerBatch": 7 })), by_count);
    let by_size = BatchPolicy {
        enabled: true,
        events_max: 1,
        bytes_preferred: 4096,
        ..BatchPolicy::default()
    };
    assert_eq!(
        batching(json!({ "preferredBatchSizeInKilobytes": 4 })),
        by_size
    );
}

#[test]
fn a_header_that_cannot_be_added_is_named() {
    let check =
        |headers: serde_json::Value, message: &str| check("deliveryHeaders", headers, message);
    check(
        json!([{ "name": "x" }]),
        "deliveryHeaders[0]: expected either value or fromEvent",
    );
    check(
        json!([{ "name": "x", "value": "a", "fromEvent": "/id" }]),
        "deliveryHeaders[0]: expected either value or fromEvent",
    );
    check(
        json!([{ "name": "x", "value": "a" }, { "name": "Host", "value": "a" }]),
        "deliveryHeaders[1].name: the header is reserved: posthaste or HTTP itself sets it",
    );
    check(
        json!([{ "name": "x", "value": "a\r\nb: c" }]),
        "deliveryHeaders[0].value: its character 2 is CARRIAGE RETURN (U+000D), which is not seen; remove it",
    );
    check(
        json!([{ "name": "x", "fromEvent": "data.id" }]),
        "deliveryHeaders[0].fromEvent: a JSON pointer starts with a slash, such as /data/id",
    );
    check(
        json!([{ "name": "x", "fromEvent": "/id", "isSecret": true }]),
        "deliveryHeaders[0].isSecret: a value of the event is no secret",
    );
    check(
        json!([{ "name": "X-A", "value": "a" }, { "name": "x-a", "value": "b" }]),
        "deliveryHeaders[1].name: there is another header of this name",
    );
    check(
        json!([{ "name": "x", "value": "(masked)", "isSecret": true }]),
        "deliveryHeaders[0].value: a masked secret keeps the one that is there, and there is none",
    );
    let eleven: Vec<_> = (0..11)
        .map(|n| json!({ "name": format!("x-{n}"), "value": "a" }))
        .collect();
    check(
        json!(eleven),
        "deliveryHeaders: expected at most 10 items, found 11; leave 1 out",
    );
}

#[test]
fn a_batch_of_several_events_has_no_value_of_an_event() {
    let with = |events: u32| {
        let mut settings = with(
            "deliveryHeaders",
            json!([{ "name": "x", "fromEvent": "/id" }]),
        );
        settings["batching"] = json!({ "maxEventsPerBatch": events });
        compile(settings)
            .map(|subscription| subscription.delivery_headers.len())
            .map_err(|e| e.member)
    };
    assert_eq!(with(1), Ok(1));
    assert_eq!(with(2), Err("deliveryHeaders[0].fromEvent".to_owned()));
}

#[test]
fn wait_floors_are_laid_over_the_defaults() {
    let floors = json!({ "waitFloors": { "503": "PT1S", "default": "PT0S" } });
    let floors = compile(with("retryPolicy", floors))
        .unwrap()
        .retry
        .wait_floors;
    let seconds = |status| floors.after_status(Some(status)).as_secs();
    assert_eq!((seconds(503), seconds(408), seconds(500)), (1, 120, 0));
}

#[test]
fn a_topic_s_error_names_the_subscription() {
    let settings = json!({ "subscriptions": { "billing": { "endpoint": { "url": "x" } } } });
    let settings: TopicSettings = serde_json::from_value(settings).unwrap();
    let keys = TopicKeys::new(Secret::new("a"), Secret::new("b"));
    let error = compile_topic(&TopicName::parse("orders").unwrap(), &settings, keys).unwrap_err();
    assert_eq!(error.member, "subscriptions.billing.endpoint.url");
}

#[test]
fn senders_headers_are_checked_with_their_topic() {
    let check = |sender: serde_json::Value, header: &str, said: Option<&str>| {
        let settings: TopicSettings = serde_json::from_value(json!({
            "senderHeaders": sender,
            "subscriptions": { "b": {
                "endpoint": { "url": "https://b.example.com" },
                "deliveryHeaders": [{ "name": "x-other", "value": "1" }, { "name": header, "value": "1" }],
            } },
        }))
        .unwrap();
        let topic = TopicName::parse("orders").unwrap();
        let keys = TopicKeys::new(Secret::new("k1"), Secret::new("k2"));
        let compiled = compile_topic(&topic, &settings, keys);
        let error = compiled.err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), said, "{sender} {header}");
    };
    check(json!({ "prefix": "acme" }), "acme-tenant", None);
    check(
        json!({ "prefix": "acme", "omit": ["attempt"] }),
        "acme-attempt",
        None,
    );
    check(
        json!({ "prefix": "acme" }),
        "Acme-Attempt",
        Some(
            "subscriptions.b.deliveryHeaders[1].name: the topic's senderHeaders send a header of this name",
        ),
    );
    check(
        json!({ "prefix": "Acme" }),
        "x-tenant",
        Some(
            "senderHeaders.prefix: expected 1 to 32 lower-case letters, digits and single hyphens between \
             them, such as acme or x-acme, and none of content, proxy, ce, sec, x-amz and x-amzn",
        ),
    );
}
