//! Dead letters one by one, with boxes to tick.

use axum::http::StatusCode;
use futures_util::future::join3;
use maud::{Markup, html};
use posthaste_core::api::DeadLetterPage;

use super::actions::{action_forms, tick_buttons};
use super::failures::failure_list;
use super::forms::{FIELDS, filter_form};
use super::notices::DONE;
use super::rows::letter_table;
use super::search::DeadLetterSearch;
use crate::api::ApiRefusal;
use crate::console::PageContext;
use crate::display::foreign_text;
use crate::extract::PageQuery;
use crate::filters::{
    folded_filters, hidden_fields, load_outage_begin, pager, refusal_note, searched_back_note,
};
use crate::page::{ConsolePage, MenuSection, PageResult, form_token};
use crate::pages::topic_names::TopicNames;
use crate::parts::DoneNoticeQuery;
use crate::visit::PageVisit;

/// The page.
pub(super) async fn show_list(
    pages: PageContext,
    visit: PageVisit,
    PageQuery(search): PageQuery<DeadLetterSearch>,
    PageQuery(done): PageQuery<DoneNoticeQuery>,
) -> PageResult {
    let (topics, found, outage_since) = join3(
        TopicNames::load(&pages.api),
        search.load_dead_letters(&pages.api),
        load_outage_begin(
            &pages.api,
            search.topic.as_deref(),
            search.subscription.as_deref(),
        ),
    )
    .await;
    let topics = topics?;
    let refusal = found.as_ref().err();
    let is_open = found
        .as_ref()
        .map_or(true, |page| page.dead_letters.is_empty());
    let form = filter_form(&topics, &search, refusal, outage_since);
    let body = html! {
        (done.notice(visit.now, &DONE))
        (folded_filters(&search.chosen_filters(), is_open, &form))
        @match &found {
            Ok(page) => (result_list(&search, page, &visit)),
            Err(refusal) => (refusal_note(refusal, &FIELDS)),
        }
    };
    let status = refusal.map_or(StatusCode::OK, ApiRefusal::status_code);
    Ok(ConsolePage::new("Dead letters one by one", body)
        .in_section(MenuSection::DeadLetters)
        .with_status(status))
}

fn result_list(search: &DeadLetterSearch, page: &DeadLetterPage, visit: &PageVisit) -> Markup {
    let next = page
        .cursor
        .as_deref()
        .map(|cursor| search.page_address(Some(cursor)));
    let first = search.cursor.is_some().then(|| search.page_address(None));
    let is_deleted = page.dead_letters.iter().any(|letter| letter.owner_deleted);
    html! {
        p { a href=(search.groups_address(None)) { "By subscription and reason" } }
        @for recovery in &page.recoveries { p.hint { (foreign_text(&recovery.summary_line())) "." } }
        @if page.dead_letters.is_empty() {
            (empty_note(search, page))
        } @else {
            (ticked_form(search, page, visit))
        }
        (searched_back_note(page.dead_letters.len(), page.searched_back_to))
        (pager(first, next))
        @if let Some(note) = &page.note { p.hint { (foreign_text(note)) "." } }
        (failure_list(&page.failures, "What cannot be read"))
        (action_forms(search, visit, is_deleted))
    }
}

/// The rows with their boxes, in one form with the actions on what is ticked.
fn ticked_form(search: &DeadLetterSearch, page: &DeadLetterPage, visit: &PageVisit) -> Markup {
    html! {
        form method="post" {
            (form_token(&visit.form_token))
            (hidden_fields(&search.hidden_fields()))
            (letter_table(search, &page.dead_letters))
            (tick_buttons())
        }
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
