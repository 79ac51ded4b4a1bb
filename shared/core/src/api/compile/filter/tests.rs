//! Filters that are refused at the door, with the member at fault.

use super::*;
use serde_json::json;

#[expect(clippy::needless_pass_by_value, reason = "a literal at every call")]
fn check(advanced_filters: Value, message: &str) {
    let settings: FilterSettings =
        serde_json::from_value(json!({ "advancedFilters": advanced_filters })).unwrap();
    let compiled = compile_filter(&settings, EventSchema::EventGrid)
        .map(|_| ())
        .map_err(|error| error.to_string());
    assert_eq!(
        compiled,
        if message.is_empty() {
            Ok(())
        } else {
            Err(message.to_owned())
        }
    );
}

/// A filter on `data.a`.
#[expect(clippy::needless_pass_by_value, reason = "a literal at every call")]
fn on(operator: &str, member: &str, value: Value) -> Value {
    json!({ "operatorType": operator, "key": "data.a", member: value })
}

const OF_VALUES: [&str; 12] = [
    "NumberIn",
    "NumberNotIn",
    "NumberInRange",
    "NumberNotInRange",
    "StringContains",
    "StringNotContains",
    "StringBeginsWith",
    "StringNotBeginsWith",
    "StringEndsWith",
    "StringNotEndsWith",
    "StringIn",
    "StringNotIn",
];

const OF_VALUE: [&str; 5] = [
    "NumberLessThan",
    "NumberGreaterThan",
    "NumberLessThanOrEquals",
    "NumberGreaterThanOrEquals",
    "BoolEquals",
];

const OF_NOTHING: [&str; 2] = ["IsNullOrUndefined", "IsNotNull"];

#[test]
fn every_operator_is_known_by_its_exact_name() {
    for name in OF_VALUES.into_iter().chain(OF_VALUE).chain(OF_NOTHING) {
        let operator: FilterOperator = serde_json::from_value(json!(name)).unwrap();
        assert_eq!(serde_json::to_value(operator).unwrap(), json!(name));
        assert!(serde_json::from_value::<FilterOperator>(json!(name.to_lowercase())).is_err());
    }
}

#[test]
fn every_operator_takes_its_own_members() {
    for name in OF_VALUES {
        check(
            json!([on(name, "value", json!(1))]),
            &format!("filter.advancedFilters[0].value: {name} does not take this member"),
        );
        check(
            json!([on(name, "values", json!([]))]),
            "filter.advancedFilters[0].values: expected at least one value",
        );
        check(
            json!([on(name, "x", json!(1))].map(|mut f| {
                f.as_object_mut().unwrap().remove("x");
                f
            })),
            "filter.advancedFilters[0].values: expected at least one value",
        );
    }
    for name in OF_VALUE {
        let expected = if name == "BoolEquals" {
            "true or false"
        } else {
            "a number"
        };
        check(
            json!([on(name, "values", json!([1]))]),
            &format!("filter.advancedFilters[0].values: {name} does not take this member"),
        );
        check(
            json!([on(name, "value", json!(null))]),
            &format!("filter.advancedFilters[0].value: expected {expected}"),
        );
        check(
            json!([on(name, "value", json!("1"))]),
            &format!("filter.advancedFilters[0].value: expected {expected}"),
        );
    }
    for name in OF_NOTHING {
        check(
            json!([on(name, "value", json!(1))]),
            &format!("filter.advancedFilters[0].value: {name} does not take this member"),
        );
        check(
            json!([on(name, "values", json!([]))]),
            &format!("filter.advancedFilters[0].values: {name} does not take this member"),
        );
        check(json!([on(name, "value", json!(null))]), "");
    }
}

#[test]
fn the_value_at_fault_is_named() {
    let values = |operator, values| {
        json!([
            on("IsNotNull", "value", json!(null)),
            on(operator, "values", values)
        ])
    };
    let at = |rest: &str| format!("filter.advancedFilters[1].values{rest}");
    check(
        values("NumberIn", json!([1, "2"])),
        &at("[1]: expected a number"),
    );
    check(
        values("StringIn", json!(["1", "2", 3])),
        &at("[2]: expected a string"),
    );
    check(
        values("NumberInRange", json!([[1, 2], 3])),
        &at("[1]: expected a range of two numbers, [from, to]"),
    );
    check(
        values("NumberInRange", json!([[1, 2, 3]])),
        &at("[0]: expected a range of two numbers, [from, to]"),
    );
    check(
        values("NumberNotInRange", json!([[1, "2"]])),
        &at("[0]: expected a number"),
    );
    check(
        values("NumberNotInRange", json!([[2, 1]])),
        &at("[0]: expected the range's end not before its beginning"),
    );
    check(values("NumberInRange", json!([[2, 2.0]])), "");
    let key = json!([{ "operatorType": "IsNotNull", "key": "data..a" }]);
    check(
        key,
        "filter.advancedFilters[0].key: expected names with a dot between each two",
    );
}

#[test]
fn numbers_are_those_that_can_be_kept_exactly() {
    let inexact = "filter.advancedFilters[0].value: expected an integer of 64 bits, \
                   or a decimal below 2^63 of at most 15 significant digits";
    let check = |number: &str, message: &str| {
        let value: Value = serde_json::from_str(number).unwrap();
        check(json!([on("NumberLessThan", "value", value)]), message);
    };
    for exact in [
        "18446744073709551615",
        "-9223372036854775808",
        "0.1",
        "-1.5e-20",
        "123456789.012345",
        "1e18",
        "100e-2",
    ] {
        check(exact, "");
    }
    for number in [
        "18446744073709551616",
        "-9223372036854775809",
        "99999999999999999999",
        "0.1234567890123456",
        "1e300",
    ] {
        check(number, inexact);
    }
}

#[test]
fn the_limits_are_exact() {
    let texts = |count: usize| on("StringIn", "values", json!(vec!["x"; count]));
    check(json!([texts(25)]), "");
    check(json!(vec![texts(1); 25]), "");
    check(
        json!(vec![texts(1); 26]),
        "filter.advancedFilters: expected at most 25 items, found 26; leave 1 out",
    );
    let too_many = "expected at most 25 values in all advanced filters together";
    check(
        json!([texts(26)]),
        &format!("filter.advancedFilters[0].values[25]: {too_many}"),
    );
    check(
        json!([texts(13), texts(13)]),
        &format!("filter.advancedFilters[1].values[12]: {too_many}"),
    );
    check(
        json!([texts(25), on("BoolEquals", "value", json!(true))]),
        &format!("filter.advancedFilters[1].value: {too_many}"),
    );
    check(
        json!([
            on("NumberInRange", "values", json!(vec![[1, 2]; 25])),
            on("IsNotNull", "value", json!(null))
        ]),
        "",
    );
    check(
        json!([on("StringIn", "values", json!(["ä".repeat(512)]))]),
        "",
    );
    check(
        json!([on("StringContains", "values", json!(["ä".repeat(513)]))]),
        "filter.advancedFilters[0].values[0]: expected at most 512 characters",
    );
}

#[test]
#[expect(clippy::approx_constant, reason = "the page's own example")]
fn a_filter_that_was_written_is_shown_as_it_was_written() {
    let written = json!({
        "isSubjectCaseSensitive": false,
        "advancedFilters": [
            {
                "operatorType": "NumberInRange", "key": "data.key1",
                "values": [[3.14159, 999.95], [3000, 4000]],
            },
            { "operatorType": "BoolEquals", "key": "data.isEnabled", "value": true },
            { "operatorType": "IsNotNull", "key": "Subject" },
        ],
        "enableAdvancedFilteringOnArrays": true,
    });
    let settings: FilterSettings = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(serde_json::to_value(&settings).unwrap(), written);
}

#[test]
fn unknown_members_are_refused_by_name() {
    let parse = |json: Value| {
        serde_json::from_value::<FilterSettings>(json)
            .unwrap_err()
            .to_string()
    };
    let error = parse(
        json!({ "advancedFilters": [{ "operatorType": "IsNotNull", "key": "id", "Value": 1 }] }),
    );
    assert!(error.starts_with("unknown field `Value`"), "{error}");
    let error = parse(json!({ "advancedFilters": [{ "operatorType": "stringIn", "key": "id" }] }));
    assert!(
        error.starts_with("unknown variant `stringIn`, expected one of `NumberIn`"),
        "{error}"
    );
}
