//! The actions that a subscription has in its state.

use maud::{Markup, html};
use posthaste_core::api::{SecretText, SubscriptionSettings};
use posthaste_core::attempt::handshake::act;
use posthaste_core::attempt::{Action, Begin};

use super::named::Named;
use super::waiting;
use crate::parts::button;
use crate::visit::Visit;

/// The actions, each with its button and what it does.
const ACTIONS: [(Action, &str, &str); 6] = [
    (Action::Pause, "Pause", "lets its events wait"),
    (
        Action::Resume,
        "Resume",
        "delivers again, and ends the holds of its endpoint",
    ),
    (
        Action::Enable,
        "Enable",
        "delivers again, and ends the holds of its endpoint",
    ),
    (
        Action::Validate,
        "Ask for consent",
        "asks the endpoint again whether it wants events",
    ),
    (Action::Force, "Force", FORCE),
    (
        Action::Disable,
        "Disable",
        "lets new events pass by, and gives up those that wait",
    ),
];

/// The effect of force.
const FORCE: &str = "ends the holds of its endpoint. Events that are held or parked go out within a minute, \
    and retries that are already in the queue within 15 minutes";

/// The actions that end holds.
const ENDING_HOLDS: [Action; 3] = [Action::Resume, Action::Enable, Action::Force];

pub(super) fn actions(visit: &Visit, named: Named<'_>, shown: &SubscriptionSettings) -> Markup {
    let possible: Vec<_> = ACTIONS
        .into_iter()
        .filter(|(action, ..)| is_possible(visit, *action, shown))
        .collect();
    html! {
        h2 { "Actions" }
        div.actions {
            @for (action, label, _) in &possible {
                @if *action != Action::Disable {
                    (button(visit, &named.page(&[action.as_str()]), "", label))
                }
            }
            @if shown.may_be_sent_to() { (button(visit, &named.page(&["test"]), "", "Send a test event")) }
        }
        ul.hint {
            @for (action, label, effect) in &possible {
                @if *action != Action::Disable { li { (label) ": " (effect) "." } }
            }
            @if possible.iter().any(|(action, ..)| ENDING_HOLDS.contains(action)) {
                li {
                    "The hold of its whole link ends too, so other subscriptions whose endpoint has the same \
                     scheme, host and port are tried again as well."
                }
            }
        }
        @if possible.iter().any(|(action, ..)| *action == Action::Disable) {
            details {
                summary { "Disable this subscription" }
                p {
                    "New events pass by, and those that wait become dead letters. Events that wait: "
                    (waiting::count(shown)) "."
                }
                (button(visit, &named.page(&[Action::Disable.as_str()]), "danger", "Disable"))
            }
        }
    }
}

/// Whether the state allows an action, by the rule that the API has.
fn is_possible(visit: &Visit, action: Action, shown: &SubscriptionSettings) -> bool {
    // Nothing is begun here, so there is no code.
    let code = &SecretText::new("");
    act(
        action,
        shown,
        Begin {
            now: visit.now,
            code,
        },
    )
    .is_ok()
}
