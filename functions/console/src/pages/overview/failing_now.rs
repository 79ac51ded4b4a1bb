//! Targets that fail now, on the front page.

use maud::{Markup, html};
use posthaste_core::api::FailingView;

use crate::api::ApiRefusal;
use crate::console::PATH;
use crate::display::number;
use crate::pages::failing::{FailingTable, nothing_fails_text, what_is_missing};
use crate::visit::PageVisit;

/// The first rows of what fails, with the way to all of them.
pub(super) fn failing_section(
    failing: Result<&FailingView, &ApiRefusal>,
    visit: &PageVisit,
    back: &str,
) -> Markup {
    html! {
        section #failing data-live {
            h2 { "Failing now" }
            @match failing {
                Err(_) => p { "What fails cannot be read at the moment." },
                Ok(view) => {
                    @if view.failing.is_empty() {
                        p.empty { (nothing_fails_text(view)) }
                    } @else {
                        (FailingTable { view, visit, back, state: None }.render())
                    }
                    @if view.cursor.is_some() {
                        p { a href={ (PATH) "/failing" } { "All " (number(view.total)) " rows" } }
                    }
                    (what_is_missing(view))
                }
            }
        }
    }
}
