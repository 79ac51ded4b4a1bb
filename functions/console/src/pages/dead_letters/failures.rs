//! Events and objects that an action could not take, or left out.

use maud::{Markup, html};
use posthaste_core::api::{LeftOutCounts, ReplayFailure};

use crate::display::{foreign_cut, number};

/// Most characters of an object's key, and of a reason for which it cannot be read.
const TEXT_CHARS_MAX: usize = 400;

/// Events and objects that could not be used, with the reasons.
pub(crate) fn failure_list(failures: &[ReplayFailure], title: &str) -> Markup {
    html! {
        @if !failures.is_empty() {
            h2 { (title) }
            ul {
                @for failure in failures {
                    li {
                        code { (foreign_cut(&failure.key, TEXT_CHARS_MAX)) }
                        @if let Some(index) = failure.index { ", event " (index) }
                        ": " (foreign_cut(&failure.detail, TEXT_CHARS_MAX))
                    }
                }
            }
        }
    }
}

/// Rows of a list of facts: what was left out, and why.
pub(crate) fn left_out_facts(left_out: &LeftOutCounts) -> Markup {
    html! {
        @for (reason, count) in left_out.iter() {
            dt { "Left out: " (reason.counted_noun()) "s " (reason.in_words()) }
            dd { (number(count)) }
        }
    }
}
