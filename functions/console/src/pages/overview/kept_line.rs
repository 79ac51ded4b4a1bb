//! Whether anything is lost, in a sentence.

use maud::{Markup, html};

use super::data::OverviewData;
use crate::console::PATH;
use crate::display::number;
use crate::recent::RecentHistory;

/// The sentence, with the way to the page that checks it.
pub(super) fn kept_line(data: &OverviewData, recent: Option<&RecentHistory>) -> Markup {
    let failing = data.failing.as_ref().ok();
    let waiting = failing.and_then(|view| view.waiting.as_deref());
    html! {
        p #kept {
            strong { "Is anything lost? " }
            @if let Some(recent) = recent { (given_up_text(recent)) " " }
            @match waiting {
                Some(waiting) => {
                    (number(waiting.count)) @if waiting.at_least { " or more" } " wait, and are kept until they are \
                     delivered or given up. "
                }
                None => "What waits could not be counted. ",
            }
            a href={ (PATH) "/kept" } { "Check what is kept" } ". "
            a href={ (PATH) "/told" } { "Who is told?" }
        }
    }
}

/// The events that were given up in the time that the page shows.
fn given_up_text(recent: &RecentHistory) -> Markup {
    let counts = recent.total.counts;
    html! {
        "In " (recent.window.in_words()) " "
        @if counts.unkept == 0 { "nothing was dropped or skipped; " } @else {
            span.bad { (number(counts.unkept.into())) " events were dropped or skipped" }
            ", as the settings of their subscriptions say; "
        }
        (number(counts.dead_lettered.into())) " were given up and kept as dead letters."
    }
}
