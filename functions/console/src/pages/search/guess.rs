//! The meanings that a text of the search box may have, by its form.

use posthaste_core::api::UrlSearch;
use posthaste_core::model::{NAME_BYTES_MAX, URL_BYTES_MAX};
use posthaste_core::stored::EventReference;

/// The first guess at a text. It only orders the page: all that fits is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchGuess {
    LetterKey,
    WebhookId,
    EndpointUrl,
    /// An event's id, or the name of a subscription: nobody can tell.
    IdOrName,
    EventId,
}

impl SearchGuess {
    /// The guess at a text.
    pub(super) fn from_text(text: &str) -> Self {
        let known_by = EventReference::from_text(text);
        if known_by.dead_letter.is_some() {
            Self::LetterKey
        } else if known_by.webhook_id.is_some() {
            Self::WebhookId
        } else if name_in(text).is_some() {
            Self::IdOrName
        } else if url_in(text).is_some() {
            Self::EndpointUrl
        } else {
            Self::EventId
        }
    }

    /// The beginning of a subscription's name, if the text may be one.
    pub(super) fn name(self, text: &str) -> Option<&str> {
        (self == Self::IdOrName).then(|| name_in(text)).flatten()
    }

    /// The host or the URL of an endpoint, if the text may be one. A name may be a host.
    pub(super) fn url(self, text: &str) -> Option<&str> {
        let may_be = matches!(self, Self::IdOrName | Self::EndpointUrl);
        may_be.then(|| url_in(text)).flatten()
    }
}

fn name_in(text: &str) -> Option<&str> {
    let name = text.trim();
    let is_of_names = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (is_of_names && (1..=NAME_BYTES_MAX).contains(&name.len())).then_some(name)
}

fn url_in(text: &str) -> Option<&str> {
    let url = text.trim();
    let is_one_word = !url.contains(|it: char| it.is_whitespace() || it.is_control());
    let fits = is_one_word && url.len() <= URL_BYTES_MAX;
    (fits && UrlSearch::parse(url).is_some()).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, guess: SearchGuess, has_name: bool, has_url: bool) {
        let found = SearchGuess::from_text(text);
        assert_eq!(
            (found, found.name(text).is_some(), found.url(text).is_some()),
            (guess, has_name, has_url),
            "{text:?}"
        );
    }

    #[test]
    fn form_of_a_text_orders_what_is_searched() {
        let key = "ORDERS/BILLING/2026/11/21/9/0b8b9c5e-6a0c-4a57-9d0c-3c2a7d1f6f1e.json";
        check(key, SearchGuess::LetterKey, false, false);
        check(" msg_1-0\n", SearchGuess::WebhookId, false, false);
        check("billing", SearchGuess::IdOrName, true, true);
        check(" Order-1001 ", SearchGuess::IdOrName, true, true);
        check("billing.example.com", SearchGuess::EndpointUrl, false, true);
        check(
            "https://a.example/x?y",
            SearchGuess::EndpointUrl,
            false,
            true,
        );
        check("a/b%41", SearchGuess::EndpointUrl, false, true);
        check("no url", SearchGuess::EventId, false, false);
        check("/hooks", SearchGuess::EventId, false, false);
        check("\u{202e}\u{0}", SearchGuess::EventId, false, false);
        check(&"x".repeat(65), SearchGuess::EndpointUrl, false, true);
        check(&"x".repeat(2_049), SearchGuess::EventId, false, false);
    }
}
