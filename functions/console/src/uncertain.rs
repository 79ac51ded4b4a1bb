//! Actions of which it is not known whether they happened: a response with a status of 500 or more
//! may come after the write.

use maud::{Markup, html};

use crate::api::ApiRefusal;

/// The title of the page of an action that failed. `certain` is that of an action that did not
/// happen.
pub(crate) fn failure_title<'a>(refusal: &ApiRefusal, certain: &'a str) -> &'a str {
    if refusal.is_uncertain() {
        "Not known whether it was done"
    } else {
        certain
    }
}

/// The way to find out, where it is not known whether something happened: "whether the replay
/// began" on the page at `look`, which is called `page`.
pub(crate) fn uncertainty_hint(
    refusal: &ApiRefusal,
    whether: &str,
    look: &str,
    page: &str,
) -> Markup {
    html! {
        @if refusal.is_uncertain() {
            p {
                "It is not known whether " (whether) ". Look at " a href=(look) { (page) }
                " before you try again."
            }
        }
    }
}
