//! Dead letters as rows.

use maud::{Markup, html};
use posthaste_core::api::DeadLetterView;

use super::places::record_address;
use super::search::DeadLetterSearch;
use crate::display::{cell_text, time_tag};
use crate::pages::known_topic::subscription_link;
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
    let id = cell_text(letter.id.as_deref()).unwrap_or_else(|| html! { "(no id)" });
    html! {
        tr {
            td { a href=(record_address(&letter.object, letter.index)) { (id) } }
            td { @if let Some(event_type) = cell_text(letter.event_type.as_deref()) { (event_type) } }
            td {
                (subscription_link(&letter.topic, &letter.subscription, letter.owner_deleted))
                (search.only_owner_link(&letter.topic, &letter.subscription))
            }
            td { @if let Some(reason) = cell_text(letter.reason.as_deref()) { (reason) } }
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
