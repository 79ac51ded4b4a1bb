//! A topic.

mod publishing;
mod subscriptions;

use axum::http::{HeaderMap, StatusCode};
use futures_util::future::join;
use maud::{Markup, html};
use posthaste_core::api::TopicSettings;
use posthaste_core::model::SubscriptionName;

use self::publishing::publish_section;
use self::subscriptions::SubscriptionSearch;
use crate::address;
use crate::api::{ApiRefusal, RequestTarget};
use crate::console::PageContext;
use crate::display::foreign_text;
use crate::extract::{PageQuery, PathParts};
use crate::page::{ConsolePage, MenuSection, PageResult, problem_box};
use crate::pages::deletion;
use crate::parts::{DoneNoticeQuery, duration_text, fact};
use crate::visit::PageVisit;

/// The notices of actions.
const DONE: [(&str, &str); 4] = [
    ("created", "The topic was created."),
    ("saved", "The topic was saved."),
    ("key-deleted", "The key was deleted."),
    ("subscription-deleted", "The subscription was deleted."),
];

/// Most subscriptions that are named where their topic is deleted.
const NAMES_SHOWN_MAX: usize = 5;

/// The page.
pub(crate) async fn show_page(
    pages: PageContext,
    visit: PageVisit,
    PathParts([name]): PathParts<1>,
    PageQuery(done): PageQuery<DoneNoticeQuery>,
    PageQuery(search): PageQuery<SubscriptionSearch>,
    headers: HeaderMap,
) -> PageResult {
    let topic = pages
        .api
        .get::<TopicSettings>(RequestTarget::new(&["topics", &name]));
    let (topic, page) = join(topic, search.load_subscriptions(&pages.api, &name)).await;
    let topic = match topic {
        Err(refusal) if refusal.status_code() == StatusCode::INTERNAL_SERVER_ERROR => {
            return Ok(unreadable_page(&visit, &name, &refusal));
        }
        topic => topic?,
    };
    let name = topic
        .name
        .as_ref()
        .map_or(name.as_str(), |name| name.as_str());
    let body = html! {
        (done.notice(visit.now, &DONE))
        (tab_links(name))
        (topic_facts(&topic))
        div.actions {
            a.button href=(address::with_query(&address::page_path(&["events"]), &[("topic", name)])) { "Events" }
            a.button href=(address::with_query(&address::page_path(&["dead-letters"]), &[("topic", name)])) {
                "Dead letters"
            }
        }
        (search.list_section(name, &page))
        (publish_section(&visit, name, &topic, &headers))
        h2 { "Delete" }
        (deletion::confirm_form(&visit, "topic", name, &address::topic_path(name, &["delete"]), &deleted_with_topic(&topic)))
    };
    let status = page.map_or_else(|refusal| refusal.status_code(), |_| StatusCode::OK);
    Ok(ConsolePage::new(name, body)
        .in_section(MenuSection::Topics)
        .with_status(status))
}

/// The tabs. Settings have a page of their own.
fn tab_links(name: &str) -> Markup {
    let settings = address::topic_path(name, &["edit"]);
    html! {
        nav.actions aria-label="Parts of the topic" {
            a.button href=(address::topic_path(name, &[])) aria-current="page" { "Now" }
            a.button href=(settings) { "Settings" }
            a.button href={ (settings) "?tab=yaml" } { "YAML" }
        }
    }
}

fn topic_facts(topic: &TopicSettings) -> Markup {
    html! {
        dl.facts {
            (fact("Schema of events", &html! { (format!("{:?}", topic.input_schema)) }))
            @if topic.input_mapping.is_some() {
                (fact("Input mapping", &html! { "(see settings)" }))
            }
            (fact("Time to live", &topic.default_time_to_live.map_or_else(|| html! { "no bound" }, |length| html! { (duration_text(length)) })))
            (fact("Delivery log", &delivery_log_text(topic)))
            @if let Some(notices) = &topic.notices_topic {
                (fact("Notices go to", &html! {
                    a href=(address::topic_path(notices.as_str(), &[])) { (foreign_text(notices.as_str())) }
                }))
            }
            @if let Some(idle) = topic.auto_delete_on_idle {
                (fact("Deleted when idle for", &html! { (duration_text(idle)) }))
            }
        }
    }
}

fn delivery_log_text(topic: &TopicSettings) -> Markup {
    html! {
        @match topic.delivery_log {
            Some(mode) => (mode),
            None => "installation default",
        }
    }
}

/// The page of a topic whose record cannot be read: all that can be done here is to delete it.
fn unreadable_page(visit: &PageVisit, name: &str, refusal: &ApiRefusal) -> ConsolePage {
    let body = html! {
        (problem_box(refusal))
        p { "The topic takes no events until its record is repaired, or deleted and written again." }
        h2 { "Delete" }
        (deletion::confirm_form(visit, "topic", name, &address::topic_path(name, &["delete"]), &all_deleted_with_topic()))
    };
    ConsolePage::new(name, body)
        .in_section(MenuSection::Topics)
        .with_status(refusal.status_code())
}

fn all_deleted_with_topic() -> Markup {
    html! { "Its subscriptions and its keys are deleted too. " }
}

/// The subscriptions that are deleted with the topic: how many, and the first ones.
fn deleted_with_topic(topic: &TopicSettings) -> Markup {
    let names: Vec<_> = topic
        .subscriptions
        .keys()
        .map(SubscriptionName::as_str)
        .collect();
    let more = if names.len() > NAMES_SHOWN_MAX {
        ", …"
    } else {
        ""
    };
    let first = names
        .iter()
        .take(NAMES_SHOWN_MAX)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    html! {
        "Its "
        @match names.len() {
            0 => {}
            1 => { "subscription " (foreign_text(&first)) " and its " }
            count => { (count) " subscriptions (" (foreign_text(&first)) (more) ") and its " }
        }
        "keys are deleted too. "
    }
}
