//! One replay: its progress and what became of its events.

use axum::response::Redirect;
use maud::{Markup, html};
use posthaste_core::api::{ReplayOutcomes, ReplaySource, ReplayState, ReplayView};
use posthaste_core::model::{Timestamp, WrittenTime};

use super::display::{at_least, has_ended, rate_text, state_badge, target_link};
use crate::address::PageAddress;
use crate::api::RequestTarget;
use crate::console::PageContext;
use crate::display::{CELL_CHARS_MAX, foreign_cut, foreign_text, number, relative_time, time_tag};
use crate::extract::{FormFields, PageQuery, PathParts};
use crate::page::{ConsolePage, MenuSection, PageResult, form_token};
use crate::pages::dead_letters::{failure_list, left_out_facts};
use crate::pages::work::speed::speed_text;
use crate::parts::{DoneNoticeQuery, address_after, page_to_go_back_to, refused_page};
use crate::visit::PageVisit;

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
pub(crate) async fn show_replay(
    pages: PageContext,
    visit: PageVisit,
    PathParts([id]): PathParts<1>,
    PageQuery(done): PageQuery<DoneNoticeQuery>,
) -> PageResult {
    let view: ReplayView = pages.api.get(RequestTarget::new(&["replays", &id])).await?;
    let body = html! {
        (done.notice(visit.now, &DONE))
        section #replay data-live[is_changing(&view)] aria-label="Progress" {
            (progress_section(&view, visit.now))
            @if let Some(outcomes) = &view.outcomes { (outcome_section(outcomes)) }
            (failure_list(&view.failures, "Events that could not be queued"))
        }
        h2 { "Request" }
        (request_facts(&view))
        @if !has_ended(&view) {
            p.hint { "You may leave this page: the replay goes on without it, and is found again under Work." }
            (cancel_form(&view, &visit))
        }
    };
    Ok(ConsolePage::new(format!("Replay {id}"), body).in_section(MenuSection::Work))
}

/// Cancels a replay. One that has ended stays as it is, which is no refusal of the API.
pub(crate) async fn cancel(
    pages: PageContext,
    visit: PageVisit,
    PathParts([id]): PathParts<1>,
    fields: FormFields,
) -> Result<Redirect, ConsolePage> {
    let own_page = PageAddress::new(&["replays", &id]).to_string();
    let page = page_to_go_back_to(&fields, &own_page);
    let ended = pages
        .api
        .end_resource::<ReplayView>(RequestTarget::new(&["replays", &id]))
        .await;
    let word = match ended.map_err(|refusal| refused_page(&refusal, page))?.state {
        ReplayState::Done | ReplayState::Failed => "ended",
        ReplayState::Running
        | ReplayState::Waiting
        | ReplayState::Cancelled
        | ReplayState::Unknown => "cancelled",
    };
    Ok(Redirect::to(&address_after(page, word, visit.now)))
}

/// Whether the page may still change by itself.
fn is_changing(view: &ReplayView) -> bool {
    !has_ended(view)
        || view
            .outcomes
            .as_ref()
            .is_some_and(|outcomes| outcomes.waiting > 0)
}

fn progress_section(view: &ReplayView, now: Timestamp) -> Markup {
    html! {
        p { (state_badge(view)) " to " (target_link(view)) }
        div.tiles {
            (count_tile("Found", view.found, "events that were asked for"))
            (count_tile("Queued", view.queued, "to be delivered again"))
            (count_tile("Left out", view.resolved, "because they are resolved"))
            (count_tile("Failed", view.failed, "could not be queued"))
        }
        p.hint {
            "A dead letter is resolved once its event is delivered. Those that were resolved after the dry \
             run, such as by sending one again, are left out, so fewer may be found than it said."
        }
        dl.facts {
            dt { "Rate" }
            dd {
                "at most " (rate_text(view)) " events per second"
                @if let Some(speed) = speed_text(view.queued, view.created_at.0, view.updated_at.0) {
                    ", so far " (speed)
                }
            }
            (left_out_facts(&view.left_out))
            dt { "Created" }
            dd { (relative_time(view.created_at.0, now)) }
            dt { "Last progress" }
            dd { (relative_time(view.updated_at.0, now)) }
        }
    }
}

fn outcome_section(outcomes: &ReplayOutcomes) -> Markup {
    let at_least = at_least(Some(outcomes));
    // What the log lacks may have ended.
    let at_most = if outcomes.is_partial { "at most " } else { "" };
    let delivered = format!("{at_least}{}", number(outcomes.delivered));
    let failed_again = format!("{at_least}{}", number(outcomes.failed_again));
    let waiting = format!("{at_most}{}", number(outcomes.waiting));
    html! {
        h2 { "What became of the queued events" }
        div.tiles {
            (figure_tile("Delivered", &delivered, "the endpoint took them"))
            (figure_tile("Failed again", &failed_again, "new dead letters, or dropped"))
            (figure_tile("Waiting", &waiting, "still tried, or waiting until it recovers"))
        }
        p.hint {
            "Counted from the delivery log, which is complete until " (time_tag(outcomes.complete_until.0)) "."
            @if outcomes.is_partial {
                " The log has more of this replay than was read, or may lack records of its time: more \
                 events may have ended."
            }
        }
    }
}

fn count_tile(title: &str, count: u64, meaning: &str) -> Markup {
    figure_tile(title, &number(count), meaning)
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

fn request_facts(view: &ReplayView) -> Markup {
    let request = &view.request;
    let source = match request.source {
        ReplaySource::DeadLetters => "the dead letters",
        ReplaySource::Log => "the delivery log",
    };
    html! {
        dl.facts {
            dt { "From" }
            dd { (source) }
            @if let Some(reason) = request.reason { dt { "Reason" } dd { (reason.as_str()) } }
            @if !request.types.is_empty() { dt { "Types" } dd { (type_list(&request.types)) } }
            @if let Some(status) = &request.status { dt { "Status" } dd { (foreign_text(status)) } }
            @if let Some(from) = request.from { dt { "Written from" } dd { (written_time(from)) } }
            @if let Some(to) = request.to { dt { "Written before" } dd { (written_time(to)) } }
            @if view.letters_named > 0 {
                dt { "Dead letters" }
                dd { (number(view.letters_named as u64)) " chosen one by one" }
            }
            @if !request.keys.is_empty() { dt { "Dead letters" } dd { "those of " (request.keys.len()) " keys" } }
            @if request.include_resolved { dt { "Resolved" } dd { "included" } }
            @if request.new_id { dt { "Webhook-ids" } dd { "new ones" } }
            @if request.include_former { dt { "Of earlier subscriptions" } dd { "included" } }
        }
    }
}

fn written_time(written: WrittenTime) -> Markup {
    match written {
        WrittenTime::At(at) => time_tag(at),
        relative => html! { (relative.to_string()) },
    }
}

fn type_list(types: &[String]) -> Markup {
    html! {
        @for (at, name) in types.iter().enumerate() {
            @if at > 0 { ", " }
            (foreign_cut(name, CELL_CHARS_MAX))
        }
    }
}

fn cancel_form(view: &ReplayView, visit: &PageVisit) -> Markup {
    html! {
        details {
            summary { "Cancel this replay" }
            p { "Events that are in the queue already, up to a minute's worth, are still delivered." }
            form.actions method="post" action=(PageAddress::new(&["replays", &view.id, "cancel"])) {
                (form_token(&visit.form_token))
                button.danger type="submit" { "Cancel the replay" }
            }
        }
    }
}
