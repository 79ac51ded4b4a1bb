//! Types are looked up, and conditions that filters share are tested once.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::api::compile_filter;
use crate::model::EventSchema;

fn filter(arrays: bool, conditions: &[Value]) -> Arc<Filter> {
    let settings =
        json!({ "advancedFilters": conditions, "enableAdvancedFilteringOnArrays": arrays });
    Arc::new(
        compile_filter(
            &serde_json::from_value(settings).unwrap(),
            EventSchema::CloudEvents,
        )
        .unwrap(),
    )
}

fn contains(key: &str, values: &[&str]) -> Value {
    json!({ "operatorType": "StringContains", "key": key, "values": values })
}

#[test]
fn a_question_of_many_filters_is_asked_once() {
    let check = |filters: Vec<Arc<Filter>>, questions: usize| {
        assert_eq!(
            FilterSet::from_filters(filters.clone()).questions.len(),
            questions,
            "{filters:?}"
        );
    };
    let usual = || contains("data.a", &["usual", "b"]);
    let hundred = || (0..100).map(|_| filter(false, &[usual()]));
    check(hundred().collect(), 1);
    check(
        hundred()
            .chain([filter(
                false,
                &[contains("data.a", &["USUAL", "B"]), usual()],
            )])
            .collect(),
        1,
    );
    // Another key, other values, another operator, or a look into arrays is another question.
    for other in [
        filter(false, &[contains("data.b", &["usual", "b"])]),
        filter(false, &[contains("data.a", &["usual"])]),
        filter(
            false,
            &[
                json!({ "operatorType": "StringNotContains", "key": "data.a", "values": ["usual", "b"] }),
            ],
        ),
        filter(true, &[usual()]),
    ] {
        check(hundred().chain([other]).collect(), 2);
    }
    let number = |value: Value| {
        filter(
            false,
            &[json!({ "operatorType": "NumberIn", "key": "data.a", "values": [value] })],
        )
    };
    check(
        vec![number(json!(1)), number(json!(1.0)), number(json!(2))],
        2,
    );
}

#[test]
fn an_answer_counts_for_its_event_only() {
    let set =
        FilterSet::from_filters((0..2).map(|_| filter(false, &[contains("data.a", &["usual"])])));
    let event = |a: &str| {
        let json = json!({ "specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": { "a": a } });
        Event::parse(EventSchema::CloudEvents, json.to_string().into()).unwrap()
    };
    let matches = set.match_events(&["unusual", "strange", "usual"].map(event));
    for position in 0..2 {
        assert_eq!(matches.passing_events(position).collect::<Vec<_>>(), [0, 2]);
    }
    assert_eq!(
        (
            matches.passing_filters(),
            set.match_events(&["strange"].map(event)).passing_filters()
        ),
        (&[0, 1][..], &[][..])
    );
}

proptest! {
    #[test]
    fn the_types_of_a_set_are_those_of_its_filters(
        types in prop::collection::vec(prop::collection::vec("a|b|A|All", 0..4), 0..6),
        events in prop::collection::vec("a|b|A|c|All", 0..4),
    ) {
        let with = |types: &Vec<String>| Filter { included_event_types: types.clone(), ..Filter::default() };
        let filters: Vec<_> = types.iter().map(|types| Arc::new(with(types))).collect();
        let event = |event_type: &String| {
            let json = json!({ "specversion": "1.0", "id": "1", "source": "/s", "type": event_type });
            Event::parse(EventSchema::CloudEvents, json.to_string().into()).unwrap()
        };
        let events: Vec<_> = events.iter().map(event).collect();
        let matches = FilterSet::from_filters(filters.iter().cloned()).match_events(&events);
        let included = |filter: &Filter| -> Vec<u32> {
            (0..).zip(&events).filter(|(_, event)| filter.includes_event(event)).map(|(number, _)| number).collect()
        };
        for (position, filter) in filters.iter().enumerate() {
            prop_assert_eq!(matches.passing_events(position).collect::<Vec<_>>(), included(filter));
        }
        let passing = filters.iter().enumerate().filter(|(_, filter)| !included(filter).is_empty());
        prop_assert_eq!(matches.passing_filters(), passing.map(|(position, _)| position).collect::<Vec<_>>());
    }
}
