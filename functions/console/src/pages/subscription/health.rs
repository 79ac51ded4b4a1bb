//! The health of a subscription and of its endpoint's link.

use maud::{Markup, html};
use posthaste_core::api::{LinkScope, LinkView, SubscriptionSettings};

use crate::pages::links;
use crate::shown::{foreign, number, time};

/// The health in a word.
pub(crate) fn badge(settings: &SubscriptionSettings) -> Markup {
    let well = || html! { span.badge.good { "well" } };
    settings
        .health
        .as_ref()
        .map_or_else(well, |health| links::badge(health.state))
}

/// The health in full.
pub(super) fn health(settings: &SubscriptionSettings) -> Markup {
    html! {
        (badge(settings))
        @match &settings.health {
            Some(health) => (facts(health)),
            None => " No failures are known.",
        }
    }
}

fn facts(health: &LinkView) -> Markup {
    html! {
        @if let Some(since) = health.since { " since " (time(since.0)) }
        br;
        span.hint { (links::meaning(health.state)) "." }
        @if health.scope == LinkScope::Link { br; "Everything on its link is affected." }
        @if let Some(failures) = health.failures { br; "Failed requests: " (number(failures.into())) "." }
        @if let Some(outcome) = &health.last_outcome {
            br; "Last failure: " (foreign(&outcome.to_string()))
            @if let Some(status) = health.last_http_status_code { " (" (status) ")" }
            "."
        }
        @if let Some(next) = health.next_probe { br; "Next request: " (time(next.0)) "." }
    }
}
