//! The filter of a subscription.

use maud::{Markup, html};
use posthaste_core::api::{AdvancedFilterSettings, FilterSettings};
use serde_json::Value;

use crate::display::{CELL_CHARS_MAX, foreign_cut, foreign_text};
use crate::parts::fact;
use crate::table::TableColumn::{self, Text};
use crate::table::table;

/// The columns.
const COLUMNS: [TableColumn; 3] = [Text("Member"), Text("Comparison"), Text("With")];

/// Most event types that are listed.
const TYPES_MAX: usize = 100;

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

/// The filter in full.
pub(super) fn fact_list(filter: &FilterSettings) -> Markup {
    html! {
        @if *filter == FilterSettings::default() {
            p { "All events of the topic." }
        } @else {
            dl.facts {
                (fact("Event types", &type_list(&filter.included_event_types)))
                @if !filter.subject_begins_with.is_empty() {
                    (fact("Subject begins with", &subject_text(filter, &filter.subject_begins_with)))
                }
                @if !filter.subject_ends_with.is_empty() {
                    (fact("Subject ends with", &subject_text(filter, &filter.subject_ends_with)))
                }
            }
            @if !filter.advanced_filters.is_empty() { (advanced_table(filter)) }
        }
    }
}

fn subject_text(filter: &FilterSettings, text: &str) -> Markup {
    let case = if filter.is_subject_case_sensitive {
        "case matters"
    } else {
        "in any case"
    };
    html! { (foreign_text(text)) " (" (case) ")" }
}

fn type_list(types: &[String]) -> Markup {
    html! {
        @if types.is_empty() { "all" }
        @for (index, event_type) in types.iter().take(TYPES_MAX).enumerate() {
            @if index > 0 { ", " }
            code { (foreign_cut(event_type, CELL_CHARS_MAX)) }
        }
        @if types.len() > TYPES_MAX { " and " (types.len() - TYPES_MAX) " more" }
    }
}

fn advanced_table(filter: &FilterSettings) -> Markup {
    html! {
        p.hint {
            "An event must pass all of these."
            @if filter.enable_advanced_filtering_on_arrays {
                " Of an array, one element that fits is enough."
            }
        }
        (table("Advanced filters", &COLUMNS, filter.advanced_filters.iter().map(advanced_row)))
    }
}

fn advanced_row(filter: &AdvancedFilterSettings) -> Markup {
    let values = filter.value.iter().chain(filter.values.iter().flatten());
    let values = values.map(Value::to_string).collect::<Vec<_>>().join(", ");
    html! {
        tr {
            td { code { (foreign_text(&filter.key)) } }
            td { (format!("{:?}", filter.operator_type)) }
            td { (foreign_cut(&values, 4 * CELL_CHARS_MAX)) }
        }
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
