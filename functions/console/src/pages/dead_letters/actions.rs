//! The actions on the dead letters of a subscription: forms that begin with a dry run.

use maud::{Markup, html};

use super::search::DeadLetterSearch;
use super::send_since::{rate_field, send_since_address};
use super::ticked::TICKED;
use crate::address::PageAddress;
use crate::display::foreign_text;
use crate::filters::{checkbox, hidden_fields};
use crate::page::form_token;
use crate::visit::PageVisit;

/// The actions on the dead letters that are ticked, inside the form of their boxes.
pub(super) fn tick_buttons() -> Markup {
    html! {
        (hidden_fields(&[(TICKED.0, Some(TICKED.1))]))
        (former_tick())
        div.actions {
            button type="submit" formaction=(PageAddress::new(&["dead-letters", "replay"])) {
                "Send the ticked again…"
            }
            button type="submit" formaction=(PageAddress::new(&["dead-letters", "resolve"])) {
                "Resolve the ticked…"
            }
        }
    }
}

/// The forms, for a subscription that is chosen. One that is deleted can get nothing again.
pub(super) fn action_forms(
    search: &DeadLetterSearch,
    visit: &PageVisit,
    is_deleted: bool,
) -> Markup {
    let Some((topic, name)) = search.owner() else {
        return html! {
            h2 { "Replay and resolve" }
            p { "A replay sends dead letters of one subscription again. Choose a topic and a subscription \
                 to replay, resolve or delete its dead letters." }
        };
    };
    html! {
        @if is_deleted {
            p.hint { "The subscription is deleted, so its dead letters cannot be sent again." }
        } @else {
            h2 { "Replay to " (foreign_text(topic)) " / " (foreign_text(name)) }
            p.hint { "A replay sends the dead letters that these filters select again. First you see what it \
                      would send. A dead letter is resolved once its event is delivered." }
            (replay_form(search, visit))
            p {
                a href=(send_since_address(topic, name, search.from.as_deref())) {
                    "Send again since a time, also what was delivered"
                }
            }
        }
        h2 { "Resolve" }
        p.hint { "A resolved dead letter needs nothing more: lists and replays leave it out." }
        (end_form(search, visit, "resolve"))
        details {
            summary { "Delete instead" }
            p { "Deleted dead letters are gone: nothing can send them again." }
            (end_form(search, visit, "delete"))
        }
    }
}

fn replay_form(search: &DeadLetterSearch, visit: &PageVisit) -> Markup {
    html! {
        form.filters method="post" action=(PageAddress::new(&["dead-letters", "replay"])) {
            (form_token(&visit.form_token))
            (hidden_fields(&search.hidden_fields()))
            (rate_field())
            (former_tick())
            div { button.primary type="submit" { "Show what a replay would send" } }
        }
    }
}

fn end_form(search: &DeadLetterSearch, visit: &PageVisit, end: &str) -> Markup {
    html! {
        form.filters method="post" action=(PageAddress::new(&["dead-letters", end])) {
            (form_token(&visit.form_token))
            (hidden_fields(&search.hidden_fields()))
            (former_tick())
            div { button type="submit" { "Show what to " (end) } }
        }
    }
}

/// The box for events of an earlier subscription of the same name.
fn former_tick() -> Markup {
    checkbox(
        "includeFormer",
        "Include events for an earlier subscription of this name",
        false,
    )
}
