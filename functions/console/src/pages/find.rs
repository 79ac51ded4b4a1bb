//! The search for events by what a visitor has: an event's id, a `webhook-id`, or the key of a dead
//! letter. No topic is needed.

use axum::http::StatusCode;
use axum::routing::get;
use maud::{Markup, html};
use posthaste_core::api::events::{DeliveryView, EncodedId, IdInUrl};
use posthaste_core::api::{DeadLetterView, FoundEvent, FoundEvents};
use serde::Deserialize;

use crate::address::PageAddress;
use crate::api::{ApiRefusal, ManageApi, RequestTarget};
use crate::console::{PATH, PageContext, PageRoutes};
use crate::display::{CELL_CHARS_MAX, cell_text, foreign_cut, foreign_text, time_tag};
use crate::extract::PageQuery;
use crate::filters::{FormField, refusal_note};
use crate::page::{ConsolePage, MenuSection, PageResult};
use crate::pages::event::state_badge;
use crate::pages::known_topic::subscription_link;
use crate::table::TableColumn::{self, Number, Text};
use crate::table::table;

/// The fields of the form that the API may refuse.
const FIELDS: [&str; 2] = ["from", "to"];

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

/// The query of the page.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct FindPageQuery {
    id: Option<String>,
    id64: Option<EncodedId>,
    from: Option<String>,
    to: Option<String>,
}

/// The routes of the page.
pub(crate) fn routes() -> PageRoutes {
    PageRoutes::new().route("/find", get(show_page))
}

/// The page.
async fn show_page(pages: PageContext, PageQuery(asked): PageQuery<FindPageQuery>) -> PageResult {
    let found = match asked.id() {
        Some(id) => Some(asked.load_found(&pages.api, id).await),
        None => None,
    };
    let refusal = found.as_ref().and_then(|found| found.as_ref().err());
    let body = html! {
        (full_form(&asked, refusal))
        @match &found {
            Some(Ok(found)) => (result_list(found)),
            Some(Err(refusal)) => (refusal_note(refusal, &FIELDS)),
            None => p.empty { "Enter what you have of an event. Every topic is searched." },
        }
    };
    let status = refusal.map_or(StatusCode::OK, ApiRefusal::status_code);
    Ok(ConsolePage::new("Find events", body)
        .in_section(MenuSection::Events)
        .with_status(status))
}

/// The address of a search.
pub(crate) fn find_address(id: &str) -> PageAddress {
    PageAddress::new(&["find"]).with_event_id(id)
}

/// The form of the overview.
pub(crate) fn find_form() -> Markup {
    html! {
        form.filters method="get" action={ (PATH) "/find" } role="search" {
            (id_field(None))
            div { button type="submit" { "Find" } }
        }
    }
}

fn id_field(value: Option<&str>) -> Markup {
    let label = "Event id, webhook-id or dead-letter key";
    FormField::new("id", label, value, None)
        .with_example("msg_…")
        .text_input()
}

fn full_form(asked: &FindPageQuery, refusal: Option<&ApiRefusal>) -> Markup {
    let from = FormField::new("from", "From (UTC)", asked.from.as_deref(), refusal);
    let to = FormField::new("to", "To (UTC)", asked.to.as_deref(), refusal);
    html! {
        form.filters method="get" action={ (PATH) "/find" } role="search" {
            (id_field(asked.id()))
            (from.time_input())
            (to.time_input())
            div { button.primary type="submit" { "Find" } }
        }
    }
}

impl FindPageQuery {
    fn id(&self) -> Option<&str> {
        let encoded = self.id64.as_ref().map(|id| id.0.as_str());
        encoded.or(self.id.as_deref())
    }

    async fn load_found(&self, api: &ManageApi, id: &str) -> Result<FoundEvents, ApiRefusal> {
        let carried = IdInUrl::for_id(id);
        let target = RequestTarget::new(&["events", carried.path_segment()]);
        let target = match carried.query_parameter() {
            Some((name, value)) => target.query(name, Some(value)),
            None => target,
        };
        let target = target.query("from", self.from.as_deref());
        api.get(target.query("to", self.to.as_deref())).await
    }
}

fn result_list(found: &FoundEvents) -> Markup {
    let is_empty = found.events.is_empty() && found.dead_letters.is_empty();
    html! {
        @if is_empty { p.empty { "Nothing was found." } }
        @if !found.dead_letters.is_empty() {
            h2 { "Dead letters of this object" }
            (table("Dead letters", &LETTER_COLUMNS, found.dead_letters.iter().map(letter_row)))
        }
        @if !found.events.is_empty() {
            h2 { "Events" }
            (table("Events, the last accepted first", &EVENT_COLUMNS, found.events.iter().map(event_row)))
        }
        @if let Some(note) = &found.note { p.hint { (foreign_text(note)) } }
        p.hint {
            @if let Some(from) = found.searched_from {
                "The log was searched back to " (time_tag(from.0)) ". "
            }
            "It is complete until " (time_tag(found.complete_until.0)) "."
        }
    }
}

fn event_row(event: &FoundEvent) -> Markup {
    let first = event.deliveries.first();
    let event_type = first.and_then(|it| it.event_type.as_ref());
    let more = event.deliveries.len().saturating_sub(DELIVERIES_MAX);
    html! {
        tr {
            td { a href=(PageAddress::for_event(&event.topic, &event.id)) { (foreign_cut(&event.id, CELL_CHARS_MAX)) } }
            td { @if let Some(event_type) = event_type { (foreign_cut(event_type, CELL_CHARS_MAX)) } }
            td { a href=(PageAddress::for_topic(&event.topic)) { (foreign_text(&event.topic)) } }
            td { @if let Some(first) = first { (time_tag(first.accepted_at.0)) } }
            td {
                @for it in event.deliveries.iter().take(DELIVERIES_MAX) { div { (delivery_line(event, it)) } }
                @if more > 0 { div.hint { "and " (more) " more" } }
            }
        }
    }
}

fn delivery_line(event: &FoundEvent, it: &DeliveryView) -> Markup {
    html! {
        (foreign_text(&it.subscription)) " " (state_badge(it.state))
        @if let Some(object) = &it.dead_letter_object {
            " "
            a href=(letter_address(object).with_event_id(&event.id)) { "dead letter" }
        }
    }
}

fn letter_row(letter: &DeadLetterView) -> Markup {
    let id = cell_text(letter.id.as_deref()).unwrap_or_else(|| html! { "(no id)" });
    let address = letter_address(&letter.object).query("index", Some(letter.index));
    html! {
        tr {
            td { a href=(address) { (id) } }
            td { @if let Some(event_type) = cell_text(letter.event_type.as_deref()) { (event_type) } }
            td { (subscription_link(&letter.topic, &letter.subscription, letter.owner_deleted)) }
            td { @if let Some(reason) = cell_text(letter.reason.as_deref()) { (reason) } }
            td.number { @if let Some(status) = letter.status { (status) } }
            td {
                @if letter.resolved { span.badge.good { "resolved" } } @else { span.badge.bad { "open" } }
            }
        }
    }
}

fn letter_address(object: &str) -> PageAddress {
    PageAddress::new(&["dead-letters", "record"]).query("object", Some(object))
}
