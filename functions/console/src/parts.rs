//! Parts that several pages have.

use maud::{Markup, html};
use posthaste_core::api::IsoDuration;
use serde::Deserialize;

use crate::address;
use crate::api::Refusal;
use crate::page::{Page, form_token, problem};
use crate::shown::{BODY_CHARS_MAX, number, visible, visible_cut};
use crate::visit::Visit;

/// The query of a page that may be a list, and may be shown after an action.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct PageQuery {
    /// The beginning of the page of the list.
    pub(crate) cursor: Option<String>,
    /// The word for what was done.
    pub(crate) done: Option<String>,
}

/// The notice of an action, by its word. A word that is not known shows nothing.
pub(crate) fn done(word: Option<&str>, known: &[(&str, &str)]) -> Markup {
    let text = known.iter().find(|(known, _)| Some(*known) == word).map(|(_, text)| *text);
    html! { @if let Some(text) = text { p.done role="status" { (text) } } }
}

/// The page after an action.
pub(crate) fn after(page: &str, word: &str) -> String {
    address::with_query(page, &[("done", word)])
}

/// A form that is one button.
pub(crate) fn button(visit: &Visit, action: &str, class: &str, label: &str) -> Markup {
    html! {
        form method="post" action=(action) {
            (form_token(&visit.form_token))
            button class=(class) type="submit" { (label) }
        }
    }
}

/// A row of a list of facts.
pub(crate) fn fact(name: &str, value: &Markup) -> Markup {
    html! { dt { (name) } dd { (value) } }
}

/// A length of time as it was written.
pub(crate) fn duration(length: IsoDuration) -> String {
    String::from(length)
}

/// A body from outside: its first characters, and how long it is if there are more.
pub(crate) fn body(label: &str, text: &str) -> Markup {
    let cut = visible_cut(text, BODY_CHARS_MAX);
    let is_cut = cut.is_some();
    let shown = cut.unwrap_or_else(|| visible(text));
    html! {
        @if text.is_empty() {
            p.hint { "Empty." }
        } @else {
            pre tabindex="0" role="region" aria-label=(label) { bdi { (shown) } }
        }
        @if is_cut { p.hint { "Only the beginning is shown, of " (number(text.len() as u64)) " bytes." } }
    }
}

/// A text of our own to copy, such as settings or a command.
pub(crate) fn to_copy(label: &str, text: &str) -> Markup {
    html! { pre tabindex="0" role="region" aria-label=(label) { (visible(text)) } }
}

/// The page of an action that the API refused, with the way back.
pub(crate) fn refused(refusal: &Refusal, back: &str) -> Page {
    let title = if refusal.title.is_empty() { "That did not work" } else { &refusal.title };
    let body = html! {
        (problem(refusal))
        p { a href=(back) { "Go back" } }
    };
    Page::new(title, body).with_status(refusal.status())
}
