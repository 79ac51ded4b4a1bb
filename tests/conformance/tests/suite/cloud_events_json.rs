//! The JSON event format of CloudEvents 1.0.2.
//! <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md>

use posthaste_tests::events::cloud_event;
use posthaste_tests_conformance::{HOOK, World};
use serde_json::{Value, json};

/// The examples of section 3.2, from their second half on: the first is the same for all four.
fn example(id: &str, more: &Value) -> Value {
    let mut event = json!({
        "specversion": "1.0", "type": "com.example.someevent", "source": "/mycontext", "id": id,
        "time": "2018-04-05T17:31:00Z", "comexampleextension1": "value", "comexampleothervalue": 5,
    });
    let members = event.as_object_mut().expect("an object");
    let more = more.as_object().expect("an object");
    members.extend(more.clone());
    event
}

/// Checks how an example of section 3.2 reads in binary mode: the attributes that all four share,
/// these two parts, and nothing where the example says `null`.
fn check_binary(event: &Value, content_type: &str, body: &[u8]) {
    let request = World::new().deliver(event, &json!({ "contentMode": "binary" }));
    let mut headers: Vec<_> = request
        .headers
        .iter()
        .filter(|(name, _)| name.starts_with("ce-"))
        .collect();
    headers.sort();
    let headers: Vec<_> = headers
        .into_iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let id = event["id"].as_str().expect("an id");
    let expected = [
        ("ce-comexampleextension1", "value"),
        ("ce-comexampleothervalue", "5"),
        ("ce-id", id),
        ("ce-source", "/mycontext"),
        ("ce-specversion", "1.0"),
        ("ce-time", "2018-04-05T17:31:00Z"),
        ("ce-type", "com.example.someevent"),
    ];
    assert_eq!(headers, expected);
    assert_eq!(
        (request.header("content-type"), request.body.as_slice()),
        (Some(content_type), body)
    );
}

/// The event that arrives in structured mode when it is published in binary mode.
fn structured_from(content_type: &str, body: &[u8]) -> Value {
    let world = World::new();
    let topic = world.topic("CloudEvents", &json!({}));
    let headers = [
        ("aeg-sas-key", topic.keys[0].as_str()),
        ("content-type", content_type),
        ("ce-specversion", "1.0"),
        ("ce-id", "1"),
        ("ce-source", "/s"),
        ("ce-type", "t"),
        ("ce-mine", "kept"),
    ];
    topic.send_with(&headers, body).expect(200);
    world.endpoint.wait_for_one(HOOK).json()
}

#[test]
fn extensions_are_members_beside_the_attributes() {
    let event = structured_from("application/json", b"{}");
    assert_eq!(event["mine"], "kept");
}

#[test]
fn attributes_keep_their_json_types() {
    let event = example("1", &json!({ "yes": true, "data": null }));
    let received = World::new().deliver(&event, &json!({})).json();
    assert_eq!(
        (&received["yes"], &received["comexampleothervalue"]),
        (&json!(true), &json!(5))
    );
}

#[test]
fn an_attribute_that_is_null_is_one_that_is_not_there() {
    let world = World::new();
    let event = example("1", &json!({ "subject": null, "time": null, "data": 1 }));
    let begins = json!({ "filter": { "subjectBeginsWith": "null" } });
    let topic = world.topic("CloudEvents", &json!({ "contentMode": "binary" }));
    let never = world.subscription(&begins);
    world
        .server
        .api()
        .manage("PUT", "/topics/orders/subscriptions/never", Some(&never))
        .expect(201);
    topic.publish(&event);
    let request = world.endpoint.wait_for_one(HOOK);
    assert_eq!(
        (request.header("ce-subject"), request.header("ce-time")),
        (None, None)
    );
    assert_eq!(world.endpoint.all().len(), 1);
}

#[test]
fn the_media_type_of_an_event_is_application_cloudevents_json() {
    let request = World::new().deliver(&cloud_event("1"), &json!({}));
    let media_type = request
        .header("content-type")
        .and_then(|value| value.split(';').next());
    assert_eq!(media_type, Some("application/cloudevents+json"));
}

#[test]
fn every_attribute_that_is_there_is_a_member_of_its_name() {
    let event = structured_from("application/json", b"{}");
    let expected = json!({
        "specversion": "1.0", "id": "1", "source": "/s", "type": "t", "mine": "kept",
        "datacontenttype": "application/json", "data": {},
    });
    assert_eq!(event, expected);
}

#[test]
fn binary_data_is_base64_in_data_base64() {
    let event = structured_from("application/octet-stream", &[0, 255, 16]);
    assert_eq!(
        (&event["data_base64"], event.get("data")),
        (&json!("AP8Q"), None)
    );
    assert_eq!(event["datacontenttype"], "application/octet-stream");
}

#[test]
fn json_data_is_a_json_value_and_not_a_text_of_it() {
    for content_type in [
        "application/json",
        "application/vnd.example.order+json; charset=utf-8",
        "text/json",
    ] {
        let event = structured_from(content_type, br#"{"n":1}"#);
        assert_eq!(
            (&event["data"], event.get("data_base64")),
            (&json!({ "n": 1 }), None),
            "{content_type}"
        );
    }
}

#[test]
fn data_that_is_not_json_is_a_string() {
    let event = structured_from("text/xml", b"<a b=\"c\"/>");
    assert_eq!(
        (&event["data"], event.get("data_base64")),
        (&json!("<a b=\"c\"/>"), None)
    );
}

#[test]
fn data_and_data_base64_exclude_each_other() {
    let world = World::new();
    let event = example("1", &json!({ "data": 1, "data_base64": "AA==" })).to_string();
    let topic = world.topic("CloudEvents", &json!({}));
    topic
        .send("application/cloudevents+json", event.as_bytes())
        .expect("an answer")
        .problem(400);
}

#[test]
fn data_that_is_null_is_not_data_that_is_missing() {
    let with = example("1", &json!({ "data": null }));
    let without = example("1", &json!({}));
    assert_eq!(World::new().deliver(&with, &json!({})).json(), with);
    assert_eq!(World::new().deliver(&without, &json!({})).json(), without);
    check_binary(&with, "application/json", b"null");
}

#[test]
fn a_json_string_is_not_read_as_json_once_more() {
    let event = example("1", &json!({ "data": "{\"n\":1}" }));
    assert_eq!(
        World::new().deliver(&event, &json!({})).json()["data"],
        "{\"n\":1}"
    );
    check_binary(&event, "application/json", br#""{\"n\":1}""#);
}

#[test]
fn the_example_of_binary_data_reads_in_binary_mode_as_it_says() {
    let thrift = "application/vnd.apache.thrift.binary";
    let event = example(
        "A234-1234-1234",
        &json!({ "datacontenttype": thrift, "data_base64": "gAEAAQ==" }),
    );
    check_binary(&event, thrift, &[128, 1, 0, 1]);
}

#[test]
fn the_example_of_xml_data_reads_in_binary_mode_as_it_says() {
    let more = json!({
        "unsetextension": null, "datacontenttype": "application/xml", "data": "<much wow=\"xml\"/>",
    });
    check_binary(
        &example("B234-1234-1234", &more),
        "application/xml",
        br#"<much wow="xml"/>"#,
    );
}

#[test]
fn the_example_of_json_data_reads_in_binary_mode_as_it_says() {
    let data = json!({ "appinfoA": "abc", "appinfoB": 123, "appinfoC": true });
    let more = json!({ "subject": null, "datacontenttype": "application/json", "data": data });
    check_binary(
        &example("C234-1234-1234", &more),
        "application/json",
        data.to_string().as_bytes(),
    );
}

#[test]
fn example_without_datacontenttype_is_json_in_binary_mode() {
    let more = json!({ "subject": null, "data": "I'm just a string" });
    check_binary(
        &example("D234-1234-1234", &more),
        "application/json",
        br#""I'm just a string""#,
    );
}

#[test]
fn a_batch_is_an_array_of_events_in_the_json_format() {
    let thrift = "application/vnd.apache.thrift.binary";
    let binary =
        json!({ "source": "/mycontext/4", "datacontenttype": thrift, "data_base64": "gAEAAQ==" });
    let data = json!({ "appinfoA": "abc", "appinfoB": 123, "appinfoC": true });
    let json_data = json!({
        "type": "com.example.someotherevent", "source": "/mycontext/9", "time": "2018-04-05T17:31:05Z",
        "datacontenttype": "application/json", "data": data,
    });
    let events = [
        example("B234-1234-1234", &binary),
        example("C234-1234-1234", &json_data),
    ];
    let request =
        World::new().deliver_batch(&events, &json!({ "batching": { "maxEventsPerBatch": 2 } }));
    assert_eq!(request.json(), json!(events));
}

#[test]
fn batch_has_the_media_type_application_cloudevents_batch_json() {
    let more = json!({ "batching": { "maxEventsPerBatch": 2 } });
    let request = World::new().deliver_batch(&[cloud_event("1")], &more);
    let media_type = request
        .header("content-type")
        .and_then(|value| value.split(';').next());
    assert_eq!(media_type, Some("application/cloudevents-batch+json"));
}
