//! The form that a draft is in, with its tabs.

use axum::http::StatusCode;
use maud::{Markup, html};
use posthaste_yaml::TextMistake;

use super::form::SettingsForm;
use super::form_tab::{form_fields, mistake_summary, mistakes_beside};
use super::present::NAME;
use super::target::EditedTarget;
use super::yaml_tab::text_area;
use crate::api::ApiRefusal;
use crate::editing::{SettingsDraft, mistake_list, uncertain_note};
use crate::page::{ConsolePage, MenuSection, form_token, problem_box};
use crate::visit::PageVisit;

/// The id of the form, which its tabs send too.
const FORM_ID: &str = "settings";

/// The form that sends a draft, and its pages.
#[derive(Debug, Clone, Copy)]
pub(super) struct SettingsEditor<'a> {
    pub(super) visit: &'a PageVisit,
    pub(super) target: &'a EditedTarget,
    pub(super) draft: &'a SettingsDraft,
    /// The fields of the first tab. Without them the tab with YAML is shown.
    pub(super) form: Option<&'a SettingsForm>,
}

impl SettingsEditor<'_> {
    /// The page with the form and the mistakes of the draft.
    pub(super) fn form_page(&self, mistakes: &[TextMistake]) -> ConsolePage {
        let status = if mistakes.is_empty() {
            StatusCode::OK
        } else {
            StatusCode::BAD_REQUEST
        };
        let note = match self.form {
            Some(form) => mistake_summary(form, mistakes),
            None => mistake_list(mistakes),
        };
        self.noted_page(&note, mistakes).with_status(status)
    }

    /// The page with the YAML of a draft that the form cannot show.
    pub(super) fn formless_page(&self, mistakes: &[TextMistake]) -> ConsolePage {
        let note = html! {
            (mistake_list(mistakes))
            p { "The form can show the settings once that is mended." }
        };
        self.noted_page(&note, &[])
            .with_status(StatusCode::BAD_REQUEST)
    }

    /// The page with the form after the API did not return the settings that the draft is compared
    /// with.
    pub(super) fn unread_page(&self, refusal: &ApiRefusal) -> ConsolePage {
        let note = html! { (problem_box(refusal)) p { "Nothing was saved. Your text is below." } };
        self.noted_page(&note, &[])
            .with_status(refusal.status_code())
    }

    /// The page with the form after the API did not save the draft.
    pub(super) fn unsaved_page(&self, refusal: &ApiRefusal) -> ConsolePage {
        if !refusal.is_uncertain() {
            let mistakes = self.draft.refusal_mistakes(refusal);
            return self.form_page(&mistakes).with_status(refusal.status_code());
        }
        let page = self.target.saved_path(&self.draft.name);
        self.noted_page(&uncertain_note(refusal, &page), &[])
            .with_status(refusal.status_code())
    }

    pub(super) fn titled_page(&self, body: Markup) -> ConsolePage {
        ConsolePage::new(self.target.title(), body).in_section(MenuSection::Topics)
    }

    fn noted_page(&self, note: &Markup, mistakes: &[TextMistake]) -> ConsolePage {
        self.titled_page(html! {
            (self.tab_buttons())
            (note)
            form id=(FORM_ID) method="post" action=(self.target.edit_path()) {
                (form_token(&self.visit.form_token))
                input type="hidden" name="version" value=(self.draft.version);
                @if self.target.is_new() { (self.name_field(mistakes)) }
                (self.tab_content(mistakes))
                div.actions {
                    (self.next_button())
                    a.button href=(self.target.back_path()) { "Cancel" }
                }
            }
        })
    }

    /// The tabs. They send the form, so that what was typed stays.
    fn tab_buttons(&self) -> Markup {
        let [form, yaml] =
            [self.form.is_some(), self.form.is_none()].map(|is_shown| is_shown.then_some("page"));
        html! {
            // Enter in a field presses the first button of the form, which is no tab.
            button hidden type="submit" form=(FORM_ID) name="step" value=(self.next_step()) {}
            nav.actions aria-label={ "Parts of the " (self.target.word()) } {
                @if !self.target.is_new() { (leaving_button("now", "Now")) }
                button.button type="submit" form=(FORM_ID) name="step" value="form" formnovalidate
                    aria-current=[form] { "Settings" }
                button.button type="submit" form=(FORM_ID) name="step" value="yaml" formnovalidate
                    aria-current=[yaml] { "YAML" }
                @if matches!(self.target, EditedTarget::Subscription { .. }) {
                    (leaving_button("danger", "Danger"))
                }
            }
        }
    }

    /// A form that carries the draft as it is to the buttons of a decision.
    pub(super) fn decision_form(&self, version: &str, buttons: &Markup) -> Markup {
        let tab = if self.form.is_some() { "form" } else { "" };
        let fields = [
            ("version", version),
            ("name", &self.draft.name),
            ("text", &self.draft.text),
            ("tab", tab),
        ];
        html! {
            form method="post" action=(self.target.edit_path()) {
                (form_token(&self.visit.form_token))
                @for (field, value) in fields { input type="hidden" name=(field) value=(value); }
                div.actions { (buttons) }
            }
        }
    }

    fn tab_content(&self, mistakes: &[TextMistake]) -> Markup {
        let Some(form) = self.form else {
            return text_area(&self.draft.text);
        };
        let fields = form_fields(form, mistakes);
        html! {
            input type="hidden" name="tab" value="form";
            input type="hidden" name="base" value=(form.base);
            @if matches!(self.target, EditedTarget::NewTopic) {
                details open[!mistakes.is_empty()] { summary { "More settings" } (fields) }
            } @else {
                (fields)
            }
        }
    }

    /// The button that goes on. A new topic is made at once, because there is nothing that it could
    /// change.
    fn next_button(&self) -> Markup {
        let label = match self.target {
            EditedTarget::NewTopic => "Create topic",
            _ => "Show what changes",
        };
        html! { button.primary type="submit" name="step" value=(self.next_step()) { (label) } }
    }

    const fn next_step(&self) -> &'static str {
        match self.target {
            EditedTarget::NewTopic => "save",
            _ => "check",
        }
    }

    /// The field for the name of something new.
    fn name_field(&self, mistakes: &[TextMistake]) -> Markup {
        let own = mistakes
            .iter()
            .filter(|it| it.member == NAME && it.place.is_none());
        let own: Vec<_> = own.map(|mistake| mistake.text.as_str()).collect();
        let described = if own.is_empty() {
            "name-hint"
        } else {
            "name-mistake name-hint"
        };
        html! {
            div.mistaken[!own.is_empty()] {
                label for=(NAME) { "Name of the " (self.target.word()) }
                input id=(NAME) name=(NAME) value=(self.draft.name) autocomplete="off" maxlength="64" required autofocus
                    aria-invalid=[(!own.is_empty()).then_some("true")] aria-describedby=(described);
                @if !own.is_empty() { (mistakes_beside(NAME, &own)) }
                p.hint #name-hint { "Letters, digits and hyphens. It cannot be changed later." }
            }
        }
    }
}

/// The tab of another page. What was typed is not lost without a question.
fn leaving_button(step: &str, label: &str) -> Markup {
    html! {
        button.button type="submit" form=(FORM_ID) name="step" value=(step) formnovalidate { (label) }
    }
}
