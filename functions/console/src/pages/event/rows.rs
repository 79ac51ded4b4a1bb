//! The table of an event's subscriptions: one row for each.

use maud::{Markup, html};
use posthaste_core::delivery_log::DeliveryState;
use posthaste_core::model::Timestamp;

use super::attempt::outcome_name;
use super::by_subscription::SubscriptionDeliveries;
use super::context::EventPageContext;
use super::request::EventPageRequest;
use super::resend::resend_button;
use crate::address::PageAddress;
use crate::display::{foreign_cut, foreign_text, number, relative_time};
use crate::table::TableColumn::{self, Number, Text};
use crate::words::delivery_word;

/// The columns.
pub(super) const COLUMNS: [TableColumn; 6] = [
    Text("Subscription"),
    Text("State"),
    Text("Last answer"),
    Number("Attempts"),
    Text("Next attempt"),
    Text("Action"),
];

/// Most characters of a reason, or of the failure of an attempt, in a row.
const REASON_CHARS_MAX: usize = 80;

/// The cell of a fact that there is none of.
const NONE: &str = "–";

/// A row of the table.
pub(super) type SubscriptionRow = [Markup; COLUMNS.len()];

/// The row of a subscription. Its attempts are shown under `anchor`, or else on a page of their
/// own.
pub(super) fn subscription_row(
    asked: &EventPageRequest<'_>,
    it: &SubscriptionDeliveries<'_>,
    anchor: Option<&str>,
    around: &EventPageContext<'_>,
) -> SubscriptionRow {
    [
        receiver_link(asked.topic, it.name(), around),
        state_cell(it),
        last_answer_cell(it, around.visit.now),
        attempts_cell(asked, it, anchor),
        next_attempt_cell(it, around.visit.now),
        action_cell(it, around),
    ]
}

/// The bytes of a row on the page, but for the tags around its cells.
pub(super) fn row_bytes(row: &SubscriptionRow) -> usize {
    row.iter().map(|cell| cell.0.len()).sum()
}

/// The state of a delivery, or of an event as a whole.
pub(crate) fn state_badge(state: DeliveryState) -> Markup {
    delivery_word(state).badge()
}

/// The subscription, with the way to its page unless it is gone.
pub(super) fn receiver_link(topic: &str, name: &str, around: &EventPageContext<'_>) -> Markup {
    html! {
        @if around.topic.has_deleted(name) {
            (foreign_text(name)) " " span.hint { "(deleted)" }
        } @else {
            a href=(PageAddress::for_subscription(topic, name)) { (foreign_text(name)) }
        }
    }
}

fn state_cell(it: &SubscriptionDeliveries<'_>) -> Markup {
    html! {
        (state_badge(it.newest.state))
        @if let Some(reason) = &it.newest.reason {
            br; span.hint { (foreign_cut(reason, REASON_CHARS_MAX)) }
        }
    }
}

fn last_answer_cell(it: &SubscriptionDeliveries<'_>, now: Timestamp) -> Markup {
    let Some(attempt) = it.last_attempt() else {
        return html! { (NONE) };
    };
    html! {
        @match (attempt.status, &attempt.error) {
            (Some(status), _) => strong { (status) },
            (None, Some(error)) => (foreign_cut(error, REASON_CHARS_MAX)),
            (None, None) => (foreign_text(&outcome_name(attempt))),
        }
        br; span.hint { (relative_time(attempt.at.0, now)) }
    }
}

fn attempts_cell(
    asked: &EventPageRequest<'_>,
    it: &SubscriptionDeliveries<'_>,
    anchor: Option<&str>,
) -> Markup {
    let count = it.count_attempts();
    let count = html! { (number(count as u64)) };
    html! {
        @match anchor {
            Some(anchor) => a href={ "#" (anchor) } { (count) },
            None => a href=(asked.subscription_address(it.name())) { (count) },
        }
    }
}

fn next_attempt_cell(it: &SubscriptionDeliveries<'_>, now: Timestamp) -> Markup {
    html! {
        @match it.newest.next_attempt_at {
            None => (NONE),
            Some(next) if next.0 >= now => (relative_time(next.0, now)),
            Some(_) => {
                "due; its endpoint may be down. "
                a href=(PageAddress::new(&["failing"])) { "Show what fails" }
            }
        }
    }
}

fn action_cell(it: &SubscriptionDeliveries<'_>, around: &EventPageContext<'_>) -> Markup {
    let resendable = it
        .resendable()
        .filter(|_| !around.topic.has_deleted(it.name()));
    html! {
        @match resendable {
            Some(delivery) => (resend_button(delivery)),
            None => (NONE),
        }
    }
}
