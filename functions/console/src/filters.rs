//! Parts of forms with filters and of pages of a list.

mod field;
mod folded;
mod outage;
mod searched_back;
mod time_range;

use maud::{Markup, html};

pub(crate) use self::field::FormField;
pub(crate) use self::folded::folded_filters;
pub(crate) use self::outage::load_outage_begin;
pub(crate) use self::searched_back::searched_back_note;
pub(crate) use self::time_range::{TimeLabels, TimeRangeFields};
use crate::address::PageAddress;
use crate::api::ApiRefusal;
use crate::page::problem_box;

/// Most rows of one page of a list.
pub(crate) const ROWS_MAX: usize = 50;

/// A box that is ticked or not.
pub(crate) fn checkbox(name: &str, label: &str, is_ticked: bool) -> Markup {
    html! {
        label.tick { input type="checkbox" name=(name) value="true" checked[is_ticked]; (label) }
    }
}

/// The problem of a refused form. Mistakes in these fields stand beside them.
pub(crate) fn refusal_note(refusal: &ApiRefusal, fields: &[&str]) -> Markup {
    let is_beside = fields
        .iter()
        .any(|field| refusal.member_mistake(field).is_some());
    html! {
        @if is_beside {
            div.problem role="alert" tabindex="-1" autofocus {
                p { "A filter cannot be used. The form says which, and why." }
            }
        } @else {
            (problem_box(refusal))
        }
    }
}

/// The ways to the next page and back to the first.
pub(crate) fn pager(first: Option<PageAddress>, next: Option<PageAddress>) -> Markup {
    html! {
        @if first.is_some() || next.is_some() {
            nav.pager aria-label="Pages" {
                @if let Some(first) = first { a.button href=(first) { "First page" } }
                @if let Some(next) = next { a.button href=(next) rel="next" { "Next page" } }
            }
        }
    }
}

/// The same for a list without filters, whose page begins at `cursor` and whose next page begins at
/// `next`.
pub(crate) fn list_pager(list: &PageAddress, cursor: Option<&str>, next: Option<&str>) -> Markup {
    pager(
        cursor.map(|_| list.clone()),
        next.map(|next| list.clone().query("cursor", Some(next))),
    )
}

/// Hidden fields of a form, for the values that there are.
pub(crate) fn hidden_fields(fields: &[(&str, Option<&str>)]) -> Markup {
    html! {
        @for (name, value) in fields {
            @if let Some(value) = value { input type="hidden" name=(name) value=(value); }
        }
    }
}
