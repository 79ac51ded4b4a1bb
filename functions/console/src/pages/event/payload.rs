//! The event itself, which the page loads only when it is asked for.

use maud::{Markup, html};
use posthaste_core::api::events::{DeliveryView, EventView};
use posthaste_core::delivery_log::RecordPayload;

use super::request::EventPageRequest;
use crate::display::{BODY_CHARS_MAX, foreign_text, number, visible_cut};
use crate::json_text::indent_json;

/// The event as its producer wrote it: shown, or the way to it.
pub(super) fn payload_section(asked: &EventPageRequest<'_>, view: &EventView) -> Markup {
    let is_kept = view
        .deliveries
        .iter()
        .any(|it| it.resendable_until.is_some());
    let found: Vec<_> = view
        .deliveries
        .iter()
        .filter_map(|it| Some((it, it.payload.as_ref()?)))
        .collect();
    html! {
        @if asked.query.payload || is_kept {
            h2 #payload { "Payload" }
            @match found.as_slice() {
                [] if !asked.query.payload => {
                    p { a.button href={ (asked.payload_address(true)) "#payload" } { "Show the payload" } }
                }
                [] => p { "The log does not have the payload of this event." },
                [first, others @ ..] => (shown_payload(asked, first, others)),
            }
        }
    }
}

fn shown_payload(
    asked: &EventPageRequest<'_>,
    first: &(&DeliveryView, &RecordPayload),
    others: &[(&DeliveryView, &RecordPayload)],
) -> Markup {
    let (delivery, payload) = first;
    let differs = others.iter().filter(|(_, other)| other != payload).count();
    html! {
        details open {
            summary {
                "The event as its producer wrote it, " (number(payload.as_str().len() as u64)) " bytes"
            }
            (json_body(payload.as_str()))
        }
        @if differs > 0 {
            p.hint {
                "This is the payload of the delivery " code { (foreign_text(&delivery.key)) } ". "
                (differs) " other deliveries of this id have another one."
            }
        }
        p { a.button href=(asked.payload_address(false)) { "Hide the payload" } }
    }
}

/// A JSON text, cut, with a note of its whole size where it is.
pub(crate) fn json_body(json: &str) -> Markup {
    let text = indent_json(json, BODY_CHARS_MAX);
    html! {
        @match visible_cut(&text, BODY_CHARS_MAX) {
            Some(cut) => {
                pre tabindex="0" { bdi { (cut) } }
                p.hint { "Only the beginning is shown, of " (number(json.len() as u64)) " bytes." }
            }
            None => pre tabindex="0" { (foreign_text(&text)) }
        }
    }
}
