//! Deletion that is confirmed by typing the name.

use maud::{Markup, html};

use crate::asked::Fields;
use crate::page::{Page, form_token};
use crate::shown::foreign;
use crate::visit::Visit;
use axum::http::StatusCode;

/// The form that deletes a topic or a subscription. `also` says what goes with it.
pub(crate) fn form(visit: &Visit, what: &str, name: &str, action: &str, also: &Markup) -> Markup {
    html! {
        details {
            summary { "Delete this " (what) }
            form method="post" action=(action) {
                (form_token(&visit.form_token))
                p { (also) "Events that still wait for it become dead letters. Dead letters stay." }
                label for="deleted-name" { "Type the name of the " (what) ": " (foreign(name)) }
                p.hint { "Capital letters do not matter." }
                input #deleted-name name="name" autocomplete="off" required;
                div.actions { button.danger type="submit" { "Delete the " (what) } }
            }
        }
    }
}

/// Checks that the name was typed, in any case.
pub(crate) fn check(fields: &Fields, name: &str, back: &str) -> Result<(), Page> {
    if fields.get("name").trim().eq_ignore_ascii_case(name) {
        return Ok(());
    }
    let body = html! {
        p { "Nothing was deleted: the name that you typed is not " (foreign(name)) "." }
        p { a href=(back) { "Go back" } }
    };
    Err(Page::new("The name is another one", body).with_status(StatusCode::BAD_REQUEST))
}
