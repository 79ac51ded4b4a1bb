//! The tables of what a search found.

use maud::{Markup, html};
use posthaste_core::api::events::DeliveryView;
use posthaste_core::api::{DeadLetterView, FoundEvent, FoundSubscription};

use crate::address::PageAddress;
use crate::display::{CELL_CHARS_MAX, cell_text, foreign_cut, foreign_text, time_tag};
use crate::pages::known_topic::subscription_link;
use crate::table::TableColumn::{self, Number, Text};
use crate::table::data_table;
use crate::words::delivery_word;

/// Most events and letters of a table: the API may give a hundred of each, with long ids.
const ROWS_MAX: usize = 50;

/// Most deliveries of an event that a row names.
const DELIVERIES_MAX: usize = 5;

const EVENT_COLUMNS: [TableColumn; 5] = [
    Text("Event"),
    Text("Type"),
    Text("Topic"),
    Text("Accepted"),
    Text("Deliveries"),
];

const LETTER_COLUMNS: [TableColumn; 6] = [
    Text("Event"),
    Text("Type"),
    Text("Topic and subscription"),
    Text("Reason"),
    Number("Status"),
    Text("State"),
];

const SUBSCRIPTION_COLUMNS: [TableColumn; 3] = [
    Text("Topic and subscription"),
    Text("Endpoint"),
    Text("Fallback"),
];

pub(super) fn event_table(events: &[FoundEvent]) -> Markup {
    let rows = events.iter().take(ROWS_MAX).map(event_row);
    html! {
        (data_table("Events, the last accepted first", &EVENT_COLUMNS, rows))
        (cut_note(events.len()))
    }
}

pub(super) fn letter_table(letters: &[DeadLetterView]) -> Markup {
    let rows = letters.iter().take(ROWS_MAX).map(letter_row);
    html! {
        (data_table("Dead letters", &LETTER_COLUMNS, rows))
        (cut_note(letters.len()))
    }
}

pub(super) fn subscription_table(label: &str, found: &[FoundSubscription]) -> Markup {
    let rows = found.iter().map(subscription_row);
    data_table(label, &SUBSCRIPTION_COLUMNS, rows)
}

/// The page of a dead letter.
pub(super) fn letter_address(letter: &DeadLetterView) -> PageAddress {
    object_address(&letter.object).query("index", Some(letter.index))
}

fn object_address(object: &str) -> PageAddress {
    PageAddress::new(&["dead-letters", "record"]).query("object", Some(object))
}

fn cut_note(rows: usize) -> Markup {
    html! {
        @if rows > ROWS_MAX { p.hint { "The first " (ROWS_MAX) " of " (rows) " are shown." } }
    }
}

fn event_row(event: &FoundEvent) -> [Markup; 5] {
    let first = event.deliveries.first();
    let event_type = first.and_then(|it| it.event_type.as_deref());
    let more = event.deliveries.len().saturating_sub(DELIVERIES_MAX);
    let address = PageAddress::for_event(&event.topic, &event.id);
    [
        html! { a href=(address) { (foreign_cut(&event.id, CELL_CHARS_MAX)) } },
        cell_text(event_type).unwrap_or_default(),
        html! { a href=(PageAddress::for_topic(&event.topic)) { (foreign_text(&event.topic)) } },
        html! { @if let Some(first) = first { (time_tag(first.accepted_at.0)) } },
        html! {
            @for it in event.deliveries.iter().take(DELIVERIES_MAX) { div { (delivery_line(event, it)) } }
            @if more > 0 { div.hint { "and " (more) " more" } }
        },
    ]
}

fn delivery_line(event: &FoundEvent, it: &DeliveryView) -> Markup {
    html! {
        (foreign_text(&it.subscription)) " " (delivery_word(it.state).badge())
        @if let Some(object) = &it.dead_letter_object {
            " "
            a href=(object_address(object).with_event_id(&event.id)) { "dead letter" }
        }
    }
}

fn letter_row(letter: &DeadLetterView) -> [Markup; 6] {
    let id = cell_text(letter.id.as_deref()).unwrap_or_else(|| html! { "(no id)" });
    [
        html! { a href=(letter_address(letter)) { (id) } },
        cell_text(letter.event_type.as_deref()).unwrap_or_default(),
        subscription_link(&letter.topic, &letter.subscription, letter.owner_deleted),
        cell_text(letter.reason.as_deref()).unwrap_or_default(),
        html! { @if let Some(status) = letter.status { (status) } },
        html! {
            @if letter.resolved { span.badge.good { "resolved" } } @else { span.badge.bad { "open" } }
        },
    ]
}

fn subscription_row(found: &FoundSubscription) -> [Markup; 3] {
    [
        subscription_link(found.topic.as_str(), found.name.as_str(), false),
        cell_text(found.url.as_deref()).unwrap_or_default(),
        cell_text(found.fallback_url.as_deref()).unwrap_or_default(),
    ]
}
