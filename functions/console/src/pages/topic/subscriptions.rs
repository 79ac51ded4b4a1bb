//! The subscriptions of a topic, as its page lists them.

use maud::{Markup, html};
use posthaste_core::api::{SubscriptionPage, SubscriptionSettings};
use posthaste_core::model::SubscriptionName;

use crate::address::{self, Address};
use crate::filters::pager_of;
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

pub(super) fn subscriptions(topic: &str, page: &SubscriptionPage, cursor: Option<&str>) -> Markup {
    let new = address::topic(topic, &["subscriptions", address::NEW]);
    html! {
        h2 { "Subscriptions" }
        @if page.subscriptions.is_empty() {
            p.empty {
                "This topic has no subscription, so its events go nowhere. "
                a href=(new) { "Make the first subscription" }
                ", and then "
                a href="#publish" { "publish an event" } "."
            }
        } @else {
            div.actions { a.button.primary href=(new) { "New subscription" } }
            section #subscriptions data-live aria-label="Subscriptions" { (rows(topic, page)) }
        }
        (pager_of(&Address::topic(topic), cursor, page.cursor.as_deref()))
    }
}

fn rows(topic: &str, page: &SubscriptionPage) -> Markup {
    table("Subscriptions of the topic", &COLUMNS, page.subscriptions.iter().map(|it| row(topic, it)))
}

fn row(topic: &str, settings: &SubscriptionSettings) -> Markup {
    let name = settings.name.as_ref().map(SubscriptionName::as_str).unwrap_or_default();
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
