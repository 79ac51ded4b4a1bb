//! The headers that requests of the event's subscriptions have.

use std::collections::BTreeSet;

use maud::{Markup, html};
use posthaste_core::api::events::EventView;
use posthaste_core::api::{RequestHeader, TopicSettings, compile_sender_headers};
use posthaste_core::model::{SenderHeaders, SubscriptionName, Timestamp};

use crate::console::PageContext;
use crate::display::foreign_text;

/// Most subscriptions whose headers are shown.
const SUBSCRIPTIONS_MAX: usize = 10;

/// The names of the headers, by subscription. The log keeps no headers, so these are those of
/// today.
pub(super) fn headers_by_subscription(
    topic: Option<&TopicSettings>,
    view: &EventView,
    pages: &PageContext,
    now: Timestamp,
) -> Markup {
    let names: BTreeSet<&str> = view
        .deliveries
        .iter()
        .map(|it| it.subscription.as_str())
        .collect();
    let Some(topic) = topic.filter(|_| !names.is_empty()) else {
        return html! {};
    };
    let sender = sender_headers(topic, pages);
    html! {
        h2 { "Request headers" }
        p.hint {
            "The log does not keep headers. These are the names of the headers that each subscription sends \
             now; values are not shown."
        }
        @for name in names.into_iter().take(SUBSCRIPTIONS_MAX) {
            (subscription_headers(topic, name, &sender, now))
        }
    }
}

/// The headers that name the sender: the topic's own, or those of the installation.
fn sender_headers(topic: &TopicSettings, pages: &PageContext) -> SenderHeaders {
    let own = topic.sender_headers.as_ref();
    // Stored headers were checked before they were stored.
    let own = own.and_then(|own| compile_sender_headers("senderHeaders.", own).ok());
    own.unwrap_or_else(|| pages.sender_headers.clone())
}

fn subscription_headers(
    topic: &TopicSettings,
    name: &str,
    sender: &SenderHeaders,
    now: Timestamp,
) -> Markup {
    let parsed = SubscriptionName::parse(name).ok();
    let settings = parsed.and_then(|name| topic.subscriptions.get(&name));
    html! {
        @if let Some(settings) = settings {
            details {
                summary { "Headers that " (foreign_text(name)) " sends now" }
                ul { @for header in settings.request_headers(topic.input_schema, sender, now) { (header_item(&header)) } }
            }
        } @else {
            p { "The subscription " (foreign_text(name)) " is gone." }
        }
    }
}

fn header_item(header: &RequestHeader) -> Markup {
    html! {
        li {
            code { (foreign_text(&header.name)) }
            @if let Some(condition) = header.condition { span.hint { " (" (condition) ")" } }
        }
    }
}
