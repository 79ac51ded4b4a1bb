//! Filters on events: every operator, as Event Grid's page describes it, and all of them against a
//! naive reference.

mod documented;
mod operators;
mod reference;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::api::compile_filter;
use crate::events::Event;
use crate::model::filter::FilterSet;
use crate::model::{EventEnvelope, EventSchema};

/// A CloudEvent with this data, `?` standing for none.
fn event(data: &str) -> Event {
    let data = if data == "?" {
        String::new()
    } else {
        format!(r#","data":{data}"#)
    };
    let json = format!(
        r#"{{"specversion":"1.0","id":"Id-1","source":"/Source","type":"Order.Paid","subject":"/EU/1",
            "count":5{data}}}"#
    );
    Event::parse(EventSchema::CloudEvents, Bytes::from(json)).unwrap()
}

fn passes(schema: EventSchema, filter: Value, event: &Event) -> bool {
    let filter = compile_filter(&serde_json::from_value(filter).unwrap(), schema).unwrap();
    let set = FilterSet::from_filters([Arc::new(filter)]);
    set.match_events(std::slice::from_ref(event))
        .passing_events(0)
        .count()
        == 1
}

#[test]
fn all_filters_must_hold_besides_type_and_subject() {
    let check = |filter: Value, expected: bool| {
        assert_eq!(
            passes(
                EventSchema::CloudEvents,
                filter.clone(),
                &event(r#"{"a":5,"b":"x"}"#)
            ),
            expected,
            "{filter}"
        );
    };
    let five = json!({ "operatorType": "NumberIn", "key": "data.a", "values": [5] });
    let x = json!({ "operatorType": "StringIn", "key": "data.b", "values": ["x"] });
    let y = json!({ "operatorType": "StringIn", "key": "data.b", "values": ["y"] });
    check(json!({ "advancedFilters": [five, x] }), true);
    check(json!({ "advancedFilters": [five, y] }), false);
    check(json!({ "advancedFilters": [five, x, five, y] }), false);
    check(
        json!({
            "advancedFilters": [five], "includedEventTypes": ["Order.Paid"], "subjectBeginsWith": "/eu/",
        }),
        true,
    );
    check(
        json!({ "advancedFilters": [five], "includedEventTypes": ["Order.Sent"] }),
        false,
    );
    check(
        json!({ "advancedFilters": [five], "subjectBeginsWith": "/us/" }),
        false,
    );
}

#[test]
fn the_event_s_own_members_are_keys() {
    let check = |schema, event: &Event, key: &str, value: &str| {
        let filter = |values: Value| {
            let condition = json!({ "operatorType": "StringIn", "key": key, "values": values });
            json!({ "advancedFilters": [condition] })
        };
        assert!(passes(schema, filter(json!([value])), event), "{key}");
        assert!(!passes(schema, filter(json!(["other"])), event), "{key}");
    };
    let cloud = event("\"Text\"");
    for (key, value) in [
        ("id", "ID-1"),
        ("Source", "/source"),
        ("type", "order.paid"),
        ("Subject", "/eu/1"),
        ("specversion", "1.0"),
        ("count", "5"),
        ("data", "text"),
        ("ſource", "/source"),
    ] {
        check(EventSchema::CloudEvents, &cloud, key, value);
    }
    let json = r#"{"id":"i","topic":"/Topics/x","subject":"s","eventType":"T",
                   "eventTime":"2026-11-21T10:00:00Z","dataVersion":"2.0","metadataVersion":"1",
                   "data":{"a":{"B":"c"}}}"#;
    let grid = Event::parse(EventSchema::EventGrid, Bytes::from(json)).unwrap();
    for (key, value) in [
        ("ID", "i"),
        ("Topic", "/topics/X"),
        ("Subject", "S"),
        ("EventType", "t"),
        ("DataVersion", "2.0"),
        ("Data.a.B", "C"),
    ] {
        check(EventSchema::EventGrid, &grid, key, value);
    }
    let envelope = EventEnvelope {
        id: "i".into(),
        event_time: "2026-11-21T10:00:00Z".into(),
        event_type: "T".into(),
        data_version: "2.0".into(),
        topic: "/Topics/x".into(),
        subject: "s".into(),
    };
    let custom = Event::from_envelope(Bytes::from(r#"{"id":7,"a":{"B":"c"}}"#), Arc::new(envelope));
    for (key, value) in [
        ("id", "I"),
        ("topic", "/topics/X"),
        ("eventType", "t"),
        ("dataVersion", "2.0"),
        ("data.a.B", "C"),
    ] {
        check(EventSchema::Custom, &custom, key, value);
    }
    let there = json!({ "advancedFilters": [{ "operatorType": "IsNotNull", "key": "data" }] });
    assert!(passes(EventSchema::Custom, there, &custom));
    let missing =
        json!({ "advancedFilters": [{ "operatorType": "IsNullOrUndefined", "key": "data.a.b" }] });
    assert!(
        passes(EventSchema::EventGrid, missing, &grid),
        "names in the data mind the case"
    );
}

#[test]
fn an_extension_is_the_same_in_either_content_mode() {
    let with = |count: &str| {
        let json = format!(
            r#"{{"specversion":"1.0","id":"1","source":"/s","type":"t","count":{count},"flag":{count}}}"#
        );
        Event::parse(EventSchema::CloudEvents, Bytes::from(json)).unwrap()
    };
    let check = |count: &str, condition: Value, expected: bool| {
        let filter = json!({ "advancedFilters": [condition] });
        assert_eq!(
            passes(EventSchema::CloudEvents, filter, &with(count)),
            expected,
            "{condition} {count}"
        );
    };
    for count in ["5", "\"5\""] {
        check(
            count,
            json!({ "operatorType": "NumberIn", "key": "count", "values": [5] }),
            true,
        );
        check(
            count,
            json!({ "operatorType": "StringBeginsWith", "key": "count", "values": ["5", "1"] }),
            true,
        );
        check(
            count,
            json!({ "operatorType": "StringNotIn", "key": "count", "values": ["5"] }),
            false,
        );
        check(
            count,
            json!({ "operatorType": "BoolEquals", "key": "count", "value": true }),
            false,
        );
    }
    for flag in ["true", "\"true\""] {
        check(
            flag,
            json!({ "operatorType": "BoolEquals", "key": "flag", "value": true }),
            true,
        );
        check(
            flag,
            json!({ "operatorType": "StringIn", "key": "flag", "values": ["TRUE"] }),
            true,
        );
    }
    check(
        "null",
        json!({ "operatorType": "IsNullOrUndefined", "key": "count" }),
        true,
    );
    check(
        "5",
        json!({ "operatorType": "IsNullOrUndefined", "key": "other" }),
        true,
    );
}

#[test]
fn odd_data_neither_matches_by_accident_nor_breaks_anything() {
    let filter = json!({ "advancedFilters": [{ "operatorType": "StringIn", "key": "data.a.b", "values": ["x"] }] });
    let check = |data: &str, expected: bool| {
        assert_eq!(
            passes(EventSchema::CloudEvents, filter.clone(), &event(data)),
            expected
        );
    };
    check("?", false);
    check("[]", false);
    check(r#""{\"a\":{\"b\":\"x\"}}""#, false);
    check(r#"{"a":{"b":"y"},"a":{"b":"x"}}"#, true);
    check(r#"{"a":{"b":"x"},"a":{"b":"y"}}"#, false);
    check(r#"{"\ud800":1,"a":{"\udc00":"\ud800","b":"x"}}"#, true);
    check(
        &format!(
            r#"{{"deep":{}1{},"a":{{"b":"x"}}}}"#,
            "[".repeat(97),
            "]".repeat(97)
        ),
        true,
    );
    let many: Vec<String> = (0..100_000).map(|n| format!("\"m{n}\":{n}")).collect();
    check(&format!(r#"{{{},"a":{{"b":"x"}}}}"#, many.join(",")), true);
}

#[test]
fn events_of_one_request_do_not_see_each_other() {
    let condition = json!({ "operatorType": "NumberIn", "key": "data.a", "values": [1] });
    let wanted = compile_filter(
        &serde_json::from_value(json!({ "advancedFilters": [condition] })).unwrap(),
        EventSchema::CloudEvents,
    );
    let all = compile_filter(
        &serde_json::from_value(json!({})).unwrap(),
        EventSchema::CloudEvents,
    );
    let set = FilterSet::from_filters([wanted, all].map(|filter| Arc::new(filter.unwrap())));
    let events = [r#"{"a":1}"#, "{}", r#"{"a":2}"#, r#"{"a":1}"#, "?"].map(event);
    let matches = set.match_events(&events);
    assert_eq!(matches.passing_events(0).collect::<Vec<_>>(), [0, 3]);
    assert_eq!(
        matches.passing_events(1).collect::<Vec<_>>(),
        [0, 1, 2, 3, 4]
    );
    assert_eq!(matches.passing_events(2).count(), 0);
}
