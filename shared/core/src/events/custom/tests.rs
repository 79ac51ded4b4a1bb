//! Mappings: members that are found, members that are made, and every event that cannot be mapped.

use proptest::prelude::*;

use super::*;

const MADE: GeneratedValues = GeneratedValues {
    at: Timestamp::from_millis(1_597_342_289_412),
    seed: [7; 16],
};

/// A mapping of these members: a source, a default, or both, as in `generated_id=order.id` and
/// `subject=a|none`.
fn mapping(members: &[&str]) -> InputMapping {
    let mut mapping = InputMapping::default();
    for member in members {
        let (name, rest) = member.split_once('=').unwrap();
        let (source, default) = rest
            .split_once('|')
            .map_or((rest, None), |(s, d)| (s, Some(d.into())));
        let source = SourceField::parse(source).ok();
        let mapped = MappedField {
            source: source.clone(),
            default,
        };
        match name {
            "id" => mapping.id = source,
            "topic" => mapping.topic = source,
            "eventTime" => mapping.event_time = source,
            "eventType" => mapping.event_type = mapped,
            "subject" => mapping.subject = mapped,
            _ => mapping.data_version = mapped,
        }
    }
    mapping
}

fn read(json: &str, members: &[&str]) -> Result<EventEnvelope, String> {
    let topic = TopicName::parse("orders").unwrap();
    accept_event(json, &mapping(members), &topic, MADE, 0)
        .map(|(_, envelope)| envelope)
        .map_err(|e| e.to_string())
}

#[track_caller]
fn check(json: &str, members: &[&str], expected: &str) {
    let envelope = read(json, members).unwrap();
    let EventEnvelope {
        id,
        event_time,
        event_type,
        data_version,
        topic,
        subject,
    } = envelope;
    assert_eq!(
        [id, event_time, event_type, data_version, topic, subject].join(" "),
        expected,
        "{json}"
    );
}

#[track_caller]
fn refused(json: &str, members: &[&str], expected: &str) {
    assert_eq!(read(json, members), Err(expected.to_owned()), "{json}");
}

const UNMAPPED_ID: &str = "6a72d0b4-a60c-421f-9207-ebe219f3f0e3";

#[test]
fn unmapped_members_are_generated() {
    let expected =
        format!("{UNMAPPED_ID} 2020-08-13T18:11:29.4120000Z dev.posthaste.custom  /topics/orders ");
    check("{}", &[], &expected);
    check(
        r#"{"id":"1","eventType":"t","subject":"s","eventTime":5}"#,
        &[],
        &expected,
    );
}

/// Every event of a request gets an id of its own, and always the same.
#[test]
fn generated_ids_are_distinct_and_repeatable() {
    let ids: Vec<_> = (0..100)
        .map(|index| generated_id(MADE.seed, index))
        .collect();
    assert_eq!(&*ids[0], UNMAPPED_ID);
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len());
    assert_ne!(generated_id([8; 16], 0), ids[0]);
}

/// Event of the documents gets its type from its field and the rest from constants.
#[test]
fn documented_event_takes_type_from_field_and_constants() {
    let event = r#"{"myEventTypeField":"Created","resource":"Users/example/Messages/1000","resourceData":{"someDataField1":"SomeDataFieldValue"}}"#;
    let expected = format!(
        "{UNMAPPED_ID} 2020-08-13T18:11:29.4120000Z Created 1.0 /topics/orders DefaultSubject"
    );
    check(
        event,
        &[
            "eventType=myEventTypeField",
            "subject=|DefaultSubject",
            "dataVersion=|1.0",
        ],
        &expected,
    );
}

#[test]
fn fields_are_found_wherever_they_are() {
    let json = r#"{"order":{"id":"o\u0031","at":"2026-11-21T11:00:00+0100","no":12345678901234567890,
        "lines":{"a.b":true}},"shop":"/shops/berlin","x.y":"dotted","x":{"y":"nested"}}"#;
    check(
        json,
        &[
            "id=order.id",
            "eventTime=order.at",
            "eventType=order.lines.a.b",
            "dataVersion=order.no",
            "topic=shop",
            "subject=x.y",
        ],
        "o1 2026-11-21T11:00:00+0100 true 12345678901234567890 /shops/berlin dotted",
    );
}

#[test]
fn a_default_stands_for_what_is_absent_or_null() {
    let members = ["id=id", "eventType=a.b|t", "subject=s|x", "dataVersion=v|2"];
    let made = "2020-08-13T18:11:29.4120000Z";
    check(
        r#"{"id":"1"}"#,
        &members,
        &format!("1 {made} t 2 /topics/orders x"),
    );
    let json = r#"{"id":"1","a":{"b":null},"s":null,"v":null}"#;
    check(json, &members, &format!("1 {made} t 2 /topics/orders x"));
    check(
        r#"{"id":"1","a":{"b":""},"s":"","v":""}"#,
        &members,
        &format!("1 {made} t  /topics/orders "),
    );
    check(
        r#"{"id":"1","a":[{"b":"u"}]}"#,
        &members,
        &format!("1 {made} t 2 /topics/orders x"),
    );
}

#[test]
fn the_field_at_fault_is_named() {
    refused("[]", &[], "expected a JSON object, found an array");
    refused(r#"{"a":1,"a":2}"#, &[], "a: expected at most once");
    for json in [
        "{}",
        r#"{"order":1}"#,
        r#"{"order":{"id":null}}"#,
        r#"{"order":{"id":""}}"#,
    ] {
        refused(
            json,
            &["id=order.id"],
            "order.id: expected a non-empty string",
        );
    }
    refused("{}", &["topic=shop"], "shop: expected a non-empty string");
    refused(
        "{}",
        &["eventType=kind"],
        "kind: expected a non-empty string",
    );
    refused("{}", &["subject=s"], "s: expected a string");
    refused("{}", &["dataVersion=v"], "v: expected a string");
    refused(
        r#"{"s":[]}"#,
        &["subject=s|x"],
        "s: expected a string, a number or a boolean, found an array",
    );
    refused(
        r#"{"s":"\ud800"}"#,
        &["subject=s|x"],
        "s: expected valid Unicode, found a lone surrogate",
    );
    refused(
        r#"{"a":{"b":1,"b":2}}"#,
        &["id=a.b"],
        "a.b: expected at most once",
    );
    refused(
        r#"{"a":{"b":{"x":1,"x":2}}}"#,
        &["id=a.b.c"],
        "a.b.x: expected at most once",
    );
    for (json, found) in [
        ("{}", ""),
        (r#"{"at":5}"#, ", found a number"),
        (r#"{"at":"now"}"#, ""),
        (r#"{"at":"2026-11-21"}"#, ""),
    ] {
        let expected = "at: expected an RFC 3339 date-time such as 2026-11-21T10:00:00Z";
        refused(json, &["eventTime=at"], &format!("{expected}{found}"));
    }
    let long = "x".repeat(MAPPED_VALUE_BYTES_MAX + 1);
    refused(
        &format!("{{\"s\":\"{long}\"}}"),
        &["subject=s|x"],
        "s: expected at most 1024 bytes",
    );
    let long = format!(
        "2026-11-21T10:00:00.{}Z",
        "0".repeat(MAPPED_VALUE_BYTES_MAX)
    );
    refused(
        &format!("{{\"at\":\"{long}\"}}"),
        &["eventTime=at"],
        "at: expected at most 1024 bytes",
    );
}

proptest! {
    #[test]
    fn nothing_panics(
        json in "(\\{|\"a\"|\"a.b\"|:|,|1|\\}|\\[|\\]|null|\"\\\\ud800\"| ){0,14}",
        field in "[ab.]{1,6}",
    ) {
        let field = format!("eventType={field}");
        let _ = read(&json, &[&field, "id=a.b"]);
    }
}
