//! The subscriptions of a topic, as its page lists them.

use maud::{Markup, html};
use posthaste_core::api::{StatusState, SubscriptionPage, SubscriptionSettings};
use posthaste_core::model::SubscriptionName;
use serde::Deserialize;

use crate::address::{self, Address};
use crate::api::{Api, Refusal, Target};
use crate::filters::{Field, ROWS_MAX, pager_of, refused};
use crate::pages::subscription::{filter, health, state, waiting};
use crate::shown::{CELL_CHARS_MAX, foreign, foreign_cut};
use crate::table::Column::{self, Number, Text};
use crate::table::table;

/// The columns.
const COLUMNS: [Column; 6] = [
    Text("Subscription"),
    Text("State"),
    Text("Health"),
    Number("Waiting"),
    Text("Endpoint"),
    Text("Filter"),
];

/// The states that the list is filtered by.
const STATES: [StatusState; 5] = [
    StatusState::Active,
    StatusState::Pending,
    StatusState::Paused,
    StatusState::Failed,
    StatusState::Disabled,
];

/// The filters of the list.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct SubscriptionSearch {
    prefix: Option<String>,
    state: Option<String>,
    cursor: Option<String>,
}

impl SubscriptionSearch {
    /// Asks for a page.
    pub(super) async fn subscriptions(
        &self,
        api: &Api,
        topic: &str,
    ) -> Result<SubscriptionPage, Refusal> {
        let target =
            Target::new(&["topics", topic, "subscriptions"]).query("limit", Some(ROWS_MAX));
        let target = target
            .query("prefix", self.prefix.as_ref())
            .query("state", self.state.as_ref());
        api.get(target.query("cursor", self.cursor.as_ref())).await
    }

    /// The part of the topic's page.
    pub(super) fn section(&self, topic: &str, found: &Result<SubscriptionPage, Refusal>) -> Markup {
        let new = address::topic(topic, &["subscriptions", address::NEW]);
        let refusal = found.as_ref().err();
        let list = Address::topic(topic).query("prefix", self.prefix.as_ref());
        let list = list.query("state", self.state.as_ref());
        let is_whole = self.prefix.is_none() && self.state.is_none() && self.cursor.is_none();
        let is_bare = is_whole
            && found
                .as_ref()
                .is_ok_and(|page| page.subscriptions.is_empty());
        html! {
            h2 { "Subscriptions" }
            div.actions { a.button.primary href=(new) { "New subscription" } }
            @if !is_bare { (self.form(topic, refusal)) }
            @if let Some(refusal) = refusal { (refused(refusal, &["prefix", "state"])) }
            section #subscriptions data-live aria-label="Subscriptions" {
                @if let Ok(page) = found {
                    @if page.subscriptions.is_empty() {
                        (self.none(&new, is_bare))
                    } @else {
                        (rows(topic, page))
                    }
                }
            }
            @if let Ok(page) = found { (pager_of(&list, self.cursor.as_deref(), page.cursor.as_deref())) }
        }
    }

    fn form(&self, topic: &str, refusal: Option<&Refusal>) -> Markup {
        let prefix = Field {
            name: "prefix",
            label: "Name begins with",
            value: self.prefix.as_deref(),
            example: "billing",
            refusal,
        };
        let state = Field {
            name: "state",
            label: "State",
            value: self.state.as_deref(),
            example: "",
            refusal,
        };
        let states = STATES.map(|state| state.to_string());
        let states = states.each_ref().map(String::as_str);
        html! {
            form.filters method="get" action=(Address::topic(topic)) {
                (prefix.text())
                (state.choice("(any)", &states))
                div { button type="submit" { "Search" } }
            }
        }
    }

    fn none(&self, new: &str, is_bare: bool) -> Markup {
        html! {
            p.empty {
                @if is_bare {
                    "This topic has no subscription, so its events go nowhere. "
                    a href=(new) { "Make the first subscription" }
                    ", and then "
                    a href="#publish" { "publish an event" } "."
                } @else if self.cursor.is_some() {
                    "There are no more subscriptions. Go back to the first page."
                } @else {
                    "No subscription has these values. Leave a filter out to see more."
                }
            }
        }
    }
}

fn rows(topic: &str, page: &SubscriptionPage) -> Markup {
    table(
        "Subscriptions of the topic",
        &COLUMNS,
        page.subscriptions.iter().map(|it| row(topic, it)),
    )
}

fn row(topic: &str, settings: &SubscriptionSettings) -> Markup {
    let name = settings
        .name
        .as_ref()
        .map(SubscriptionName::as_str)
        .unwrap_or_default();
    // The query of a URL may hold a token. The page of the subscription has it.
    let url = settings.endpoint.url.split('?').next().unwrap_or_default();
    html! {
        tr {
            td { a href=(address::subscription(topic, name, &[])) { (foreign(name)) } }
            td { @if let Some(status) = &settings.status { (state::badge(status.state)) } }
            td { (health::badge(settings)) }
            td.number { (waiting::count(settings)) }
            td { (foreign_cut(url, CELL_CHARS_MAX)) }
            td { (foreign_cut(&filter::in_words(&settings.filter), CELL_CHARS_MAX)) }
        }
    }
}
