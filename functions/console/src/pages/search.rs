//! The search of everything by what a visitor has: an event's id, a `webhook-id`, the key of a dead
//! letter, the name of a subscription or the URL of an endpoint.

mod answers;
mod guess;
mod query;
mod rows;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use maud::{Markup, html};
use posthaste_core::api::events::{EncodedId, IdInUrl};
use posthaste_core::api::{FoundEvents, FoundSubscriptions};
use serde::Deserialize;

use self::answers::{AnswerRef, SearchAnswers, has_no_event};
use self::guess::SearchGuess;
use self::query::SearchPageQuery;
use self::rows::{event_table, letter_table, subscription_table};
use crate::address::PageAddress;
use crate::api::ApiRefusal;
use crate::console::{PATH, PageContext, PageRoutes};
use crate::display::{CELL_CHARS_MAX, foreign_cut, foreign_text, number, time_tag};
use crate::extract::PageQuery;
use crate::filters::{TimeRangeFields, folded_filters, hidden_fields, refusal_note};
use crate::page::{ConsolePage, MenuSection, problem_box};

/// The fields of the form that the API may refuse.
const FIELDS: [&str; 2] = ["from", "to"];

/// The query of the page that was here before, which found events alone.
#[derive(Debug, Default, Deserialize)]
struct FormerFindQuery {
    id: Option<String>,
    id64: Option<EncodedId>,
    from: Option<String>,
    to: Option<String>,
}

/// The routes of the page.
pub(crate) fn routes() -> PageRoutes {
    PageRoutes::new()
        .route("/search", get(show_page))
        .route("/find", get(redirect_former_address))
}

/// The address of a search for this text.
pub(crate) fn search_address(text: &str) -> PageAddress {
    let (name, value) = text_parameter(text);
    PageAddress::new(&["search"]).query(name, Some(value))
}

/// The parameter that has the text, or as much of it as the delivery log has of an id.
fn text_parameter(text: &str) -> (&'static str, String) {
    match IdInUrl::for_id(text) {
        IdInUrl::Id64(encoded) => ("q64", encoded),
        IdInUrl::Segment(text) | IdInUrl::Id(text) => ("q", text.to_owned()),
    }
}

/// The page. What is found alone is shown at once.
async fn show_page(pages: PageContext, PageQuery(asked): PageQuery<SearchPageQuery>) -> Response {
    let Some(text) = asked.text() else {
        return what_can_be_found().into_response();
    };
    let guess = SearchGuess::from_text(text);
    let answers = SearchAnswers::load(&pages.api, &asked, text, guess).await;
    if let Some(address) = answers.only_hit(&asked) {
        return Redirect::to(&address.to_string()).into_response();
    }
    let refusal = answers.first_refusal();
    let status = refusal.map_or(StatusCode::OK, ApiRefusal::status_code);
    ConsolePage::new("Search", found_list(&asked, text, guess, &answers))
        .in_section(MenuSection::Events)
        .with_search_text(text)
        .with_status(status)
        .into_response()
}

async fn redirect_former_address(PageQuery(asked): PageQuery<FormerFindQuery>) -> Redirect {
    let id = asked.id64.map(|id| id.0).or(asked.id);
    let address = match id {
        Some(id) => search_address(&id),
        None => PageAddress::new(&["search"]),
    };
    let address = address.query("from", asked.from).query("to", asked.to);
    Redirect::to(&address.to_string())
}

fn what_can_be_found() -> ConsolePage {
    let body = html! {
        p.empty { "Enter what you have. Every topic is searched for:" }
        ul {
            li { "an event by its id, or by the " code { "webhook-id" } " of a request," }
            li { "a dead letter by its key," }
            li { "a subscription by its name, or by the beginning of it," }
            li { "a subscription by the URL of its endpoint: the host, the beginning, or the whole URL." }
        }
    };
    ConsolePage::new("Search", body).in_section(MenuSection::Events)
}

fn found_list(
    asked: &SearchPageQuery,
    text: &str,
    guess: SearchGuess,
    answers: &SearchAnswers,
) -> Markup {
    let may_take_longer = guess == SearchGuess::IdOrName && !asked.long;
    let events = html! {
        (event_section(asked, text, answers.events.as_ref()))
        @if let Some(address) = longer_search(asked, text, answers).filter(|_| may_take_longer) {
            p.hint { a href=(address) { "Search the log for longer" } }
        }
    };
    let subscriptions = html! {
        (subscription_section(
            "Subscriptions with this name", answers.by_name.as_ref(),
            |cursor| search_address(text).query("names", Some(cursor)),
        ))
        (subscription_section(
            "Subscriptions with this endpoint", answers.by_url.as_ref(),
            |cursor| search_address(text).query("urls", Some(cursor)),
        ))
    };
    html! {
        p { "For " (foreign_cut(text, CELL_CHARS_MAX)) ":" }
        @if answers.is_empty() {
            p.empty { "Nothing was found" @if answers.is_log_cut() { " so far" } "." }
        }
        @if guess == SearchGuess::EndpointUrl { (subscriptions) (events) } @else { (events) (subscriptions) }
        @if answers.events.is_some() { (times_form(asked, text, answers.events.as_ref())) }
    }
}

fn event_section(
    asked: &SearchPageQuery,
    text: &str,
    answer: AnswerRef<'_, FoundEvents>,
) -> Markup {
    html! {
        @match answer {
            None => {},
            Some(Err(refusal)) => (refusal_note(refusal, &FIELDS)),
            Some(Ok(found)) => {
                @if !found.dead_letters.is_empty() && asked.skip == 0 {
                    h2 { "Dead letters of this key" }
                    (letter_table(&found.dead_letters))
                }
                @if !found.events.is_empty() {
                    h2 { "Events" }
                    (event_table(&found.events, asked.skip, |skip| {
                        let long = asked.long.then_some(true);
                        event_search(asked, text).query("long", long).query("skip", Some(skip))
                    }))
                }
                @if let Some(note) = &found.note { p.hint { (foreign_text(note)) } }
                (searched_log(found))
            }
        }
    }
}

/// The address of the same search for events.
fn event_search(asked: &SearchPageQuery, text: &str) -> PageAddress {
    search_address(text)
        .query("from", asked.from.as_deref())
        .query("to", asked.to.as_deref())
}

/// The same with more time for the log, where that was not searched to its end.
fn longer_search(
    asked: &SearchPageQuery,
    text: &str,
    answers: &SearchAnswers,
) -> Option<PageAddress> {
    let found = answers.events.as_ref()?.as_ref().ok()?;
    let address = event_search(asked, text).query("long", Some(true));
    found.is_cut_short.then_some(address)
}

/// The part of the log that was searched.
fn searched_log(found: &FoundEvents) -> Markup {
    html! {
        p.hint {
            @match (has_no_event(found), found.is_cut_short) {
                (false, _) => {},
                (true, false) => "No event has this id, and no request this webhook-id. ",
                (true, true) => "There was time for a part of the log, and this part has no event with this id. ",
            }
            @match found.searched_from {
                Some(from) => { "The log was searched back to " (time_tag(from.0)) ". " },
                None => { "The log has no record of the time that was searched. " },
            }
            "It is complete until " (time_tag(found.complete_until.0)) "."
        }
    }
}

fn subscription_section(
    title: &str,
    answer: AnswerRef<'_, FoundSubscriptions>,
    next_page: impl Fn(&str) -> PageAddress,
) -> Markup {
    html! {
        @match answer {
            None => {},
            Some(Err(refusal)) => { h2 { (title) } (problem_box(refusal)) },
            Some(Ok(found)) => {
                @if !found.subscriptions.is_empty() {
                    h2 { (title) }
                    (subscription_table(title, &found.subscriptions))
                }
                p.hint {
                    (title) ": " (number(found.topics_searched as u64)) " topics were searched. "
                    @if let Some(note) = &found.note { (foreign_text(note)) " " }
                    @if let Some(cursor) = &found.cursor { a href=(next_page(cursor)) rel="next" { "Search on" } }
                }
            }
        }
    }
}

/// The form that searches the log of other times.
fn times_form(asked: &SearchPageQuery, text: &str, answer: AnswerRef<'_, FoundEvents>) -> Markup {
    let refusal = answer.and_then(|answer| answer.as_ref().err());
    let times = TimeRangeFields::new(asked.from.as_deref(), asked.to.as_deref(), refusal);
    let (name, value) = text_parameter(text);
    let form = html! {
        form.filters method="get" action={ (PATH) "/search" } {
            (hidden_fields(&[(name, Some(value.as_str()))]))
            (times.render())
            div { button type="submit" { "Search these times" } }
        }
    };
    let chosen = [("from", asked.from.as_deref()), ("to", asked.to.as_deref())];
    folded_filters(&chosen, refusal.is_some(), &form)
}
