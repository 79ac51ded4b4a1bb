//! The filters of the page of links. The API returns all rows at once, and the page itself selects
//! among them.

use maud::{Markup, html};
use posthaste_core::api::{LinkState, LinkView};
use posthaste_core::model::{SubscriptionName, TopicName};
use serde::Deserialize;

use crate::address::PageAddress;
use crate::filters::FormField;

/// The states, by the words of the API.
const STATES: [&str; 9] = [
    "glitch",
    "retryAfter",
    "retry",
    "recovering",
    "paused",
    "pending",
    "failed",
    "releasing",
    "unknown",
];

/// The query of the page.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct LinkSearch {
    /// Only rows of this state.
    state: Option<LinkState>,
    /// Only rows whose link, topic or subscription has this text.
    name: Option<String>,
    /// The number of selected rows before the page.
    #[serde(default)]
    pub(super) after: usize,
}

impl LinkSearch {
    /// Whether a row is selected.
    pub(super) fn is_selected(&self, link: &LinkView) -> bool {
        self.state.is_none_or(|state| state == link.state)
            && self
                .name
                .as_deref()
                .is_none_or(|name| has_name_with(link, name))
    }

    /// The page that begins after this many selected rows.
    pub(super) fn page_address(&self, after: usize) -> PageAddress {
        let address = PageAddress::new(&["links"])
            .query("state", self.state_word())
            .query("name", self.name.as_ref());
        address.query("after", (after > 0).then_some(after))
    }

    /// The form of the filters.
    pub(super) fn filter_form(&self) -> Markup {
        let state = self.state_word();
        let state = FormField::new("state", "State", state.as_deref(), None);
        let name = FormField::new("name", "Name contains", self.name.as_deref(), None)
            .with_example("a link, topic or subscription");
        html! {
            form.filters method="get" action=(PageAddress::new(&["links"])) {
                (state.word_select("(any)", &STATES))
                (name.text_input())
                div { button.primary type="submit" { "Search" } }
            }
        }
    }

    /// The state, as the API writes it.
    fn state_word(&self) -> Option<String> {
        let word = serde_json::to_value(self.state?).ok()?;
        word.as_str().map(str::to_owned)
    }
}

/// Whether the name of the link, of its topic or of its subscription has a text in it.
fn has_name_with(link: &LinkView, text: &str) -> bool {
    let topic = link.topic.as_ref().map(TopicName::as_str);
    let subscription = link.subscription.as_ref().map(SubscriptionName::as_str);
    let names = [link.link.as_deref(), topic, subscription];
    names
        .into_iter()
        .flatten()
        .any(|name| name.to_lowercase().contains(&text.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_can_be_chosen_by_its_word() {
        for state in STATES {
            let search: LinkSearch = serde_urlencoded::from_str(&format!("state={state}")).unwrap();
            assert_eq!(search.state_word().as_deref(), Some(state));
        }
    }
}
