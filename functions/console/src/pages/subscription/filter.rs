//! The filter of a subscription.

use posthaste_core::api::FilterSettings;

/// The filter in a few words.
pub(crate) fn summary(filter: &FilterSettings) -> String {
    let mut words = Vec::new();
    if !filter.included_event_types.is_empty() {
        words.push(filter.included_event_types.join(", "));
    }
    if !filter.subject_begins_with.is_empty() {
        words.push(format!(
            "subject begins with {}",
            filter.subject_begins_with
        ));
    }
    if !filter.subject_ends_with.is_empty() {
        words.push(format!("subject ends with {}", filter.subject_ends_with));
    }
    match filter.advanced_filters.len() {
        0 => {}
        1 => words.push("1 advanced filter".to_owned()),
        more => words.push(format!("{more} advanced filters")),
    }
    if words.is_empty() {
        "all events".to_owned()
    } else {
        words.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_filter_is_said_in_a_few_words() {
        let check = |settings, expected: &str| {
            let filter: FilterSettings = serde_json::from_value(settings).unwrap();
            assert_eq!(summary(&filter), expected);
        };
        check(json!({}), "all events");
        check(
            json!({ "includedEventTypes": ["a", "b"], "subjectBeginsWith": "/x" }),
            "a, b; subject begins with /x",
        );
        let filter = json!({ "operatorType": "IsNotNull", "key": "data.a" });
        check(json!({ "advancedFilters": [filter] }), "1 advanced filter");
        check(
            json!({ "advancedFilters": [filter, filter], "subjectEndsWith": "y" }),
            "subject ends with y; 2 advanced filters",
        );
    }
}
