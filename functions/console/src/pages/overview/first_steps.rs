//! The way to the first delivery, until there is one.

mod progress;

use maud::{Markup, html};

pub(super) use self::progress::{SetupProgress, load_progress};
use crate::address;
use crate::console::PATH;

/// The steps. The part is there without any too, so that they go once they are done.
pub(super) fn live_section(progress: Option<&SetupProgress>) -> Markup {
    html! {
        div #start data-live { @if let Some(progress) = progress { (steps_section(progress)) } }
    }
}

fn steps_section(progress: &SetupProgress) -> Markup {
    html! {
        section.empty aria-labelledby="first-steps" {
            h2 #first-steps { "First steps" }
            p { "Events are published to a topic. Each of its subscriptions delivers them to an endpoint." }
            ol {
                li { (topic_step(progress)) }
                li { (subscription_step(progress)) }
                li { (event_step(progress)) }
                li { "See under " a href={ (PATH) "/events" } { "Events" } " what became of it." }
            }
        }
    }
}

fn topic_step(progress: &SetupProgress) -> Markup {
    let action = ("New topic", address::page_path(&["topics", address::NEW]));
    render_step(progress.topic.is_some(), "Make a topic.", Some(action))
}

fn subscription_step(progress: &SetupProgress) -> Markup {
    let action = progress.topic.as_deref().map(|topic| {
        let path = address::topic_path(topic, &["subscriptions", address::NEW]);
        ("New subscription", path)
    });
    render_step(
        progress.has_subscription,
        "Make a subscription in it, with the URL of your endpoint.",
        action,
    )
}

/// One step: done, or with the button that leads to it.
fn render_step(is_done: bool, what: &str, action: Option<(&str, String)>) -> Markup {
    html! {
        (what) " "
        @if is_done { (done_badge()) }
        @else if let Some((label, path)) = action { p.actions { a.button.primary href=(path) { (label) } } }
    }
}

fn done_badge() -> Markup {
    html! { span.badge.good { "done" } }
}

fn event_step(progress: &SetupProgress) -> Markup {
    html! {
        "Publish an event. "
        @if progress.has_event { (done_badge()) " No delivery has succeeded yet." } @else { (publish_hint(progress)) }
    }
}

fn publish_hint(progress: &SetupProgress) -> Markup {
    let topic = progress.topic.as_deref();
    html! {
        @if let Some(topic) = topic {
            "The " a href={ (address::topic_path(topic, &[])) "#publish" } { "page of the topic" }
            " shows its keys."
        } @else {
            "Here the topic is " code { "orders" } "; its page shows its keys."
        }
        " In the request " code { "KEY" } " is one of them, and " code { "POSTHASTE_URL" }
        " is the address of this server (on AWS the output " code { "PublishUrl" } " of the stack). With "
        code { "PublishUrlAuthType=AWS_IAM" } " sign the request: " code { "curl --aws-sigv4" } "."
        pre tabindex="0" role="region" aria-label="The request" { code { (publish_command(topic)) } }
    }
}

/// A request that publishes an event.
fn publish_command(topic: Option<&str>) -> String {
    let topic = topic.unwrap_or("orders");
    let event = r#"{"specversion":"1.0","id":"1","source":"/first","type":"com.example.first","data":"hello"}"#;
    format!(
        "curl -i \"${{POSTHASTE_URL%/}}/topics/{topic}/events\" \\\n  -H \"aeg-sas-key: $KEY\" \
         -H 'content-type: application/cloudevents+json' \\\n  -d '{event}'"
    )
}
