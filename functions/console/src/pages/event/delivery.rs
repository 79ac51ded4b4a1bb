//! A delivery of an event: its state, its attempts, and the form that sends it again.

use maud::{Markup, html};
use posthaste_core::api::events::{AttemptView, DeliveryView};
use posthaste_core::delivery_log::DeliveryState;

use super::attempt::attempt_item;
use super::context::EventPageContext;
use super::facts::delivery_facts;
use super::request::{EventPageQuery, EventPageRequest};
use super::resend::resend_address;
use crate::address::PageAddress;
use crate::display::foreign_text;
use crate::filters::hidden_fields;
use crate::page::form_token;
use crate::pages::known_topic::KnownTopic;
use crate::words::delivery_word;

/// Most attempts that the page shows, over all deliveries; fewer beside a payload.
const ATTEMPTS_MAX: usize = 50;
const ATTEMPTS_BESIDE_PAYLOAD_MAX: usize = 20;

/// The attempts that there is still room for.
pub(super) struct AttemptRoom {
    left: usize,
    /// The newest attempts of the only delivery that are left out.
    skip: usize,
}

impl AttemptRoom {
    pub(super) fn for_query(query: &EventPageQuery) -> Self {
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
    fn take_newest<'a>(&mut self, attempts: &'a [AttemptView]) -> &'a [AttemptView] {
        let attempts = &attempts[..attempts.len().saturating_sub(self.skip)];
        let shown = attempts.len().min(self.left);
        self.left -= shown;
        &attempts[attempts.len() - shown..]
    }
}

/// The delivery.
pub(super) fn delivery_section(
    asked: &EventPageRequest<'_>,
    it: &DeliveryView,
    around: &EventPageContext<'_>,
    room: &mut AttemptRoom,
) -> Markup {
    let attempts = room.take_newest(&it.attempts);
    let end = room.skip.saturating_add(attempts.len());
    let older = it.attempts.len().saturating_sub(end);
    html! {
        h2 {
            "To " (receiver_link(asked.topic, it, around.topic)) " " (state_badge(it.state))
        }
        (delivery_facts(asked.id, it, around))
        @if room.skip > 0 {
            p.hint {
                "Newer attempts are not shown here. "
                a href=(asked.address_skipping(0)) { "Show the newest attempts" } "."
            }
        }
        @if older > 0 {
            p.hint { (older) " older attempts are not shown here. " (older_attempts_link(asked, it, end)) }
        }
        ol.timeline aria-label={ "Attempts of " (it.key) } { @for it in attempts { (attempt_item(it)) } }
        @if it.attempts.is_empty() { p.hint { "There was no attempt yet." } }
        (resend_form(asked, it, around))
    }
}

fn receiver_link(topic: &str, it: &DeliveryView, known: &KnownTopic) -> Markup {
    html! {
        @if known.has_deleted(&it.subscription) {
            (foreign_text(&it.subscription)) " " span.hint { "(deleted)" }
        } @else {
            a href=(PageAddress::for_subscription(topic, &it.subscription)) { (foreign_text(&it.subscription)) }
        }
    }
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

/// The state of a delivery, or of an event as a whole.
pub(crate) fn state_badge(state: DeliveryState) -> Markup {
    delivery_word(state).badge()
}

fn resend_form(
    asked: &EventPageRequest<'_>,
    it: &DeliveryView,
    around: &EventPageContext<'_>,
) -> Markup {
    let fields = [
        ("subscription", Some(it.subscription.as_str())),
        ("key", Some(it.key.as_str())),
    ];
    html! {
        @if around.topic.has_deleted(&it.subscription) {
            p.hint { "The subscription is deleted, so this delivery cannot be sent again." }
        } @else if it.resendable_until.is_some() {
            form.actions method="post" action=(resend_address(asked.topic, asked.id)) {
                (form_token(&around.visit.form_token))
                (hidden_fields(&fields))
                button type="submit" { "Send again to " (foreign_text(&it.subscription)) }
            }
        } @else {
            p.hint {
                "The log does not have the event itself, so this delivery cannot be sent again from here."
            }
        }
    }
}
