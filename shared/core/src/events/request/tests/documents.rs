//! One rule for all documents, tried on every member of the envelopes of events. The data is the
//! producer's.

use serde_json::{Value, json};

use super::*;

/// A schema, an event that has every member of its envelope, and those of them that it needs not
/// have.
struct EnvelopeCase {
    schema: EventSchema,
    content_type: &'static str,
    event: Value,
    optional: &'static [&'static str],
}

fn cases() -> [EnvelopeCase; 4] {
    let cloud_event = json!({
        "specversion": "1.0", "id": "1", "source": "/s", "type": "t", "subject": "s", "time": "2026-11-21T10:00:00Z",
        "expirytime": "2026-11-22T10:00:00Z", "datacontenttype": "application/json", "dataschema": "https://a.example",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "comexample": "x",
    });
    let optional = &[
        "subject",
        "time",
        "expirytime",
        "datacontenttype",
        "dataschema",
        "traceparent",
        "comexample",
    ];
    let cloud = |content_type, event: &Value| EnvelopeCase {
        schema: EventSchema::CloudEvents,
        content_type,
        event: event.clone(),
        optional,
    };
    let mut encoded = cloud_event.clone();
    encoded["data_base64"] = "aGk=".into();
    [
        cloud(STRUCTURED, &cloud_event),
        cloud(BATCH, &cloud_event),
        cloud(BATCH, &encoded),
        EnvelopeCase {
            schema: EventSchema::EventGrid,
            content_type: "application/json",
            event: json!({
                "id": "1", "eventType": "t", "subject": "/s", "eventTime": "2026-11-21T10:00:00Z",
                "topic": "/topics/orders", "dataVersion": "1", "metadataVersion": "1",
            }),
            optional: &["topic", "dataVersion", "metadataVersion"],
        },
    ]
}

impl EnvelopeCase {
    /// The request of one event with these members in place of its own, and data of its producer.
    fn read(&self, members: &[(String, String)]) -> Result<usize, String> {
        let data = r#""data":{"a":1,"a":[null],"\u0061":null}"#;
        let mut members: Vec<_> = members
            .iter()
            .map(|(name, value)| format!("{name}:{value}"))
            .collect();
        if self.event.get("data_base64").is_none() {
            members.push(data.to_owned());
        }
        self.read_text(&format!("{{{}}}", members.join(",")))
    }

    fn read_text(&self, event: &str) -> Result<usize, String> {
        let body = if self.content_type == BATCH {
            format!("[{event}]")
        } else {
            event.to_owned()
        };
        parse(
            self.schema,
            &[("content-type", self.content_type)],
            body.as_bytes(),
        )
        .map(|events| events.len())
        .map_err(|error| error.to_string())
    }

    fn members(&self) -> Vec<(String, String)> {
        let members = self.event.as_object().unwrap().iter();
        members
            .map(|(name, value)| (Value::from(name.as_str()).to_string(), value.to_string()))
            .collect()
    }
}

fn escaped(name: &str) -> String {
    let units = name.trim_matches('"').encode_utf16();
    let units = units.map(|unit| format!("\\u{unit:04x}"));
    format!("\"{}\"", units.collect::<String>())
}

#[test]
fn every_member_of_an_envelope_follows_the_rule() {
    for case in cases() {
        let members = case.members();
        assert_eq!(case.read(&members), Ok(1), "{}", case.content_type);
        for (index, (quoted, _)) in members.iter().enumerate() {
            let name = quoted.trim_matches('"');
            let with = |value: &str| {
                let mut members = members.clone();
                members[index].1 = value.to_owned();
                case.read(&members)
            };
            let refused = |read: Result<usize, String>, end: &str| {
                let error = read.unwrap_err();
                let start = format!("events[0].{name}: expected ");
                assert!(error.starts_with(&start) && error.ends_with(end), "{error}");
            };
            refused(with("[]"), ", found an array");
            refused(with("{\"a\":1}"), ", found an object");
            // An extension may be a number or a boolean.
            if !["comexample", "traceparent"].contains(&name) {
                refused(with("7"), ", found a number");
                refused(with("true"), ", found a boolean");
            }
            if case.optional.contains(&name) {
                assert_eq!(with("null"), Ok(1), "{name}");
            } else if name != "data_base64" {
                assert!(
                    with("null")
                        .unwrap_err()
                        .starts_with(&format!("events[0].{name}: expected"))
                );
            }
            for twice in [quoted.clone(), escaped(quoted)] {
                let mut members = members.clone();
                members.push((twice, members[index].1.clone()));
                let expected = format!("events[0].{name}: expected at most once");
                assert_eq!(case.read(&members), Err(expected));
            }
        }
    }
}

#[test]
fn list_in_place_of_an_event_is_refused() {
    for case in cases() {
        let values: Vec<_> = case.members().into_iter().map(|(_, value)| value).collect();
        let list = format!("[{}]", values.join(","));
        let error = case.read_text(&list).unwrap_err();
        assert!(error.contains("expected"), "{error}");
        if case.content_type == BATCH {
            assert_eq!(error, "events[0]: expected a JSON object, found an array");
        }
    }
}

#[test]
fn event_that_is_no_json_is_named_with_the_member() {
    let check = |schema, content_type, body: &str, expected: &str| {
        let read = parse(schema, &[("content-type", content_type)], body.as_bytes());
        assert_eq!(read.unwrap_err().to_string(), expected, "{body}");
    };
    check(
        EventSchema::CloudEvents,
        BATCH,
        r#"[{"id":"1"},{"id":"2","data":{"a":[1,undefined]}}]"#,
        "events[1].data.a[1]: expected JSON: expected value at line 1 column 38",
    );
    check(
        EventSchema::EventGrid,
        "application/json",
        r#"{"id":"1","eventTime":undefined}"#,
        "events[0].eventTime: expected JSON: expected value at line 1 column 23",
    );
    check(
        EventSchema::EventGrid,
        "application/json",
        r#"[{"id":"1"},]"#,
        "body: expected JSON: trailing comma at line 1 column 13",
    );
}
