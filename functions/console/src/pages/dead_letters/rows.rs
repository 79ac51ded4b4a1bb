//! Dead letters as rows.

use maud::{Markup, html};
use posthaste_core::api::DeadLetterView;

use super::places::record_address;
use super::search::DeadLetterSearch;
use crate::pages::known_topic::subscription_link;
use crate::shown::{CELL_CHARS_MAX, foreign_cut, time_tag};
use crate::table::TableColumn::{self, Number, Text};
use crate::table::table;

/// The columns.
const COLUMNS: [TableColumn; 8] = [
    Text("Event"),
    Text("Type"),
    Text("Topic and subscription"),
    Text("Reason"),
    Number("Attempts"),
    Number("Status"),
    Text("Written"),
    Text("State"),
];

/// The rows.
pub(super) fn letter_table(search: &DeadLetterSearch, letters: &[DeadLetterView]) -> Markup {
    table(
        "Dead letters, the newest first",
        &COLUMNS,
        letters.iter().map(|letter| letter_row(search, letter)),
    )
}

fn letter_row(search: &DeadLetterSearch, letter: &DeadLetterView) -> Markup {
    let cell = |text: &Option<String>| text.as_ref().map(|text| foreign_cut(text, CELL_CHARS_MAX));
    let id = cell(&letter.id).unwrap_or_else(|| html! { "(no id)" });
    html! {
        tr {
            td { a href=(record_address(&letter.object, letter.index)) { (id) } }
            td { @if let Some(event_type) = cell(&letter.event_type) { (event_type) } }
            td {
                (subscription_link(&letter.topic, &letter.subscription, letter.owner_deleted))
                (search.only_owner_link(&letter.topic, &letter.subscription))
            }
            td { @if let Some(reason) = cell(&letter.reason) { (reason) } }
            td.number { @if let Some(attempts) = letter.attempts { (attempts) } }
            td.number { @if let Some(status) = letter.status { (status) } }
            td { (time_tag(letter.written_at.0)) }
            td {
                (state_badge(letter.resolved))
            }
        }
    }
}

/// The state of a dead letter.
pub(super) fn state_badge(is_resolved: bool) -> Markup {
    html! {
        @if is_resolved { span.badge.good { "resolved" } } @else { span.badge.bad { "open" } }
    }
}
