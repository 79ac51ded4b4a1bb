//! Topics.

use maud::{Markup, html};
use posthaste_core::api::{TopicPage, TopicSummary, UnreadableTopic};
use serde::Deserialize;

use crate::address::{self, PageAddress};
use crate::api::RequestTarget;
use crate::console::PageContext;
use crate::display::{foreign_text, number, time_tag};
use crate::extract::PageQuery;
use crate::filters::{FormField, ROWS_MAX, list_pager};
use crate::page::{ConsolePage, MenuSection, PageResult};
use crate::parts::{DoneNoticeQuery, duration_text};
use crate::table::TableColumn::{self, Number, Text};
use crate::table::data_table;
use crate::visit::PageVisit;

/// The columns.
const COLUMNS: [TableColumn; 6] = [
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
    fn filter_form(&self) -> Markup {
        let prefix = FormField::new("prefix", "Name begins with", self.prefix.as_deref(), None);
        html! {
            form.filters method="get" action=(PageAddress::new(&["topics"])) {
                (prefix.with_example("orders").text_input())
                div { button.primary type="submit" { "Search" } }
            }
        }
    }
}

/// The page.
pub(crate) async fn show_page(
    pages: PageContext,
    visit: PageVisit,
    PageQuery(done): PageQuery<DoneNoticeQuery>,
    PageQuery(search): PageQuery<TopicSearch>,
) -> PageResult {
    let prefix = search.prefix.as_deref();
    let target = RequestTarget::new(&["topics"])
        .query("prefix", prefix)
        .query("limit", Some(ROWS_MAX));
    let page: TopicPage = pages
        .api
        .get(target.query("cursor", search.cursor.as_ref()))
        .await?;
    let is_empty = page.topics.is_empty() && page.unreadable.is_empty();
    let list = PageAddress::new(&["topics"]).query("prefix", prefix);
    let body = html! {
        (done.notice(visit.now, &DONE))
        div.actions { a.button.primary href=(address::page_path(&["topics", address::NEW])) { "New topic" } }
        @if !is_empty || prefix.is_some() { (search.filter_form()) }
        @if is_empty {
            p.empty {
                @if page.cursor.is_some() { "No topic is on this page. There may be some on the next ones." }
                @else if search.cursor.is_some() { "There are no more topics." }
                @else if prefix.is_some() { "No topic has a name that begins like this." }
                @else { "There is no topic yet. Producers publish to a topic, so make one first." }
            }
        } @else {
            (unreadable_list(&page.unreadable))
            @if !page.topics.is_empty() { (data_table("Topics", &COLUMNS, page.topics.iter().map(topic_row))) }
        }
        (list_pager(&list, search.cursor.as_deref(), page.cursor.as_deref()))
    };
    Ok(ConsolePage::new("Topics", body).in_section(MenuSection::Topics))
}

fn topic_row(topic: &TopicSummary) -> [Markup; 6] {
    let subscriptions = u64::try_from(topic.subscription_count).unwrap_or(u64::MAX);
    let time_to_live = topic.default_time_to_live.map(duration_text);
    [
        topic_link(topic.name.as_str()),
        html! { (format!("{:?}", topic.input_schema)) },
        html! { (number(subscriptions)) },
        html! { (time_to_live.unwrap_or_default()) },
        time_tag(topic.created_at.0),
        time_tag(topic.updated_at.0),
    ]
}

fn unreadable_list(topics: &[UnreadableTopic]) -> Markup {
    html! {
        @if !topics.is_empty() {
            section.problem aria-label="Topics that cannot be read" {
                p {
                    "The records of these topics cannot be read. They take no events until that is repaired."
                }
                ul { @for topic in topics { li { (topic_link(&topic.name)) ": " (foreign_text(&topic.detail)) } } }
            }
        }
    }
}

fn topic_link(topic: &str) -> Markup {
    html! { a href=(address::topic_path(topic, &[])) { (foreign_text(topic)) } }
}
