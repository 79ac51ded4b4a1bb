//! The actions that a subscription has in its state.

use maud::{Markup, html};
use posthaste_core::api::handshake::status_after_action;
use posthaste_core::api::{NewHandshake, SecretText, SubscriptionAction, SubscriptionSettings};

use super::in_url::SubscriptionInUrl;
use super::waiting;
use crate::parts::button_form;
use crate::visit::PageVisit;
use crate::words::RETRY_NOW;

/// The actions, each with its button and what it does.
const ACTIONS: [(SubscriptionAction, &str, &str); 6] = [
    (SubscriptionAction::Pause, "Pause", "lets its events wait"),
    (
        SubscriptionAction::Resume,
        "Resume",
        "delivers again, and ends the holds of its endpoint",
    ),
    (
        SubscriptionAction::Enable,
        "Enable",
        "delivers again, and ends the holds of its endpoint",
    ),
    (
        SubscriptionAction::Validate,
        "Ask for consent",
        "asks the endpoint again whether it wants events",
    ),
    (SubscriptionAction::Force, RETRY_NOW, FORCE),
    (
        SubscriptionAction::Disable,
        "Disable",
        "lets new events pass by, and gives up those that wait",
    ),
];

/// The effect of force.
const FORCE: &str = "ends the holds of its endpoint. Events that are held or parked go out within a minute, \
    and retries that are already in the queue within 15 minutes";

/// The actions that end holds.
const ENDING_HOLDS: [SubscriptionAction; 3] = [
    SubscriptionAction::Resume,
    SubscriptionAction::Enable,
    SubscriptionAction::Force,
];

pub(super) fn action_buttons(
    visit: &PageVisit,
    named: SubscriptionInUrl<'_>,
    shown: &SubscriptionSettings,
) -> Markup {
    let possible: Vec<_> = ACTIONS
        .into_iter()
        .filter(|(action, ..)| is_possible(visit, *action, shown))
        .collect();
    html! {
        h2 { "Actions" }
        div.actions {
            @for (action, label, _) in &possible {
                @if *action != SubscriptionAction::Disable {
                    (button_form(visit, &named.page_path(&[action.as_str()]), "", label))
                }
            }
            @if shown.may_be_sent_to() { (button_form(visit, &named.page_path(&["test"]), "", "Send a test event")) }
        }
        ul.hint {
            @for (action, label, effect) in &possible {
                @if *action != SubscriptionAction::Disable { li { (label) ": " (effect) "." } }
            }
            @if possible.iter().any(|(action, ..)| ENDING_HOLDS.contains(action)) {
                li {
                    "The hold of its whole link ends too, so other subscriptions whose endpoint has the same \
                     scheme, host and port are tried again as well."
                }
            }
        }
        @if possible.iter().any(|(action, ..)| *action == SubscriptionAction::Disable) {
            details {
                summary { "Disable this subscription" }
                p {
                    "New events pass by, and those that wait become dead letters. Events that wait: "
                    (waiting::count_text(shown)) "."
                }
                (button_form(visit, &named.page_path(&[SubscriptionAction::Disable.as_str()]), "danger", "Disable"))
            }
        }
    }
}

/// Whether the state allows an action, by the rule that the API has.
fn is_possible(
    visit: &PageVisit,
    action: SubscriptionAction,
    shown: &SubscriptionSettings,
) -> bool {
    // Nothing is begun here, so there is no code.
    let code = &SecretText::new("");
    status_after_action(
        action,
        shown,
        NewHandshake {
            now: visit.now,
            code,
        },
    )
    .is_ok()
}
