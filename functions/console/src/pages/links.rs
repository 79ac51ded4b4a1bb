//! Links and subscriptions that are not well.

use maud::{Markup, html};
use posthaste_core::api::{LinkScope, LinkState, LinkView, LinksView};

use crate::address;
use crate::api::Target;
use crate::console::Pages;
use crate::page::{Answer, Page, Section};
use crate::shown::{foreign, number, time};

/// The page.
pub(crate) async fn links(pages: Pages) -> Answer {
    let view: LinksView = pages.api.get(Target::new(&["links"])).await?;
    let body = html! {
        section #links data-live aria-label="Links" {
            @if view.links.is_empty() {
                p.empty { "Every link and subscription is well, and nothing is held." }
            } @else {
                (table(&view.links))
            }
            @if view.truncated { p.hint { "There are more than are shown." } }
        }
    };
    Ok(Page::new("Links", body).of(Section::Links))
}

fn table(links: &[LinkView]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Links that are not well" {
            table {
                thead {
                    tr {
                        th scope="col" { "Link or subscription" }
                        th scope="col" { "State" }
                        th scope="col" { "Since" }
                        th scope="col" { "Last answer" }
                        th.number scope="col" { "Failures" }
                        th scope="col" { "Next try" }
                        th.number scope="col" { "Held objects" }
                    }
                }
                tbody { @for link in links { (row(link)) } }
            }
        }
    }
}

/// Whether requests pause because they failed.
pub(crate) const fn is_down(link: &LinkView) -> bool {
    matches!(link.state, LinkState::Glitch | LinkState::RetryAfter | LinkState::Retry)
}

fn row(link: &LinkView) -> Markup {
    let failures = link.failures.map(|failures| number(failures.into()));
    html! {
        tr {
            td { (target(link)) }
            td { (badge(link.state)) br; span.hint { (meaning(link.state)) } }
            td { @if let Some(since) = &link.since { (time(since.0)) } }
            td {
                @if let Some(outcome) = &link.last_outcome { (outcome) }
                @if let Some(status) = link.last_http_status_code { " " (status) }
            }
            td.number { (failures.unwrap_or_default()) }
            td { @if let Some(next) = &link.next_probe { (time(next.0)) } }
            td.number { @if let Some(held) = link.held_objects { (number(held.into())) } }
        }
    }
}

/// The link or subscription, with a link to its page.
pub(crate) fn target(link: &LinkView) -> Markup {
    let address = link.link.as_deref().unwrap_or("(not known)");
    html! {
        @match (&link.topic, &link.subscription) {
            (Some(topic), Some(name)) => {
                a href=(address::subscription(topic.as_str(), name.as_str(), &[])) { (topic) " / " (name) }
                br;
                span.hint { (foreign(address)) }
            }
            _ => {
                (foreign(address))
                @if link.scope == LinkScope::Link { br; span.hint { "everything on this link" } }
            }
        }
    }
}

/// The state in a word.
pub(crate) fn badge(state: LinkState) -> Markup {
    let (class, word, _) = in_words(state);
    html! { span class={ "badge " (class) } { (word) } }
}

/// What the state means.
pub(crate) fn meaning(state: LinkState) -> &'static str {
    in_words(state).2
}

const fn in_words(state: LinkState) -> (&'static str, &'static str, &'static str) {
    match state {
        LinkState::Glitch => ("bad", "glitch", "requests failed just now; events wait in the queue"),
        LinkState::RetryAfter => ("warn", "asked to wait", "the endpoint asked for a pause"),
        LinkState::Retry => ("bad", "down", "requests have failed for minutes; events are held"),
        LinkState::Recovering => ("warn", "recovering", "waiting events go out little by little"),
        LinkState::Paused => ("warn", "paused", "an operator paused the subscription"),
        LinkState::Pending => ("warn", "pending", "the endpoint has not consented yet"),
        LinkState::Failed => ("bad", "failed", "the endpoint did not consent"),
        LinkState::Releasing => ("good", "releasing", "held events go out"),
        LinkState::Unknown => ("bad", "unknown", "the topic's record cannot be read"),
    }
}
