//! The form that a draft is in.

use maud::{Markup, html};
use posthaste_yaml::TextMistake;

use super::draft::Draft;
use super::report;
use crate::page::form_token;
use crate::visit::Visit;

/// Fewest rows of the field.
const ROWS_MIN: usize = 12;

/// Most rows of the field. It scrolls where there are more.
const ROWS_MAX: usize = 40;

/// The form that sends a draft.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Editor<'a> {
    pub(crate) visit: &'a Visit,
    /// The page that it is sent to, which is the one that it is on.
    pub(crate) action: &'a str,
    /// The page that is left with nothing changed.
    pub(crate) back: &'a str,
    pub(crate) draft: &'a Draft,
}

impl Editor<'_> {
    /// The form, with the mistakes of the draft. `first` are the fields before the text.
    pub(crate) fn form(&self, first: &Markup, mistakes: &[TextMistake]) -> Markup {
        html! {
            (report::mistakes(mistakes))
            form method="post" action=(self.action) {
                (form_token(&self.visit.form_token))
                input type="hidden" name="version" value=(self.draft.version);
                (first)
                (text_area(&self.draft.text))
                div.actions {
                    button.primary type="submit" name="step" value="check" { "Show what changes" }
                    a.button href=(self.back) { "Cancel" }
                }
            }
        }
    }

    /// The buttons that save what was shown, or go back to the form.
    pub(crate) fn decision(&self) -> Markup {
        let Draft { text, version, name } = self.draft;
        html! {
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
        }
    }
}

/// The field for settings.
pub(crate) fn text_area(text: &str) -> Markup {
    let rows = (text.lines().count() + 2).clamp(ROWS_MIN, ROWS_MAX);
    html! {
        label for="text" { "Settings as YAML" }
        // Browsers drop the first line break.
        textarea #text name="text" rows=(rows) spellcheck="false" autocomplete="off" { "\n" (text) }
        p.hint {
            "A masked secret keeps the present one. The "
            a href="/schema.json" { "JSON Schema" } " explains every member."
        }
    }
}
