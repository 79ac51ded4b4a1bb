//! A subscription.

mod actions;
pub(crate) mod filter;
pub(crate) mod health;
mod named;
mod policy;
pub(crate) mod state;
pub(crate) mod waiting;

use axum::http::StatusCode;
use maud::{Markup, html};
use posthaste_core::api::{EndpointValidation, SubscriptionSettings};

use self::actions::actions;
pub(crate) use self::named::Named;
use self::policy::{headers, retry_policy, signing};
use crate::address;
use crate::asked::{Path, Query};
use crate::console::Pages;
use crate::page::{Answer, Page, Section};
use crate::pages::deletion;
use crate::parts::{DoneAsked, body, duration, fact};
use crate::shown::foreign;
use crate::visit::Visit;

/// The notices of actions.
const DONE: [(&str, &str); 10] = [
    ("created", "The subscription was created."),
    ("saved", "The subscription was saved."),
    ("pause", "The subscription is paused. Its events wait."),
    ("resume", "The subscription delivers again."),
    (
        "enable",
        "The subscription was enabled. Its state says whether its endpoint must still consent.",
    ),
    (
        "disable",
        "The subscription is disabled. New events pass by, and those that wait are given up.",
    ),
    (
        "validate",
        "The endpoint was asked. The state below says what it answered.",
    ),
    ("no-hold", "No hold was in its way."),
    ("hold-ended", HOLD_ENDED),
    ("forced", FORCED),
];

/// The effect of a force that ended a hold.
const HOLD_ENDED: &str = "Its hold has ended. If its whole link was held, other subscriptions whose endpoint \
    has the same scheme, host and port are tried again too.";

/// The outlook on events that wait for a subscription that was forced.
const FORCED: &str = "Events that are held or parked go out within a minute, little by little at first. \
    Retries that are already in the queue go out within 15 minutes.";

/// The page.
pub(crate) async fn subscription(
    pages: Pages,
    visit: Visit,
    Path([topic, name]): Path<2>,
    Query(done): Query<DoneAsked>,
) -> Answer {
    let named = Named {
        topic: &topic,
        name: &name,
    };
    let shown: SubscriptionSettings = pages.api.get(named.target(&[])).await?;
    let named = Named {
        name: shown.name.as_ref().map_or(&name, |name| name.as_str()),
        ..named
    };
    let settings = settings_text(&shown)?;
    let page = html! {
        (done.notice(visit.now, &DONE))
        p { "A subscription of the topic " a href=(address::topic(&topic, &[])) { (foreign(&topic)) } "." }
        // Above the state, so that no button moves while the state grows and shrinks.
        section #actions data-live aria-label="Actions" { (actions(&visit, named, &shown)) }
        h2 { "State" }
        section #now data-live aria-label="State" { (now(&shown)) }
        div.actions {
            a.button href=(named.list("events")) { "Events and attempts" }
            a.button href=(named.list("dead-letters")) { "Dead letters" }
        }
        h2 { "Endpoint" } (endpoint(&shown))
        h2 { "Filter" } (filter::facts(&shown.filter))
        h2 { "Retry policy" } (retry_policy(&shown))
        h2 { "Headers" } (headers(&shown.delivery_headers))
        h2 { "Signing" } (signing(&visit, named, &shown.signing))
        h2 { "All settings" }
        div.actions { a.button href=(named.page(&["edit"])) { "Edit subscription" } }
        details { summary { "Show as YAML" } (body("Settings as YAML", &settings)) }
        h2 { "Delete" }
        (deletion::form(&visit, "subscription", named.name, &named.page(&["delete"]),
            &html! { "Events that wait: " (waiting::count(&shown)) ". " }))
    };
    Ok(Page::new(format!("{topic} / {}", named.name), page).of(Section::Topics))
}

/// The settings as YAML.
pub(crate) fn settings_text(shown: &SubscriptionSettings) -> Result<String, Page> {
    posthaste_yaml::to_text(&shown.settings_only()).map_err(|error| {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "settings cannot be shown"
        );
        Page::bad_request("the settings cannot be written as YAML")
            .with_status(StatusCode::INTERNAL_SERVER_ERROR)
    })
}

fn now(shown: &SubscriptionSettings) -> Markup {
    html! {
        dl.facts {
            @if let Some(status) = &shown.status { (fact("State", &state::state(status, shown.keeping_missed()))) }
            (fact("Health", &health::health(shown)))
            (fact("Circuit", &health::circuit(shown)))
            (fact("Waiting", &waiting::waiting(shown.waiting.as_deref())))
            (fact("Last attempt", &waiting::last_outcome(shown.last_outcome.as_deref())))
        }
    }
}

fn endpoint(shown: &SubscriptionSettings) -> Markup {
    let endpoint = &shown.endpoint;
    html! {
        dl.facts {
            (fact("URL", &foreign(&endpoint.url)))
            @if let Some(fallback) = &endpoint.fallback_url { (fact("Fallback URL", &foreign(fallback))) }
            (fact("Timeout", &html! { (endpoint.timeout.map_or("PT30S (default)".to_owned(), duration)) }))
            @if let Some(rate) = endpoint.max_requests_per_second {
                (fact("Most requests a second", &html! { (rate) }))
            }
            @if let Some(most) = endpoint.max_concurrent_requests {
                (fact("Most requests at once", &html! { (most) }))
            }
            (fact("Consent", &consent(endpoint.validation)))
            @if let Some(schema) = shown.delivery_schema {
                (fact("Schema", &html! { (format!("{schema:?}")) }))
            }
        }
    }
}

fn consent(validation: EndpointValidation) -> Markup {
    let text = match validation {
        EndpointValidation::None => "not asked",
        EndpointValidation::CloudEvents => "asked by the abuse protection of CloudEvents",
        EndpointValidation::EventGrid => "asked by Event Grid's validation event",
    };
    html! { (text) }
}
