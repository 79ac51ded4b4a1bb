//! The buttons of a row of what fails, for an operator.

use maud::{Markup, html};
use posthaste_core::api::{FailingState, FailingTarget, IsoTimestamp};

use crate::address::PageAddress;
use crate::page::form_token;
use crate::pages::subscription::SubscriptionInUrl;
use crate::parts::back_field;
use crate::visit::PageVisit;
use crate::words::RETRY_NOW;

/// The buttons of a subscription in a state, each with the last part of the address to which it
/// sends.
fn buttons_of_state(state: FailingState) -> &'static [(&'static str, &'static str)] {
    const TEST: (&str, &str) = ("Test", "test");
    const RETRY: (&str, &str) = (RETRY_NOW, "force");
    const PAUSE: (&str, &str) = ("Pause", "pause");
    const RESUME: (&str, &str) = ("Resume", "resume");
    match state {
        FailingState::Failing | FailingState::Down | FailingState::AskedToWait => {
            &[TEST, RETRY, PAUSE]
        }
        FailingState::Recovering => &[TEST, PAUSE],
        FailingState::Paused => &[TEST, RESUME],
        // An operator of the endpoint has to act, or the page of the subscription says what helps.
        FailingState::Pending
        | FailingState::Refused
        | FailingState::Disabled
        | FailingState::Unknown => &[],
    }
}

/// The buttons of a row, which lead back to the page that it is on. A whole host has none: they are
/// on the pages of its subscriptions.
pub(super) fn row_actions(row: &FailingTarget, visit: &PageVisit, back: &str) -> Markup {
    let (Some(topic), Some(name)) = (&row.topic, &row.subscription) else {
        return html! {};
    };
    let named = SubscriptionInUrl {
        topic: topic.as_str(),
        name: name.as_str(),
    };
    let whole_name = format!("{topic} / {name}");
    let buttons = buttons_of_state(row.state);
    html! {
        div.actions {
            @if let Some((_, first)) = buttons.first() {
                form.actions method="post" action=(named.page_path(&[first])) {
                    (form_token(&visit.form_token))
                    (back_field(back))
                    @for (label, action) in buttons {
                        button type="submit" formaction=(named.page_path(&[action]))
                            aria-label={ (label) " " (whole_name) } { (label) }
                    }
                }
            }
            @if !row.state.is_stopped() {
                a.button href=(send_since(named, row.since)) aria-label={ "Send again… " (whole_name) } {
                    "Send again…"
                }
            }
            a.button href=(named.page_path(&[])) aria-label={ "Open " (whole_name) } { "Open" }
        }
    }
}

/// The page that shows what would be sent again since it fails, with the button that starts it.
fn send_since(named: SubscriptionInUrl<'_>, since: Option<IsoTimestamp>) -> PageAddress {
    PageAddress::new(&["dead-letters", "send-since"])
        .query("topic", Some(named.topic))
        .query("subscription", Some(named.name))
        .query("from", since.map(|since| since.0))
}
