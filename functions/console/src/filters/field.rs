//! A field of a form, with the mistake in its value beside it.

use maud::{Markup, html};

use crate::api::ApiRefusal;
use crate::display::foreign_text;

/// An example of a time in a form.
const TIME_EXAMPLE: &str = "1h, or 2026-11-21T10:00:00Z";

/// A field of a form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FormField<'a> {
    /// The name of the field, which is that of the API's parameter.
    name: &'a str,
    label: &'a str,
    value: Option<&'a str>,
    example: &'a str,
    /// The response to the form, if it was refused.
    refusal: Option<&'a ApiRefusal>,
}

impl<'a> FormField<'a> {
    pub(crate) const fn new(
        name: &'a str,
        label: &'a str,
        value: Option<&'a str>,
        refusal: Option<&'a ApiRefusal>,
    ) -> Self {
        Self {
            name,
            label,
            value,
            example: "",
            refusal,
        }
    }

    pub(crate) const fn with_example(self, example: &'a str) -> Self {
        Self { example, ..self }
    }

    /// A field for a time.
    pub(crate) fn time_input(self) -> Markup {
        self.with_example(TIME_EXAMPLE).text_input()
    }

    /// A field for a text.
    pub(crate) fn text_input(self) -> Markup {
        self.render_input(None)
    }

    fn render_input(self, list: Option<&str>) -> Markup {
        let mistake = self.field_mistake();
        let about = mistake.is_some().then(|| format!("{}-mistake", self.name));
        html! {
            div.field.mistaken[mistake.is_some()] {
                label for=(self.name) { (self.label) }
                input id=(self.name) name=(self.name) value=[self.value] placeholder=(self.example)
                    list=[list]
                    autocomplete="off" aria-invalid=[about.as_ref().map(|_| "true")]
                    aria-describedby=[about.as_deref()];
                (self.mistake_note(mistake))
            }
        }
    }

    /// A field for a text that offers these words.
    pub(crate) fn suggesting_input(self, words: &[&str]) -> Markup {
        let list = format!("{}-words", self.name);
        html! {
            (self.render_input(Some(&list)))
            datalist id=(list) { @for word in words { option value=(word) {} } }
        }
    }

    /// A field for one of these words, or for none.
    pub(crate) fn word_select(self, none: &str, words: &[&str]) -> Markup {
        self.labelled_select(
            none,
            &words.iter().map(|word| (*word, *word)).collect::<Vec<_>>(),
        )
    }

    /// A field for one of these values, each with its label, or for none.
    pub(crate) fn labelled_select(self, none: &str, choices: &[(&str, &str)]) -> Markup {
        let is_known = self
            .value
            .is_none_or(|value| choices.iter().any(|(known, _)| *known == value));
        html! {
            div.field.mistaken[self.field_mistake().is_some()] {
                label for=(self.name) { (self.label) }
                select id=(self.name) name=(self.name) {
                    option value="" { (none) }
                    @for (value, label) in choices {
                        option value=(value) selected[self.value == Some(*value)] { (label) }
                    }
                    @if let (false, Some(value)) = (is_known, self.value) {
                        option value=(value) selected { (value) }
                    }
                }
                (self.mistake_note(self.field_mistake()))
            }
        }
    }

    fn field_mistake(&self) -> Option<&str> {
        self.refusal
            .and_then(|refusal| refusal.member_mistake(self.name))
    }

    fn mistake_note(&self, mistake: Option<&str>) -> Markup {
        html! {
            @if let Some(mistake) = mistake {
                p.mistake.bad id={ (self.name) "-mistake" } { (foreign_text(mistake)) }
            }
        }
    }
}
