//! The subscriptions of a topic, as its page lists them.

use maud::{Markup, html};
use posthaste_core::api::{StatusState, SubscriptionPage, SubscriptionSettings};
use posthaste_core::model::SubscriptionName;
use serde::Deserialize;

use crate::address::{self, PageAddress};
use crate::api::{ApiRefusal, ManageApi, RequestTarget};
use crate::display::{CELL_CHARS_MAX, foreign_cut, foreign_text};
use crate::filters::{FormField, ROWS_MAX, list_pager, refusal_note};
use crate::pages::subscription::{filter, health, state, waiting};
use crate::table::TableColumn::{self, Number, Text};
use crate::table::data_table;

/// The columns.
const COLUMNS: [TableColumn; 6] = [
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
    /// Loads a page.
    pub(super) async fn load_subscriptions(
        &self,
        api: &ManageApi,
        topic: &str,
    ) -> Result<SubscriptionPage, ApiRefusal> {
        let target =
            RequestTarget::new(&["topics", topic, "subscriptions"]).query("limit", Some(ROWS_MAX));
        let target = target
            .query("prefix", self.prefix.as_ref())
            .query("state", self.state.as_ref());
        api.get(target.query("cursor", self.cursor.as_ref())).await
    }

    /// The part of the topic's page.
    pub(super) fn list_section(
        &self,
        topic: &str,
        found: &Result<SubscriptionPage, ApiRefusal>,
    ) -> Markup {
        let new = address::topic_path(topic, &["subscriptions", address::NEW]);
        let refusal = found.as_ref().err();
        let list = PageAddress::for_topic(topic).query("prefix", self.prefix.as_ref());
        let list = list.query("state", self.state.as_ref());
        let is_whole = self.prefix.is_none() && self.state.is_none() && self.cursor.is_none();
        let is_bare = is_whole
            && found
                .as_ref()
                .is_ok_and(|page| page.subscriptions.is_empty());
        html! {
            h2 { "Subscriptions" }
            div.actions { a.button.primary href=(new) { "New subscription" } }
            @if !is_bare { (self.filter_form(topic, refusal)) }
            @if let Some(refusal) = refusal { (refusal_note(refusal, &["prefix", "state"])) }
            section #subscriptions data-live aria-label="Subscriptions" {
                @if let Ok(page) = found {
                    @if page.subscriptions.is_empty() {
                        (self.empty_note(&new, is_bare))
                    } @else {
                        (subscription_table(topic, page))
                    }
                }
            }
            @if let Ok(page) = found { (list_pager(&list, self.cursor.as_deref(), page.cursor.as_deref())) }
        }
    }

    fn filter_form(&self, topic: &str, refusal: Option<&ApiRefusal>) -> Markup {
        let prefix = self.prefix.as_deref();
        let prefix = FormField::new("prefix", "Name begins with", prefix, refusal);
        let state = FormField::new("state", "State", self.state.as_deref(), refusal);
        let states = STATES.map(|state| state.to_string());
        let states = states.each_ref().map(String::as_str);
        html! {
            form.filters method="get" action=(PageAddress::for_topic(topic)) {
                (prefix.with_example("billing").text_input())
                (state.word_select("(any)", &states))
                div { button type="submit" { "Search" } }
            }
        }
    }

    fn empty_note(&self, new: &str, is_bare: bool) -> Markup {
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

fn subscription_table(topic: &str, page: &SubscriptionPage) -> Markup {
    data_table(
        "Subscriptions of the topic",
        &COLUMNS,
        page.subscriptions
            .iter()
            .map(|it| subscription_row(topic, it)),
    )
}

fn subscription_row(topic: &str, settings: &SubscriptionSettings) -> [Markup; 6] {
    let name = settings
        .name
        .as_ref()
        .map(SubscriptionName::as_str)
        .unwrap_or_default();
    // The query of a URL may hold a token. The page of the subscription has it.
    let url = settings.endpoint.url.split('?').next().unwrap_or_default();
    [
        html! { a href=(address::subscription_path(topic, name, &[])) { (foreign_text(name)) } },
        html! { @if let Some(status) = &settings.status { (state::status_badge(status.state)) } },
        health::state_badge(settings),
        html! { (waiting::count_text(settings)) },
        foreign_cut(url, CELL_CHARS_MAX),
        foreign_cut(&filter::summary(&settings.filter), CELL_CHARS_MAX),
    ]
}
