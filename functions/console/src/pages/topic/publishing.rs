//! The explanation of how to publish to a topic.

use axum::http::HeaderMap;
use axum::http::header::HOST;
use maud::{Markup, html};
use posthaste_core::api::TopicSettings;
use posthaste_core::events::test_event::sample_event;
use posthaste_core::model::{EventSchema, TopicName};

use crate::address;
use crate::cookie;
use crate::display::foreign_text;
use crate::parts::{button_form, copy_block};
use crate::visit::PageVisit;

/// The id of the event of the example.
const ID: &str = "first-event";

pub(super) fn publish_section(
    visit: &PageVisit,
    name: &str,
    topic: &TopicSettings,
    headers: &HeaderMap,
) -> Markup {
    let endpoint = topic
        .endpoint
        .clone()
        .unwrap_or_else(|| own_publish_url(headers, name));
    html! {
        h2 #publish { "Publish" }
        p { "Producers send events to " code { (foreign_text(&endpoint)) } " with one of the topic's keys." }
        @if let Some(command) = publish_command(visit, &endpoint, topic) {
            (copy_block("Command that publishes an event", &command))
        }
        p.hint { "The answer says how many events were accepted, and how many subscriptions get them." }
        div.actions { (button_form(visit, &address::topic_path(name, &["keys"]), "", "Show keys")) }
    }
}

/// The publish URL at this server, as the visitor's browser reaches it.
fn own_publish_url(headers: &HeaderMap, topic: &str) -> String {
    let host = headers
        .get(HOST)
        .and_then(|host| host.to_str().ok())
        .filter(|host| is_plain(host));
    let scheme = if cookie::is_plain_loopback(headers) {
        "http"
    } else {
        "https"
    };
    format!(
        "{scheme}://{}/topics/{topic}/events",
        host.unwrap_or("HOST")
    )
}

/// Whether a shell takes a host as it is.
fn is_plain(host: &str) -> bool {
    host.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte))
}

fn publish_command(visit: &PageVisit, endpoint: &str, topic: &TopicSettings) -> Option<String> {
    let name: &TopicName = topic.name.as_ref()?;
    let event = sample_event(topic.input_schema, name, ID, visit.now);
    let media_type = match topic.input_schema {
        EventSchema::CloudEvents => "application/cloudevents+json",
        EventSchema::EventGrid | EventSchema::Custom => "application/json",
    };
    let event = String::from_utf8_lossy(&event).replace('\'', r"'\''");
    Some(format!(
        "KEY=...   # key1 or key2, see \"Show keys\" below\n\
         curl --fail-with-body '{endpoint}' \\\n  -H \"aeg-sas-key: $KEY\" \\\n  \
         -H 'content-type: {media_type}' \\\n  -d '{event}'"
    ))
}
