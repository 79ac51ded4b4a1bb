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
use axum::routing::{get, post};
use futures_util::future::join;
use maud::{Markup, html};
use posthaste_core::api::DeadLetterPage;

use self::actions::action_forms;
use self::end::{delete, resolve};
pub(crate) use self::failures::{failure_list, left_out_facts};
use self::record::show_record;
use self::replay::submit_replay;
use self::rows::letter_table;
use self::search::{DeadLetterSearch, FIELDS, filter_form};
use super::topic_names::TopicNames;
use crate::api::ApiRefusal;
use crate::console::{PageContext, PageRoutes};
use crate::display::foreign_text;
use crate::extract::PageQuery;
use crate::filters::{pager, refusal_note};
use crate::page::{ConsolePage, MenuSection, PageResult};
use crate::parts::DoneNoticeQuery;
use crate::visit::PageVisit;

/// The notices of actions.
const DONE: [(&str, &str); 2] = [
    ("resolved", "The dead letters are resolved."),
    (
        "deleted",
        "The dead letters are deleted, or resolved where their object has others.",
    ),
];

/// The routes of dead letters.
pub(crate) fn routes() -> PageRoutes {
    PageRoutes::new()
        .route("/dead-letters", get(show_list))
        .route("/dead-letters/record", get(show_record))
        .route("/dead-letters/replay", post(submit_replay))
        .route("/dead-letters/resolve", post(resolve))
        .route("/dead-letters/delete", post(delete))
}

/// The page.
async fn show_list(
    pages: PageContext,
    visit: PageVisit,
    PageQuery(search): PageQuery<DeadLetterSearch>,
    PageQuery(done): PageQuery<DoneNoticeQuery>,
) -> PageResult {
    let (topics, found) = join(
        TopicNames::load(&pages.api),
        search.load_dead_letters(&pages.api),
    )
    .await;
    let topics = topics?;
    let refusal = found.as_ref().err();
    let body = html! {
        (done.notice(visit.now, &DONE))
        (filter_form(&topics, &search, refusal))
        @match &found {
            Ok(page) => (result_list(&search, page, &visit)),
            Err(refusal) => (refusal_note(refusal, &FIELDS)),
        }
    };
    let status = refusal.map_or(StatusCode::OK, ApiRefusal::status_code);
    Ok(ConsolePage::new("Dead letters", body)
        .in_section(MenuSection::DeadLetters)
        .with_status(status))
}

fn result_list(search: &DeadLetterSearch, page: &DeadLetterPage, visit: &PageVisit) -> Markup {
    let next = page
        .cursor
        .as_deref()
        .map(|cursor| search.page_address(Some(cursor)));
    let first = search.cursor.is_some().then(|| search.page_address(None));
    html! {
        @for recovery in &page.recoveries { p.hint { (foreign_text(&recovery.summary_line())) } }
        @if page.dead_letters.is_empty() {
            (empty_note(search, page))
        } @else {
            (letter_table(search, &page.dead_letters))
        }
        (pager(first, next))
        @if let Some(note) = &page.note { p.hint { (foreign_text(note)) } }
        (failure_list(&page.failures, "Objects that cannot be read"))
        (action_forms(search, visit, page.dead_letters.iter().any(|letter| letter.owner_deleted)))
    }
}

fn empty_note(search: &DeadLetterSearch, page: &DeadLetterPage) -> Markup {
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
