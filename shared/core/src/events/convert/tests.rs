//! Every conversion, the documents' sample among them, and what no conversion may touch.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;

const GRID: &str = r#"{"id":"1","eventType":"t","subject":"/s","eventTime":"2026-11-21T10:00:00.1234567Z","dataVersion":"2.0","metadataVersion":"1","topic":"/topics/orders","data":"#;

/// The CloudEvent that an event of Event Grid's schema becomes.
fn cloud_event(grid: &str) -> Result<String, String> {
    let text = from_event_grid(&Bytes::from(grid.to_owned())).map_err(|e| e.to_string())?;
    Event::parse(EventSchema::CloudEvents, text.clone()).map_err(|e| e.to_string())?;
    Ok(String::from_utf8(text.to_vec()).unwrap())
}

#[track_caller]
fn check(grid: &str, expected: &str) {
    assert_eq!(cloud_event(grid), Ok(expected.to_owned()), "{grid}");
}

fn custom(json: &str) -> Event {
    let envelope = EventEnvelope {
        id: "i".into(),
        event_time: "2026-11-21T11:00:00+0100".into(),
        event_type: "t".into(),
        data_version: "1.0".into(),
        topic: "/topics/orders".into(),
        subject: "s".into(),
    };
    Event::from_envelope(Bytes::from(json.to_owned()), Arc::new(envelope))
}

#[test]
fn an_event_grid_event_becomes_a_cloud_event() {
    check(
        &format!("{GRID}{{ \"n\": 1.00 }}}}"),
        r#"{"id":"1","source":"/topics/orders","specversion":"1.0","dataversion":"2.0","subject":"/s","type":"t","time":"2026-11-21T10:00:00.1234567Z","datacontenttype":"application/json","data":{ "n": 1.00 }}"#,
    );
}

/// Members that Event Grid leaves empty are left out of the CloudEvent.
#[test]
fn empty_event_grid_members_are_left_out() {
    check(
        r#"{"data":null,"dataVersion":"","topic":"/t","subject":"","id":"\u0031","eventType":"t","eventTime":"2026-11-21T11:00:00-0130"}"#,
        r#"{"id":"\u0031","source":"/t","specversion":"1.0","type":"t","time":"2026-11-21T11:00:00-01:30","datacontenttype":"application/json","data":null}"#,
    );
}

#[test]
fn a_topic_that_is_no_uri_becomes_one() {
    let grid = format!("{GRID}1}}").replace("/topics/orders", "/a b\\n\u{a0}%");
    assert!(
        cloud_event(&grid)
            .unwrap()
            .contains(r#""source":"/a%20b%0A%C2%A0%","#)
    );
}

#[test]
fn unknown_members_go_along_where_cloud_events_takes_them() {
    let unknown = r#""tenant":"a\/b","n":-1.50,"yes":true,"empty":"","Upper":1,"nested":{},"none":null,"type":"x","source":"x","specversion":"9","data_base64":"x","odd":"\ud800","line":"\n","#;
    let grid = format!("{GRID}1}}").replacen('{', &format!("{{{unknown}"), 1);
    check(
        &grid,
        r#"{"id":"1","source":"/topics/orders","specversion":"1.0","dataversion":"2.0","subject":"/s","type":"t","time":"2026-11-21T10:00:00.1234567Z","tenant":"a\/b","n":-1.50,"yes":true,"empty":"","datacontenttype":"application/json","data":1}"#,
    );
}

/// Text that no attribute may hold is encoded or left out.
#[test]
fn invalid_attribute_text_is_encoded_or_left_out() {
    let grid = format!("{GRID}1}}")
        .replace("\"/s\"", r#""a\nb\u0000%""#)
        .replace("\"t\"", r#""t\u0085""#);
    let text = cloud_event(&grid).unwrap();
    assert!(
        text.contains(r#""subject":"a%0Ab%00%","type":"t%C2%85""#),
        "{text}"
    );
    for (extra, is_kept) in [
        (r#""expirytime":"soon""#, false),
        (r#""expirytime":7"#, false),
        (r#""expirytime":"2026-11-21T10:00:00Z""#, true),
        (r#""traceparent":7"#, true),
    ] {
        let text =
            cloud_event(&format!("{GRID}1}}").replacen('{', &format!("{{{extra},"), 1)).unwrap();
        assert_eq!(text.contains(extra), is_kept, "{text}");
    }
}

#[test]
fn a_custom_event_becomes_either() {
    let event = custom(r#"{ "id":7, "n": 1.00 }"#);
    assert_eq!(
        convert_event(&event, EventSchema::EventGrid).unwrap(),
        r#"{"id":"i","eventTime":"2026-11-21T11:00:00+0100","eventType":"t","dataVersion":"1.0","metadataVersion":"1","topic":"/topics/orders","subject":"s","data":{ "id":7, "n": 1.00 }}"#
    );
    let text = convert_event(&event, EventSchema::CloudEvents).unwrap();
    assert_eq!(
        text,
        r#"{"id":"i","source":"/topics/orders","specversion":"1.0","dataversion":"1.0","subject":"s","type":"t","time":"2026-11-21T11:00:00+01:00","datacontenttype":"application/json","data":{ "id":7, "n": 1.00 }}"#
    );
    assert!(Event::parse(EventSchema::CloudEvents, text).is_ok());
}

#[test]
fn an_event_in_its_own_schema_is_the_same_slice() {
    let event = custom("{}");
    assert_eq!(
        convert_event(&event, EventSchema::Custom).unwrap().as_ptr(),
        event.json().as_ptr()
    );
    let grid = Event::parse(EventSchema::EventGrid, Bytes::from(format!("{GRID}1}}"))).unwrap();
    assert_eq!(
        convert_event(&grid, EventSchema::EventGrid)
            .unwrap()
            .as_ptr(),
        grid.json().as_ptr()
    );
}

#[test]
fn invalid_event_is_not_converted() {
    assert_eq!(
        cloud_event("[]"),
        Err("expected a JSON object, found an array".to_owned())
    );
    assert_eq!(
        cloud_event(r#"{"data":1}"#),
        Err("topic: expected a non-empty string".to_owned())
    );
    assert_eq!(
        cloud_event(r#"{"topic":"/t"}"#),
        Err("data: expected to be present".to_owned())
    );
}

proptest! {
    #[test]
    fn data_is_kept_byte_for_byte_and_the_result_is_a_cloud_event(
        data in r#"(-?[1-9][0-9]{0,25}|1e999999|"\\ud800"|\{ "a":1, "a" :2 \}|\[ +\]|null)"#,
        id in "[ -~é€😀\u{ffff}]{1,8}",
        subject in "[ -~é€😀\u{ffff}]{0,8}",
        topic in "[ -~é€😀]{1,8}",
    ) {
        let text = |text: &str| quote_json_text(text);
        let grid = format!(
            r#"{{"id":{},"eventType":"t","subject":{},"eventTime":"2026-11-21T10:00:00Z","topic":{},"data":{data}}}"#,
            text(&id), text(&subject), text(&topic),
        );
        let event = cloud_event(&grid).unwrap();
        let kept = format!(r#","data":{data}}}"#);
        prop_assert!(event.ends_with(&kept), "{}", event);
        let read = Event::parse(EventSchema::CloudEvents, Bytes::from(event)).unwrap();
        prop_assert_eq!(read.id(), id);
        prop_assert_eq!(read.subject().unwrap_or_default(), subject);
    }
}
