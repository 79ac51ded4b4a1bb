//! Dead letters: lists of them, and what an operator does about them.

mod actions;
mod end;
mod failures;
mod owner;
mod places;
mod record;
mod replay;
mod rows;
mod search;

use axum::http::StatusCode;
use futures_util::future::join;
use maud::{Markup, html};
use posthaste_core::api::DeadLetterPage;

use self::actions::actions;
pub(crate) use self::end::{delete, resolve};
pub(crate) use self::failures::{failures, left_out};
pub(crate) use self::record::record;
pub(crate) use self::replay::replay;
use self::rows::letters;
use self::search::{DeadLetterSearch, FIELDS, form};
use super::topic_names::TopicNames;
use crate::api::Refusal;
use crate::asked::Query;
use crate::console::Pages;
use crate::filters::{pager, refused};
use crate::page::{Answer, Page, Section};
use crate::parts::DoneAsked;
use crate::shown::foreign;
use crate::visit::Visit;

/// The notices of actions.
const DONE: [(&str, &str); 2] = [
    ("resolved", "The dead letters are resolved."),
    (
        "deleted",
        "The dead letters are deleted, or resolved where their object has others.",
    ),
];

/// The page.
pub(crate) async fn dead_letters(
    pages: Pages,
    visit: Visit,
    Query(search): Query<DeadLetterSearch>,
    Query(done): Query<DoneAsked>,
) -> Answer {
    let (topics, found) = join(TopicNames::ask(&pages.api), search.dead_letters(&pages.api)).await;
    let topics = topics?;
    let refusal = found.as_ref().err();
    let body = html! {
        (done.notice(visit.now, &DONE))
        (form(&topics, &search, refusal))
        @match &found {
            Ok(page) => (results(&search, page, &visit)),
            Err(refusal) => (refused(refusal, &FIELDS)),
        }
    };
    let status = refusal.map_or(StatusCode::OK, Refusal::status);
    Ok(Page::new("Dead letters", body)
        .of(Section::DeadLetters)
        .with_status(status))
}

fn results(search: &DeadLetterSearch, page: &DeadLetterPage, visit: &Visit) -> Markup {
    let next = page
        .cursor
        .as_deref()
        .map(|cursor| search.address(Some(cursor)));
    let first = search.cursor.is_some().then(|| search.address(None));
    html! {
        @for recovery in &page.recoveries { p.hint { (foreign(&recovery.summary_line())) } }
        @if page.dead_letters.is_empty() {
            (none(search, page))
        } @else {
            (letters(search, &page.dead_letters))
        }
        (pager(first, next))
        @if let Some(note) = &page.note { p.hint { (foreign(note)) } }
        (failures(&page.failures, "Objects that cannot be read"))
        (actions(search, visit, page.dead_letters.iter().any(|letter| letter.owner_deleted)))
    }
}

fn none(search: &DeadLetterSearch, page: &DeadLetterPage) -> Markup {
    html! {
        p.empty {
            @if page.cursor.is_some() {
                "No dead letter was found so far. The next page searches further back."
            } @else if search.is_narrow() {
                "No dead letter has these values. Leave a filter out to see more."
            } @else {
                "There is no dead letter: no event was given up, or all of them are resolved. \
                 A dead letter appears some minutes after the last attempt."
            }
        }
    }
}
