//! A text that is edited, and its mistakes.

use std::fmt::Display;

use axum::http::StatusCode;
use maud::html;
use posthaste_core::api::problem::ApiProblem;
use posthaste_yaml::{TextMistake, value_mistake};

use crate::api::ApiRefusal;
use crate::display::number;
use crate::extract::FormFields;
use crate::page::ConsolePage;

/// Longest text of settings, in bytes: enough for those of any subscription.
pub(crate) const TEXT_BYTES_MAX: usize = 64 * 1024;

/// The step of editing that a form asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EditStep {
    /// Show the form again.
    Edit,
    /// Show the mistakes, or else what saving would change.
    Check,
    /// Save.
    Save,
    /// Show the settings in the form.
    ShowForm,
    /// Show the settings as YAML.
    ShowYaml,
    /// Leave for the page of what is edited.
    LeaveForNow,
    /// Leave for the part of that page that takes something away.
    LeaveForDanger,
}

/// A text that is edited.
#[derive(Debug, Clone)]
pub(crate) struct SettingsDraft {
    /// The settings as YAML.
    pub(crate) text: String,
    /// The version of the settings that the text began as, or that it was last compared with.
    /// Empty for new ones.
    pub(crate) version: String,
    /// The name of something new.
    pub(crate) name: String,
}

impl EditStep {
    pub(crate) fn from_form(fields: &FormFields) -> Self {
        match fields.get("step") {
            "save" => Self::Save,
            "edit" => Self::Edit,
            "form" => Self::ShowForm,
            "yaml" => Self::ShowYaml,
            "now" => Self::LeaveForNow,
            "danger" => Self::LeaveForDanger,
            _ => Self::Check,
        }
    }
}

impl SettingsDraft {
    /// Reads the draft from a form. Fails if it is longer than the editor allows.
    pub(crate) fn from_form(fields: &FormFields) -> Result<Self, ConsolePage> {
        // The tab with a form has the text that its fields are laid over.
        let text = fields
            .get_filled("base")
            .unwrap_or_else(|| fields.get("text").to_owned());
        let draft = Self {
            text: text.replace("\r\n", "\n"),
            version: fields.get("version").to_owned(),
            name: fields.get("name").trim().to_owned(),
        };
        draft.check_length("Nothing was saved. Go back in your browser to find your text.")
    }

    /// The draft, if it is not longer than the editor allows. Otherwise the page of the error shows
    /// `advice`.
    pub(crate) fn check_length(self, advice: &str) -> Result<Self, ConsolePage> {
        if self.text.len() <= TEXT_BYTES_MAX {
            return Ok(self);
        }
        let body = html! {
            p {
                "The console edits settings of at most " (number(TEXT_BYTES_MAX as u64)) " bytes. Use "
                code { "posthaste apply" } " for longer ones."
            }
            p { (advice) }
        };
        Err(ConsolePage::new("The settings are too long", body)
            .with_status(StatusCode::PAYLOAD_TOO_LARGE))
    }

    /// The mistakes of a problem, each with its place in the text. `within` is the beginning of
    /// members in the problem that the text does not have.
    pub(crate) fn problem_mistakes(&self, problem: &ApiProblem, within: &str) -> Vec<TextMistake> {
        let member = problem.member.as_deref().unwrap_or_default();
        let member = member.strip_prefix(within).unwrap_or(member);
        vec![self.locate_mistake(member, problem.detail.as_deref().unwrap_or_default())]
    }

    /// The mistakes that the API found.
    pub(crate) fn refusal_mistakes(&self, refusal: &ApiRefusal) -> Vec<TextMistake> {
        if refusal.errors.is_empty() {
            let text = refusal.detail.as_deref().unwrap_or(&refusal.title);
            return vec![self.locate_mistake(refusal.member.as_deref().unwrap_or_default(), text)];
        }
        refusal
            .errors
            .iter()
            .map(|error| self.locate_mistake(&error.member, &error.detail))
            .collect()
    }

    fn locate_mistake(&self, member: &str, text: &str) -> TextMistake {
        if member.is_empty() {
            return unplaced_mistake(member, text);
        }
        value_mistake(self.text.as_bytes(), member.to_owned(), text.to_owned())
    }
}

/// A mistake without a place.
pub(crate) fn unplaced_mistake(member: &str, text: impl Display) -> TextMistake {
    TextMistake {
        place: None,
        member: member.to_owned(),
        text: text.to_string(),
    }
}
