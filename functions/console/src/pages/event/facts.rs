//! Facts of a delivery.

use maud::{Markup, html};
use posthaste_core::api::events::DeliveryView;
use posthaste_core::api::{IsoDuration, IsoTimestamp};
use posthaste_core::delivery_log::DeliveryState;
use posthaste_core::model::{DEAD_LETTER_DELAY_DEFAULT, Timestamp};

use super::around::Around;
use crate::address::Address;
use crate::pages::known_topic::KnownTopic;
use crate::parts::duration;
use crate::shown::{foreign, time};

/// The facts of a delivery of the event `id`.
pub(super) fn facts(id: &str, it: &DeliveryView, around: &Around<'_>) -> Markup {
    let at = |name, at: Option<IsoTimestamp>| {
        html! { @if let Some(at) = at { dt { (name) } dd { (time(at.0)) } } }
    };
    html! {
        dl.facts {
            @if let Some(reason) = &it.reason { dt { "Reason for giving up" } dd { (foreign(reason)) } }
            (at("Accepted", Some(it.accepted_at)))
            (at("Expires", it.expires_at))
            @if let Some(next) = it.next_attempt_at {
                dt { "Next attempt, at the earliest" }
                dd { (next_attempt(next.0, around.visit.now)) }
            }
            @match &it.dead_letter_object {
                Some(object) => {
                    dt { "Dead letter" }
                    dd { a href=(dead_letter(object, id)) { (foreign(object)) } }
                }
                None if it.state == DeliveryState::DeadLettered => {
                    dt { "Dead letter" }
                    dd { (letter_to_come(it, around.topic)) }
                }
                None => {}
            }
            (at("Can be sent again until", it.resendable_until))
            dt { "Key of the delivery" }
            dd { code { (foreign(&it.key)) } }
        }
    }
}

fn next_attempt(next: Timestamp, now: Timestamp) -> Markup {
    html! {
        (time(next))
        @if next < now {
            br;
            span.hint {
                "due; its link may be on hold. "
                a href=(Address::new(&["links"])) { "Show the links that are not well" }
            }
        }
    }
}

/// The time of a dead letter that is not written yet, by the settings that the subscription has
/// now.
fn letter_to_come(it: &DeliveryView, topic: &KnownTopic) -> Markup {
    let written = topic
        .subscription(&it.subscription)
        .and_then(|(_, settings)| settings.dead_letter.delay);
    let delay = written.map_or(DEAD_LETTER_DELAY_DEFAULT, |delay| delay.0);
    let length = match (delay.as_secs() / 60, delay.as_secs() % 60) {
        (0, _) | (1, 0) => "a minute".to_owned(),
        (minutes, 0) => format!("{minutes} minutes"),
        _ => duration(IsoDuration(delay)),
    };
    html! { "The dead letter is written about " (length) " after the last attempt (deadLetter.delay)." }
}

/// The page of the event in a dead-letter object.
fn dead_letter(object: &str, id: &str) -> Address {
    Address::new(&["dead-letters", "record"])
        .query("object", Some(object))
        .id(id)
}
