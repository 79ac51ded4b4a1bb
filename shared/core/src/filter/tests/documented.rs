//! The examples of Event Grid's page, word for word.
//! <https://learn.microsoft.com/azure/event-grid/event-filtering>

use super::*;

fn check(condition: &str, pass: &[&str], fail: &[&str]) {
    let condition: Value = serde_json::from_str(condition).unwrap();
    for (data, expected) in pass
        .iter()
        .map(|data| (data, true))
        .chain(fail.iter().map(|data| (data, false)))
    {
        let filter = json!({ "advancedFilters": [condition] });
        assert_eq!(
            passes(EventSchema::CloudEvents, filter, &event(data)),
            expected,
            "{condition} {data}"
        );
    }
}

#[test]
fn numbers() {
    let key = r#""key": "data.counter""#;
    check(
        &format!(r#"{{"operatorType": "NumberIn", {key}, "values": [5, 1]}}"#),
        &[r#"{"counter":1}"#],
        &[r#"{"counter":2}"#, "{}"],
    );
    check(
        &format!(r#"{{"operatorType": "NumberNotIn", {key}, "values": [41, 0]}}"#),
        &[r#"{"counter":1}"#, "{}"],
        &[r#"{"counter":41}"#],
    );
    check(
        &format!(r#"{{"operatorType": "NumberLessThan", {key}, "value": 100}}"#),
        &[r#"{"counter":99}"#],
        &[r#"{"counter":100}"#],
    );
    check(
        &format!(r#"{{"operatorType": "NumberGreaterThan", {key}, "value": 20}}"#),
        &[r#"{"counter":21}"#],
        &[r#"{"counter":20}"#],
    );
}

#[test]
fn ranges_and_booleans() {
    let ranges = r#"{"operatorType": "NumberInRange", "key": "data.key1",
        "values": [[3.14159, 999.95], [3000, 4000]]}"#;
    check(
        ranges,
        &[r#"{"key1":3.14159}"#, r#"{"key1":3500}"#],
        &[r#"{"key1":3.1415}"#, r#"{"key1":1000}"#],
    );
    let enabled = r#"{"operatorType": "BoolEquals", "key": "data.isEnabled", "value": true}"#;
    check(
        enabled,
        &[r#"{"isEnabled":true}"#],
        &[r#"{"isEnabled":false}"#, r#"{"isEnabled":"true"}"#],
    );
}

#[test]
fn undefined_and_null() {
    let undefined = r#"{"operatorType": "IsNullOrUndefined", "key": "data.key1"}"#;
    check(
        undefined,
        &[r#"{"key2":5}"#, r#"{"key1":null}"#],
        &[r#"{"key1":5}"#],
    );
    let there = r#"{"operatorType": "IsNotNull", "key": "data.key1"}"#;
    check(
        there,
        &[r#"{"key1":5}"#],
        &[r#"{"key2":5}"#, r#"{"key1":null}"#],
    );
}

#[test]
fn nested_data() {
    let data = r#"{"appEventTypeDetail": {"action": "Started"}, "siteName": "<site-name>", "verb": "None"}"#;
    check(
        r#"{"operatorType": "StringIn", "key": "data.appEventTypeDetail.action", "values": ["started"]}"#,
        &[data],
        &["{}"],
    );
    check(
        r#"{"operatorType": "StringContains", "key": "data.siteName", "values": ["Site"]}"#,
        &[data],
        &["{}"],
    );
}

#[test]
fn an_extension_context_attribute() {
    let json = r#"{"specversion" : "1.0", "type" : "com.example.someevent", "source" : "/mycontext",
        "id" : "C234-1234-1234", "time" : "2018-04-05T17:31:00Z", "subject": null,
        "comexampleextension1" : "value", "comexampleothervalue" : 5, "datacontenttype" : "application/json",
        "data" : {"appinfoA" : "abc", "appinfoB" : 123, "appinfoC" : true}}"#;
    let event = Event::parse(EventSchema::CloudEvents, Bytes::from(json)).unwrap();
    let filter = json!({ "advancedFilters": [{
        "operatorType": "StringBeginsWith", "key": "comexampleothervalue", "values": ["5", "1"],
    }] });
    assert!(passes(EventSchema::CloudEvents, filter, &event));
}

#[test]
fn or_within_values_and_across_filters() {
    let contains = |values: Value| json!({ "operatorType": "StringContains", "key": "Subject", "values": values });
    let lab = "/providers/microsoft.devtestlab/";
    let machines = "/providers/Microsoft.Compute/virtualMachines/";
    let with_subject = |subject: &str| {
        let json = json!({ "specversion": "1.0", "id": "1", "source": "/s", "type": "t", "subject": subject });
        Event::parse(EventSchema::CloudEvents, Bytes::from(json.to_string())).unwrap()
    };
    let any = json!({ "advancedFilters": [contains(json!([lab, machines]))] });
    let all = json!({ "advancedFilters": [contains(json!([lab])), contains(json!([machines]))] });
    for (subject, has_any, has_all) in [
        (format!("/x{lab}y"), true, false),
        (format!("/x{machines}{lab}y").to_uppercase(), true, true),
        ("/x".to_owned(), false, false),
    ] {
        let event = with_subject(&subject);
        assert_eq!(
            passes(EventSchema::CloudEvents, any.clone(), &event),
            has_any,
            "{subject}"
        );
        assert_eq!(
            passes(EventSchema::CloudEvents, all.clone(), &event),
            has_all,
            "{subject}"
        );
    }
}
