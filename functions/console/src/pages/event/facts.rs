//! Facts of a delivery.

use maud::{Markup, html};
use posthaste_core::api::events::DeliveryView;
use posthaste_core::api::{IsoDuration, IsoTimestamp};
use posthaste_core::delivery_log::DeliveryState;
use posthaste_core::model::DEAD_LETTER_DELAY_DEFAULT;

use super::context::EventPageContext;
use crate::address::PageAddress;
use crate::display::{foreign_text, time_tag};
use crate::pages::known_topic::KnownTopic;
use crate::parts::duration_text;

/// The facts of a delivery of the event `id`.
pub(super) fn delivery_facts(id: &str, it: &DeliveryView, around: &EventPageContext<'_>) -> Markup {
    html! {
        dl.facts {
            @if let Some(reason) = &it.reason { dt { "Reason for giving up" } dd { (foreign_text(reason)) } }
            (time_fact("Accepted", Some(it.accepted_at)))
            (time_fact("Expires", it.expires_at))
            @match &it.dead_letter_object {
                Some(object) => {
                    dt { "Dead letter" }
                    dd { a href=(dead_letter_address(object, id)) { "Show the dead letter" } }
                }
                None if it.state == DeliveryState::DeadLettered => {
                    dt { "Dead letter" }
                    dd { (pending_letter_text(it, around.topic)) }
                }
                None => {}
            }
            (time_fact("Can be sent again until", it.resendable_until))
            dt { "Delivery id" }
            dd { code { (foreign_text(&it.key)) } }
        }
    }
}

fn time_fact(name: &str, at: Option<IsoTimestamp>) -> Markup {
    html! { @if let Some(at) = at { dt { (name) } dd { (time_tag(at.0)) } } }
}

/// The time of a dead letter that is not written yet, by the settings that the subscription has
/// now.
fn pending_letter_text(it: &DeliveryView, topic: &KnownTopic) -> Markup {
    let written = topic
        .subscription(&it.subscription)
        .and_then(|(_, settings)| settings.dead_letter.delay);
    let delay = written.map_or(DEAD_LETTER_DELAY_DEFAULT, |delay| delay.0);
    let length = match (delay.as_secs() / 60, delay.as_secs() % 60) {
        (0, _) | (1, 0) => "a minute".to_owned(),
        (minutes, 0) => format!("{minutes} minutes"),
        _ => duration_text(IsoDuration(delay)),
    };
    html! { "The dead letter is written about " (length) " after the last attempt (deadLetter.delay)." }
}

/// The page of the event in a dead-letter object.
fn dead_letter_address(object: &str, id: &str) -> PageAddress {
    PageAddress::new(&["dead-letters", "record"])
        .query("object", Some(object))
        .with_event_id(id)
}
