//! An attempt in the timeline of a delivery.

use maud::{Markup, html};
use posthaste_core::api::events::AttemptView;
use posthaste_core::delivery_log::AttemptOrigin;
use posthaste_core::model::{AttemptOutcome, DeadLetterReason};

use crate::display::{foreign_cut, foreign_text, number, time_tag};

/// Most characters of an error, and of an endpoint, in a timeline. Responses are short: the log
/// keeps their first bytes.
const TEXT_CHARS_MAX: usize = 300;

/// The outcome of an attempt that succeeded.
const DELIVERED: &str = "Delivered";

/// The attempt, as an item of a list.
pub(super) fn attempt_item(it: &AttemptView) -> Markup {
    html! {
        li {
            strong { "Attempt " (it.number) }
            " " (time_tag(it.at.0)) " "
            (outcome_badge(it))
            @if let Some(status) = it.status { " answered " strong { (status) } }
            @if let Some(duration) = it.duration_ms { " after " (number(duration.into())) " ms" }
            " " span.hint { (origin_text(it.origin)) }
            @if let Some(error) = &it.error { p { (foreign_cut(error, TEXT_CHARS_MAX)) } }
            @if let Some(answer) = &it.answer { (response_text(answer, it.answer_type.as_deref())) }
            @if let Some(endpoint) = &it.endpoint { p.hint { "To " (foreign_cut(endpoint, TEXT_CHARS_MAX)) } }
            @if let Some(id) = &it.webhook_id {
                p.hint { "webhook-id " code { (foreign_cut(id, TEXT_CHARS_MAX)) } }
            }
        }
    }
}

fn outcome_badge(it: &AttemptView) -> Markup {
    html! {
        @if it.outcome == DELIVERED {
            span.badge.good { (DELIVERED) }
        } @else {
            span.badge.bad { (foreign_text(&failure_name(it))) }
        }
    }
}

/// The name of a failure. For the last attempt the log has the reason for giving up instead of a
/// failure, so the status gives the name.
fn failure_name(it: &AttemptView) -> String {
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

const fn origin_text(origin: AttemptOrigin) -> &'static str {
    match origin {
        AttemptOrigin::First => "first attempt",
        AttemptOrigin::Retry => "retry",
        AttemptOrigin::Replay => "of a replay",
        AttemptOrigin::Resend => "sent again by its id",
        AttemptOrigin::Unknown => "of unknown origin",
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
