//! The form that a draft is in.

use axum::http::StatusCode;
use maud::{Markup, html};
use posthaste_yaml::TextMistake;

use super::target::EditedTarget;
use super::yaml_tab::text_area;
use crate::api::ApiRefusal;
use crate::editing::{SettingsDraft, mistake_list, unsaved_note};
use crate::page::{ConsolePage, MenuSection, form_token, problem_box};
use crate::visit::PageVisit;

/// The form that sends a draft, and its pages.
#[derive(Debug, Clone, Copy)]
pub(super) struct SettingsEditor<'a> {
    pub(super) visit: &'a PageVisit,
    pub(super) target: &'a EditedTarget,
    pub(super) draft: &'a SettingsDraft,
}

impl SettingsEditor<'_> {
    /// The page with the form and the mistakes of the draft.
    pub(super) fn form_page(&self, mistakes: &[TextMistake]) -> ConsolePage {
        let status = if mistakes.is_empty() {
            StatusCode::OK
        } else {
            StatusCode::BAD_REQUEST
        };
        self.noted_page(&mistake_list(mistakes)).with_status(status)
    }

    /// The page with the form after the API did not return the settings that the draft is compared
    /// with.
    pub(super) fn unread_page(&self, refusal: &ApiRefusal) -> ConsolePage {
        let note = html! { (problem_box(refusal)) p { "Nothing was saved. Your text is below." } };
        self.noted_page(&note).with_status(refusal.status_code())
    }

    /// The page with the form after the API did not save the draft.
    pub(super) fn unsaved_page(&self, refusal: &ApiRefusal) -> ConsolePage {
        let page = self.target.saved_path(&self.draft.name);
        self.noted_page(&unsaved_note(self.draft, refusal, &page))
            .with_status(refusal.status_code())
    }

    fn noted_page(&self, note: &Markup) -> ConsolePage {
        self.titled_page(html! {
            (note)
            form method="post" action=(self.target.edit_path()) {
                (form_token(&self.visit.form_token))
                input type="hidden" name="version" value=(self.draft.version);
                @if self.target.is_new() { (name_field(self.target.word(), &self.draft.name)) }
                (text_area(&self.draft.text))
                div.actions {
                    (self.next_button())
                    a.button href=(self.target.back_path()) { "Cancel" }
                }
            }
        })
    }

    /// The button that goes on. A new topic is made at once, because there is nothing that it could
    /// change.
    fn next_button(&self) -> Markup {
        let (step, label) = match self.target {
            EditedTarget::NewTopic => ("save", "Create topic"),
            _ => ("check", "Show what changes"),
        };
        html! { button.primary type="submit" name="step" value=(step) { (label) } }
    }

    pub(super) fn titled_page(&self, body: Markup) -> ConsolePage {
        ConsolePage::new(self.target.title(), body).in_section(MenuSection::Topics)
    }
}

/// The field for the name of something new.
fn name_field(word: &str, name: &str) -> Markup {
    html! {
        label for="name" { "Name of the " (word) }
        input #name name="name" value=(name) autocomplete="off" maxlength="64" required autofocus
            aria-describedby="name-hint";
        p.hint #name-hint { "Letters, digits and hyphens. It cannot be changed later." }
    }
}
