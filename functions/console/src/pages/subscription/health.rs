//! The health of a subscription, and its circuit or that of its endpoint's link.

use maud::{Markup, html};
use posthaste_core::api::{LinkScope, LinkView, SubscriptionHealthView, SubscriptionSettings};
use posthaste_core::health::HealthState;
use posthaste_core::model::Timestamp;

use super::waiting::count_in_words;
use crate::display::{foreign_text, number, relative_time, time_tag};
use crate::words::{health_word, link_word};

/// The health in a word.
pub(crate) fn state_badge(settings: &SubscriptionSettings) -> Markup {
    let state = settings.health.as_ref().map(|health| health.state);
    health_word(state.unwrap_or_default()).badge()
}

/// The health in a sentence or two: the state, since when, why, what waits, and the next attempt.
pub(super) fn health_sentence(settings: &SubscriptionSettings, now: Timestamp) -> Markup {
    let health = settings.health.as_deref();
    let word = health_word(health.map(|health| health.state).unwrap_or_default());
    let waiting = settings
        .waiting
        .as_deref()
        .filter(|waiting| waiting.count > 0);
    html! {
        p {
            (word.badge())
            @if let Some(since) = health.and_then(|health| health.since) {
                " since " (relative_time(since.0, now))
            }
            ": " (word.meaning) "."
            @if let Some(health) = health.filter(|health| health.failed_in_row.is_some_and(|it| it > 0)) {
                (last_failure(health, now))
            }
            @if let Some(waiting) = waiting {
                " Events that wait: " strong { (count_in_words(waiting)) } "."
                @if let Some(next) = waiting.next_attempt_at {
                    " Next attempt " (relative_time(next.0, now)) "."
                }
            }
        }
    }
}

fn last_failure(health: &SubscriptionHealthView, now: Timestamp) -> Markup {
    html! {
        @if let Some(at) = health.last_failure_at {
            " Last failure: "
            @if let Some(outcome) = &health.last_outcome { (foreign_text(&outcome.to_string())) " " }
            @if let Some(status) = health.last_http_status_code { "(" (status) ") " }
            (relative_time(at.0, now)) "."
        }
    }
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
            Some(circuit) => { (link_word(circuit.state).badge()) (circuit_facts(circuit)) }
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
        span.hint { (link_word(circuit.state).meaning) "." }
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
