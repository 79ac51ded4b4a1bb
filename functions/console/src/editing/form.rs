//! The form that a draft is in, and the page that shows what saving would change.

use axum::http::StatusCode;
use maud::{Markup, html};
use posthaste_core::api::MemberChange;
use posthaste_yaml::TextMistake;

use super::draft::SettingsDraft;
use super::report;
use crate::api::ApiRefusal;
use crate::page::{ConsolePage, MenuSection, form_token, problem_box};
use crate::visit::PageVisit;

/// Fewest rows of the field.
const ROWS_MIN: usize = 12;

/// Most rows of the field. It scrolls where there are more.
const ROWS_MAX: usize = 40;

/// The form that sends a draft, and its pages.
#[derive(Debug, Clone)]
pub(crate) struct DraftEditor<'a> {
    pub(crate) visit: &'a PageVisit,
    /// Heading of its pages.
    pub(crate) title: String,
    /// The page that it is sent to, which is the one that it is on.
    pub(crate) action: String,
    /// The page that is left with nothing changed.
    pub(crate) back: String,
    /// The fields before the text.
    pub(crate) first: Markup,
    pub(crate) draft: &'a SettingsDraft,
}

impl DraftEditor<'_> {
    /// The page with the form and the mistakes of the draft.
    pub(crate) fn form_page(&self, mistakes: &[TextMistake]) -> ConsolePage {
        let status = if mistakes.is_empty() {
            StatusCode::OK
        } else {
            StatusCode::BAD_REQUEST
        };
        self.noted_page(&report::mistake_list(mistakes))
            .with_status(status)
    }

    /// The page with the form after the API did not return the settings that the draft is compared
    /// with.
    pub(crate) fn unread_page(&self, refusal: &ApiRefusal) -> ConsolePage {
        let note = html! { (problem_box(refusal)) p { "Nothing was saved. Your text is below." } };
        self.noted_page(&note).with_status(refusal.status_code())
    }

    /// The page with the form after the API did not save the draft.
    pub(crate) fn unsaved_page(&self, refusal: &ApiRefusal) -> ConsolePage {
        self.noted_page(&report::unsaved_note(self.draft, refusal, &self.back))
            .with_status(refusal.status_code())
    }

    fn noted_page(&self, note: &Markup) -> ConsolePage {
        self.titled_page(html! {
            (note)
            form method="post" action=(self.action) {
                (form_token(&self.visit.form_token))
                input type="hidden" name="version" value=(self.draft.version);
                (self.first)
                (text_area(&self.draft.text))
                div.actions {
                    button.primary type="submit" name="step" value="check" { "Show what changes" }
                    a.button href=(self.back) { "Cancel" }
                }
            }
        })
    }

    /// The page with the changes that saving would make to `what`, whose version is `present`.
    /// Saving from there is of the present version.
    pub(crate) fn difference_page(
        &self,
        what: &str,
        present: &str,
        changes: &[MemberChange],
    ) -> ConsolePage {
        let is_changed = self.draft.version != present;
        let compared = SettingsDraft {
            version: present.to_owned(),
            ..self.draft.clone()
        };
        let body = html! {
            @if is_changed { (report::changed_meanwhile_note(what)) }
            (report::change_table(changes))
        };
        let status = if is_changed {
            StatusCode::CONFLICT
        } else {
            StatusCode::OK
        };
        DraftEditor {
            draft: &compared,
            ..self.clone()
        }
        .decision_page(&body)
        .with_status(status)
    }

    /// The page with buttons that save what it shows, or go back to the form.
    pub(crate) fn decision_page(&self, shown: &Markup) -> ConsolePage {
        let SettingsDraft {
            text,
            version,
            name,
        } = self.draft;
        self.titled_page(html! {
            (shown)
            form method="post" action=(self.action) {
                (form_token(&self.visit.form_token))
                @for (field, value) in [("version", version), ("name", name), ("text", text)] {
                    input type="hidden" name=(field) value=(value);
                }
                div.actions {
                    button.primary type="submit" name="step" value="save" { "Save" }
                    button type="submit" name="step" value="edit" { "Go on editing" }
                    a.button href=(self.back) { "Cancel" }
                }
            }
        })
    }

    fn titled_page(&self, body: Markup) -> ConsolePage {
        ConsolePage::new(self.title.as_str(), body).in_section(MenuSection::Topics)
    }
}

/// The field for settings.
pub(crate) fn text_area(text: &str) -> Markup {
    let rows = (text.lines().count() + 2).clamp(ROWS_MIN, ROWS_MAX);
    html! {
        label for="text" { "Settings as YAML" }
        // Browsers drop the first line break.
        textarea #text name="text" rows=(rows) spellcheck="false" { "\n" (text) }
        p.hint {
            "A masked secret keeps the present one. The "
            a href="/schema.json" { "JSON Schema" } " explains every member."
        }
    }
}
