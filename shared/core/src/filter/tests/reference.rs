//! All operators against the plainest reading of Event Grid's pseudo code, on data and filters made
//! at random.

use proptest::prelude::*;

use super::*;

const KEYS: [&str; 4] = ["data.a", "data.b", "data.a.b", "data.b.a"];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-2_i64..4).prop_map(|n| json!(n)),
        prop::sample::select(vec![0.5, 1.5, -1.5, 2.0]).prop_map(|n| json!(n)),
        "[aAbÄä]{0,3}".prop_map(|text| json!(text)),
        any::<bool>().prop_map(|b| json!(b)),
        Just(Value::Null),
    ]
}

fn data() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::hash_map(prop::sample::select(vec!["a", "b", "c"]), inner, 0..3)
                .prop_map(|members| members
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect()),
        ]
    })
}

fn condition() -> impl Strategy<Value = Value> {
    let number = || prop::sample::select(vec![-1.5, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0]);
    let numbers =
        prop::collection::vec(number(), 1..3).prop_map(|values| ("values", json!(values)));
    let bound = number().prop_map(|value| ("value", json!(value)));
    let range = (number(), number()).prop_map(|(a, b)| json!([[f64::min(a, b), f64::max(a, b)]]));
    let texts =
        prop::collection::vec("[aAbÄä]{0,2}", 1..3).prop_map(|values| ("values", json!(values)));
    let with = |operators: &'static [&'static str],
                operand: BoxedStrategy<(&'static str, Value)>| {
        (prop::sample::select(operators), prop::sample::select(KEYS.to_vec()), operand).prop_map(
            |(operator, key, (member, operand))| {
                json!({ "operatorType": operator, "key": key, member: operand })
            },
        )
    };
    prop_oneof![
        with(&["NumberIn", "NumberNotIn"], numbers.boxed()),
        with(
            &["NumberInRange", "NumberNotInRange"],
            range.prop_map(|range| ("values", range)).boxed()
        ),
        with(
            &[
                "NumberLessThan",
                "NumberGreaterThan",
                "NumberLessThanOrEquals",
                "NumberGreaterThanOrEquals"
            ],
            bound.boxed()
        ),
        with(
            &["BoolEquals"],
            any::<bool>().prop_map(|b| ("value", json!(b))).boxed()
        ),
        with(
            &[
                "StringContains",
                "StringNotContains",
                "StringBeginsWith",
                "StringNotBeginsWith",
                "StringEndsWith",
                "StringNotEndsWith",
                "StringIn",
                "StringNotIn"
            ],
            texts.boxed()
        ),
        with(
            &["IsNullOrUndefined", "IsNotNull"],
            Just(("value", Value::Null)).boxed()
        ),
    ]
}

/// Whether the condition holds, read off the page.
fn holds(condition: &Value, data: &Value, arrays: bool) -> bool {
    let mut value = Some(data);
    for name in condition["key"].as_str().unwrap().split('.').skip(1) {
        value = value.and_then(|value| value.as_object()?.get(name));
    }
    let value = value.filter(|value| !value.is_null());
    let operator = condition["operatorType"].as_str().unwrap();
    match operator {
        "IsNullOrUndefined" => return value.is_none(),
        "IsNotNull" => return value.is_some(),
        _ => {}
    }
    let keys: Vec<&Value> = match value {
        Some(Value::Array(elements)) if arrays => elements.iter().collect(),
        other => other.into_iter().collect(),
    };
    let filters = condition["values"]
        .as_array()
        .cloned()
        .unwrap_or_else(|| vec![condition["value"].clone()]);
    let found = filters.iter().any(|filter| {
        keys.iter()
            .any(|key| fits(&operator.replace("Not", ""), key, filter))
    });
    found != operator.contains("Not")
}

fn fits(operator: &str, key: &Value, filter: &Value) -> bool {
    let number = |compare: fn(f64, f64) -> bool| match (key.as_f64(), filter.as_f64()) {
        (Some(key), Some(filter)) => compare(key, filter),
        _ => false,
    };
    let text = |compare: fn(&str, &str) -> bool| match (key.as_str(), filter.as_str()) {
        (Some(key), Some(filter)) => compare(&key.to_lowercase(), &filter.to_lowercase()),
        _ => false,
    };
    match operator {
        "NumberIn" => number(|key, filter| key.total_cmp(&filter).is_eq()),
        "NumberLessThan" => number(|key, filter| key < filter),
        "NumberGreaterThan" => number(|key, filter| key > filter),
        "NumberLessThanOrEquals" => number(|key, filter| key <= filter),
        "NumberGreaterThanOrEquals" => number(|key, filter| key >= filter),
        "NumberInRange" => key.as_f64().is_some_and(|key| {
            key >= filter[0].as_f64().unwrap() && key <= filter[1].as_f64().unwrap()
        }),
        "BoolEquals" => key == filter,
        "StringIn" => text(|key, filter| key == filter),
        "StringContains" => text(|key, filter| key.contains(filter)),
        "StringBeginsWith" => text(|key, filter| key.starts_with(filter)),
        "StringEndsWith" => text(|key, filter| key.ends_with(filter)),
        other => unreachable!("{other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_filter_of_a_set_agrees_with_the_reference(
        filters in prop::collection::vec((prop::collection::vec(condition(), 0..4), any::<bool>()), 1..6),
        data in prop::collection::vec(data(), 1..4),
    ) {
        let compiled = filters.iter().map(|(conditions, arrays)| {
            let settings = json!({
                "advancedFilters": conditions, "enableAdvancedFilteringOnArrays": arrays,
            });
            Arc::new(compile_filter(&serde_json::from_value(settings).unwrap(), EventSchema::CloudEvents).unwrap())
        });
        let set = FilterSet::from_filters(compiled);
        let events: Vec<Event> = data.iter().map(|data| event(&data.to_string())).collect();
        let matches = set.match_events(&events);
        for (position, (conditions, arrays)) in filters.iter().enumerate() {
            let passed: Vec<u32> = matches.passing_events(position).collect();
            let passes = |data: &Value| conditions.iter().all(|condition| holds(condition, data, *arrays));
            let expected = (0..).zip(&data).filter(|(_, data)| passes(data)).map(|(number, _)| number);
            let expected: Vec<u32> = expected.collect();
            prop_assert_eq!(passed, expected, "{:?} {:?}", conditions, data);
        }
    }
}
