//! One replay: its progress and what became of its events.

use axum::response::Redirect;
use maud::{Markup, html};
use posthaste_core::api::{ReplayOutcomes, ReplayRequest, ReplaySource, ReplayState, ReplayView};
use posthaste_core::model::WrittenTime;

use super::shown::{rate, state, target};
use crate::address::Address;
use crate::api::Target;
use crate::asked::{Path, Query};
use crate::console::Pages;
use crate::page::{Answer, Page, Section, form_token};
use crate::pages::dead_letters::{failures, left_out};
use crate::parts::{DoneAsked, after, refused};
use crate::shown::{CELL_CHARS_MAX, foreign, foreign_cut, number, time};
use crate::visit::Visit;

/// The notices of actions.
const DONE: [(&str, &str); 3] = [
    (
        "started",
        "The replay is stored. It starts within a minute.",
    ),
    (
        "cancelled",
        "The replay is cancelled. Events that are in the queue are still delivered.",
    ),
    (
        "ended",
        "The replay had ended before it could be cancelled. It stays as it is.",
    ),
];

/// The page of a replay.
pub(crate) async fn replay(
    pages: Pages,
    visit: Visit,
    Path([id]): Path<1>,
    Query(done): Query<DoneAsked>,
) -> Answer {
    let view: ReplayView = pages.api.get(Target::new(&["replays", &id])).await?;
    let body = html! {
        (done.notice(visit.now, &DONE))
        section #replay data-live[is_changing(&view)] aria-label="Progress" {
            (progress(&view))
            @if let Some(outcomes) = &view.outcomes { (became(outcomes)) }
            (failures(&view.failures, "Events that could not be queued"))
        }
        h2 { "Request" }
        (request(&view.request))
        @if !has_ended(&view) { (cancel_form(&view, &visit)) }
    };
    Ok(Page::new(format!("Replay {id}"), body).of(Section::Replays))
}

/// Cancels a replay. One that has ended stays as it is, which is no refusal of the API.
pub(crate) async fn cancel(
    pages: Pages,
    visit: Visit,
    Path([id]): Path<1>,
) -> Result<Redirect, Page> {
    let page = Address::new(&["replays", &id]).to_string();
    let ended = pages
        .api
        .end::<ReplayView>(Target::new(&["replays", &id]))
        .await;
    let word = match ended.map_err(|refusal| refused(&refusal, &page))?.state {
        ReplayState::Done | ReplayState::Failed => "ended",
        ReplayState::Running
        | ReplayState::Waiting
        | ReplayState::Cancelled
        | ReplayState::Unknown => "cancelled",
    };
    Ok(Redirect::to(&after(&page, word, visit.now)))
}

const fn has_ended(view: &ReplayView) -> bool {
    matches!(
        view.state,
        ReplayState::Done | ReplayState::Failed | ReplayState::Cancelled
    )
}

/// Whether the page may still change by itself.
fn is_changing(view: &ReplayView) -> bool {
    !has_ended(view)
        || view
            .outcomes
            .as_ref()
            .is_some_and(|outcomes| outcomes.waiting > 0)
}

fn progress(view: &ReplayView) -> Markup {
    html! {
        p { (state(view)) " to " (target(view)) }
        div.tiles {
            (tile("Found", view.found, "events that were asked for"))
            (tile("Queued", view.queued, "to be delivered again"))
            (tile("Left out", view.resolved, "because they are resolved"))
            (tile("Failed", view.failed, "could not be queued"))
        }
        p.hint {
            "A dead letter is resolved once its event is delivered. Those that were resolved after the dry \
             run, such as by sending one again, are left out, so fewer may be found than it said."
        }
        dl.facts {
            dt { "Rate" }
            dd { (rate(view)) " events per second" }
            dt { "Objects that were read" }
            dd { (number(view.objects)) }
            (left_out(&view.left_out))
            dt { "Created" }
            dd { (time(view.created_at.0)) }
            dt { "Last progress" }
            dd { (time(view.updated_at.0)) }
        }
    }
}

fn became(outcomes: &ReplayOutcomes) -> Markup {
    html! {
        h2 { "What became of the queued events" }
        div.tiles {
            (tile("Delivered", outcomes.delivered, "the endpoint took them"))
            (tile("Failed again", outcomes.failed_again, "new dead letters, or dropped"))
            (tile("Waiting", outcomes.waiting, "still tried, or held"))
        }
        p.hint {
            "Counted from the delivery log, which is complete until " (time(outcomes.complete_until.0)) "."
            @if outcomes.is_partial {
                " The log has more of this replay than was read, or may lack records of its time: more \
                 events may have ended."
            }
        }
    }
}

fn tile(title: &str, count: u64, meaning: &str) -> Markup {
    html! {
        div.tile {
            p.hint { (title) }
            p.figure { (number(count)) }
            p.hint { (meaning) }
        }
    }
}

fn request(request: &ReplayRequest) -> Markup {
    let source = match request.source {
        ReplaySource::DeadLetters => "the dead letters",
        ReplaySource::Log => "the delivery log",
    };
    html! {
        dl.facts {
            dt { "From" }
            dd { (source) }
            @if let Some(reason) = request.reason { dt { "Reason" } dd { (reason.as_str()) } }
            @if !request.types.is_empty() { dt { "Types" } dd { (types(&request.types)) } }
            @if let Some(status) = &request.status { dt { "Status" } dd { (foreign(status)) } }
            @if let Some(from) = request.from { dt { "Written from" } dd { (written_time(from)) } }
            @if let Some(to) = request.to { dt { "Written before" } dd { (written_time(to)) } }
            @if !request.keys.is_empty() { dt { "Objects" } dd { (request.keys.len()) " chosen by key" } }
            @if request.include_resolved { dt { "Resolved" } dd { "included" } }
            @if request.new_id { dt { "Webhook-ids" } dd { "new ones" } }
            @if request.include_former { dt { "Of earlier subscriptions" } dd { "included" } }
        }
    }
}

fn written_time(written: WrittenTime) -> Markup {
    match written {
        WrittenTime::At(at) => time(at),
        relative => html! { (relative.to_string()) },
    }
}

fn types(types: &[String]) -> Markup {
    html! {
        @for (at, name) in types.iter().enumerate() {
            @if at > 0 { ", " }
            (foreign_cut(name, CELL_CHARS_MAX))
        }
    }
}

fn cancel_form(view: &ReplayView, visit: &Visit) -> Markup {
    html! {
        details {
            summary { "Cancel this replay" }
            p { "Events that are in the queue already, up to a minute's worth, are still delivered." }
            form.actions method="post" action=(Address::new(&["replays", &view.id, "cancel"])) {
                (form_token(&visit.form_token))
                button.danger type="submit" { "Cancel the replay" }
            }
        }
    }
}
