//! Deletion that is confirmed by typing the name.

use maud::{Markup, html};

use crate::display::foreign_text;
use crate::extract::FormFields;
use crate::page::{ConsolePage, form_token};
use crate::visit::PageVisit;
use axum::http::StatusCode;

/// The form that deletes a topic or a subscription. `also` says what goes with it.
pub(crate) fn confirm_form(
    visit: &PageVisit,
    what: &str,
    name: &str,
    action: &str,
    also: &Markup,
) -> Markup {
    html! {
        details {
            summary { "Delete this " (what) }
            form method="post" action=(action) {
                (form_token(&visit.form_token))
                p { (also) "Events that still wait for it become dead letters. Dead letters stay." }
                label for="deleted-name" { "Type the name of the " (what) ": " (foreign_text(name)) }
                p.hint { "Capital letters do not matter." }
                input #deleted-name name="name" autocomplete="off" required;
                div.actions { button.danger type="submit" { "Delete the " (what) } }
            }
        }
    }
}

/// Checks that the name was typed, in any case.
pub(crate) fn check_typed_name(
    fields: &FormFields,
    name: &str,
    back: &str,
) -> Result<(), ConsolePage> {
    if fields.get("name").trim().eq_ignore_ascii_case(name) {
        return Ok(());
    }
    let body = html! {
        p { "Nothing was deleted: the name that you typed is not " (foreign_text(name)) "." }
        p { a href=(back) { "Go back" } }
    };
    Err(ConsolePage::new("The name is another one", body).with_status(StatusCode::BAD_REQUEST))
}
