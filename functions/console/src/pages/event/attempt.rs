//! An attempt in the timeline of a delivery.

use maud::{Markup, html};
use posthaste_core::api::events::AttemptView;
use posthaste_core::delivery_log::AttemptOrigin;
use posthaste_core::model::{AttemptOutcome, DeadLetterReason};

use crate::address::PageAddress;
use crate::display::{foreign_cut, foreign_text, number, time_tag};

/// Most characters of an error, and of an endpoint, in a timeline. Responses are short: the log
/// keeps their first bytes.
const TEXT_CHARS_MAX: usize = 300;

/// The outcome of an attempt that succeeded.
const DELIVERED: &str = "Delivered";

/// The attempt, as an item of a list. `request` is the page of its request.
pub(super) fn attempt_item(it: &AttemptView, request: Option<&PageAddress>) -> Markup {
    html! {
        li {
            strong { "Attempt " (it.number) }
            " " (time_tag(it.at.0)) " "
            (outcome_badge(it))
            @if let Some(status) = it.status { " answered " strong { (status) } }
            @if let Some(duration) = it.duration_ms { " after " (number(duration.into())) " ms" }
            " " (origin_mark(it))
            @if let Some(error) = &it.error { p { (foreign_cut(error, TEXT_CHARS_MAX)) } }
            @if let Some(answer) = &it.answer { (response_text(answer, it.answer_type.as_deref())) }
            @if let Some(endpoint) = &it.endpoint { p.hint { "To " (foreign_cut(endpoint, TEXT_CHARS_MAX)) } }
            @if let Some(id) = &it.webhook_id {
                p.hint { "webhook-id " code { (foreign_cut(id, TEXT_CHARS_MAX)) } }
            }
            @if let Some(request) = request { p { a href=(request) { "Show the request" } } }
        }
    }
}

fn outcome_badge(it: &AttemptView) -> Markup {
    html! {
        @if it.outcome == DELIVERED {
            span.badge.good { (DELIVERED) }
        } @else {
            span.badge.bad { (foreign_text(&outcome_name(it))) }
        }
    }
}

/// The name of an outcome. For the last attempt the log has the reason for giving up instead of a
/// failure, so the status gives the name.
pub(super) fn outcome_name(it: &AttemptView) -> String {
    let is_last = DeadLetterReason::ALL
        .iter()
        .any(|reason| reason.as_str() == it.outcome);
    if !is_last {
        return it.outcome.clone();
    }
    let answered = it.status.map(|status| AttemptOutcome::Answered {
        status,
        retry_after: None,
    });
    answered
        .and_then(AttemptOutcome::name)
        .map_or_else(|| "failed".to_owned(), |name| name.to_string())
}

/// The origin of an attempt, with the way to the replay that it came from.
fn origin_mark(it: &AttemptView) -> Markup {
    let word = match (it.origin, &it.recovery) {
        (AttemptOrigin::Replay, Some(_)) => "recovery",
        (AttemptOrigin::First, _) => "first",
        (AttemptOrigin::Retry, _) => "retry",
        (AttemptOrigin::Replay, None) => "replay",
        (AttemptOrigin::Resend, _) => "sent again by its id",
        (AttemptOrigin::Unknown, _) => "unknown origin",
    };
    html! {
        @match &it.run_id {
            Some(run) => a.badge href=(PageAddress::new(&["replays", run])) { (word) },
            None => span.badge { (word) },
        }
        @if let Some(outage) = &it.recovery {
            " " span.hint { "of the outage since " (time_tag(outage.outage_since.0)) }
        }
    }
}

fn response_text(answer: &str, media_type: Option<&str>) -> Markup {
    html! {
        p.hint {
            "Answer"
            @if let Some(media_type) = media_type { ", " (foreign_cut(media_type, TEXT_CHARS_MAX)) }
        }
        pre { (foreign_cut(answer, TEXT_CHARS_MAX)) }
    }
}
