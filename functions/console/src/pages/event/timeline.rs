//! The attempts of an event towards one subscription, delivery by delivery.

use maud::{Markup, html};
use posthaste_core::api::events::DeliveryView;

use super::attempt::attempt_item;
use super::by_subscription::SubscriptionDeliveries;
use super::context::EventPageContext;
use super::facts::delivery_facts;
use super::request::{EventPageQuery, EventPageRequest};
use super::resend::resend_button;
use super::rows::state_badge;
use crate::display::foreign_text;

/// Most attempts that the page shows, over all deliveries; fewer beside a payload.
const ATTEMPTS_MAX: usize = 50;
const ATTEMPTS_BESIDE_PAYLOAD_MAX: usize = 20;

/// Most bytes of all timelines of a page; fewer beside a payload, and more of a subscription that
/// is alone on it. With the rows and the frame, a page stays below 100 KB whatever endpoints
/// answered.
const BYTES_MAX: usize = 32_000;
const BYTES_BESIDE_PAYLOAD_MAX: usize = 16_000;
const BYTES_ALONE_MAX: usize = 64_000;
const BYTES_ALONE_BESIDE_PAYLOAD_MAX: usize = 28_000;

/// Bytes of the heading of a timeline and of the tags around it.
const HEADING_BYTES: usize = 400;

/// Most deliveries to one subscription that the page shows: beside other subscriptions, and alone.
const DELIVERIES_MAX: usize = 3;
const DELIVERIES_ALONE_MAX: usize = 20;

/// The room that timelines still have on the page.
pub(super) struct TimelineRoom {
    attempts: usize,
    bytes: usize,
    /// Whether nothing was shown yet: one attempt always is.
    is_untouched: bool,
}

impl TimelineRoom {
    /// The room of a page; `is_alone` if it is about one subscription.
    pub(super) fn for_query(query: &EventPageQuery, is_alone: bool) -> Self {
        let attempts = if query.payload {
            ATTEMPTS_BESIDE_PAYLOAD_MAX
        } else {
            ATTEMPTS_MAX
        };
        let bytes = match (query.payload, is_alone) {
            (false, false) => BYTES_MAX,
            (true, false) => BYTES_BESIDE_PAYLOAD_MAX,
            (false, true) => BYTES_ALONE_MAX,
            (true, true) => BYTES_ALONE_BESIDE_PAYLOAD_MAX,
        };
        Self {
            attempts,
            bytes,
            is_untouched: true,
        }
    }

    fn is_used_up(&self) -> bool {
        self.attempts == 0 || self.bytes == 0
    }

    /// Takes the room of an attempt, if it is there.
    fn take_attempt(&mut self, item: &Markup) -> bool {
        let has_room = self.attempts > 0 && item.0.len() <= self.bytes;
        if !has_room && !self.is_untouched {
            return false;
        }
        self.is_untouched = false;
        self.attempts = self.attempts.saturating_sub(1);
        self.take_bytes(item);
        true
    }

    fn take_bytes(&mut self, shown: &Markup) {
        self.bytes = self.bytes.saturating_sub(shown.0.len());
    }
}

/// The timeline of a subscription, under `anchor`: unfolded or folded.
pub(super) fn timeline_part(
    it: &SubscriptionDeliveries<'_>,
    anchor: &str,
    is_unfolded: bool,
    timeline: &Markup,
) -> Markup {
    let name = html! { "To " (foreign_text(it.name())) };
    html! {
        @if is_unfolded {
            div id=(anchor) { h2 { (name) " " (state_badge(it.newest.state)) } (timeline) }
        } @else {
            details id=(anchor) { summary { (name) ": " (attempts_text(it.count_attempts())) } (timeline) }
        }
    }
}

fn attempts_text(count: usize) -> String {
    match count {
        1 => "1 attempt".to_owned(),
        count => format!("{count} attempts"),
    }
}

/// The deliveries to a subscription with their attempts, the newest delivery first; `None` where
/// there is no room for any. `is_alone` if the page is about this subscription alone.
pub(super) fn subscription_timeline(
    asked: &EventPageRequest<'_>,
    it: &SubscriptionDeliveries<'_>,
    is_alone: bool,
    around: &EventPageContext<'_>,
    room: &mut TimelineRoom,
) -> Option<Markup> {
    if room.is_used_up() {
        return None;
    }
    let bytes_before = room.bytes;
    let skip = if is_alone {
        asked.skipped_deliveries()
    } else {
        0
    };
    let most = if is_alone {
        DELIVERIES_ALONE_MAX
    } else {
        DELIVERIES_MAX
    };
    let total = 1 + it.earlier.len();
    let mut shown = Vec::new();
    for delivery in it.all().skip(skip).take(most) {
        if room.is_used_up() {
            break;
        }
        let is_of_row = it.resendable().is_some_and(|row| row.key == delivery.key);
        let has_heading = total > 1;
        shown.push(html! {
            @if has_heading { (delivery_heading(delivery)) }
            (delivery_timeline(asked, delivery, around, room))
            (resend_part(delivery, is_of_row, around))
        });
    }
    let end = skip + shown.len();
    let timeline = html! {
        @for delivery in &shown { (delivery) }
        @if end < total {
            p.hint {
                (total - end) " older deliveries are not shown here. "
                a href=(asked.deliveries_address(it.name(), end)) { "Show older deliveries" } "."
            }
        }
        @if skip > 0 {
            p.hint {
                "Newer deliveries are not shown here. "
                a href=(asked.subscription_address(it.name())) { "Show the newest deliveries" } "."
            }
        }
    };
    room.bytes = bytes_before.saturating_sub(HEADING_BYTES + timeline.0.len());
    Some(timeline)
}

/// The heading of one of several deliveries. It is none of HTML's: it may stand in a folded part.
fn delivery_heading(it: &DeliveryView) -> Markup {
    html! { p { strong { "Delivery " code { (foreign_text(&it.key)) } } " " (state_badge(it.state)) } }
}

fn delivery_timeline(
    asked: &EventPageRequest<'_>,
    it: &DeliveryView,
    around: &EventPageContext<'_>,
    room: &mut TimelineRoom,
) -> Markup {
    let facts = delivery_facts(asked.id, it, around);
    room.take_bytes(&facts);
    let skip = asked.skipped_attempts();
    let attempts = newest_attempts(asked, it, around, room);
    let end = skip.saturating_add(attempts.len());
    let older = it.attempts.len().saturating_sub(end);
    html! {
        (facts)
        @if skip > 0 {
            p.hint {
                "Newer attempts are not shown here. "
                a href=(asked.address_skipping(0)) { "Show the newest attempts" } "."
            }
        }
        @if older > 0 {
            p.hint { (older) " older attempts are not shown here. " (older_attempts_link(asked, it, end)) }
        }
        ol.timeline aria-label={ "Attempts of " (it.key) } { @for item in &attempts { (item) } }
        @if it.attempts.is_empty() { p.hint { "There was no attempt yet." } }
    }
}

/// The newest attempts after those that are left out, as far as there is room; the oldest first.
fn newest_attempts(
    asked: &EventPageRequest<'_>,
    it: &DeliveryView,
    around: &EventPageContext<'_>,
    room: &mut TimelineRoom,
) -> Vec<Markup> {
    let has_event = it.resendable_until.is_some() || it.dead_letter_object.is_some();
    let has_request = has_event && !around.topic.has_deleted(&it.subscription);
    let mut items = Vec::new();
    for attempt in it.attempts.iter().rev().skip(asked.skipped_attempts()) {
        let request = has_request.then(|| asked.made_request_address(it, attempt.number));
        let item = attempt_item(attempt, request.as_ref());
        if !room.take_attempt(&item) {
            break;
        }
        items.push(item);
    }
    items.reverse();
    items
}

/// The way to older attempts of a delivery: its own page, and there the next page.
fn older_attempts_link(asked: &EventPageRequest<'_>, it: &DeliveryView, end: usize) -> Markup {
    html! {
        @if asked.query.key.is_some() {
            a href=(asked.address_skipping(end)) { "Show older attempts" }
        } @else {
            a href=(asked.delivery_address(it)) { "Show this delivery alone" }
        }
        "."
    }
}

/// The button that sends a delivery again which the row's does not, or why there is none.
fn resend_part(it: &DeliveryView, is_of_row: bool, around: &EventPageContext<'_>) -> Markup {
    html! {
        @if around.topic.has_deleted(&it.subscription) {
            p.hint { "The subscription is deleted, so this delivery cannot be sent again." }
        } @else if it.resendable_until.is_none() {
            p.hint {
                "The log does not have the event itself, so this delivery cannot be sent again from here."
            }
        } @else if !is_of_row {
            p { (resend_button(it)) }
        }
    }
}
