//! Parts that several pages have.

use std::time::Duration;

use maud::{Markup, html};
use posthaste_core::api::IsoDuration;
use posthaste_core::model::Timestamp;
use serde::Deserialize;

use crate::address::local_page;
use crate::api::ApiRefusal;
use crate::display::{BODY_CHARS_MAX, foreign_cut, number, visible_cut, visible_text};
use crate::extract::FormFields;
use crate::page::{ConsolePage, form_token, problem_box};
use crate::uncertain::{failure_title, uncertainty_hint};
use crate::visit::PageVisit;

/// The time after an action for which a page has its notice.
const NOTICE_SHOWN: Duration = Duration::from_mins(1);

/// The time by which the clocks of two instances may differ.
const CLOCKS_DIFFER_MAX: Duration = Duration::from_secs(5);

/// The query of a page that is shown after an action.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct DoneNoticeQuery {
    /// The words for the action and what else is to be said of it, separated by commas.
    done: Option<String>,
    /// The time of the action, in milliseconds.
    at: Option<String>,
}

impl DoneNoticeQuery {
    /// The notice of the action, among those that are known. An address may be reloaded or shared:
    /// after a minute it says nothing.
    pub(crate) fn notice(&self, now: Timestamp, known: &[(&str, &str)]) -> Markup {
        let done = self
            .done
            .as_deref()
            .filter(|_| self.is_recent(now))
            .unwrap_or_default();
        let texts: Vec<_> = known
            .iter()
            .filter(|(word, _)| done.split(',').any(|it| it == *word))
            .map(|(_, text)| *text)
            .collect();
        html! { @if !texts.is_empty() { p.done role="status" { (texts.join(" ")) } } }
    }

    /// Whether an action was done just now.
    pub(crate) fn is_recent(&self, now: Timestamp) -> bool {
        let at = self
            .at
            .as_deref()
            .and_then(|at| at.parse().ok())
            .map(Timestamp::from_millis);
        at.is_some_and(|at| now.since(at) <= NOTICE_SHOWN && at.since(now) <= CLOCKS_DIFFER_MAX)
    }
}

/// The address of a page after an action that was done now.
pub(crate) fn address_after(page: &str, word: &str, now: Timestamp) -> String {
    let mark = if page.contains('?') { '&' } else { '?' };
    format!("{page}{mark}done={word}&at={}", now.as_millis())
}

/// The field of a form with the page that its visitor comes back to.
pub(crate) const BACK: &str = "back";

/// The hidden field of a form that leads back to `page`, a page of the console.
pub(crate) fn back_field(page: &str) -> Markup {
    html! { input type="hidden" name=(BACK) value=(page); }
}

/// The page that a form leads back to: the one that it names, or else `otherwise`.
pub(crate) fn page_to_go_back_to<'a>(fields: &'a FormFields, otherwise: &'a str) -> &'a str {
    local_page(fields.get(BACK)).unwrap_or(otherwise)
}

/// A form that is one button.
pub(crate) fn button_form(visit: &PageVisit, action: &str, class: &str, label: &str) -> Markup {
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

/// A row with the beginning of a text from outside, if there is one.
pub(crate) fn foreign_fact(name: &str, value: Option<&str>, chars_max: usize) -> Markup {
    html! { @if let Some(value) = value { (fact(name, &foreign_cut(value, chars_max))) } }
}

/// A length of time as it was written.
pub(crate) fn duration_text(length: IsoDuration) -> String {
    String::from(length)
}

/// A body from outside: its first characters, and how long it is if there are more.
pub(crate) fn body_block(label: &str, text: &str) -> Markup {
    let cut = visible_cut(text, BODY_CHARS_MAX);
    let is_cut = cut.is_some();
    let shown = cut.unwrap_or_else(|| visible_text(text).into_owned());
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
pub(crate) fn copy_block(label: &str, text: &str) -> Markup {
    html! { pre tabindex="0" role="region" aria-label=(label) { (visible_text(text)) } }
}

/// The page of an action that the API refused, with the way back.
pub(crate) fn refused_page(refusal: &ApiRefusal, back: &str) -> ConsolePage {
    let certain = if refusal.title.is_empty() {
        "That did not work"
    } else {
        &refusal.title
    };
    let body = html! {
        (problem_box(refusal))
        (uncertainty_hint(refusal, "this was done", back, "the page"))
        p { a href=(back) { "Go back" } }
    };
    ConsolePage::new(failure_title(refusal, certain), body).with_status(refusal.status_code())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_shown_within_a_minute_and_not_before_its_time() {
        let check = |at: &str, is_shown: bool| {
            let asked = DoneNoticeQuery {
                done: Some("saved".to_owned()),
                at: Some(at.to_owned()),
            };
            let notice = asked.notice(
                Timestamp::from_millis(1_000_000),
                &[("saved", "It was saved.")],
            );
            assert_eq!(!notice.into_string().is_empty(), is_shown, "{at}");
        };
        check("1000000", true);
        check("940000", true);
        check("939999", false);
        check("1005000", true);
        check("1005001", false);
        for at in ["", "soon", "-1", "99999999999999999999"] {
            check(at, false);
        }
        let without_time = DoneNoticeQuery {
            done: Some("saved".to_owned()),
            at: None,
        };
        let notice = without_time.notice(Timestamp::from_millis(0), &[("saved", "It was saved.")]);
        assert!(notice.into_string().is_empty());
    }

    #[test]
    fn several_words_make_one_notice() {
        let now = Timestamp::from_millis(7);
        let asked = DoneNoticeQuery {
            done: Some("saved,x,late".to_owned()),
            at: Some("7".to_owned()),
        };
        let notice = asked.notice(
            now,
            &[
                ("saved", "It was saved."),
                ("x,late", "No."),
                ("late", "Late."),
            ],
        );
        assert_eq!(
            notice.into_string(),
            "<p class=\"done\" role=\"status\">It was saved. Late.</p>"
        );
    }

    #[test]
    fn the_address_after_an_action_keeps_the_query() {
        let now = Timestamp::from_millis(7);
        assert_eq!(
            address_after("/console/topics", "deleted", now),
            "/console/topics?done=deleted&at=7"
        );
        assert_eq!(
            address_after("/console/x?a=b", "saved", now),
            "/console/x?a=b&done=saved&at=7"
        );
    }
}
