//! The HTTP protocol binding of CloudEvents 1.0.2.
//! <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md>

use posthaste_tests::api::{Answer, Topic};
use posthaste_tests::endpoint::Received;
use posthaste_tests::events::cloud_event;
use posthaste_tests_conformance::{HOOK, World};
use serde_json::{Value, json};

fn binary() -> Value {
    json!({ "contentMode": "binary" })
}

fn batched() -> Value {
    json!({ "batching": { "maxEventsPerBatch": 3 } })
}

/// A CloudEvent with these members besides.
fn event(more: &Value) -> Value {
    let mut event = cloud_event("1");
    let members = event.as_object_mut().expect("an object");
    let more = more.as_object().expect("an object");
    members.extend(more.clone());
    event
}

/// The request that an event with these members becomes in binary mode.
fn in_binary(more: &Value) -> Received {
    World::new().deliver(&event(more), &binary())
}

/// Publishes an event in binary mode with a subject header as it is written here.
fn publish_with_subject(topic: &Topic, subject: &str) -> Answer {
    let headers = [
        ("aeg-sas-key", topic.keys[0].as_str()),
        ("content-type", "application/json"),
        ("ce-specversion", "1.0"),
        ("ce-id", "1"),
        ("ce-source", "/s"),
        ("ce-type", "t"),
        ("ce-subject", subject),
    ];
    topic.send_with(&headers, b"{}")
}

/// The subject that arrives when an event is published with this header.
fn subject_read_from(header: &str) -> Value {
    let world = World::new();
    publish_with_subject(&world.topic("CloudEvents", &json!({})), header).expect(200);
    world.endpoint.wait_for_one(HOOK).json()["subject"].clone()
}

#[test]
fn structured_and_binary_mode_are_both_supported() {
    let structured =
        World::new().deliver(&cloud_event("1"), &json!({ "contentMode": "structured" }));
    assert_eq!(structured.json(), cloud_event("1"));
    let binary = in_binary(&json!({}));
    assert_eq!(
        (binary.json(), binary.header("ce-id")),
        (json!({ "n": 1 }), Some("1"))
    );
}

#[test]
fn a_batch_is_never_sent_unless_it_was_asked_for() {
    let world = World::new();
    let events: Vec<_> = ["1", "2", "3"].map(cloud_event).into();
    world.deliver_batch(&events, &json!({}));
    for request in world.endpoint.wait_for(HOOK, 3) {
        let content_type = request.header("content-type").expect("there is one");
        assert!(
            content_type.starts_with("application/cloudevents+json"),
            "{content_type}"
        );
    }
}

#[test]
fn the_receiver_chooses_the_greatest_batch() {
    let world = World::new();
    let events: Vec<_> = (0..7).map(|n| cloud_event(&n.to_string())).collect();
    world.deliver_batch(&events, &batched());
    let mut sizes: Vec<_> = world
        .endpoint
        .wait_for(HOOK, 3)
        .iter()
        .map(|request| request.ids().len())
        .collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 3, 3]);
}

#[test]
fn in_binary_mode_content_type_is_datacontenttype() {
    let content_type = "application/vnd.example.order+json; charset=utf-8";
    let request = in_binary(&json!({ "datacontenttype": content_type }));
    assert_eq!(request.header("content-type"), Some(content_type));
}

#[test]
fn in_binary_mode_there_is_no_ce_datacontenttype() {
    let request = in_binary(&json!({ "datacontenttype": "application/json" }));
    assert_eq!(request.header("ce-datacontenttype"), None);
}

#[test]
fn in_binary_mode_the_body_is_the_data() {
    let check = |content_type: &str, member: &str, data: Value, body: &[u8]| {
        let mut event = event(&json!({ "datacontenttype": content_type }));
        event.as_object_mut().expect("an object").remove("data");
        event[member] = data;
        assert_eq!(
            World::new().deliver(&event, &binary()).body,
            body,
            "{event}"
        );
    };
    check(
        "application/json",
        "data",
        json!({ "n": [1, 2.5] }),
        br#"{"n":[1,2.5]}"#,
    );
    check(
        "text/xml",
        "data",
        json!("<much wow=\"xml\"/>"),
        br#"<much wow="xml"/>"#,
    );
    check(
        "application/octet-stream",
        "data_base64",
        json!("AP8Q"),
        &[0, 255, 16],
    );
}

#[test]
fn binary_mode_has_a_header_for_every_attribute_and_extension() {
    let world = World::new();
    let more = json!({ "dataschema": "https://example.com/schema", "mine": "kept", "count": 7, "good": true });
    let event = event(&more);
    let request = world.deliver(&event, &binary());
    for (name, value) in event
        .as_object()
        .expect("an object")
        .iter()
        .filter(|(name, _)| *name != "data")
    {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        assert_eq!(
            request.header(&format!("ce-{name}")),
            Some(text.as_str()),
            "{name}"
        );
    }
    let carried = request
        .headers
        .iter()
        .filter(|(name, _)| name.starts_with("ce-"))
        .count();
    assert_eq!(carried, event.as_object().expect("an object").len() - 1);
}

#[test]
fn header_example_of_the_specification_is_encoded_as_it_says() {
    let request = in_binary(&json!({ "mine": "Euro € 😀" }));
    assert_eq!(
        request.header("ce-mine"),
        Some("Euro%20%E2%82%AC%20%F0%9F%98%80")
    );
}

/// Space, quote, percent and all that is not printable ASCII are percent-encoded.
#[test]
fn space_quote_percent_and_unprintable_are_percent_encoded() {
    let request = in_binary(&json!({ "mine": "a b\"c%d\u{a0}e~f!g" }));
    assert_eq!(request.header("ce-mine"), Some("a%20b%22c%25d%C2%A0e~f!g"));
}

#[test]
fn a_header_value_is_encoded_once() {
    let request = in_binary(&json!({ "mine": "100%25" }));
    assert_eq!(request.header("ce-mine"), Some("100%2525"));
}

#[test]
fn values_are_written_in_their_canonical_form() {
    let request = in_binary(&json!({ "yes": true, "no": false, "least": -2_147_483_648_i64 }));
    let headers =
        ["ce-yes", "ce-no", "ce-least"].map(|name| request.header(name).unwrap_or_default());
    assert_eq!(headers, ["true", "false", "-2147483648"]);
}

#[test]
fn a_quoted_header_value_is_unescaped_when_it_is_read() {
    assert_eq!(
        subject_read_from(r#""a \"b\" \\ c""#),
        json!(r#"a "b" \ c"#)
    );
}

#[test]
fn a_header_value_is_percent_decoded_once_when_it_is_read() {
    assert_eq!(subject_read_from("a%2520b"), json!("a%20b"));
}

#[test]
fn lower_case_and_needless_percent_encoding_is_read() {
    assert_eq!(subject_read_from("%e2%82%ac%61"), json!("€a"));
}

#[test]
fn percent_encoding_that_is_not_utf8_is_refused() {
    let world = World::new();
    let problem =
        publish_with_subject(&world.topic("CloudEvents", &json!({})), "%C0%A0").problem(400);
    assert_eq!(problem["member"], "subject");
}

#[test]
fn the_content_type_of_structured_mode_is_the_json_format_s() {
    let request = World::new().deliver(&cloud_event("1"), &json!({}));
    assert_eq!(
        request.header("content-type"),
        Some("application/cloudevents+json; charset=utf-8")
    );
}

#[test]
fn in_structured_mode_the_body_is_the_event_in_the_json_format() {
    let event = event(&json!({ "mine": "kept", "datacontenttype": "application/json" }));
    assert_eq!(World::new().deliver(&event, &json!({})).json(), event);
}

#[test]
fn the_content_type_of_a_batch_is_the_json_batch_format_s() {
    let request = World::new().deliver_batch(&[cloud_event("1"), cloud_event("2")], &batched());
    assert_eq!(
        request.header("content-type"),
        Some("application/cloudevents-batch+json; charset=utf-8")
    );
}

#[test]
fn all_events_of_a_batch_have_the_same_specversion() {
    let world = World::new();
    let topic = world.topic("CloudEvents", &batched());
    let older = event(&json!({ "specversion": "0.3" }));
    let body = json!([cloud_event("1"), older]).to_string();
    let answer = topic
        .send("application/cloudevents-batch+json", body.as_bytes())
        .expect("an answer");
    let problem = answer.problem(400);
    assert_eq!(
        (&problem["index"], &problem["member"]),
        (&json!(1), &json!("specversion"))
    );
}

#[test]
fn events_of_a_batch_may_differ_in_everything_else() {
    let text = event(
        &json!({ "id": "2", "type": "other", "datacontenttype": "text/plain", "data": "two" }),
    );
    let request = World::new().deliver_batch(&[cloud_event("1"), text.clone()], &batched());
    assert_eq!(request.json(), json!([cloud_event("1"), text]));
}

#[test]
fn an_empty_batch_is_accepted() {
    let world = World::new();
    let topic = world.topic("CloudEvents", &batched());
    topic
        .send("application/cloudevents-batch+json", b"[]")
        .expect("an answer")
        .expect(200);
}
