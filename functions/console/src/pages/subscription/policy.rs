//! The retry policy of a subscription, its headers and its signature.

use maud::{Markup, html};
use posthaste_core::api::{
    DeliveryHeaderSettings, IsoDuration, RetryPolicySettings, SecretText, SigningSettings,
    SubscriptionSettings,
};
use posthaste_core::model::{
    EVENT_TIME_TO_LIVE_MINUTES_MAX, RECOVERY_RATE_DEFAULT, RECOVERY_WITHIN_DEFAULT, RetryPolicy,
    Timestamp, WhileDisabled,
};

use super::in_url::SubscriptionInUrl;
use crate::display::{CELL_CHARS_MAX, foreign_cut, foreign_text, time_tag};
use crate::filters::checkbox;
use crate::page::form_token;
use crate::parts::{duration_text, fact};
use crate::visit::PageVisit;

/// The times to choose from, for which the old secrets continue to sign.
const OVERLAPS: [(&str, &str); 4] = [
    ("P1D", "for a day"),
    ("PT1H", "for an hour"),
    ("P7D", "for a week"),
    ("PT0S", "not at all: a secret has leaked"),
];

/// The kinds of secrets to choose from.
const KINDS: [(&str, &str); 3] = [
    ("", "the same kind as now"),
    ("v1", "v1: a shared secret"),
    ("v1a", "v1a: a key pair"),
];

pub(super) fn retry_policy_facts(shown: &SubscriptionSettings) -> Markup {
    let policy = &shown.retry_policy;
    let letters = &shown.dead_letter;
    let default = RetryPolicy::default();
    let minutes = default.time_to_live.as_secs() / 60;
    let given_up = if letters.enabled.unwrap_or(true) {
        "become dead letters"
    } else {
        "are dropped"
    };
    html! {
        dl.facts {
            (fact("Most attempts", &value_or_default(policy.max_delivery_attempts, default.attempts_max)))
            (fact("Time to live in minutes",
                &value_or_default(policy.event_time_to_live_in_minutes.map(u64::from), minutes)))
            (fact("Waits between attempts", &schedule_text(policy, &default)))
            @if !policy.wait_floors.is_empty() { (fact("Least waits", &wait_floors_text(policy))) }
            (fact("No retry after", &permanent_statuses(policy, &default)))
            @if policy.disable_on_gone == Some(false) {
                (fact("Status 410", &html! { "does not disable it" }))
            }
            @if let Some(batching) = shown.batching {
                (fact("Events in a request", &value_or_default(batching.max_events_per_batch, 1)))
            }
            (fact("Events that are given up", &html! { (given_up) }))
            (fact("Events that an outage gave up", &recovery_text(shown)))
            (fact("New events while it is disabled", &while_disabled_text(shown.while_disabled)))
        }
    }
}

fn recovery_text(shown: &SubscriptionSettings) -> Markup {
    let written = shown.recovery.unwrap_or_default();
    let keeps_letters = shown.dead_letter.enabled.unwrap_or(true);
    let minutes = shown.retry_policy.event_time_to_live_in_minutes;
    let lives_for_a_day = minutes.is_none_or(|it| it >= EVENT_TIME_TO_LIVE_MINUTES_MAX);
    let is_on = written.enabled.unwrap_or(keeps_letters && lives_for_a_day);
    let rate = written.rate_per_second.unwrap_or(RECOVERY_RATE_DEFAULT);
    let within = written
        .within
        .unwrap_or(IsoDuration(RECOVERY_WITHIN_DEFAULT));
    html! {
        @if is_on {
            "are sent again by themselves once the endpoint is well, for " (duration_text(within))
            " after they were accepted, at most " (rate) " a second"
        } @else {
            "stay as they are"
        }
        @if written.enabled.is_none() { " (default)" }
    }
}

fn while_disabled_text(chosen: Option<WhileDisabled>) -> Markup {
    let words = match chosen {
        Some(WhileDisabled::DeadLetter) => "become dead letters",
        Some(WhileDisabled::Skip) => "are skipped and counted",
        None => {
            "become dead letters for seven days after its endpoint disabled it, and are skipped and \
             counted otherwise (default)"
        }
    };
    html! { (words) }
}

/// The value that was written, or else the default.
fn value_or_default<T: std::fmt::Display>(written: Option<T>, default: T) -> Markup {
    let is_default = written.is_none();
    html! { (written.unwrap_or(default).to_string()) @if is_default { " (default)" } }
}

fn schedule_text(policy: &RetryPolicySettings, default: &RetryPolicy) -> Markup {
    let default = comma_list(
        default
            .schedule
            .iter()
            .map(|step| duration_text(IsoDuration(*step))),
    );
    let written = policy.schedule.as_ref();
    value_or_default(
        written.map(|steps| comma_list(steps.iter().map(|step| duration_text(*step)))),
        default,
    )
}

fn comma_list(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join(", ")
}

fn wait_floors_text(policy: &RetryPolicySettings) -> Markup {
    let floors = policy
        .wait_floors
        .iter()
        .map(|(status, wait)| format!("{status}: {}", duration_text(*wait)));
    foreign_cut(&comma_list(floors), 4 * CELL_CHARS_MAX)
}

fn permanent_statuses(policy: &RetryPolicySettings, default: &RetryPolicy) -> Markup {
    let default = comma_list(default.permanent_statuses.iter().map(u16::to_string));
    let written = policy.permanent_statuses.as_ref();
    value_or_default(
        written.map(|statuses| comma_list(statuses.iter().map(u16::to_string))),
        default,
    )
}

pub(super) fn header_facts(headers: &[DeliveryHeaderSettings]) -> Markup {
    html! {
        @if headers.is_empty() {
            p { "No headers are added to requests." }
        } @else {
            dl.facts {
                @for header in headers { dt { (foreign_text(&header.name)) } dd { (header_value(header)) } }
            }
        }
    }
}

/// The value of a header. A secret value is masked, as the API masks it.
fn header_value(header: &DeliveryHeaderSettings) -> Markup {
    let shown = header.masked();
    html! {
        @match (&shown.value, &shown.from_event) {
            (Some(value), _) => (foreign_cut(value.expose(), 4 * CELL_CHARS_MAX)),
            (None, Some(pointer)) => { "from the event: " code { (foreign_text(pointer)) } }
            (None, None) => "none",
        }
    }
}

pub(super) fn signing_section(
    visit: &PageVisit,
    named: SubscriptionInUrl<'_>,
    signing: &SigningSettings,
) -> Markup {
    html! {
        @if signing.timed_secrets().next().is_none() {
            p { "Requests are not signed." }
        } @else {
            ul { @for (secret, end) in signing.timed_secrets() { li { (masked_secret(&secret, end.map(|end| end.0))) } } }
        }
        details {
            summary { "Rotate the signing secret" }
            form method="post" action=(named.page_path(&["rotate-secret"])) {
                (form_token(&visit.form_token))
                p { "A new secret is made and shown once. It signs first from then on." }
                (select_field("overlap", "The present secrets of its kind go on signing", &OVERLAPS))
                (select_field("kind", "Make", &KINDS))
                p { (checkbox("drop", "Older secrets may end sooner than their rotations said", false)) }
                p.hint { "Three secrets sign at most. Without this, one more is refused." }
                div.actions { button.danger type="submit" { "Rotate the secret" } }
            }
        }
    }
}

fn masked_secret(secret: &SecretText, end: Option<Timestamp>) -> Markup {
    html! {
        code { (secret.masked_as_one_of_several().expose()) }
        @if let Some(end) = end { " until " (time_tag(end)) }
    }
}

fn select_field(name: &str, label: &str, choices: &[(&str, &str)]) -> Markup {
    html! {
        label for=(name) { (label) }
        select id=(name) name=(name) { @for (value, text) in choices { option value=(value) { (text) } } }
    }
}
