//! The mistakes of a draft, and the changes that saving it would make.

use maud::{Markup, html};
use posthaste_core::api::MemberChange;
use posthaste_yaml::{TextMistake, TextPlace};

use crate::api::ApiRefusal;
use crate::display::foreign_cut;
use crate::page::problem_box;
use crate::table::TableColumn::{self, Text};
use crate::table::data_table;
use crate::uncertain;

/// The columns.
const COLUMNS: [TableColumn; 1] = [Text("What changes")];

/// Most characters of one line of a difference.
const LINE_CHARS_MAX: usize = 2_000;

/// The mistakes of a draft, each with its place.
pub(crate) fn mistake_list(mistakes: &[TextMistake]) -> Markup {
    html! {
        @if !mistakes.is_empty() {
            div.problem role="alert" tabindex="-1" autofocus {
                p {
                    @if mistakes.len() == 1 { "There is a mistake:" }
                    @else { "There are " (mistakes.len()) " mistakes:" }
                }
                ul { @for mistake in mistakes { li { (mistake_line(mistake)) } } }
            }
        }
    }
}

/// The note of a save of which it is not known whether it happened. `page` shows what is saved.
pub(crate) fn uncertain_note(refusal: &ApiRefusal, page: &str) -> Markup {
    html! {
        (problem_box(refusal))
        (uncertain::uncertainty_hint(refusal, "this was saved", page, "what is there now"))
    }
}

fn mistake_line(mistake: &TextMistake) -> Markup {
    html! {
        @if let Some(TextPlace { line, column }) = mistake.place { "line " (line) ", column " (column) ": " }
        @if !mistake.member.is_empty() { code { (foreign_cut(&mistake.member, LINE_CHARS_MAX)) } ": " }
        (foreign_cut(&mistake.text, LINE_CHARS_MAX))
    }
}

/// The changes that saving would make.
pub(crate) fn change_table(changes: &[MemberChange]) -> Markup {
    html! {
        @if changes.is_empty() {
            p.empty {
                "No visible change. Secret values are hidden here; a new one is still saved."
            }
        } @else {
            (data_table("What changes", &COLUMNS, changes.iter().map(change_row)))
        }
    }
}

fn change_row(change: &MemberChange) -> [Markup; 1] {
    [foreign_cut(&change.to_string(), LINE_CHARS_MAX)]
}

/// Says that what is edited was changed meanwhile.
pub(crate) fn changed_meanwhile_note(what: &str) -> Markup {
    html! {
        div.problem role="alert" {
            p {
                "The " (what) " was changed since you began, and nothing was saved. The difference is to the \
                 present settings: saving puts yours in their place."
            }
        }
    }
}
