//! Topics.

use maud::{Markup, html};
use posthaste_core::api::{TopicPage, TopicSummary, UnreadableTopic};
use serde::Deserialize;

use crate::address::{self, Address};
use crate::api::Target;
use crate::asked::Query;
use crate::console::Pages;
use crate::filters::{Field, ROWS_MAX, pager_of};
use crate::page::{Answer, Page, Section};
use crate::parts::{DoneAsked, duration};
use crate::shown::{foreign, number, time};
use crate::table::Column::{self, Number, Text};
use crate::table::table;
use crate::visit::Visit;

/// The columns.
const COLUMNS: [Column; 6] = [
    Text("Topic"),
    Text("Schema"),
    Number("Subscriptions"),
    Text("Time to live"),
    Text("Created"),
    Text("Last written"),
];

/// Notices of actions that led to the page.
const DONE: [(&str, &str); 1] = [("deleted", "The topic was deleted.")];

/// The filter of the list.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct TopicSearch {
    prefix: Option<String>,
    cursor: Option<String>,
}

impl TopicSearch {
    fn form(&self) -> Markup {
        let label = "Name begins with";
        let value = self.prefix.as_deref();
        let field = Field {
            name: "prefix",
            label,
            value,
            example: "orders",
            refusal: None,
        };
        html! {
            form.filters method="get" action=(Address::new(&["topics"])) {
                (field.text())
                div { button.primary type="submit" { "Search" } }
            }
        }
    }
}

/// The page.
pub(crate) async fn topics(
    pages: Pages,
    visit: Visit,
    Query(done): Query<DoneAsked>,
    Query(search): Query<TopicSearch>,
) -> Answer {
    let prefix = search.prefix.as_deref();
    let target = Target::new(&["topics"])
        .query("prefix", prefix)
        .query("limit", Some(ROWS_MAX));
    let page: TopicPage = pages
        .api
        .get(target.query("cursor", search.cursor.as_ref()))
        .await?;
    let is_empty = page.topics.is_empty() && page.unreadable.is_empty();
    let list = Address::new(&["topics"]).query("prefix", prefix);
    let body = html! {
        (done.notice(visit.now, &DONE))
        div.actions { a.button.primary href=(address::page(&["topics", address::NEW])) { "New topic" } }
        @if !is_empty || prefix.is_some() { (search.form()) }
        @if is_empty {
            p.empty {
                @if page.cursor.is_some() { "No topic is on this page. There may be some on the next ones." }
                @else if search.cursor.is_some() { "There are no more topics." }
                @else if prefix.is_some() { "No topic has a name that begins like this." }
                @else { "There is no topic yet. Producers publish to a topic, so make one first." }
            }
        } @else {
            (unreadable(&page.unreadable))
            @if !page.topics.is_empty() { (table("Topics", &COLUMNS, page.topics.iter().map(row))) }
        }
        (pager_of(&list, search.cursor.as_deref(), page.cursor.as_deref()))
    };
    Ok(Page::new("Topics", body).of(Section::Topics))
}

fn row(topic: &TopicSummary) -> Markup {
    let subscriptions = u64::try_from(topic.subscription_count).unwrap_or(u64::MAX);
    html! {
        tr {
            td { (link(topic.name.as_str())) }
            td { (format!("{:?}", topic.input_schema)) }
            td.number { (number(subscriptions)) }
            td { (topic.default_time_to_live.map(duration).unwrap_or_default()) }
            td { (time(topic.created_at.0)) }
            td { (time(topic.updated_at.0)) }
        }
    }
}

fn unreadable(topics: &[UnreadableTopic]) -> Markup {
    html! {
        @if !topics.is_empty() {
            section.problem aria-label="Topics that cannot be read" {
                p {
                    "The records of these topics cannot be read. They take no events until that is repaired."
                }
                ul { @for topic in topics { li { (link(&topic.name)) ": " (foreign(&topic.detail)) } } }
            }
        }
    }
}

fn link(topic: &str) -> Markup {
    html! { a href=(address::topic(topic, &[])) { (foreign(topic)) } }
}
