//! The page of work that resolves or deletes dead letters: its progress, and its cancel.

use axum::http::StatusCode;
use axum::response::Redirect;
use maud::{Markup, html};
use posthaste_core::api::{LetterWorkAction, LetterWorkState, LetterWorkView};

use super::display::{DONE, action_title, is_open, state_badge, total_text};
use super::speed::speed_text;
use crate::address::page_path;
use crate::api::RequestTarget;
use crate::console::PageContext;
use crate::display::{number, relative_time};
use crate::extract::{FormFields, PageQuery, PathParts};
use crate::page::{ConsolePage, MenuSection, PageResult, form_token};
use crate::pages::known_topic::subscription_link;
use crate::parts::{DoneNoticeQuery, address_after, fact, page_to_go_back_to, refused_page};
use crate::visit::PageVisit;

/// Seconds after a cancel in which the turn under way may still be counted.
const LAST_TURN_SECS: u64 = 30;

/// The page of some work.
pub(super) async fn show_letter_work(
    pages: PageContext,
    visit: PageVisit,
    PathParts([id]): PathParts<1>,
    PageQuery(done): PageQuery<DoneNoticeQuery>,
) -> PageResult {
    let target = RequestTarget::new(&["dead-letters", "work", &id]);
    let view: LetterWorkView = match pages.api.get(target).await {
        Err(refusal) if refusal.status_code() == StatusCode::NOT_FOUND => return Ok(ended_page()),
        loaded => loaded?,
    };
    let body = html! {
        (done.notice(visit.now, &DONE))
        section #letter-work data-live[is_changing(&view, &visit)] aria-label="Progress" {
            (progress_section(&view, &visit))
        }
        p.actions { a href=(page_path(&["work"])) { "All work" } a href=(page_path(&["dead-letters"])) { "Dead letters" } }
        @if is_open(&view) { (cancel_form(&view, &visit)) }
    };
    let title = format!("{} dead letters", action_title(view.action));
    Ok(ConsolePage::new(title, body).in_section(MenuSection::Work))
}

/// The page of work that is not kept.
fn ended_page() -> ConsolePage {
    let body = html! {
        p {
            "It was done within a few seconds, ended more than a day ago, has failed for a day, or never was."
        }
        p.actions { a href=(page_path(&["work"])) { "All work" } a href=(page_path(&["dead-letters"])) { "Dead letters" } }
    };
    ConsolePage::new("There is no such work any more", body)
        .in_section(MenuSection::Work)
        .with_status(StatusCode::NOT_FOUND)
}

/// Cancels work. What has ended stays as it is, which is no refusal of the API.
pub(super) async fn cancel(
    pages: PageContext,
    visit: PageVisit,
    PathParts([id]): PathParts<1>,
    fields: FormFields,
) -> Result<Redirect, ConsolePage> {
    let own_page = page_path(&["work", &id]);
    let page = page_to_go_back_to(&fields, &own_page);
    let ended = pages
        .api
        .end_resource::<LetterWorkView>(RequestTarget::new(&["dead-letters", "work", &id]))
        .await
        .map_err(|refusal| refused_page(&refusal, page))?;
    let word = if ended.state == LetterWorkState::Done {
        "ended"
    } else {
        "cancelled"
    };
    Ok(Redirect::to(&address_after(page, word, visit.now)))
}

/// Whether the page may still change by itself. The last turn of cancelled work is counted when it
/// ends.
fn is_changing(view: &LetterWorkView, visit: &PageVisit) -> bool {
    let closed_at = view
        .ended_at
        .filter(|_| view.state != LetterWorkState::Done);
    is_open(view) || closed_at.is_some_and(|at| visit.now.since(at.0).as_secs() < LAST_TURN_SECS)
}

fn progress_section(view: &LetterWorkView, visit: &PageVisit) -> Markup {
    let topic = view.topic.as_str();
    let name = view.subscription.as_str();
    let done = match view.action {
        LetterWorkAction::Resolve => "resolved",
        LetterWorkAction::Delete => "deleted, or resolved where others stay beside them",
    };
    html! {
        p { (state_badge(view.state)) " of " (subscription_link(topic, name, false)) }
        div.tiles {
            (figure_tile("So far", &number(view.events), done))
            @if let Some(total) = total_text(view) { (figure_tile("Of", &total, "as the ones before tell")) }
            (figure_tile("Cannot be read", &number(view.failed), "they stay as they are"))
        }
        (state_sentence(view))
        dl.facts {
            (fact("Began", &relative_time(view.began_at.0, visit.now)))
            (fact("Last progress", &relative_time(view.worked_at.0, visit.now)))
            @if let Some(ended) = view.ended_at { (fact("Ended", &relative_time(ended.0, visit.now))) }
            @if let Some(speed) = speed_text(view.events, view.began_at.0, view.worked_at.0) {
                (fact("Rate", &html! { (speed) }))
            }
        }
    }
}

/// The state in a sentence.
fn state_sentence(view: &LetterWorkView) -> Markup {
    let text = match view.state {
        LetterWorkState::Running => {
            "You may leave this page: the work goes on without it, and is found again under Work."
        }
        LetterWorkState::Waiting => {
            "It waits for its turn and goes on by itself within two minutes. You may leave this page: \
             the work is found again under Work."
        }
        LetterWorkState::Done => "All is done.",
        LetterWorkState::Cancelled => {
            "It was cancelled. What was done by then stays done; the others are as they were."
        }
        LetterWorkState::Unknown => "A newer version works on it.",
    };
    html! { p { (text) } }
}

fn figure_tile(title: &str, figure: &str, meaning: &str) -> Markup {
    html! {
        div.tile {
            p.hint { (title) }
            p.figure { (figure) }
            p.hint { (meaning) }
        }
    }
}

fn cancel_form(view: &LetterWorkView, visit: &PageVisit) -> Markup {
    html! {
        details {
            summary { "Cancel this work" }
            p { "What is done stays done, and so does what is done in the next seconds. The rest stays as it is." }
            form.actions method="post" action=(page_path(&["work", &view.id, "cancel"])) {
                (form_token(&visit.form_token))
                button.danger type="submit" { "Cancel the work" }
            }
        }
    }
}
