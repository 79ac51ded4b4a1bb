//! Events that an action could not take, or left out.

use maud::{Markup, html};
use posthaste_core::api::{LeftOutCounts, LeftOutReason, ReplayFailure};
use posthaste_core::stored::layout;

use super::places::record_address;
use crate::display::{foreign_cut, number};

/// Most characters of a place, and of a reason for which it cannot be read.
const TEXT_CHARS_MAX: usize = 400;

/// The places that could not be used, with the reasons. Each leads to what is stored there.
pub(crate) fn failure_list(failures: &[ReplayFailure], title: &str) -> Markup {
    html! {
        @if !failures.is_empty() {
            h2 { (title) }
            ul {
                @for failure in failures {
                    li { (failure_place(failure)) ": " (foreign_cut(&failure.detail, TEXT_CHARS_MAX)) }
                }
            }
        }
    }
}

fn failure_place(failure: &ReplayFailure) -> Markup {
    let key = failure.key.as_str();
    let is_letter = layout::dead_letter_owner(key).is_some();
    html! {
        @match failure.index {
            Some(index) if is_letter => a href=(record_address(key, index)) { "A dead letter" },
            None if is_letter => a href=(record_address(key, 0)) { "What is stored" },
            // Of a replay from the delivery log, this is a place in it.
            _ => code { (foreign_cut(key, TEXT_CHARS_MAX)) },
        }
    }
}

/// Rows of a list of facts: what was left out, and why.
pub(crate) fn left_out_facts(left_out: &LeftOutCounts) -> Markup {
    html! {
        @for (reason, count) in left_out.iter() {
            dt { "Left out: " (left_out_text(reason)) }
            dd { (number(count)) }
        }
    }
}

/// The things that are counted with a reason, in words. Dead letters are stored some together,
/// which pages call batches.
fn left_out_text(reason: LeftOutReason) -> String {
    match reason {
        LeftOutReason::OtherTime => "batches of dead letters written at another time".to_owned(),
        LeftOutReason::NoTime => "batches of dead letters whose time is not known".to_owned(),
        _ => format!("events {}", reason.in_words()),
    }
}
