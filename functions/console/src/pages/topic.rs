//! A topic.

mod publishing;
mod subscriptions;

use axum::http::{HeaderMap, StatusCode};
use futures_util::future::join;
use maud::{Markup, html};
use posthaste_core::api::TopicSettings;
use posthaste_core::model::SubscriptionName;

use self::publishing::publishing;
use self::subscriptions::SubscriptionSearch;
use crate::address;
use crate::api::{Refusal, Target};
use crate::asked::{Path, Query};
use crate::console::Pages;
use crate::page::{Answer, Page, Section, problem};
use crate::pages::deletion;
use crate::parts::{DoneAsked, duration, fact};
use crate::shown::foreign;
use crate::visit::Visit;

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
pub(crate) async fn topic(
    pages: Pages,
    visit: Visit,
    Path([name]): Path<1>,
    Query(done): Query<DoneAsked>,
    Query(search): Query<SubscriptionSearch>,
    headers: HeaderMap,
) -> Answer {
    let topic = pages
        .api
        .get::<TopicSettings>(Target::new(&["topics", &name]));
    let (topic, page) = join(topic, search.subscriptions(&pages.api, &name)).await;
    let topic = match topic {
        Err(refusal) if refusal.status() == StatusCode::INTERNAL_SERVER_ERROR => {
            return Ok(unreadable(&visit, &name, &refusal));
        }
        topic => topic?,
    };
    let name = topic
        .name
        .as_ref()
        .map_or(name.as_str(), |name| name.as_str());
    let body = html! {
        (done.notice(visit.now, &DONE))
        (facts(&topic))
        div.actions {
            a.button href=(address::topic(name, &["edit"])) { "Edit topic" }
            a.button href=(address::with_query(&address::page(&["events"]), &[("topic", name)])) { "Events" }
            a.button href=(address::with_query(&address::page(&["dead-letters"]), &[("topic", name)])) {
                "Dead letters"
            }
        }
        (search.section(name, &page))
        (publishing(&visit, name, &topic, &headers))
        h2 { "Delete" }
        (deletion::form(&visit, "topic", name, &address::topic(name, &["delete"]), &goes_too(&topic)))
    };
    let status = page.map_or_else(|refusal| refusal.status(), |_| StatusCode::OK);
    Ok(Page::new(name, body)
        .of(Section::Topics)
        .with_status(status))
}

fn facts(topic: &TopicSettings) -> Markup {
    let length = |length| html! { (duration(length)) };
    html! {
        dl.facts {
            (fact("Schema of events", &html! { (format!("{:?}", topic.input_schema)) }))
            @if topic.input_mapping.is_some() {
                (fact("Input mapping", &html! { "(see settings)" }))
            }
            (fact("Time to live", &topic.default_time_to_live.map_or_else(|| html! { "no bound" }, length)))
            (fact("Delivery log", &delivery_log(topic)))
            @if let Some(notices) = &topic.notices_topic {
                (fact("Notices go to", &html! {
                    a href=(address::topic(notices.as_str(), &[])) { (foreign(notices.as_str())) }
                }))
            }
            @if let Some(idle) = topic.auto_delete_on_idle {
                (fact("Deleted when idle for", &length(idle)))
            }
        }
    }
}

fn delivery_log(topic: &TopicSettings) -> Markup {
    html! {
        @match topic.delivery_log {
            Some(mode) => (mode),
            None => "installation default",
        }
    }
}

/// The page of a topic whose record cannot be read: all that can be done here is to delete it.
fn unreadable(visit: &Visit, name: &str, refusal: &Refusal) -> Page {
    let body = html! {
        (problem(refusal))
        p { "The topic takes no events until its record is repaired, or deleted and written again." }
        h2 { "Delete" }
        (deletion::form(visit, "topic", name, &address::topic(name, &["delete"]), &all_goes_too()))
    };
    Page::new(name, body)
        .of(Section::Topics)
        .with_status(refusal.status())
}

fn all_goes_too() -> Markup {
    html! { "Its subscriptions and its keys are deleted too. " }
}

/// The subscriptions that are deleted with the topic: how many, and the first ones.
fn goes_too(topic: &TopicSettings) -> Markup {
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
            1 => { "subscription " (foreign(&first)) " and its " }
            count => { (count) " subscriptions (" (foreign(&first)) (more) ") and its " }
        }
        "keys are deleted too. "
    }
}
