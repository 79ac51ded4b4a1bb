//! The tab with a form: the fields in their sections, each with its help, its default and its
//! mistakes.

use maud::{Markup, html};
use posthaste_yaml::TextMistake;

use super::fields::{FieldKind, FieldSection, FieldTable, SettingsField};
use super::form::SettingsForm;
use super::help::{MemberSchema, description_text, member_schema};
use super::present::NAME;
use crate::display::foreign_cut;

/// Characters that a field for a text shows at least, on a window that is wide enough.
const TEXT_SIZE: usize = 60;

/// The same of a field for a number.
const NUMBER_SIZE: usize = 12;

/// Fewest and most rows of a field for lines. It scrolls where there are more.
const ROWS_MIN: usize = 3;
const ROWS_MAX: usize = 12;

/// Most characters of a mistake.
const MISTAKE_CHARS_MAX: usize = 2_000;

/// The values of a flag, and their labels.
const FLAG_CHOICES: [(&str, &str); 2] = [("true", "yes"), ("false", "no")];

/// A field with what was typed, and its mistakes.
struct FilledField<'a> {
    field: &'static SettingsField,
    text: &'a str,
    mistakes: Vec<&'a str>,
    schema: Option<MemberSchema<'static>>,
}

/// The fields, and the members that only YAML has.
pub(super) fn form_fields(form: &SettingsForm, mistakes: &[TextMistake]) -> Markup {
    html! {
        @for section in form.table.sections {
            fieldset {
                legend { (section.title) }
                (section_fields(section, form, mistakes))
            }
        }
        fieldset {
            legend { "Only as YAML" }
            (yaml_only_list(form))
        }
    }
}

fn section_fields(section: &FieldSection, form: &SettingsForm, mistakes: &[TextMistake]) -> Markup {
    let fields = form
        .texts()
        .filter(|(field, _)| section.fields.iter().any(|it| it.member == field.member));
    html! {
        @for (field, text) in fields {
            @if let Some(text) = text {
                (FilledField::new(form.table, field, text, mistakes).render())
            } @else {
                p { strong { (field.label) } ": a value that only YAML shows" }
            }
        }
    }
}

impl<'a> FilledField<'a> {
    fn new(
        table: &FieldTable,
        field: &'static SettingsField,
        text: &'a str,
        mistakes: &'a [TextMistake],
    ) -> Self {
        let mistakes = mistakes
            .iter()
            .filter(|mistake| is_of_field(mistake, field))
            .map(|mistake| mistake.text.as_str())
            .collect();
        Self {
            field,
            text,
            mistakes,
            schema: member_schema(table.type_name, field.member),
        }
    }

    fn render(&self) -> Markup {
        let member = self.field.member;
        html! {
            div.field.mistaken[!self.mistakes.is_empty()] {
                label for=(member) { (self.field.label) }
                (self.input())
                @if !self.mistakes.is_empty() {
                    (mistakes_beside(member, &self.mistakes))
                }
                @if let Some(schema) = &self.schema {
                    p.hint id={ (member) "-help" } { (description_text(&schema.description())) }
                }
            }
        }
    }

    fn input(&self) -> Markup {
        let member = self.field.member;
        let words = self.schema.map(|schema| schema.words()).unwrap_or_default();
        let words: Vec<_> = words.into_iter().map(|word| (word, word)).collect();
        match self.field.kind {
            FieldKind::Choice => self.select(&words),
            FieldKind::Flag => self.select(&FLAG_CHOICES),
            FieldKind::Lines => {
                let rows = (self.text.lines().count() + 1).clamp(ROWS_MIN, ROWS_MAX);
                html! {
                    textarea id=(member) name=(member) rows=(rows) spellcheck="false"
                        aria-invalid=[self.invalid()] aria-describedby=(self.described_by()) {
                        // Browsers drop the first line break.
                        "\n" (self.text)
                    }
                }
            }
            FieldKind::Number => self.text_input(NUMBER_SIZE),
            FieldKind::RequiredText
            | FieldKind::Text
            | FieldKind::TextList
            | FieldKind::NumberList => self.text_input(TEXT_SIZE),
        }
    }

    fn text_input(&self, size: usize) -> Markup {
        let member = self.field.member;
        let default = self.schema.and_then(|schema| schema.default_text());
        let example = self.schema.and_then(|schema| schema.example());
        let placeholder = default.or_else(|| example.map(|example| format!("such as {example}")));
        html! {
            input id=(member) name=(member) value=(self.text) size=(size) autocomplete="off" spellcheck="false"
                placeholder=[placeholder] aria-invalid=[self.invalid()] aria-describedby=(self.described_by());
        }
    }

    fn select(&self, choices: &[(&str, &str)]) -> Markup {
        let member = self.field.member;
        let is_known = choices.iter().any(|(value, _)| *value == self.text);
        html! {
            select id=(member) name=(member) aria-invalid=[self.invalid()] aria-describedby=(self.described_by()) {
                option value="" { (self.default_label()) }
                @for (value, label) in choices {
                    option value=(value) selected[self.text == *value] { (label) }
                }
                @if !is_known && !self.text.is_empty() { option value=(self.text) selected { (self.text) } }
            }
        }
    }

    fn default_label(&self) -> String {
        let default = self.schema.and_then(|schema| schema.default_text());
        let default = match default.as_deref() {
            Some("True") => "yes",
            Some("False" | "false") => "no",
            Some(text) => text,
            None => return "(default)".to_owned(),
        };
        format!("(default: {default})")
    }

    fn invalid(&self) -> Option<&'static str> {
        (!self.mistakes.is_empty()).then_some("true")
    }

    fn described_by(&self) -> String {
        let member = self.field.member;
        if self.mistakes.is_empty() {
            format!("{member}-help")
        } else {
            format!("{member}-mistake {member}-help")
        }
    }
}

/// The mistakes of a field, which stand below it.
pub(super) fn mistakes_beside(field: &str, mistakes: &[&str]) -> Markup {
    html! {
        div id={ (field) "-mistake" } {
            @for mistake in mistakes { p.mistake.bad { (foreign_cut(mistake, MISTAKE_CHARS_MAX)) } }
        }
    }
}

/// Whether a mistake is one of the field's member, or below it.
fn is_of_field(mistake: &TextMistake, field: &SettingsField) -> bool {
    let below = mistake.member.strip_prefix(field.member);
    below.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The mistakes, each with the way to its field.
pub(super) fn mistake_summary(form: &SettingsForm, mistakes: &[TextMistake]) -> Markup {
    html! {
        @if !mistakes.is_empty() {
            div.problem role="alert" tabindex="-1" autofocus {
                p {
                    @if mistakes.len() == 1 { "There is a mistake:" }
                    @else { "There are " (mistakes.len()) " mistakes:" }
                }
                ul { @for mistake in mistakes { li { (mistake_line(form, mistake)) } } }
            }
        }
    }
}

fn mistake_line(form: &SettingsForm, mistake: &TextMistake) -> Markup {
    let field = form
        .table
        .fields()
        .find(|field| is_of_field(mistake, field));
    html! {
        @if let Some(field) = field {
            a href={ "#" (field.member) } { (field.label) } ": "
        } @else if mistake.member == NAME && mistake.place.is_none() {
            a href={ "#" (NAME) } { "Name" } ": "
        } @else if !mistake.member.is_empty() {
            code { (foreign_cut(&mistake.member, MISTAKE_CHARS_MAX)) } ": "
        }
        (foreign_cut(&mistake.text, MISTAKE_CHARS_MAX))
    }
}

fn yaml_only_list(form: &SettingsForm) -> Markup {
    html! {
        ul {
            @for member in form.table.yaml_only {
                li {
                    code { (member) } @if form.is_written(member) { " (set)" }
                    @if let Some(schema) = member_schema(form.table.type_name, member) {
                        ": " span.hint { (description_text(&schema.description())) }
                    }
                }
            }
        }
        p.hint { "They stay as they are when you save this form." }
    }
}
