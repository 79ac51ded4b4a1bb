//! The health of a subscription, and its circuit or that of its endpoint's link.

use maud::{Markup, html};
use posthaste_core::api::{LinkScope, LinkView, SubscriptionHealthView, SubscriptionSettings};
use posthaste_core::health::HealthState;

use crate::pages::links;
use crate::shown::{foreign, number, time};

/// The health in a word.
pub(crate) fn badge(settings: &SubscriptionSettings) -> Markup {
    let state = settings.health.as_ref().map(|health| health.state);
    let state = state.unwrap_or_default();
    let class = match state {
        HealthState::Healthy => "good",
        HealthState::Failing | HealthState::Down | HealthState::Refused => "bad",
        HealthState::Paused
        | HealthState::Pending
        | HealthState::Disabled
        | HealthState::Unknown => "warn",
    };
    html! { span class={ "badge " (class) } { (state) } }
}

/// The health in full.
pub(super) fn health(settings: &SubscriptionSettings) -> Markup {
    html! {
        (badge(settings))
        @if let Some(health) = &settings.health { (facts(health)) }
    }
}

/// The circuit in full.
pub(super) fn circuit(settings: &SubscriptionSettings) -> Markup {
    html! {
        @match &settings.circuit {
            Some(circuit) => { (links::badge(circuit.state)) (circuit_facts(circuit)) }
            None => "closed: requests go out",
        }
    }
}

fn facts(health: &SubscriptionHealthView) -> Markup {
    html! {
        @if let Some(since) = health.since { " since " (time(since.0)) }
        @if let (Some(percent), Some(tried)) = (health.arrived_percent, health.tried) {
            br; (percent) " % of the last " (number(tried.into())) " tries arrived"
            @if let Some(from) = health.tried_from { ", counted from " (time(from.0)) }
            "."
        }
        @if let Some(failed) = health.failed_in_row {
            br; "Failed tries in a row: " (number(failed.into())) "."
        }
        @if let Some(at) = health.last_failure_at {
            br; "Last failure: "
            @if let Some(outcome) = &health.last_outcome { (foreign(&outcome.to_string())) " " }
            @if let Some(status) = health.last_http_status_code { "(" (status) ") " }
            (time(at.0)) "."
        }
        @if let Some(at) = health.last_arrived_at { br; "Last arrival: " (time(at.0)) "." }
        @if health.state == HealthState::Healthy && health.tried.is_none() { " No failures are known." }
    }
}

fn circuit_facts(circuit: &LinkView) -> Markup {
    html! {
        @if let Some(since) = circuit.since { " since " (time(since.0)) }
        br;
        span.hint { (links::meaning(circuit.state)) "." }
        @if circuit.scope == LinkScope::Link { br; "Everything on its link is affected." }
        @if let Some(failures) = circuit.failures { br; "Failed requests: " (number(failures.into())) "." }
        @if let Some(outcome) = &circuit.last_outcome {
            br; "Last failure: " (foreign(&outcome.to_string()))
            @if let Some(status) = circuit.last_http_status_code { " (" (status) ")" }
            "."
        }
        @if let Some(next) = circuit.next_probe { br; "Next request: " (time(next.0)) "." }
    }
}
