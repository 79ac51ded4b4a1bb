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

/// Most events and letters of a table: the API may give a hundred of each.
const ROWS_MAX: usize = 50;

/// Most bytes of the rows of one table, as ids and keys may be long. A page has two such tables at
/// most, or one beside subscriptions.
const ROWS_BYTES_MAX: usize = 40_000;

/// Bytes of the tags around the cells of a row.
const ROW_TAG_BYTES: usize = 320;

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

/// The events behind the first ones, which pages before had.
pub(super) fn event_table(
    events: &[FoundEvent],
    skip: usize,
    next_page: impl Fn(usize) -> PageAddress,
) -> Markup {
    let skip = skip.min(events.len());
    let rows = rows_with_room(events[skip..].iter().map(event_row));
    let end = skip + rows.len();
    html! {
        (data_table("Events, the last accepted first", &EVENT_COLUMNS, rows))
        @if end < events.len() {
            p.hint {
                "And " (events.len() - end) " more. "
                a href=(next_page(end)) rel="next" { "Show the next events" }
            }
        }
    }
}

pub(super) fn letter_table(letters: &[DeadLetterView]) -> Markup {
    let rows = rows_with_room(letters.iter().map(letter_row));
    let next = letters.get(rows.len());
    html! {
        (data_table("Dead letters", &LETTER_COLUMNS, rows))
        @if let Some(next) = next {
            p.hint {
                "There are more of this key. "
                a href=(letter_address(next)) rel="next" { "Show the next one" }
                ", which leads to those behind it."
            }
        }
    }
}

/// The first rows, as many as there is room for, and one at least.
fn rows_with_room<const COLUMNS: usize>(
    rows: impl Iterator<Item = [Markup; COLUMNS]>,
) -> Vec<[Markup; COLUMNS]> {
    let mut bytes_left = ROWS_BYTES_MAX;
    let mut shown = Vec::new();
    for row in rows.take(ROWS_MAX) {
        let bytes = row.iter().map(|cell| cell.0.len()).sum::<usize>() + ROW_TAG_BYTES;
        if bytes > bytes_left && !shown.is_empty() {
            break;
        }
        bytes_left = bytes_left.saturating_sub(bytes);
        shown.push(row);
    }
    shown
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
