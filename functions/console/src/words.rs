//! The words of pages for states, results and figures: one place, so that every page says the same.
//! The API and the command line keep their own words; the page `/words` has both.

use maud::{Markup, html};
use posthaste_core::api::LinkState;
use posthaste_core::delivery_log::{DeliveryState, LogResult};
use posthaste_core::health::HealthState;

use crate::console::PATH;

/// The button that ends the pauses of an endpoint (the API's `force`).
pub(crate) const RETRY_NOW: &str = "Retry now";

/// The heading of a time that an endpoint took to answer.
pub(crate) const RESPONSE_TIME: &str = "Response time";

/// The place of events that wait because their endpoint is down or their subscription is stopped (the
/// API's `held`).
pub(crate) const WAITING_FOR_RECOVERY: &str = "waiting until it recovers";

/// The place of events whose next attempt is more than 15 minutes ahead (the API's `parked`).
pub(crate) const WAITING_FOR_RETRY: &str = "waiting for its retry";

/// A word of a page, with its colour and its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StateWord {
    class: &'static str,
    pub(crate) word: &'static str,
    /// The meaning in half a sentence; empty where the word says it.
    pub(crate) meaning: &'static str,
}

impl StateWord {
    const fn good(word: &'static str, meaning: &'static str) -> Self {
        Self::new("good", word, meaning)
    }

    const fn warn(word: &'static str, meaning: &'static str) -> Self {
        Self::new("warn", word, meaning)
    }

    const fn bad(word: &'static str, meaning: &'static str) -> Self {
        Self::new("bad", word, meaning)
    }

    const fn plain(word: &'static str, meaning: &'static str) -> Self {
        Self::new("", word, meaning)
    }

    const fn new(class: &'static str, word: &'static str, meaning: &'static str) -> Self {
        Self {
            class,
            word,
            meaning,
        }
    }

    /// The word on its colour.
    pub(crate) fn badge(self) -> Markup {
        html! { span class={ "badge " (self.class) } { (self.word) } }
    }
}

/// The word for the health of a subscription.
pub(crate) const fn health_word(state: HealthState) -> StateWord {
    match state {
        HealthState::Healthy => StateWord::good("healthy", "its events arrive"),
        HealthState::Failing => StateWord::bad("failing", "too few of its events arrive"),
        HealthState::Down => StateWord::bad("down", "none of its events arrives"),
        HealthState::Paused => StateWord::warn("paused", "an operator paused it"),
        HealthState::Pending => StateWord::warn("pending", "its endpoint has not consented yet"),
        HealthState::Refused => StateWord::bad("refused", "its endpoint did not consent"),
        HealthState::Disabled => StateWord::warn(
            "disabled",
            "its endpoint is gone, or an operator disabled it",
        ),
        HealthState::Unknown => StateWord::warn("unknown", "no records are kept of its deliveries"),
    }
}

/// The word for the state of a link, or of a subscription to which requests pause.
pub(crate) const fn link_word(state: LinkState) -> StateWord {
    match state {
        LinkState::Glitch => StateWord::bad(
            "failing",
            "requests failed or were refused just now; the next try is within a minute",
        ),
        LinkState::RetryAfter => StateWord::warn("asked to wait", "the endpoint asked for a pause"),
        LinkState::Retry => StateWord::bad(
            "down",
            "requests have failed or were refused for minutes; events wait until it recovers",
        ),
        LinkState::Recovering => StateWord::warn(
            "recovering",
            "it answered again, or an operator asked for a retry; requests go out little by little",
        ),
        LinkState::Paused => StateWord::warn("paused", "an operator paused the subscription"),
        LinkState::Pending => StateWord::warn("pending", "the endpoint has not consented yet"),
        LinkState::Failed => StateWord::bad("refused", "the endpoint did not consent"),
        LinkState::Releasing => StateWord::good("sending", "events that waited go out"),
        LinkState::Unknown => StateWord::bad("unknown", "the topic's record cannot be read"),
    }
}

/// The word for the state of a delivery, or of an event as a whole.
pub(crate) const fn delivery_word(state: DeliveryState) -> StateWord {
    match state {
        DeliveryState::Pending => StateWord::warn("pending", "there is no attempt yet"),
        DeliveryState::Unmatched => StateWord::plain("unmatched", "no subscription wanted it"),
        DeliveryState::Waiting => StateWord::warn("waiting", "it will be tried, or tried again"),
        DeliveryState::Held => StateWord::warn(WAITING_FOR_RECOVERY, ""),
        DeliveryState::Delivered => StateWord::good("delivered", "the endpoint took it"),
        DeliveryState::DeadLettered => StateWord::bad(
            "dead-lettered",
            "it is a dead letter, or on its way to become one",
        ),
        DeliveryState::Dropped => StateWord::bad(
            "dropped",
            "it was given up, and no dead letter is kept of it",
        ),
        DeliveryState::Unknown => StateWord::plain("unknown", "a newer program wrote its record"),
    }
}

/// The word for the result in a record. A record is never changed, so that of a failure does not say
/// that the event still waits.
pub(crate) const fn result_word(result: LogResult) -> StateWord {
    match result {
        LogResult::Retry => StateWord::plain("retried later", "the attempt failed"),
        _ => delivery_word(result.delivery_state()),
    }
}

/// A word of posthaste's own, with the way to its meaning on the page of words, for the few places
/// where it stays.
pub(crate) fn explained_word(anchor: &str, shown: &str) -> Markup {
    html! { a href={ (PATH) "/words#" (anchor) } { (shown) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that only the glossary, the page of pressure and settings have.
    const SEED_WORDS: [&str; 5] = ["glitch", "tarpit", "held", "force", "parked"];

    const HEALTH_STATES: [HealthState; 8] = [
        HealthState::Healthy,
        HealthState::Failing,
        HealthState::Down,
        HealthState::Paused,
        HealthState::Pending,
        HealthState::Refused,
        HealthState::Disabled,
        HealthState::Unknown,
    ];

    const LINK_STATES: [LinkState; 9] = [
        LinkState::Glitch,
        LinkState::RetryAfter,
        LinkState::Retry,
        LinkState::Recovering,
        LinkState::Paused,
        LinkState::Pending,
        LinkState::Failed,
        LinkState::Releasing,
        LinkState::Unknown,
    ];

    #[test]
    fn no_word_of_a_state_is_a_seed_word() {
        let health = HEALTH_STATES.map(health_word);
        let links = LINK_STATES.map(link_word);
        let deliveries = DeliveryState::ALL.iter().copied().map(delivery_word);
        let results = LogResult::ALL.iter().copied().map(result_word);
        let places = [
            RETRY_NOW,
            RESPONSE_TIME,
            WAITING_FOR_RECOVERY,
            WAITING_FOR_RETRY,
        ];
        let states = health
            .into_iter()
            .chain(links)
            .chain(deliveries)
            .chain(results);
        let texts = states.flat_map(|state| [state.word, state.meaning]);
        for text in texts.chain(places) {
            for seed in SEED_WORDS {
                assert!(!text.to_lowercase().contains(seed), "{text}");
            }
        }
    }

    #[test]
    fn a_badge_has_the_word_on_its_colour() {
        assert_eq!(
            link_word(LinkState::Glitch).badge().into_string(),
            r#"<span class="badge bad">failing</span>"#
        );
        assert_eq!(result_word(LogResult::Retry).word, "retried later");
    }
}
