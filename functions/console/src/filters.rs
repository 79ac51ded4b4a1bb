//! Parts of forms with filters and of pages of a list.

use maud::{Markup, html};

use crate::address::Address;
use crate::api::Refusal;
use crate::page::problem;
use crate::shown::foreign;

/// Most rows of one page of a list.
pub(crate) const ROWS_MAX: usize = 50;

/// An example of a time in a form.
pub(crate) const TIME_EXAMPLE: &str = "2026-11-21T10:00:00Z";

/// A field of a form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field<'a> {
    /// The name of the field, which is that of the API's parameter.
    pub(crate) name: &'a str,
    pub(crate) label: &'a str,
    pub(crate) value: Option<&'a str>,
    pub(crate) example: &'a str,
    /// The answer to the form, if it was refused.
    pub(crate) refusal: Option<&'a Refusal>,
}

impl Field<'_> {
    /// A field for a text.
    pub(crate) fn text(self) -> Markup {
        self.input(None)
    }

    fn input(self, list: Option<&str>) -> Markup {
        let mistake = self.mistake();
        let about = mistake.is_some().then(|| format!("{}-mistake", self.name));
        html! {
            div.field.mistaken[mistake.is_some()] {
                label for=(self.name) { (self.label) }
                input id=(self.name) name=(self.name) value=[self.value] placeholder=(self.example)
                    list=[list]
                    autocomplete="off" aria-invalid=[about.as_ref().map(|_| "true")]
                    aria-describedby=[about.as_deref()];
                (self.beside(mistake))
            }
        }
    }

    /// A field for a text that offers these words.
    pub(crate) fn suggesting(self, words: &[&str]) -> Markup {
        let list = format!("{}-words", self.name);
        html! {
            (self.input(Some(&list)))
            datalist id=(list) { @for word in words { option value=(word) {} } }
        }
    }

    /// A field for one of these words, or for none.
    pub(crate) fn choice(self, none: &str, words: &[&str]) -> Markup {
        self.labelled(
            none,
            &words.iter().map(|word| (*word, *word)).collect::<Vec<_>>(),
        )
    }

    /// A field for one of these values, each with its label, or for none.
    pub(crate) fn labelled(self, none: &str, choices: &[(&str, &str)]) -> Markup {
        let is_known = self
            .value
            .is_none_or(|value| choices.iter().any(|(known, _)| *known == value));
        html! {
            div.field.mistaken[self.mistake().is_some()] {
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
                (self.beside(self.mistake()))
            }
        }
    }

    fn mistake(&self) -> Option<&str> {
        self.refusal.and_then(|refusal| refusal.mistake(self.name))
    }

    fn beside(&self, mistake: Option<&str>) -> Markup {
        html! {
            @if let Some(mistake) = mistake {
                p.mistake.bad id={ (self.name) "-mistake" } { (foreign(mistake)) }
            }
        }
    }
}

/// A box that is ticked or not.
pub(crate) fn tick(name: &str, label: &str, is_ticked: bool) -> Markup {
    html! {
        label.tick { input type="checkbox" name=(name) value="true" checked[is_ticked]; (label) }
    }
}

/// The problem of a refused form. Mistakes in these fields stand beside them.
pub(crate) fn refused(refusal: &Refusal, fields: &[&str]) -> Markup {
    let is_beside = fields.iter().any(|field| refusal.mistake(field).is_some());
    html! {
        @if is_beside {
            div.problem role="alert" tabindex="-1" autofocus {
                p { "A filter cannot be used. The form says which, and why." }
            }
        } @else {
            (problem(refusal))
        }
    }
}

/// The ways to the next page and back to the first.
pub(crate) fn pager(first: Option<Address>, next: Option<Address>) -> Markup {
    html! {
        @if first.is_some() || next.is_some() {
            nav.pager aria-label="Pages" {
                @if let Some(first) = first { a.button href=(first) { "First page" } }
                @if let Some(next) = next { a.button href=(next) rel="next" { "Next page" } }
            }
        }
    }
}

/// The same of a list without filters. `cursor` is where its page begins, and `next` where the next
/// one does.
pub(crate) fn pager_of(list: &Address, cursor: Option<&str>, next: Option<&str>) -> Markup {
    pager(
        cursor.map(|_| list.clone()),
        next.map(|next| list.clone().query("cursor", Some(next))),
    )
}

/// Hidden fields of a form, for the values that there are.
pub(crate) fn hidden(fields: &[(&str, Option<&str>)]) -> Markup {
    html! {
        @for (name, value) in fields {
            @if let Some(value) = value { input type="hidden" name=(name) value=(value); }
        }
    }
}
