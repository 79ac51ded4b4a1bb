//! Bad and odd input at the edges, the same for every schema: some is refused by name, and some is
//! kept byte for byte, also for receivers of another schema.

use super::*;
use crate::events::convert_event;
use crate::model::{CUSTOM_ENVELOPES_BYTES_MAX, MappedField, SourceField};

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

/// A valid event that ends with a member whose value is this.
fn holding(schema: EventSchema, data: &str) -> String {
    let members = match schema {
        EventSchema::CloudEvents => r#""specversion":"1.0","id":"1","source":"/s","type":"t""#,
        EventSchema::EventGrid => {
            r#""id":"1","eventType":"t","subject":"/s","eventTime":"2026-11-21T10:00:00Z","dataVersion":"1","metadataVersion":"1","topic":"/t""#
        }
        EventSchema::Custom => r#""kind":"t""#,
    };
    format!(r#"{{{members},"data":{data}}}"#)
}

/// A valid event with one more member.
fn with_member(schema: EventSchema, member: &str) -> String {
    holding(schema, "1").replacen('{', &format!("{{{member},"), 1)
}

/// The event in every schema that its own can be sent in.
fn sent(schema: EventSchema, body: &str) -> Vec<String> {
    let event = &parse(schema, JSON, body.as_bytes()).unwrap()[0];
    let outputs = EventSchema::ALL
        .into_iter()
        .filter(|output| schema.converts_to(*output));
    let text = |output| String::from_utf8(convert_event(event, output).unwrap().to_vec()).unwrap();
    outputs.map(text).collect()
}

#[track_caller]
fn refused_everywhere(body: impl Fn(EventSchema) -> Vec<u8>, expected: &str) {
    for schema in EventSchema::ALL {
        assert_eq!(
            texts(schema, JSON, &body(schema)),
            Err(expected.to_owned()),
            "{schema:?}"
        );
    }
}

#[test]
fn odd_data_is_delivered_byte_for_byte_in_every_schema() {
    let many: Vec<String> = (0..100_000).map(|n| format!("\"{n:x}\":0")).collect();
    for data in [
        "12345678901234567890",
        "-1e999999",
        "1.000000000000000000001",
        r#""\ud800""#,
        r#"["\u0000","a\u0000b"]"#,
        r#"{"a":1, "a" : 2,"":3}"#,
        r#"{"a.b":1,"a\r\nb":2,"\udfff":3}"#,
        &format!("{{{}}}", many.join(",")),
        &format!("{}{}", "[".repeat(99), "]".repeat(99)),
    ] {
        for schema in EventSchema::ALL {
            for text in sent(schema, &holding(schema, data)) {
                assert!(
                    text.contains(&format!("\"data\":{data}}}")),
                    "{schema:?} {text}"
                );
            }
        }
    }
}

#[test]
fn malformed_json_is_refused_in_every_schema() {
    let at_start = |schema| format!("\u{feff}{}", holding(schema, "1")).into_bytes();
    refused_everywhere(at_start, "body: expected JSON without a byte order mark");
    let not_utf8 = |schema| [holding(schema, "1").as_bytes(), b"\xff"].concat();
    refused_everywhere(not_utf8, "body: expected UTF-8");
    for (data, problem) in [
        ("\u{0}", "expected value"),
        (
            "\"\u{0}\"",
            "control character (\\u0000-\\u001F) found while parsing a string",
        ),
        (
            "\"a\r\nb\"",
            "control character (\\u0000-\\u001F) found while parsing a string",
        ),
        ("Infinity", "expected value"),
        ("0x10", "expected `,` or `}`"),
        (r#""\u12""#, "invalid escape"),
    ] {
        for schema in EventSchema::ALL {
            let error = texts(schema, JSON, holding(schema, data).as_bytes()).unwrap_err();
            assert!(
                error.contains(&format!(": expected JSON: {problem}")),
                "{schema:?} {error}"
            );
        }
    }
}

#[test]
fn nesting_and_size_are_bounded_in_every_schema() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let nested = |schema| holding(schema, &deep).into_bytes();
    refused_everywhere(nested, "events[0]: expected at most 100 levels of nesting");
    let members: Vec<String> = (0..1_000_000).map(|n| format!("\"m{n}\":0")).collect();
    let members = members.join(",");
    for schema in EventSchema::ALL {
        let error = texts(schema, JSON, with_member(schema, &members).as_bytes()).unwrap_err();
        assert!(
            error.ends_with("bytes: expected at most 1000000"),
            "{schema:?} {error}"
        );
    }
}

#[test]
fn as_many_members_as_fit_are_kept_in_every_schema() {
    let members: Vec<String> = (0..90_000).map(|n| format!("\"m{n}\":0")).collect();
    for schema in EventSchema::ALL {
        let body = with_member(schema, &members.join(","));
        assert_eq!(
            texts(schema, JSON, body.as_bytes()),
            Ok(vec![body.clone()]),
            "{schema:?}"
        );
        assert!(
            sent(schema, &body)
                .iter()
                .all(|text| text.contains("\"m89999\":0"))
        );
    }
}

#[test]
fn a_member_twice_is_refused_by_name_in_every_schema() {
    let twice = |schema| with_member(schema, r#""data":0"#).into_bytes();
    refused_everywhere(twice, "events[0].data: expected at most once");
    let escaped = |schema| with_member(schema, r#""d\u0061ta":0"#).into_bytes();
    refused_everywhere(escaped, "events[0].data: expected at most once");
}

#[test]
fn odd_member_names_are_kept_or_refused_by_name() {
    for (name, shown) in [
        ("a.b", "a.b"),
        (r"a\r\nb", r"a\r\nb"),
        (r"\u0000", r"\0"),
        ("", ""),
    ] {
        let member = format!("\"{name}\":1");
        let problem = "expected an attribute name of lower-case letters and digits";
        let refusal = Err(format!("events[0].{shown}: {problem}"));
        assert_eq!(
            cloud(STRUCTURED, &with_member(EventSchema::CloudEvents, &member)),
            refusal
        );
        for schema in [EventSchema::EventGrid, EventSchema::Custom] {
            let body = with_member(schema, &member);
            assert_eq!(
                texts(schema, JSON, body.as_bytes()),
                Ok(vec![body]),
                "{schema:?}"
            );
        }
        // A CloudEvent cannot take such a member along, a custom event's is part of its data.
        let [cloud, grid] = sent(
            EventSchema::EventGrid,
            &with_member(EventSchema::EventGrid, &member),
        )
        .try_into()
        .unwrap();
        assert!(!cloud.contains(&member) && grid.contains(&member));
        assert!(
            sent(
                EventSchema::Custom,
                &with_member(EventSchema::Custom, &member)
            )
            .iter()
            .all(|t| t.contains(&member))
        );
    }
    let surrogate = |schema| with_member(schema, r#""\ud800":1"#).into_bytes();
    for schema in EventSchema::ALL {
        let error = texts(schema, JSON, &surrogate(schema)).unwrap_err();
        assert!(error.starts_with("events[0]: expected JSON: "), "{error}");
    }
}

/// Control characters and lone surrogates are refused where the schema says so.
#[test]
fn control_characters_in_attributes_are_refused_by_schema() {
    let cloud = |value: &str| holding(EventSchema::CloudEvents, "1").replace("\"/s\"", value);
    let refused_source = |value: &str, expected: &str| {
        refused(
            super::cloud(STRUCTURED, &cloud(value)),
            &format!("events[0].source: {expected}"),
        );
    };
    refused_source(r#""\u0000""#, "expected text without control characters");
    refused_source(r#""a\r\nb""#, "expected text without control characters");
    refused_source(
        r#""\udc00""#,
        "expected valid Unicode, found a lone surrogate",
    );
    for member in ["id", "eventType", "subject"] {
        let body = format!(r#"{{"{member}":"\ud800"}}"#);
        refused(
            grid(&body),
            &format!("events[0].{member}: expected valid Unicode, found a lone surrogate"),
        );
    }
}

#[test]
fn a_source_of_a_megabyte_is_kept_where_a_source_may_be_long() {
    let long = "s".repeat(999_000);
    let event = holding(EventSchema::CloudEvents, "1").replace("/s", &long);
    assert_eq!(sent(EventSchema::CloudEvents, &event), [event]);
    let event = holding(EventSchema::EventGrid, "1").replace("/t", &long);
    let [cloud, grid] = sent(EventSchema::EventGrid, &event).try_into().unwrap();
    assert_eq!(grid, event);
    assert!(cloud.contains(&format!("\"source\":\"{long}\"")));
    let mapping = InputMapping {
        topic: SourceField::parse("shop").ok(),
        ..InputMapping::default()
    };
    let headers = HeaderMap::new();
    let topic = TopicName::parse("orders").unwrap();
    let made = GeneratedValues {
        at: Timestamp::EPOCH,
        seed: [7; 16],
    };
    let body = Bytes::from(format!(r#"[{{"shop":"/s"}},{{"shop":"{long}"}}]"#));
    let input = TopicInput::Custom {
        mapping: &mapping,
        made,
    };
    let error = parse_request(&PublishRequest {
        topic: &topic,
        input,
        headers: &headers,
        body: &body,
    });
    assert_eq!(
        error.unwrap_err().to_string(),
        "events[1].shop: expected at most 1024 bytes"
    );
}

#[test]
fn custom_events_are_objects_and_not_too_many() {
    let custom = |body: &str| texts(EventSchema::Custom, &[], body.as_bytes());
    assert_eq!(
        custom(" {\"a\": 1.00 } "),
        Ok(vec!["{\"a\": 1.00 }".to_owned()])
    );
    assert_eq!(
        custom("[{},{ }]"),
        Ok(vec!["{}".to_owned(), "{ }".to_owned()])
    );
    refused(custom("[]"), "body: expected at least one event");
    refused(
        custom("[{},1]"),
        "events[1]: expected a JSON object, found a number",
    );
    refused(
        custom("[{},[{}]]"),
        "events[1]: expected a JSON object, found an array",
    );
    for body in ["", "1", "null", "\"x\""] {
        refused(
            custom(body),
            "body: expected a JSON object or an array of objects",
        );
    }
    let of = |count: usize| format!("[{}]", vec!["{}"; count].join(","));
    assert_eq!(custom(&of(10_000)).map(|events| events.len()), Ok(10_000));
    refused(
        custom(&of(10_001)),
        "body of 10001 events: expected at most 10000",
    );
    for content_type in [STRUCTURED, BATCH, "application/vnd.x+json", "text/plain"] {
        let headers = [("content-type", content_type)];
        assert_eq!(
            texts(EventSchema::Custom, &headers, b"{}"),
            Ok(vec!["{}".to_owned()])
        );
    }
    for content_type in ["application/xml", "application/json; charset=latin1"] {
        let error = texts(
            EventSchema::Custom,
            &[("content-type", content_type)],
            b"{}",
        );
        refused(
            error,
            &format!("content-type {content_type}: expected application/json in UTF-8"),
        );
    }
}

#[test]
fn envelopes_of_a_request_have_room_for_so_many_bytes() {
    let mapping = InputMapping {
        topic: SourceField::parse("shop").ok(),
        subject: MappedField {
            source: None,
            default: Some("s".repeat(1000).into()),
        },
        ..InputMapping::default()
    };
    let headers = HeaderMap::new();
    let topic = TopicName::parse("orders").unwrap();
    let parsed = |shops: &[usize]| {
        let event = |length: &usize| format!(r#"{{"shop":"{}"}}"#, "s".repeat(*length));
        let events: Vec<_> = shops.iter().map(event).collect();
        let made = GeneratedValues {
            at: Timestamp::EPOCH,
            seed: [7; 16],
        };
        let input = TopicInput::Custom {
            mapping: &mapping,
            made,
        };
        parse_request(&PublishRequest {
            topic: &topic,
            input,
            headers: &headers,
            body: &Bytes::from(format!("[{}]", events.join(","))),
        })
    };
    let least = parsed(&[1]).unwrap()[0].envelope().unwrap().byte_len();
    let mut shops = vec![1; CUSTOM_ENVELOPES_BYTES_MAX / least];
    let room = CUSTOM_ENVELOPES_BYTES_MAX % least;
    shops[0] += room / 2;
    shops[1] += room - room / 2;
    assert_eq!(parsed(&shops).unwrap().len(), shops.len());
    shops[2] += 1;
    let refused = parsed(&shops).unwrap_err();
    assert!(matches!(refused, PublishInputError::EnvelopesTooLarge));
}
