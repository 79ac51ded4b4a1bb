//! The part of a subscription's page that takes something away: its secret, its deliveries, itself.

use maud::{Markup, html};
use posthaste_core::api::{SecretText, SigningSettings, SubscriptionAction, SubscriptionSettings};
use posthaste_core::model::Timestamp;

use super::actions::is_possible;
use super::in_url::SubscriptionInUrl;
use super::waiting;
use crate::display::time_tag;
use crate::filters::checkbox;
use crate::page::form_token;
use crate::pages::deletion;
use crate::parts::button_form;
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

/// The part.
pub(super) fn danger_part(
    visit: &PageVisit,
    named: SubscriptionInUrl<'_>,
    shown: &SubscriptionSettings,
) -> Markup {
    html! {
        h2 { "Signing secret" } (signing_section(visit, named, &shown.signing))
        @if is_possible(visit, SubscriptionAction::Disable, shown) {
            h2 { "Disable" } (disable_section(visit, named, shown))
        }
        h2 { "Delete" }
        (deletion::confirm_form(visit, "subscription", named.name, &named.page_path(&["delete"]),
            &html! { "Events that wait: " (waiting::count_text(shown)) ". " }))
    }
}

fn disable_section(
    visit: &PageVisit,
    named: SubscriptionInUrl<'_>,
    shown: &SubscriptionSettings,
) -> Markup {
    let disable = SubscriptionAction::Disable.as_str();
    html! {
        details {
            summary { "Disable this subscription" }
            p {
                "New events pass by, and those that wait become dead letters. Events that wait: "
                (waiting::count_text(shown)) "."
            }
            (button_form(visit, &named.page_path(&[disable]), "danger", "Disable"))
        }
    }
}

fn signing_section(
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
