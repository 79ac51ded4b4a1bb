//! The foot of a page: the zone of its times, and the age of its live parts. The script fills in both.

use maud::{Markup, html};

/// The foot.
pub(super) fn foot() -> Markup {
    html! {
        footer {
            p.hint #zone { "Times are in UTC." }
            div.age { p #refreshed {} p #not-refreshed {} }
        }
    }
}
