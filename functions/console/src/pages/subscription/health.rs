//! The health of a subscription, and its circuit or that of its endpoint's link.

use maud::{Markup, html};
use posthaste_core::api::{LinkScope, LinkView, SubscriptionHealthView, SubscriptionSettings};
use posthaste_core::health::HealthState;

use crate::display::{foreign_text, number, time_tag};
use crate::pages::links;
use crate::words::health_word;

/// The health in a word.
pub(crate) fn state_badge(settings: &SubscriptionSettings) -> Markup {
    let state = settings.health.as_ref().map(|health| health.state);
    health_word(state.unwrap_or_default()).badge()
}

/// The health in full.
pub(super) fn describe_health(settings: &SubscriptionSettings) -> Markup {
    html! {
        (state_badge(settings))
        @if let Some(health) = &settings.health { (health_facts(health)) }
    }
}

/// The circuit in full.
pub(super) fn describe_circuit(settings: &SubscriptionSettings) -> Markup {
    html! {
        @match &settings.circuit {
            Some(circuit) => { (links::state_badge(circuit.state)) (circuit_facts(circuit)) }
            None => "closed: requests go out",
        }
    }
}

fn health_facts(health: &SubscriptionHealthView) -> Markup {
    html! {
        @if let Some(since) = health.since { " since " (time_tag(since.0)) }
        @if let (Some(percent), Some(tried)) = (health.arrived_percent, health.tried) {
            br; (percent) " % of the last " (number(tried.into())) " tries arrived"
            @if let Some(from) = health.tried_from { ", counted from " (time_tag(from.0)) }
            "."
        }
        @if let Some(failed) = health.failed_in_row {
            br; "Failed tries in a row: " (number(failed.into())) "."
        }
        @if let Some(at) = health.last_failure_at {
            br; "Last failure: "
            @if let Some(outcome) = &health.last_outcome { (foreign_text(&outcome.to_string())) " " }
            @if let Some(status) = health.last_http_status_code { "(" (status) ") " }
            (time_tag(at.0)) "."
        }
        @if let Some(at) = health.last_arrived_at { br; "Last arrival: " (time_tag(at.0)) "." }
        @if health.state == HealthState::Healthy && health.tried.is_none() { " No failures are known." }
    }
}

fn circuit_facts(circuit: &LinkView) -> Markup {
    html! {
        @if let Some(since) = circuit.since { " since " (time_tag(since.0)) }
        br;
        span.hint { (links::state_meaning(circuit.state)) "." }
        @if circuit.scope == LinkScope::Link { br; "Everything on its link is affected." }
        @if let Some(failures) = circuit.failures { br; "Failed requests: " (number(failures.into())) "." }
        @if let Some(outcome) = &circuit.last_outcome {
            br; "Last failure: " (foreign_text(&outcome.to_string()))
            @if let Some(status) = circuit.last_http_status_code { " (" (status) ")" }
            "."
        }
        @if let Some(next) = circuit.next_probe { br; "Next request: " (time_tag(next.0)) "." }
    }
}
