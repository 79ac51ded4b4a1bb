//! A delivery of an event: its state, its attempts, and the form that sends it again.

use maud::{Markup, html};
use posthaste_core::api::events::{AttemptView, DeliveryView};
use posthaste_core::delivery_log::DeliveryState;

use super::around::Around;
use super::asked::{Asked, EventAsked};
use super::attempt::attempt;
use super::facts::facts;
use super::resend::resend_address;
use crate::address::Address;
use crate::filters::hidden;
use crate::page::form_token;
use crate::pages::known_topic::KnownTopic;
use crate::shown::foreign;

/// Most attempts that the page shows, over all deliveries; fewer beside a payload.
const ATTEMPTS_MAX: usize = 50;
const ATTEMPTS_BESIDE_PAYLOAD_MAX: usize = 20;

/// The attempts that there is still room for.
pub(super) struct Room {
    left: usize,
    /// The newest attempts of the only delivery that are left out.
    skip: usize,
}

impl Room {
    pub(super) fn of(query: &EventAsked) -> Self {
        let left = if query.payload {
            ATTEMPTS_BESIDE_PAYLOAD_MAX
        } else {
            ATTEMPTS_MAX
        };
        Self {
            left,
            skip: if query.key.is_some() { query.skip } else { 0 },
        }
    }

    /// The newest of these attempts after those that are left out, as far as there is room.
    fn newest<'a>(&mut self, attempts: &'a [AttemptView]) -> &'a [AttemptView] {
        let attempts = &attempts[..attempts.len().saturating_sub(self.skip)];
        let shown = attempts.len().min(self.left);
        self.left -= shown;
        &attempts[attempts.len() - shown..]
    }
}

/// The delivery.
pub(super) fn delivery(
    asked: &Asked<'_>,
    it: &DeliveryView,
    around: &Around<'_>,
    room: &mut Room,
) -> Markup {
    let attempts = room.newest(&it.attempts);
    let end = room.skip.saturating_add(attempts.len());
    let older = it.attempts.len().saturating_sub(end);
    html! {
        h2 {
            "To " (receiver(asked.topic, it, around.topic)) " " (state_badge(it.state))
        }
        (facts(asked.id, it, around))
        @if room.skip > 0 {
            p.hint {
                "Newer attempts are not shown here. "
                a href=(asked.skipping(0)) { "Show the newest attempts" } "."
            }
        }
        @if older > 0 {
            p.hint { (older) " older attempts are not shown here. " (older_attempts(asked, it, end)) }
        }
        ol.timeline aria-label={ "Attempts of " (it.key) } { @for it in attempts { (attempt(it)) } }
        @if it.attempts.is_empty() { p.hint { "There was no attempt yet." } }
        (resend_form(asked, it, around))
    }
}

fn receiver(topic: &str, it: &DeliveryView, known: &KnownTopic) -> Markup {
    html! {
        @if known.has_lost(&it.subscription) {
            (foreign(&it.subscription)) " " span.hint { "(deleted)" }
        } @else {
            a href=(Address::subscription(topic, &it.subscription)) { (foreign(&it.subscription)) }
        }
    }
}

/// The way to older attempts of a delivery: its own page, and there the next page.
fn older_attempts(asked: &Asked<'_>, it: &DeliveryView, end: usize) -> Markup {
    html! {
        @if asked.query.key.is_some() {
            a href=(asked.skipping(end)) { "Show older attempts" }
        } @else {
            a href=(asked.of_delivery(it)) { "Show this delivery alone" }
        }
        "."
    }
}

/// The state of a delivery, or of an event as a whole.
pub(crate) fn state_badge(state: DeliveryState) -> Markup {
    let class = match state {
        DeliveryState::Delivered => "good",
        DeliveryState::Pending | DeliveryState::Waiting | DeliveryState::Held => "warn",
        DeliveryState::DeadLettered | DeliveryState::Dropped => "bad",
        DeliveryState::Unmatched | DeliveryState::Unknown => "",
    };
    html! { span class={ "badge " (class) } { (state.as_str()) } }
}

fn resend_form(asked: &Asked<'_>, it: &DeliveryView, around: &Around<'_>) -> Markup {
    let fields = [
        ("subscription", Some(it.subscription.as_str())),
        ("key", Some(it.key.as_str())),
    ];
    html! {
        @if around.topic.has_lost(&it.subscription) {
            p.hint { "The subscription is deleted, so this delivery cannot be sent again." }
        } @else if it.resendable_until.is_some() {
            form.actions method="post" action=(resend_address(asked.topic, asked.id)) {
                (form_token(&around.visit.form_token))
                (hidden(&fields))
                button type="submit" { "Send again to " (foreign(&it.subscription)) }
            }
        } @else {
            p.hint {
                "The log does not have the event itself, so this delivery cannot be sent again from here."
            }
        }
    }
}
