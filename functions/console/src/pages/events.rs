//! The records of a topic's deliveries, by filters.

mod rows;
mod search;
mod words;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use futures_util::future::join3;
use maud::{Markup, html};
use posthaste_core::api::events::RecordPage;
use posthaste_core::model::Timestamp;

use self::rows::record_table;
pub(crate) use self::search::EventSearch;
use self::search::{FIELDS, filter_form};
use super::topic_names::TopicNames;
use crate::address::PageAddress;
use crate::api::ApiRefusal;
use crate::console::{PATH, PageContext, PageRoutes};
use crate::display::{foreign_text, time_tag};
use crate::extract::PageQuery;
use crate::filters::{folded_filters, load_outage_begin, pager, refusal_note, searched_back_note};
use crate::page::{ConsolePage, MenuSection};
use crate::pages::search::search_address;

/// The records, or the refusal; `None` before the first search.
type FoundRecords = Option<Result<RecordPage, ApiRefusal>>;

/// The routes of the list.
pub(crate) fn routes() -> PageRoutes {
    PageRoutes::new().route("/events", get(show_page))
}

/// The page. Its addresses of before, with an id, lead to the page of the event, which has the
/// filters by subscription and time too. Without a topic they lead to the search of every topic, as
/// those with a `webhook-id` do.
async fn show_page(
    pages: PageContext,
    PageQuery(search): PageQuery<EventSearch>,
) -> Result<Response, ConsolePage> {
    let (topics, mut found, outage_since) = join3(
        TopicNames::load(&pages.api),
        search.load_records(&pages.api),
        load_outage_begin(
            &pages.api,
            search.topic.as_deref(),
            search.subscription.as_deref(),
        ),
    )
    .await;
    let topics = topics?;
    let search = search.with_default_topic(topics.only_name());
    if let (Some(topic), Some(id)) = (&search.topic, &search.id) {
        let event =
            PageAddress::for_event(topic, id).query("subscription", search.subscription.as_ref());
        let event = event
            .query("from", search.from.as_ref())
            .query("to", search.to.as_ref());
        return Ok(Redirect::to(&event.to_string()).into_response());
    }
    if let Some(text) = search.id.as_ref().or(search.webhook_id.as_ref()) {
        let everywhere = search_address(text).query("from", search.from.as_ref());
        let everywhere = everywhere.query("to", search.to.as_ref());
        return Ok(Redirect::to(&everywhere.to_string()).into_response());
    }
    if found.is_none() {
        found = search.load_records(&pages.api).await;
    }
    Ok(records_page(&topics, &search, &found, outage_since).into_response())
}

fn records_page(
    topics: &TopicNames,
    search: &EventSearch,
    found: &FoundRecords,
    outage_since: Option<Timestamp>,
) -> ConsolePage {
    let refusal = found.as_ref().and_then(|found| found.as_ref().err());
    let has_records = matches!(found, Some(Ok(page)) if !page.records.is_empty());
    let body = html! {
        (folded_filters(&search.chosen_filters(), !has_records,
            &filter_form(topics, search, refusal, outage_since)))
        @match found {
            Some(Ok(records)) => (result_list(search, records)),
            Some(Err(refusal)) => (refusal_note(refusal, &FIELDS)),
            None => (choose_topic_note(topics, search)),
        }
    };
    let status = refusal.map_or(StatusCode::OK, ApiRefusal::status_code);
    ConsolePage::new("Events and their attempts", body)
        .in_section(MenuSection::Events)
        .with_status(status)
}

fn choose_topic_note(topics: &TopicNames, search: &EventSearch) -> Markup {
    html! {
        @if topics.is_empty() {
            p.empty {
                "There is no topic yet. "
                a href={ (PATH) "/topics" } { "Create a topic" }
                ", then publish an event to it."
            }
        } @else {
            section.empty aria-label="Topics to choose from" {
                p { "Choose a topic to see what became of its events:" }
                ul { @for topic in topics.names() { li { (topic_link(search, topic)) } } }
            }
        }
    }
}

/// The link to the same search in a topic.
fn topic_link(search: &EventSearch, topic: &str) -> Markup {
    let address = EventSearch {
        topic: Some(topic.to_owned()),
        ..search.clone()
    }
    .page_address(None);
    html! { a href=(address) { (foreign_text(topic)) } }
}

fn result_list(search: &EventSearch, page: &RecordPage) -> Markup {
    let next = page
        .cursor
        .as_deref()
        .map(|cursor| search.page_address(Some(cursor)));
    let first = search.cursor.is_some().then(|| search.page_address(None));
    let topic = search.topic.as_deref().unwrap_or_default();
    html! {
        p.hint {
            "The list shows attempts that were made. Events that wait for their first attempt are counted on \
             the " a href=(PATH) { "overview" } "."
        }
        @if page.records.is_empty() {
            (no_records_note(page, search))
        } @else {
            (record_table(topic, &page.records))
        }
        (searched_back_note(page.records.len(), page.searched_back_to))
        (pager(first, next))
        @if let Some(note) = &page.note { p.hint { (foreign_text(note)) } }
        p.hint { "The log is complete until " (time_tag(page.complete_until.0)) "." }
    }
}

fn no_records_note(page: &RecordPage, search: &EventSearch) -> Markup {
    html! {
        p.empty {
            @if page.cursor.is_some() {
                "No record was found so far. The next page searches further back."
            } @else if search.is_narrow() {
                "No record of this topic has these values. Leave a filter out to see more."
            } @else {
                "The log has no record of this topic yet. Publish an event to it: its first attempt is \
                 shown here."
            }
        }
    }
}
