//! Events that wait for a subscription, and the end of its last attempt.

use maud::{Markup, html};
use posthaste_core::api::{LastOutcomeView, SubscriptionSettings, WaitingView};

use crate::display::{foreign_text, number, time_tag};
use crate::words::{WAITING_FOR_RECOVERY, WAITING_FOR_RETRY};

/// The number of events that wait.
pub(crate) fn count_text(settings: &SubscriptionSettings) -> String {
    settings
        .waiting
        .as_deref()
        .map_or("not known".to_owned(), count_in_words)
}

/// The events that wait, by place.
pub(super) fn describe_waiting(waiting: Option<&WaitingView>) -> Markup {
    let Some(waiting) = waiting else {
        return html! { "not known: it could not be counted in time" };
    };
    let times = [
        ("oldest accepted", waiting.oldest_accepted_at),
        ("next attempt", waiting.next_attempt_at),
        ("counted up to", waiting.counted_until),
    ];
    html! {
        (count_in_words(waiting))
        @if waiting.count > 0 { br; span.hint { (count_by_place(waiting)) } }
        @for (label, at) in times {
            @if let Some(at) = at { br; span.hint { (label) " " (time_tag(at.0)) } }
        }
    }
}

/// The end of the last attempt.
pub(super) fn describe_last_outcome(last: Option<&LastOutcomeView>) -> Markup {
    let Some(last) = last else {
        return html! { "not known: none within 24 hours, or the delivery log does not have it" };
    };
    let class = if last.outcome == "Delivered" {
        "good"
    } else {
        "bad"
    };
    html! {
        span class={ "badge " (class) } { (foreign_text(&last.outcome)) }
        @if let Some(status) = last.status { " " (status) }
        " at " (time_tag(last.at.0))
    }
}

/// The number of events, or the least of them.
pub(crate) fn count_in_words(waiting: &WaitingView) -> String {
    let or_more = if waiting.at_least { " or more" } else { "" };
    format!("{}{or_more}", number(waiting.count))
}

fn count_by_place(waiting: &WaitingView) -> String {
    let of_queue = [
        (waiting.due, "due"),
        (waiting.delayed, "to be tried again within 15 minutes"),
        (waiting.under_way, "under way"),
    ];
    // The queue's total, where its parts are not known.
    let queued = waiting.queued.filter(|_| waiting.due.is_none());
    let others = [
        (
            queued.unwrap_or_default(),
            "in the queue for another attempt",
        ),
        (waiting.parked, WAITING_FOR_RETRY),
        (waiting.held, WAITING_FOR_RECOVERY),
    ];
    let known = of_queue
        .into_iter()
        .filter_map(|(events, place)| Some((events?, place)));
    known
        .chain(others)
        .filter(|(events, _)| *events > 0)
        .map(|(events, place)| format!("{} {place}", number(events)))
        .collect::<Vec<_>>()
        .join(", ")
}
