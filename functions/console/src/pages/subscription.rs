//! A subscription.

mod actions;
pub(crate) mod filter;
pub(crate) mod health;
mod in_url;
mod policy;
pub(crate) mod state;
pub(crate) mod waiting;

use axum::http::StatusCode;
use maud::{Markup, html};
use posthaste_core::api::{EndpointValidation, SubscriptionSettings};

use self::actions::action_buttons;
pub(crate) use self::in_url::SubscriptionInUrl;
use self::policy::{header_facts, retry_policy_facts, signing_section};
use crate::address;
use crate::console::PageContext;
use crate::display::foreign_text;
use crate::extract::{PageQuery, PathParts};
use crate::page::{ConsolePage, MenuSection, PageResult};
use crate::pages::deletion;
use crate::parts::{DoneNoticeQuery, body_block, duration_text, fact};
use crate::visit::PageVisit;

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
pub(crate) async fn show_page(
    pages: PageContext,
    visit: PageVisit,
    PathParts([topic, name]): PathParts<2>,
    PageQuery(done): PageQuery<DoneNoticeQuery>,
) -> PageResult {
    let named = SubscriptionInUrl {
        topic: &topic,
        name: &name,
    };
    let shown: SubscriptionSettings = pages.api.get(named.request_target(&[])).await?;
    let named = SubscriptionInUrl {
        name: shown.name.as_ref().map_or(&name, |name| name.as_str()),
        ..named
    };
    let settings = settings_text(&shown)?;
    let page = html! {
        (done.notice(visit.now, &DONE))
        p { "A subscription of the topic " a href=(address::topic_path(&topic, &[])) { (foreign_text(&topic)) } "." }
        // Above the state, so that no button moves while the state grows and shrinks.
        section #actions data-live aria-label="Actions" { (action_buttons(&visit, named, &shown)) }
        h2 { "State" }
        section #now data-live aria-label="State" { (state_facts(&shown)) }
        div.actions {
            a.button href=(named.list_path("events")) { "Events and attempts" }
            a.button href=(named.list_path("dead-letters")) { "Dead letters" }
        }
        h2 { "Endpoint" } (endpoint_facts(&shown))
        h2 { "Filter" } (filter::fact_list(&shown.filter))
        h2 { "Retry policy" } (retry_policy_facts(&shown))
        h2 { "Headers" } (header_facts(&shown.delivery_headers))
        h2 { "Signing" } (signing_section(&visit, named, &shown.signing))
        h2 { "All settings" }
        div.actions { a.button href=(named.page_path(&["edit"])) { "Edit subscription" } }
        details { summary { "Show as YAML" } (body_block("Settings as YAML", &settings)) }
        h2 { "Delete" }
        (deletion::confirm_form(&visit, "subscription", named.name, &named.page_path(&["delete"]),
            &html! { "Events that wait: " (waiting::count_text(&shown)) ". " }))
    };
    Ok(ConsolePage::new(format!("{topic} / {}", named.name), page).in_section(MenuSection::Topics))
}

/// The settings as YAML.
pub(crate) fn settings_text(shown: &SubscriptionSettings) -> Result<String, ConsolePage> {
    posthaste_yaml::to_text(&shown.settings_only()).map_err(|error| {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "settings cannot be shown"
        );
        ConsolePage::bad_request("the settings cannot be written as YAML")
            .with_status(StatusCode::INTERNAL_SERVER_ERROR)
    })
}

fn state_facts(shown: &SubscriptionSettings) -> Markup {
    html! {
        dl.facts {
            @if let Some(status) = &shown.status { (fact("State", &state::describe_state(status, shown.keeping_missed()))) }
            (fact("Health", &health::describe_health(shown)))
            (fact("Circuit", &health::describe_circuit(shown)))
            (fact("Waiting", &waiting::describe_waiting(shown.waiting.as_deref())))
            (fact("Last attempt", &waiting::describe_last_outcome(shown.last_outcome.as_deref())))
        }
    }
}

fn endpoint_facts(shown: &SubscriptionSettings) -> Markup {
    let endpoint = &shown.endpoint;
    html! {
        dl.facts {
            (fact("URL", &foreign_text(&endpoint.url)))
            @if let Some(fallback) = &endpoint.fallback_url { (fact("Fallback URL", &foreign_text(fallback))) }
            (fact("Timeout", &html! { (endpoint.timeout.map_or("PT30S (default)".to_owned(), duration_text)) }))
            @if let Some(rate) = endpoint.max_requests_per_second {
                (fact("Most requests a second", &html! { (rate) }))
            }
            @if let Some(most) = endpoint.max_concurrent_requests {
                (fact("Most requests at once", &html! { (most) }))
            }
            (fact("Consent", &consent_text(endpoint.validation)))
            @if let Some(schema) = shown.delivery_schema {
                (fact("Schema", &html! { (format!("{schema:?}")) }))
            }
        }
    }
}

fn consent_text(validation: EndpointValidation) -> Markup {
    let text = match validation {
        EndpointValidation::None => "not asked",
        EndpointValidation::CloudEvents => "asked by the abuse protection of CloudEvents",
        EndpointValidation::EventGrid => "asked by Event Grid's validation event",
    };
    html! { (text) }
}
