//! The query of the search page.

use posthaste_core::api::events::EncodedId;
use serde::Deserialize;

/// The query of the page.
#[derive(Debug, Default, Deserialize)]
pub(super) struct SearchPageQuery {
    q: Option<String>,
    /// The same text in base64url, where it would be too long.
    q64: Option<EncodedId>,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    /// The cursor of the next page of subscriptions by their names.
    pub(super) names: Option<String>,
    /// The same by their URLs.
    pub(super) urls: Option<String>,
    /// The number of events that pages before this one had.
    #[serde(default)]
    pub(super) skip: usize,
    /// Whether the log is searched for as long as the API does, also where the text may be a name.
    #[serde(default)]
    pub(super) long: bool,
}

impl SearchPageQuery {
    /// The text that is looked for, if there is one.
    pub(super) fn text(&self) -> Option<&str> {
        let encoded = self.q64.as_ref().map(|text| text.0.as_str());
        encoded
            .or(self.q.as_deref())
            .filter(|text| !text.trim().is_empty())
    }

    /// Whether it asks for more of one list.
    pub(super) fn is_next_page(&self) -> bool {
        self.is_of_subscriptions() || self.skip > 0
    }

    /// Whether it asks for more subscriptions.
    pub(super) fn is_of_subscriptions(&self) -> bool {
        self.names.is_some() || self.urls.is_some()
    }
}
