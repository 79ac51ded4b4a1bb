//! States of links in words.

use maud::{Markup, html};
use posthaste_core::api::LinkState;

/// The state in a word.
pub(crate) fn state_badge(state: LinkState) -> Markup {
    let (class, word, _) = state_words(state);
    html! { span class={ "badge " (class) } { (word) } }
}

/// The meaning of the state.
pub(crate) fn state_meaning(state: LinkState) -> &'static str {
    state_words(state).2
}

const fn state_words(state: LinkState) -> (&'static str, &'static str, &'static str) {
    match state {
        LinkState::Glitch => (
            "bad",
            "glitch",
            "requests failed or were refused just now; events wait in the queue",
        ),
        LinkState::RetryAfter => ("warn", "asked to wait", "the endpoint asked for a pause"),
        LinkState::Retry => (
            "bad",
            "down",
            "requests have failed or were refused for minutes; events are held",
        ),
        LinkState::Recovering => (
            "warn",
            "recovering",
            "it answered again or was forced; requests go out little by little",
        ),
        LinkState::Paused => ("warn", "paused", "an operator paused the subscription"),
        LinkState::Pending => ("warn", "pending", "the endpoint has not consented yet"),
        LinkState::Failed => ("bad", "failed", "the endpoint did not consent"),
        LinkState::Releasing => ("good", "releasing", "held events go out"),
        LinkState::Unknown => ("bad", "unknown", "the topic's record cannot be read"),
    }
}
