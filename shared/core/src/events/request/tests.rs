//! Every form of a publish request, every malformed one, and the samples of the repository.

mod bad_input;
mod documents;
mod properties;
mod samples;

use std::sync::LazyLock;

use http::{HeaderName, HeaderValue};

use super::*;
use crate::model::Timestamp;

const STRUCTURED: &str = "application/cloudevents+json";
const BATCH: &str = "application/cloudevents-batch+json";
const MINIMAL: &str = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#;
const GRID: &str = r#"{"id":"1","eventType":"t","subject":"/s","eventTime":"2026-11-21T10:00:00Z","data":{},"dataVersion":"1","metadataVersion":"1","topic":"/t"}"#;

/// The input of a topic of this schema, without a mapping.
fn input(schema: EventSchema) -> TopicInput<'static> {
    static UNMAPPED: LazyLock<InputMapping> = LazyLock::new(InputMapping::default);
    let made = GeneratedValues {
        at: Timestamp::from_millis(1_795_255_200_000),
        seed: [7; 16],
    };
    match schema {
        EventSchema::CloudEvents => TopicInput::CloudEvents,
        EventSchema::EventGrid => TopicInput::EventGrid,
        EventSchema::Custom => TopicInput::Custom {
            mapping: &UNMAPPED,
            made,
        },
    }
}

fn parse(
    schema: EventSchema,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Result<Vec<Event>, PublishInputError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    let topic = TopicName::parse("orders").unwrap();
    let body = Bytes::copy_from_slice(body);
    parse_request(&PublishRequest {
        topic: &topic,
        input: input(schema),
        headers: &map,
        body: &body,
    })
}

/// The kept texts, or the error.
fn texts(
    schema: EventSchema,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Result<Vec<String>, String> {
    let text = |event: Event| String::from_utf8(event.into_json().to_vec()).unwrap();
    parse(schema, headers, body)
        .map(|events| events.into_iter().map(text).collect())
        .map_err(|e| e.to_string())
}

fn cloud(content_type: &str, body: &str) -> Result<Vec<String>, String> {
    texts(
        EventSchema::CloudEvents,
        &[("content-type", content_type)],
        body.as_bytes(),
    )
}

fn grid(body: &str) -> Result<Vec<String>, String> {
    texts(
        EventSchema::EventGrid,
        &[("content-type", "application/json")],
        body.as_bytes(),
    )
}

#[track_caller]
fn refused(actual: Result<Vec<String>, String>, expected: &str) {
    assert_eq!(actual.unwrap_err(), expected);
}

/// A valid event with `data` as given.
fn with_data(data: &str) -> String {
    format!(r#"{{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{data}}}"#)
}

#[test]
fn structured_event_is_kept_byte_for_byte() {
    let event =
        "{ \"specversion\" :\"1.0\",\"id\":\"\\u0031\",\n\"source\":\"/s\",\"type\":\"t\" }";
    for content_type in [
        STRUCTURED,
        "application/cloudevents+json; charset=utf-8",
        "Application/JSON;charset=\"UTF-8\"",
    ] {
        assert_eq!(
            cloud(content_type, &format!(" \r\n{event}\t")),
            Ok(vec![event.to_owned()])
        );
    }
}

/// Batches as the Azure client sends them are accepted.
#[test]
fn azure_client_requests_are_accepted() {
    let body = format!("[{MINIMAL}, {MINIMAL}]");
    let both = Ok(vec![MINIMAL.to_owned(), MINIMAL.to_owned()]);
    assert_eq!(
        cloud("application/cloudevents-batch+json; charset=utf-8", &body),
        both
    );
    assert_eq!(cloud("application/json", &body), both);
}

/// Empty batch of CloudEvents is accepted, one of Event Grid's events is refused.
#[test]
fn empty_batch_is_accepted_only_of_cloud_events() {
    assert_eq!(cloud(BATCH, " [ ] "), Ok(vec![]));
    refused(grid("[]"), "body: expected at least one event");
}

#[test]
fn an_event_of_another_schema_is_called_one() {
    let grid_for_cloud = "expected an event of the schema CloudEvents, which the topic takes; this looks like EventGrid";
    refused(
        cloud("application/json", GRID),
        &format!("events[0]: {grid_for_cloud}"),
    );
    refused(
        cloud("application/json", &format!("[{MINIMAL},{GRID}]")),
        &format!("events[1]: {grid_for_cloud}"),
    );
    let cloud_for_grid = "events[0]: expected an event of the schema EventGrid, which the topic takes; this \
        looks like CloudEvents";
    refused(grid(MINIMAL), cloud_for_grid);
    let binary = [
        ("content-type", "application/json"),
        ("ce-specversion", "1.0"),
        ("ce-id", "1"),
    ];
    refused(
        texts(EventSchema::EventGrid, &binary, br#"{"amount":1}"#),
        cloud_for_grid,
    );
    // A value with a mistake of its own is refused for that mistake.
    refused(
        cloud(
            "application/json",
            r#"{"specversion":"1.0","id":"1","eventType":"t"}"#,
        ),
        "events[0].eventType: expected an attribute name of lower-case letters and digits",
    );
    refused(
        grid(r#"{"id":"1","eventType":"t"}"#),
        "events[0].subject: expected a string",
    );
}

#[test]
fn events_are_slices_of_the_body() {
    let body = Bytes::from(format!("[{MINIMAL}]"));
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(BATCH));
    let topic = TopicName::parse("orders").unwrap();
    let input = input(EventSchema::CloudEvents);
    let events = parse_request(&PublishRequest {
        topic: &topic,
        input,
        headers: &headers,
        body: &body,
    });
    assert_eq!(events.unwrap()[0].json().as_ptr(), body[1..].as_ptr());
}

#[test]
fn every_malformed_body_is_described() {
    let one = "body: expected one event as a JSON object; several need application/cloudevents-batch+json";
    let array = "body: expected a JSON array of events";
    let either = "body: expected a JSON object or an array of objects";
    for body in ["", "[]", "1", "null", "\"x\"", "x"] {
        refused(cloud(STRUCTURED, body), one);
    }
    for body in ["", "{}", "1", "null", "\"x\"", "x"] {
        refused(cloud(BATCH, body), array);
    }
    for body in ["", " ", "1", "null", "\"x\"", "x"] {
        refused(cloud("application/json", body), either);
        refused(grid(body), either);
    }
    let json = |body: &str, problem: &str| {
        refused(
            cloud("application/json", body),
            &format!("body: expected JSON: {problem}"),
        );
    };
    let member = |body: &str, problem: &str| {
        refused(
            cloud("application/json", body),
            &format!("events[0].a: expected JSON: {problem}"),
        );
    };
    json("{", "EOF while parsing an object at line 1 column 1");
    json("[", "EOF while parsing a list at line 1 column 1");
    json("{}x", "trailing characters at line 1 column 3");
    json(
        &format!("{MINIMAL} {MINIMAL}"),
        "trailing characters at line 1 column 57",
    );
    json("[{},]", "trailing comma at line 1 column 5");
    json("{'a':1}", "key must be a string at line 1 column 2");
    member("{\"a\":01}", "invalid number at line 1 column 7");
    member("{\"a\":NaN}", "expected value at line 1 column 6");
    member("{\"a\":\"\\x\"}", "invalid escape at line 1 column 8");
    member(
        "{\"a\":\"\u{1}\"}",
        "control character (\\u0000-\\u001F) found while parsing a string at line 1 column 6",
    );
    refused(
        cloud(STRUCTURED, &format!("\u{feff}{MINIMAL}")),
        "body: expected JSON without a byte order mark",
    );
    refused(
        grid(&format!("\u{feff}[{GRID}]")),
        "body: expected JSON without a byte order mark",
    );
    refused(
        texts(
            EventSchema::CloudEvents,
            &[("content-type", STRUCTURED)],
            b"{\"a\":\"\xff\"}",
        ),
        "body: expected UTF-8",
    );
    refused(
        texts(EventSchema::EventGrid, &[], b"\xff"),
        "body: expected UTF-8",
    );
}

#[test]
fn the_fault_is_named_by_index_and_member() {
    let bad = r#"{"specversion":"1.0","id":"1","source":"","type":"t"}"#;
    let body = format!("[{MINIMAL},{MINIMAL},{MINIMAL},{bad}]");
    refused(
        cloud(BATCH, &body),
        "events[3].source: expected a non-empty URI reference without spaces",
    );
    refused(
        cloud(BATCH, &format!("[{MINIMAL},null]")),
        "events[1]: expected a JSON object, found null",
    );
    refused(
        cloud(STRUCTURED, "{}"),
        "events[0].specversion: expected \"1.0\"",
    );
    refused(
        grid(&format!("[{GRID},[{GRID}]]")),
        "events[1]: expected a JSON object, found an array",
    );
    refused(
        grid("{\"id\":7}"),
        "events[0].id: expected a non-empty string, found a number",
    );
    match parse(
        EventSchema::CloudEvents,
        &[("content-type", BATCH)],
        body.as_bytes(),
    ) {
        Err(PublishInputError::Event {
            index: 3,
            error:
                EventError {
                    member: Some(member),
                    expected: EventExpectation::UriReference,
                    found: None,
                },
        }) => {
            assert_eq!(member, "source");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn other_media_types_charsets_and_encodings_are_unsupported() {
    let expected = "expected application/cloudevents+json, application/cloudevents-batch+json or \
        application/json in UTF-8, or ce- headers";
    for content_type in [
        "application/cloudevents+xml",
        "application/cloudevents",
        "application/cloudevents+json; charset=iso-8859-1",
        "application/json; charset=utf-16",
        "text/plain",
        "",
    ] {
        refused(
            cloud(content_type, MINIMAL),
            &format!("content-type {content_type}: {expected}"),
        );
    }
    refused(
        texts(EventSchema::CloudEvents, &[], b"{}"),
        &format!("content-type missing: {expected}"),
    );
    let binary_utf16 = [
        ("ce-id", "1"),
        ("content-type", "application/json; charset=utf-16"),
    ];
    refused(
        texts(EventSchema::CloudEvents, &binary_utf16, b"{}"),
        &format!("content-type application/json; charset=utf-16: {expected}"),
    );
    for content_type in [
        STRUCTURED,
        BATCH,
        "application/xml",
        "application/json; charset=latin1",
    ] {
        let refusal = format!(
            "content-type {content_type}: expected application/json in UTF-8 with events of the schema \
                EventGrid"
        );
        refused(
            texts(
                EventSchema::EventGrid,
                &[("content-type", content_type)],
                b"[]",
            ),
            &refusal,
        );
    }
    let brotli = [("content-type", BATCH), ("content-encoding", "br")];
    refused(
        texts(EventSchema::CloudEvents, &brotli, b"[]"),
        "content-encoding br: expected gzip alone, or no content encoding",
    );
    for none in ["Identity", "", "identity, identity"] {
        let headers = [("content-type", BATCH), ("content-encoding", none)];
        assert_eq!(texts(EventSchema::CloudEvents, &headers, b"[]"), Ok(vec![]));
    }
}

/// Event Grid's events come with every content type that its documentation sends.
#[test]
fn event_grid_events_are_accepted_with_any_content_type() {
    let kept = Ok(vec![GRID.to_owned()]);
    assert_eq!(grid(GRID), kept);
    assert_eq!(grid(&format!("[{GRID}]")), kept);
    assert_eq!(texts(EventSchema::EventGrid, &[], GRID.as_bytes()), kept);
    let curl = [("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(texts(EventSchema::EventGrid, &curl, GRID.as_bytes()), kept);
}

#[test]
fn binary_mode_is_rendered_once_and_checked_like_any_other() {
    let headers = [
        ("ce-specversion", "1.0"),
        ("ce-id", "1"),
        ("ce-source", "/s"),
        ("ce-type", "t"),
        ("ce-subject", "a%20b"),
        (
            "ce-traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
        ("content-type", "application/json"),
    ];
    let event = &parse(EventSchema::CloudEvents, &headers, b" {\"n\": 1.50 }\n").unwrap()[0];
    assert_eq!((event.subject(), event.id()), (Some("a b"), "1"));
    assert_eq!(
        event.traceparent(),
        Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    );
    assert!(
        event
            .json()
            .ends_with(br#","datacontenttype":"application/json","data":{"n": 1.50 }}"#)
    );
    let error = |headers: &[(&str, &str)]| texts(EventSchema::CloudEvents, headers, b"");
    refused(
        error(&headers[1..6]),
        "events[0].specversion: expected \"1.0\"",
    );
    refused(
        error(&[("ce-id", "%ff")]),
        "events[0].id: expected percent-encoded UTF-8",
    );
    refused(
        error(&[("ce-specversion", "0.3")]),
        "events[0].specversion: expected \"1.0\"",
    );
    refused(
        error(&[
            headers[0],
            headers[1],
            headers[2],
            headers[3],
            ("ce-time", "now"),
        ]),
        "events[0].time: expected an RFC 3339 date-time such as 2026-11-21T10:00:00Z",
    );
}

#[test]
fn sizes_are_exact() {
    let sized = |bytes: usize| {
        with_data(&format!(
            "\"{}\"",
            "x".repeat(bytes - with_data("\"\"").len())
        ))
    };
    assert_eq!(
        cloud(STRUCTURED, &sized(EVENT_BYTES_MAX)).map(|events| events[0].len()),
        Ok(EVENT_BYTES_MAX)
    );
    refused(
        cloud(STRUCTURED, &sized(EVENT_BYTES_MAX + 1)),
        "body of 1000001 bytes: expected at most 1000000",
    );
    let headers = [("ce-id", "1"), ("content-type", "image/png")];
    let rendered = texts(EventSchema::CloudEvents, &headers, &vec![0; 800_000]);
    refused(
        rendered,
        "events[0] of 1066725 bytes: expected at most 1000000",
    );
}

#[test]
fn nesting_has_a_limit_and_never_overflows_the_stack() {
    let nested = |levels: usize| with_data(&("[".repeat(levels) + &"]".repeat(levels)));
    assert_eq!(cloud(STRUCTURED, &nested(99)), Ok(vec![nested(99)]));
    for levels in [100, 128, 100_000] {
        refused(
            cloud(STRUCTURED, &nested(levels)),
            "events[0]: expected at most 100 levels of nesting",
        );
    }
    let open = "[".repeat(100_000);
    refused(
        cloud(BATCH, &open),
        "body: expected JSON: EOF while parsing a list at line 1 column 100000",
    );
    let binary = texts(
        EventSchema::CloudEvents,
        &[("ce-id", "1"), ("content-type", "application/json")],
        open.as_bytes(),
    );
    refused(
        binary,
        "events[0].data: expected JSON: EOF while parsing a list at line 1 column 100000",
    );
}

#[test]
fn numbers_and_lone_surrogates_in_data_pass_byte_for_byte() {
    for data in [
        "1e999999",
        "12345678901234567890",
        "-0.0",
        "1.000000000000000000001",
        r#""\ud800""#,
        r#"{"\udfff":1,"a":1,"a":2}"#,
    ] {
        assert_eq!(
            cloud(STRUCTURED, &with_data(data)),
            Ok(vec![with_data(data)])
        );
    }
}

#[test]
fn characters_refused_by_sqs_are_kept_as_written() {
    let event = with_data("[ \"\u{fffe}\\\"\u{ffff}\\uffff\\uFFFE\", \"\u{fffd}\" ]");
    assert_eq!(
        cloud(BATCH, &format!("[{MINIMAL},{event}]")),
        Ok(vec![MINIMAL.to_owned(), event])
    );
    let subject = GRID
        .replace("/s", "\u{ffff}")
        .replace(r#","topic":"/t""#, "");
    let completed = GRID
        .replace("/s", "\u{ffff}")
        .replace(r#""topic":"/t""#, r#""topic":"/topics/orders""#);
    assert_eq!(grid(&subject), Ok(vec![completed]));
    let many = with_data(&format!("\"{}\"", "\u{ffff}".repeat(300_000)));
    assert_eq!(cloud(STRUCTURED, &many), Ok(vec![many]));
}
