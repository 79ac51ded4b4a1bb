//! The records of a topic's deliveries, by filters.

mod rows;
mod search;
mod words;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use futures_util::future::join;
use maud::{Markup, html};
use posthaste_core::api::events::RecordPage;

use self::rows::records;
pub(crate) use self::search::EventSearch;
use self::search::{FIELDS, form};
use super::topic_names::TopicNames;
use crate::address::Address;
use crate::api::Refusal;
use crate::asked::Query;
use crate::console::{PATH, Pages};
use crate::filters::{pager, refused};
use crate::page::{Page, Section};
use crate::pages::find::find_address;
use crate::shown::{foreign, time};

/// The records, or why there are none; `None` where nothing was asked for yet.
type Found = Option<Result<RecordPage, Refusal>>;

/// The page. A search for an event's id leads to the page of the event, which has the filters by
/// subscription and time too. Without a topic, it leads to the search of every topic.
pub(crate) async fn events(
    pages: Pages,
    Query(search): Query<EventSearch>,
) -> Result<Response, Page> {
    let (topics, mut found) = join(TopicNames::ask(&pages.api), search.records(&pages.api)).await;
    let topics = topics?;
    let search = search.or_topic(topics.only());
    if let (Some(topic), Some(id)) = (&search.topic, &search.id) {
        let event = Address::event(topic, id).query("subscription", search.subscription.as_ref());
        let event = event
            .query("from", search.from.as_ref())
            .query("to", search.to.as_ref());
        return Ok(Redirect::to(&event.to_string()).into_response());
    }
    if let (None, Some(id)) = (
        &search.topic,
        search.id.as_ref().or(search.webhook_id.as_ref()),
    ) {
        let find = find_address(id).query("from", search.from.as_ref());
        let find = find.query("to", search.to.as_ref());
        return Ok(Redirect::to(&find.to_string()).into_response());
    }
    if found.is_none() {
        found = search.records(&pages.api).await;
    }
    Ok(page(&topics, &search, &found).into_response())
}

fn page(topics: &TopicNames, search: &EventSearch, found: &Found) -> Page {
    let refusal = found.as_ref().and_then(|found| found.as_ref().err());
    let body = html! {
        (form(topics, search, refusal))
        @match found {
            Some(Ok(records)) => (results(search, records)),
            Some(Err(refusal)) => (refused(refusal, &FIELDS)),
            None => (nothing_asked(topics, search)),
        }
    };
    let status = refusal.map_or(StatusCode::OK, Refusal::status);
    Page::new("Events and their attempts", body)
        .of(Section::Events)
        .with_status(status)
}

fn nothing_asked(topics: &TopicNames, search: &EventSearch) -> Markup {
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
                ul { @for topic in topics.all() { li { (of_topic(search, topic)) } } }
            }
        }
    }
}

/// The link to the same search in a topic.
fn of_topic(search: &EventSearch, topic: &str) -> Markup {
    let address = EventSearch {
        topic: Some(topic.to_owned()),
        ..search.clone()
    }
    .address(None);
    html! { a href=(address) { (foreign(topic)) } }
}

fn results(search: &EventSearch, page: &RecordPage) -> Markup {
    let next = page
        .cursor
        .as_deref()
        .map(|cursor| search.address(Some(cursor)));
    let first = search.cursor.is_some().then(|| search.address(None));
    let topic = search.topic.as_deref().unwrap_or_default();
    html! {
        p.hint {
            "The list shows attempts that were made. Events that wait for their first attempt are counted on \
             the " a href=(PATH) { "overview" } "."
        }
        @if page.records.is_empty() {
            (no_records(page, search))
        } @else {
            (records(topic, search, &page.records))
        }
        (pager(first, next))
        @if let Some(note) = &page.note { p.hint { (foreign(note)) } }
        p.hint { "The log is complete until " (time(page.complete_until.0)) "." }
    }
}

fn no_records(page: &RecordPage, search: &EventSearch) -> Markup {
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
