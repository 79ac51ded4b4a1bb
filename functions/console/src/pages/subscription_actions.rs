//! Actions of the page of a subscription.

mod test_attempt;

use axum::http::Method;
use axum::response::Redirect;
use maud::{Markup, html};
use posthaste_core::api::{ForcedView, RotatedSecret, SubscriptionSettings, TestAttempt};
use serde_json::{Map, Value};

use crate::address;
use crate::console::PageContext;
use crate::extract::{FormFields, PathParts};
use crate::page::{ConsolePage, MenuSection, PageResult, form_token};
use crate::pages::subscription::SubscriptionInUrl;
use crate::pages::{deletion, not_found};
use crate::parts::{address_after, back_field, page_to_go_back_to, refused_page};
use crate::visit::PageVisit;

/// The actions of which the page of the subscription shows the effect.
const ACTIONS: [&str; 5] = ["pause", "resume", "enable", "disable", "validate"];

/// Changes the state of the subscription.
pub(crate) async fn change_state(
    pages: PageContext,
    visit: PageVisit,
    PathParts([topic, name, action]): PathParts<3>,
    fields: FormFields,
) -> Result<Redirect, ConsolePage> {
    let named = SubscriptionInUrl {
        topic: &topic,
        name: &name,
    };
    if !ACTIONS.contains(&action.as_str()) {
        return Err(not_found().await);
    }
    let done = pages
        .api
        .post::<SubscriptionSettings>(named.request_target(&[&action]))
        .await;
    let own_page = named.page_path(&[]);
    let back = page_to_go_back_to(&fields, &own_page);
    done.map_err(|refusal| refused_page(&refusal, back))?;
    Ok(Redirect::to(&address_after(back, &action, visit.now)))
}

/// Forces the subscription. The page that it leads back to says whether that ended a hold.
pub(crate) async fn force(
    pages: PageContext,
    visit: PageVisit,
    PathParts([topic, name]): PathParts<2>,
    fields: FormFields,
) -> Result<Redirect, ConsolePage> {
    let named = SubscriptionInUrl {
        topic: &topic,
        name: &name,
    };
    let forced = pages
        .api
        .post::<ForcedView>(named.request_target(&["force"]))
        .await;
    let own_page = named.page_path(&[]);
    let back = page_to_go_back_to(&fields, &own_page);
    let forced = forced
        .map_err(|refusal| refused_page(&refusal, back))?
        .forced;
    let words = if forced.is_empty() {
        "no-hold,forced"
    } else {
        "hold-ended,forced"
    };
    Ok(Redirect::to(&address_after(back, words, visit.now)))
}

/// Sends a test event, and shows the request and its response.
pub(crate) async fn send_test_event(
    pages: PageContext,
    visit: PageVisit,
    PathParts([topic, name]): PathParts<2>,
    fields: FormFields,
) -> PageResult {
    let named = SubscriptionInUrl {
        topic: &topic,
        name: &name,
    };
    let attempt = pages
        .api
        .post::<TestAttempt>(named.request_target(&["test"]))
        .await;
    let own_page = named.page_path(&[]);
    let back = page_to_go_back_to(&fields, &own_page);
    let attempt = attempt.map_err(|refusal| refused_page(&refusal, back))?;
    let body = html! {
        (test_attempt::attempt_facts(&attempt))
        div.actions {
            form method="post" action=(named.page_path(&["test"])) {
                (form_token(&visit.form_token))
                (back_field(back))
                button type="submit" { "Send another test event" }
            }
            @if back != own_page { a.button href=(back) { "Go back" } }
        }
        (back_link(named))
    };
    Ok(ConsolePage::new(format!("Test of {topic} / {name}"), body).in_section(MenuSection::Topics))
}

/// Rotates the signing secret, and shows the new one, this once.
pub(crate) async fn rotate_secret(
    pages: PageContext,
    PathParts([topic, name]): PathParts<2>,
    fields: FormFields,
) -> PageResult {
    let named = SubscriptionInUrl {
        topic: &topic,
        name: &name,
    };
    let chosen = ["overlap", "kind"].map(|member| (member.to_owned(), fields.get(member)));
    let chosen = chosen.into_iter().filter(|(_, value)| !value.is_empty());
    let mut rotation: Map<_, _> = chosen
        .map(|(member, value)| (member, Value::from(value)))
        .collect();
    if fields.get("drop") == "true" {
        rotation.insert("drop".to_owned(), true.into());
    }
    let rotated = pages
        .api
        .send_json(
            Method::POST,
            named.request_target(&["rotate-secret"]),
            None,
            &rotation,
        )
        .await;
    let rotated: RotatedSecret = rotated
        .map_err(|refusal| refused_page(&refusal, &named.page_path(&[])))?
        .body;
    let body = html! {
        p.done role="status" { "The new secret signs first from now on." }
        (secret_to_copy(rotated.secret.expose()))
        (no_reload_warning())
        @if let Some(key) = &rotated.public_key {
            p { "Receivers verify with the public key " code { (key) } "." }
        }
        @if !rotated.ended.is_empty() {
            p {
                "These secrets sign no more: "
                @for ended in &rotated.ended { code { (ended.masked_as_one_of_several().expose()) } " " }
            }
        }
        (back_link(named))
    };
    Ok(
        ConsolePage::new(format!("New secret of {topic} / {name}"), body)
            .in_section(MenuSection::Topics),
    )
}

/// Deletes the subscription.
pub(crate) async fn delete(
    pages: PageContext,
    visit: PageVisit,
    PathParts([topic, name]): PathParts<2>,
    fields: FormFields,
) -> Result<Redirect, ConsolePage> {
    let named = SubscriptionInUrl {
        topic: &topic,
        name: &name,
    };
    deletion::check_typed_name(&fields, &name, &named.page_path(&[]))?;
    let deleted = pages.api.delete(named.request_target(&[])).await;
    deleted.map_err(|refusal| refused_page(&refusal, &named.page_path(&[])))?;
    Ok(Redirect::to(&address_after(
        &address::topic_path(&topic, &[]),
        "subscription-deleted",
        visit.now,
    )))
}

/// A secret that was made.
pub(crate) fn secret_to_copy(secret: &str) -> Markup {
    html! {
        p { "Copy the secret to the receiver now. It is never shown again." }
        pre tabindex="0" role="region" aria-label="Signing secret" { (secret) }
    }
}

/// The warning of a page whose form is sent again by a reload.
pub(crate) fn no_reload_warning() -> Markup {
    html! { p { strong { "Do not reload this page: that would make another one." } } }
}

fn back_link(named: SubscriptionInUrl<'_>) -> Markup {
    html! { p { a href=(named.page_path(&[])) { "To the subscription" } } }
}
