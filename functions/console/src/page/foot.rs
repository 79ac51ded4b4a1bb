//! The zone of a page's times with the way to another, and the age of its live parts. The script fills
//! them in.

use maud::{Markup, html};

use crate::console::PATH;

/// The place for the time of the last refresh.
pub(super) fn refreshed_hint() -> Markup {
    html! { p.hint #refreshed {} }
}

/// The foot of a page.
pub(super) fn page_footer() -> Markup {
    html! {
        footer {
            p.hint #zone { "Times are in UTC." }
            // The script shows it.
            button #zone-switch type="button" hidden {}
            p { a href={ (PATH) "/words" } { "Words of this console" } }
            p #not-refreshed {}
        }
    }
}
