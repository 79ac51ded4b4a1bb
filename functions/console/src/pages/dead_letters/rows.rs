//! Dead letters as rows.

use maud::{Markup, html};
use posthaste_core::api::DeadLetterView;

use super::places::record_address;
use super::search::DeadLetterSearch;
use super::ticked::{LETTER, letter_value};
use crate::display::{cell_text, time_tag};
use crate::pages::known_topic::subscription_link;
use crate::table::TableColumn::{self, Number, Text};
use crate::table::data_table;

/// The columns.
const COLUMNS: [TableColumn; 9] = [
    Text("Tick"),
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
    data_table(
        "Dead letters, the newest first",
        &COLUMNS,
        letters
            .iter()
            .enumerate()
            .map(|(row, letter)| letter_row(search, row, letter)),
    )
}

fn letter_row(
    search: &DeadLetterSearch,
    row: usize,
    letter: &DeadLetterView,
) -> [Markup; COLUMNS.len()] {
    let id = cell_text(letter.id.as_deref()).unwrap_or_else(|| html! { "(no id)" });
    [
        tick_box(row, letter),
        html! { a href=(record_address(&letter.object, letter.index)) { (id) } },
        cell_text(letter.event_type.as_deref()).unwrap_or_default(),
        html! {
            (subscription_link(&letter.topic, &letter.subscription, letter.owner_deleted))
            (search.only_owner_link(&letter.topic, &letter.subscription))
        },
        cell_text(letter.reason.as_deref()).unwrap_or_default(),
        html! { @if let Some(attempts) = letter.attempts { (attempts) } },
        html! { @if let Some(status) = letter.status { (status) } },
        time_tag(letter.written_at.0),
        state_badge(letter.resolved),
    ]
}

fn tick_box(row: usize, letter: &DeadLetterView) -> Markup {
    let value = letter_value(&letter.object, letter.index);
    let label = format!("Tick the dead letter in row {}", row + 1);
    html! { input type="checkbox" name=(LETTER) value=(value) aria-label=(label); }
}

/// The state of a dead letter.
pub(super) fn state_badge(is_resolved: bool) -> Markup {
    html! {
        @if is_resolved { span.badge.good { "resolved" } } @else { span.badge.bad { "open" } }
    }
}
