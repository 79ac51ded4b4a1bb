//! The actions that a subscription has in its state.

use maud::{Markup, html};
use posthaste_core::api::handshake::status_after_action;
use posthaste_core::api::{NewHandshake, SecretText, SubscriptionAction, SubscriptionSettings};

use super::in_url::SubscriptionInUrl;
use crate::parts::button_form;
use crate::visit::PageVisit;
use crate::words::RETRY_NOW;

/// The actions, each with its button and what it does.
const ACTIONS: [(SubscriptionAction, &str, &str); 5] = [
    (SubscriptionAction::Pause, "Pause", "lets its events wait"),
    (
        SubscriptionAction::Resume,
        "Resume",
        "delivers again, and tries its endpoint now",
    ),
    (
        SubscriptionAction::Enable,
        "Enable",
        "delivers again, and tries its endpoint now",
    ),
    (
        SubscriptionAction::Validate,
        "Ask for consent",
        "asks the endpoint again whether it wants events",
    ),
    (SubscriptionAction::Force, RETRY_NOW, RETRY),
];

/// The effect of a retry.
const RETRY: &str = "tries its endpoint now. Events that wait until it recovers or for their retry go out \
    within a minute, and retries that are already in the queue within 15 minutes";

/// The actions that try an endpoint at once.
const TRYING_NOW: [SubscriptionAction; 3] = [
    SubscriptionAction::Resume,
    SubscriptionAction::Enable,
    SubscriptionAction::Force,
];

/// The buttons, and what they do.
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
        div.actions {
            @for (action, label, _) in &possible {
                (button_form(visit, &named.page_path(&[action.as_str()]), "", label))
            }
            @if shown.may_be_sent_to() { (button_form(visit, &named.page_path(&["test"]), "", "Send a test event")) }
        }
        details {
            summary { "What the buttons do" }
            ul.hint {
                @for (_, label, effect) in &possible { li { (label) ": " (effect) "." } }
                @if possible.iter().any(|(action, ..)| TRYING_NOW.contains(action)) {
                    li {
                        "If its whole link is down, that is tried too, and so are other subscriptions whose \
                         endpoint has the same scheme, host and port."
                    }
                }
            }
        }
    }
}

/// Whether the state allows an action, by the rule that the API has.
pub(super) fn is_possible(
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
