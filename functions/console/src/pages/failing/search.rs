//! The filters of the page of what fails.

use maud::{Markup, html};
use posthaste_core::api::FailingState;
use serde::Deserialize;

use crate::address::PageAddress;
use crate::api::RequestTarget;
use crate::filters::FormField;

/// Rows of one page. One with its buttons takes up to 2,500 bytes.
const ROWS_MAX: usize = 25;

/// The states, by the words of the API, each with that of the page.
const STATES: [(&str, &str); 9] = [
    ("failing", "failing"),
    ("down", "down"),
    ("askedToWait", "asked to wait"),
    ("recovering", "recovering"),
    ("paused", "paused"),
    ("pending", "pending"),
    ("refused", "refused"),
    ("disabled", "disabled"),
    ("unknown", "unknown"),
];

/// The query of the page.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct FailingSearch {
    /// Only rows in this state.
    state: Option<FailingState>,
    /// Only rows whose link, topic or subscription has this text.
    name: Option<String>,
    cursor: Option<String>,
}

impl FailingSearch {
    /// The place at which the page begins; none of the first one.
    pub(super) fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// The state that rows are selected by.
    pub(super) fn state(&self) -> Option<FailingState> {
        self.state
    }

    /// Whether a filter holds.
    pub(super) fn is_narrow(&self) -> bool {
        self.state.is_some() || self.name.is_some()
    }

    /// The request for the page.
    pub(super) fn request_target(&self) -> RequestTarget {
        RequestTarget::new(&["failing"])
            .query("name", self.name.as_deref())
            .query("state", self.state)
            .query("limit", Some(ROWS_MAX))
            .query("cursor", self.cursor.as_deref())
    }

    /// The page that begins at this place.
    pub(super) fn page_address(&self, cursor: Option<&str>) -> PageAddress {
        PageAddress::new(&["failing"])
            .query("name", self.name.as_deref())
            .query("state", self.state)
            .query("cursor", cursor)
    }

    /// The form of the filters.
    pub(super) fn filter_form(&self) -> Markup {
        let state = self.state.map(|state| state.to_string());
        let state = FormField::new("state", "State", state.as_deref(), None);
        let name = FormField::new("name", "Name contains", self.name.as_deref(), None)
            .with_example("a host, topic or subscription");
        html! {
            form.filters method="get" action=(PageAddress::new(&["failing"])) {
                (state.labelled_select("(any)", &STATES))
                (name.text_input())
                div { button.primary type="submit" { "Search" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_can_be_chosen_by_its_word() {
        for (state, _) in STATES {
            let search: FailingSearch =
                serde_urlencoded::from_str(&format!("state={state}")).unwrap();
            assert_eq!(search.state.unwrap().to_string(), state);
        }
    }
}
