//! Whole requests and whole dead-letter objects, as they are: method, target, every header, every
//! byte of the body. Ids, times and signatures are put in angle brackets, because they differ from
//! run to run.

use posthaste_tests::endpoint::Received;
use posthaste_tests::events::{cloud_event, event_grid_event};
use posthaste_tests_conformance::{HOOK, SUBSCRIPTION, TOPIC, World};
use serde_json::{Value, json};

/// Headers whose value is another one in every run.
const DIFFERENT: [&str; 4] = [
    "host",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
];

fn batched() -> Value {
    json!({ "batching": { "maxEventsPerBatch": 10 } })
}

/// A request as text, its headers sorted.
fn text_of(request: &Received) -> String {
    let line = |(name, value): &(String, String)| match name.as_str() {
        "webhook-signature" => format!("{name}: {}", shape_of_signatures(value)),
        different if DIFFERENT.contains(&different) => format!("{name}: <{name}>"),
        "user-agent" => format!(
            "{name}: {}/<version>",
            value.split('/').next().unwrap_or_default()
        ),
        _ => format!("{name}: {value}"),
    };
    let mut lines: Vec<_> = request.headers.iter().map(line).collect();
    lines.sort();
    let body = String::from_utf8_lossy(&request.body);
    format!(
        "{} {}\n{}\n\n{body}",
        request.method,
        request.path,
        lines.join("\n")
    )
}

/// Signatures by their versions.
fn shape_of_signatures(value: &str) -> String {
    let version = |signature: &str| {
        format!(
            "{},<base64>",
            signature.split(',').next().unwrap_or_default()
        )
    };
    value.split(' ').map(version).collect::<Vec<_>>().join(" ")
}

/// The object of dead letters as it lies there, without the times, the identity and the keys that
/// differ.
fn text_of_letters(world: &World) -> String {
    let letters = world.home.wait_for_dead_letters(TOPIC, SUBSCRIPTION, 1);
    let file = world
        .home
        .dead_letter_files(TOPIC, SUBSCRIPTION)
        .swap_remove(0);
    let mut text = std::fs::read_to_string(file).expect("it is text");
    for letter in &letters {
        for (name, value) in letter.as_object().expect("a dead letter is an object") {
            let shown = match name.to_lowercase().as_str() {
                "publishtime" | "lastdeliveryattempttime" => "<time>",
                "subscriptionidentity" => "<identity>",
                "deliverykey" => "<key>",
                "webhookid" => "<id>",
                _ => continue,
            };
            if let Some(found) = value.as_str() {
                text = text.replace(
                    &format!("\"{name}\":\"{found}\""),
                    &format!("\"{name}\":\"{shown}\""),
                );
            }
        }
    }
    text
}

/// A world whose endpoint refuses everything, for dead letters.
fn refusing(status: u16) -> World {
    let world = World::new();
    world.endpoint.on(HOOK, &[status]);
    world
}

fn cloud_events() -> [Value; 2] {
    [cloud_event("1"), cloud_event("2")]
}

fn event_grid_events() -> [Value; 2] {
    [event_grid_event("1"), event_grid_event("2")]
}

#[test]
fn request_of_one_structured_cloud_event() {
    insta::assert_snapshot!(text_of(
        &World::new().deliver(&cloud_event("1"), &json!({}))
    ));
}

#[test]
fn request_of_one_binary_cloud_event() {
    let mut event = cloud_event("1");
    event["traceparent"] = json!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    event["mine"] = json!("Euro € 😀");
    insta::assert_snapshot!(text_of(
        &World::new().deliver(&event, &json!({ "contentMode": "binary" }))
    ));
}

#[test]
fn request_of_a_batch_of_cloud_events() {
    insta::assert_snapshot!(text_of(
        &World::new().deliver_batch(&cloud_events(), &batched())
    ));
}

#[test]
fn request_of_one_event_grid_event() {
    insta::assert_snapshot!(text_of(
        &World::new().deliver_event_grid(&[event_grid_event("1")], &json!({}))
    ));
}

#[test]
fn request_of_a_batch_of_event_grid_events() {
    insta::assert_snapshot!(text_of(
        &World::new().deliver_event_grid(&event_grid_events(), &batched())
    ));
}

/// The page's custom event, and the mapping that leads to the page's dead letter.
fn custom() -> (Value, Value) {
    let event = json!({
        "prop1": "my property", "prop2": 5, "myEventType": "fooEventType", "no": "c-1",
        "when": "2026-11-21T10:00:00Z",
    });
    let mapping = json!({
        "id": { "sourceField": "no" },
        "eventType": { "sourceField": "myEventType" },
        "subject": { "defaultValue": "subjectDefault" },
        "dataVersion": { "defaultValue": "1.0" },
        "eventTime": { "sourceField": "when" },
    });
    (event, mapping)
}

/// The request that the page's custom event becomes in a schema.
fn custom_as(schema: &str) -> Received {
    let (event, mapping) = custom();
    World::new().deliver_custom(&event, &mapping, &json!({ "deliverySchema": schema }))
}

#[test]
fn request_of_an_event_grid_event_as_a_cloud_event() {
    let more = json!({ "deliverySchema": "CloudEvents" });
    insta::assert_snapshot!(text_of(
        &World::new().deliver_event_grid(&[event_grid_event("1")], &more)
    ));
}

#[test]
fn request_of_an_event_grid_event_as_a_binary_cloud_event() {
    let more = json!({ "deliverySchema": "CloudEvents", "contentMode": "binary" });
    insta::assert_snapshot!(text_of(
        &World::new().deliver_event_grid(&[event_grid_event("1")], &more)
    ));
}

#[test]
fn request_of_a_batch_of_event_grid_events_as_cloud_events() {
    let more = json!({ "deliverySchema": "CloudEvents", "batching": { "maxEventsPerBatch": 10 } });
    insta::assert_snapshot!(text_of(
        &World::new().deliver_event_grid(&event_grid_events(), &more)
    ));
}

#[test]
fn request_of_a_custom_event() {
    insta::assert_snapshot!(text_of(&custom_as("Custom")));
}

#[test]
fn request_of_a_custom_event_as_an_event_grid_event() {
    insta::assert_snapshot!(text_of(&custom_as("EventGrid")));
}

#[test]
fn request_of_a_custom_event_as_a_cloud_event() {
    insta::assert_snapshot!(text_of(&custom_as("CloudEvents")));
}

#[test]
fn request_of_a_batch_of_custom_events() {
    let (event, mapping) = custom();
    let request = World::new().deliver_custom(&json!([event, event]), &mapping, &batched());
    insta::assert_snapshot!(text_of(&request));
}

#[test]
fn dead_letter_of_a_custom_event() {
    let (event, mapping) = custom();
    let world = refusing(400);
    world.deliver_custom(&event, &mapping, &json!({}));
    insta::assert_snapshot!(text_of_letters(&world));
}

#[test]
fn dead_letter_of_an_event_grid_event_sent_as_a_cloud_event() {
    let world = refusing(400);
    world.deliver_event_grid(
        &[event_grid_event("1")],
        &json!({ "deliverySchema": "CloudEvents" }),
    );
    insta::assert_snapshot!(text_of_letters(&world));
}

#[test]
fn request_that_two_secrets_sign() {
    let secrets = [
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_bm90IGEgc2VjcmV0LCBidXQgYSBuZXcgb25lISEh",
    ];
    let more = json!({ "signing": { "secrets": secrets } });
    insta::assert_snapshot!(text_of(&World::new().deliver(&cloud_event("1"), &more)));
}

#[test]
fn request_that_a_key_pair_signs() {
    let more =
        json!({ "signing": { "secrets": ["whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="] } });
    insta::assert_snapshot!(text_of(&World::new().deliver(&cloud_event("1"), &more)));
}

#[test]
fn request_with_custom_headers() {
    let headers = json!([
        { "name": "X-Tenant", "value": "acme" },
        { "name": "Authorization", "value": "Bearer s3cret", "isSecret": true },
        { "name": "X-Number", "fromEvent": "/data/n" },
    ]);
    insta::assert_snapshot!(text_of(
        &World::new().deliver(&cloud_event("1"), &json!({ "deliveryHeaders": headers }))
    ));
}

/// The request that asks an endpoint, whose code and times differ from run to run.
fn handshake(validation: &str) -> String {
    let world = World::reachable();
    world.endpoint.on(HOOK, &[405]);
    let more = json!({ "endpoint": { "validation": validation, "maxRequestsPerSecond": 2 } });
    world.topic("CloudEvents", &more);
    let request = world.endpoint.wait_for_one(HOOK);
    let mut text = text_of(&request);
    if let Ok(body) = serde_json::from_slice::<Value>(&request.body) {
        let event = &body[0];
        for different in [
            &event["id"],
            &event["eventTime"],
            &event["data"]["validationCode"],
        ] {
            text = text.replace(different.as_str().expect("it is text"), "<different>");
        }
    }
    let callback = request
        .header("webhook-request-callback")
        .and_then(|url| url.rsplit('/').next());
    callback
        .map(|code| text.replace(code, "<different>"))
        .unwrap_or(text)
}

#[test]
fn request_that_asks_by_options() {
    insta::assert_snapshot!(handshake("CloudEvents"));
}

#[test]
fn request_that_asks_by_a_validation_event() {
    insta::assert_snapshot!(handshake("EventGrid"));
}

#[test]
fn dead_letter_of_a_cloud_event() {
    let world = refusing(400);
    world.deliver(&cloud_event("1"), &json!({}));
    insta::assert_snapshot!(text_of_letters(&world));
}

#[test]
fn dead_letters_of_a_batch_of_cloud_events() {
    let world = refusing(403);
    world.deliver_batch(&cloud_events(), &batched());
    insta::assert_snapshot!(text_of_letters(&world));
}

#[test]
fn dead_letter_of_an_event_grid_event() {
    let world = refusing(404);
    world.deliver_event_grid(&[event_grid_event("1")], &json!({}));
    insta::assert_snapshot!(text_of_letters(&world));
}

#[test]
fn dead_letter_after_no_answer_at_all() {
    let world = World::new();
    let more = json!({
        "endpoint": { "url": posthaste_tests::endpoint::nobody() },
        "retryPolicy": { "maxDeliveryAttempts": 2 },
    });
    world.topic("CloudEvents", &more).publish(&cloud_event("1"));
    insta::assert_snapshot!(text_of_letters(&world));
}

#[test]
fn dead_letter_of_an_event_that_was_never_tried() {
    let world = World::new();
    let mut event = cloud_event("1");
    event["expirytime"] = json!("2001-01-01T00:00:00Z");
    world.topic("CloudEvents", &json!({})).publish(&event);
    insta::assert_snapshot!(text_of_letters(&world));
}
