//! The page after a subscription was made.

use axum::response::{IntoResponse, Redirect, Response};
use maud::html;
use posthaste_core::api::SubscriptionSettings;

use crate::address;
use crate::page::{ConsolePage, MenuSection};
use crate::pages::subscription::SubscriptionInUrl;
use crate::pages::subscription_actions::secret_to_copy;
use crate::parts::{address_after, button_form};
use crate::visit::PageVisit;

/// The page with the secret that was made, or the way to the subscription.
pub(super) fn created_page(
    visit: &PageVisit,
    named: SubscriptionInUrl<'_>,
    created: &SubscriptionSettings,
) -> Response {
    let made: Vec<_> = created
        .signing
        .timed_secrets()
        .filter(|(secret, _)| !secret.is_masked())
        .collect();
    if made.is_empty() {
        return Redirect::to(&address_after(&named.page_path(&[]), "created", visit.now))
            .into_response();
    }
    let publish = format!("{}#publish", address::topic_path(named.topic, &[]));
    let body = html! {
        p.done role="status" { "The subscription was created, with a signing secret." }
        @for (made, _) in &made { (secret_to_copy(made.expose())) }
        h2 { "What next" }
        p {
            a href=(publish) { "Publish an event" } " to the topic, or look at "
            a href=(named.page_path(&[])) { "the subscription" } "."
        }
        @if created.may_be_sent_to() {
            div.actions { (button_form(visit, &named.page_path(&["test"]), "", "Send a test event")) }
        }
    };
    let title = format!("{} / {}", named.topic, named.name);
    ConsolePage::new(title, body)
        .in_section(MenuSection::Topics)
        .into_response()
}
