//! A delivery of an event: its state, its attempts, and the form that sends it again.

use maud::{Markup, html};
use posthaste_core::api::IsoTimestamp;
use posthaste_core::api::events::{AttemptView, DeliveryView};
use posthaste_core::delivery_log::{DeliveryState, Origin};

use super::asked::{Asked, EventAsked};
use super::resend::resend_address;
use crate::address::Address;
use crate::filters::hidden;
use crate::page::form_token;
use crate::shown::{foreign, foreign_cut, number, time};
use crate::visit::Visit;

/// Most attempts that the page shows, over all deliveries; fewer beside a payload.
const ATTEMPTS_MAX: usize = 50;
const ATTEMPTS_BESIDE_PAYLOAD_MAX: usize = 20;

/// Most characters of an error, and of an endpoint, in a timeline. Answers are short: the log keeps their
/// first bytes.
const TEXT_CHARS_MAX: usize = 300;

/// The attempts that there is still room for.
pub(super) struct Room {
    left: usize,
    /// The newest attempts of the only delivery that are left out.
    skip: usize,
}

impl Room {
    pub(super) fn of(query: &EventAsked) -> Self {
        let left = if query.payload { ATTEMPTS_BESIDE_PAYLOAD_MAX } else { ATTEMPTS_MAX };
        Self { left, skip: if query.key.is_some() { query.skip } else { 0 } }
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
pub(super) fn delivery(asked: &Asked<'_>, it: &DeliveryView, visit: &Visit, room: &mut Room) -> Markup {
    let attempts = room.newest(&it.attempts);
    let end = room.skip.saturating_add(attempts.len());
    let older = it.attempts.len().saturating_sub(end);
    html! {
        h2 {
            "To "
            a href=(Address::subscription(asked.topic, &it.subscription)) { (foreign(&it.subscription)) }
            " " (state_badge(it.state))
        }
        (facts(asked.id, it))
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
        (resend_form(asked, it, visit))
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

/// The state of a delivery.
pub(crate) fn state_badge(state: DeliveryState) -> Markup {
    let class = match state {
        DeliveryState::Delivered => "good",
        DeliveryState::Waiting | DeliveryState::Held => "warn",
        DeliveryState::DeadLettered | DeliveryState::Dropped => "bad",
        DeliveryState::Unknown => "",
    };
    html! { span class={ "badge " (class) } { (state.as_str()) } }
}

fn facts(id: &str, it: &DeliveryView) -> Markup {
    let at = |name, at: Option<IsoTimestamp>| {
        html! { @if let Some(at) = at { dt { (name) } dd { (time(at.0)) } } }
    };
    html! {
        dl.facts {
            @if let Some(reason) = &it.reason { dt { "Reason for giving up" } dd { (foreign(reason)) } }
            (at("Accepted", Some(it.accepted_at)))
            (at("Expires", it.expires_at))
            (at("Next attempt, at the earliest", it.next_attempt_at))
            @if let Some(object) = &it.dead_letter_object {
                dt { "Dead letter" }
                dd { a href=(dead_letter(object, id)) { (foreign(object)) } }
            }
            (at("Can be sent again until", it.resendable_until))
            dt { "Key of the delivery" }
            dd { code { (foreign(&it.key)) } }
        }
    }
}

/// The page of the event in a dead-letter object.
fn dead_letter(object: &str, id: &str) -> Address {
    Address::new(&["dead-letters", "record"]).query("object", Some(object)).query("id", Some(id))
}

fn attempt(it: &AttemptView) -> Markup {
    html! {
        li {
            strong { "Attempt " (it.number) }
            " " (time(it.at.0)) " "
            (outcome(it))
            @if let Some(status) = it.status { " answered " strong { (status) } }
            @if let Some(duration) = it.duration_ms { " after " (number(duration.into())) " ms" }
            " " span.hint { (origin(it.origin)) }
            @if let Some(error) = &it.error { p { (foreign_cut(error, TEXT_CHARS_MAX)) } }
            @if let Some(answer) = &it.answer { (self::answer(answer, it.answer_type.as_deref())) }
            @if let Some(endpoint) = &it.endpoint { p.hint { "To " (foreign_cut(endpoint, TEXT_CHARS_MAX)) } }
            @if let Some(id) = &it.webhook_id {
                p.hint { "webhook-id " code { (foreign_cut(id, TEXT_CHARS_MAX)) } }
            }
        }
    }
}

fn outcome(it: &AttemptView) -> Markup {
    let class = if it.outcome == "Delivered" { "good" } else { "bad" };
    html! { span class={ "badge " (class) } { (foreign(&it.outcome)) } }
}

const fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::First => "first attempt",
        Origin::Retry => "retry",
        Origin::Replay => "of a replay",
        Origin::Resend => "sent again by its id",
        Origin::Unknown => "of unknown origin",
    }
}

fn answer(answer: &str, media_type: Option<&str>) -> Markup {
    html! {
        p.hint {
            "Answer"
            @if let Some(media_type) = media_type { ", " (foreign_cut(media_type, TEXT_CHARS_MAX)) }
        }
        pre { (foreign_cut(answer, TEXT_CHARS_MAX)) }
    }
}

fn resend_form(asked: &Asked<'_>, it: &DeliveryView, visit: &Visit) -> Markup {
    let fields = [("subscription", Some(it.subscription.as_str())), ("key", Some(it.key.as_str()))];
    html! {
        @if it.resendable_until.is_some() {
            form.actions method="post" action=(resend_address(asked.topic, asked.id)) {
                (form_token(&visit.form_token))
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
