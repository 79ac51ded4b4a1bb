//! The way to the first delivery, until there is one.

mod progress;

use maud::{Markup, html};

pub(super) use self::progress::{Progress, progress};
use crate::address;
use crate::console::PATH;

/// The steps. The part is there without any too, so that they go once they are done.
pub(super) fn part(progress: Option<&Progress>) -> Markup {
    html! {
        div #start data-live { @if let Some(progress) = progress { (section(progress)) } }
    }
}

fn section(progress: &Progress) -> Markup {
    html! {
        section.empty aria-labelledby="first-steps" {
            h2 #first-steps { "First steps" }
            p { "Events are published to a topic. Each of its subscriptions delivers them to an endpoint." }
            ol {
                li { (topic(progress)) }
                li { (subscription(progress)) }
                li { (event(progress)) }
                li { "See under " a href={ (PATH) "/events" } { "Events" } " what became of it." }
            }
        }
    }
}

fn topic(progress: &Progress) -> Markup {
    let action = ("New topic", address::page(&["topics", address::NEW]));
    step(progress.topic.is_some(), "Make a topic.", Some(action))
}

fn subscription(progress: &Progress) -> Markup {
    let path = |topic: &str| address::topic(topic, &["subscriptions", address::NEW]);
    let action = progress
        .topic
        .as_deref()
        .map(|topic| ("New subscription", path(topic)));
    step(
        progress.has_subscription,
        "Make a subscription in it, with the URL of your endpoint.",
        action,
    )
}

/// One step: done, or with the button that leads to it.
fn step(is_done: bool, what: &str, action: Option<(&str, String)>) -> Markup {
    html! {
        (what) " "
        @if is_done { (done()) }
        @else if let Some((label, path)) = action { p.actions { a.button.primary href=(path) { (label) } } }
    }
}

fn done() -> Markup {
    html! { span.badge.good { "done" } }
}

fn event(progress: &Progress) -> Markup {
    html! {
        "Publish an event. "
        @if progress.has_event { (done()) " No delivery has succeeded yet." } @else { (publishing(progress)) }
    }
}

fn publishing(progress: &Progress) -> Markup {
    let topic = progress.topic.as_deref();
    html! {
        @if let Some(topic) = topic {
            "The " a href={ (address::topic(topic, &[])) "#publish" } { "page of the topic" }
            " shows its keys."
        } @else {
            "Here the topic is " code { "orders" } "; its page shows its keys."
        }
        " In the request " code { "KEY" } " is one of them, and " code { "POSTHASTE_URL" }
        " is the address of this server (on AWS the output " code { "PublishUrl" } " of the stack). With "
        code { "PublishUrlAuthType=AWS_IAM" } " sign the request: " code { "curl --aws-sigv4" } "."
        pre tabindex="0" role="region" aria-label="The request" { code { (command(topic)) } }
    }
}

/// A request that publishes an event.
fn command(topic: Option<&str>) -> String {
    let topic = topic.unwrap_or("orders");
    let event = r#"{"specversion":"1.0","id":"1","source":"/first","type":"com.example.first","data":"hello"}"#;
    format!(
        "curl -i \"${{POSTHASTE_URL%/}}/topics/{topic}/events\" \\\n  -H \"aeg-sas-key: $KEY\" \
         -H 'content-type: application/cloudevents+json' \\\n  -d '{event}'"
    )
}
