//! Actions of the page of a subscription.

mod tested;

use axum::http::Method;
use axum::response::Redirect;
use maud::{Markup, html};
use posthaste_core::api::{ForcedView, RotatedSecret, SubscriptionSettings, TestAttempt};
use serde_json::{Map, Value};

use crate::address;
use crate::asked::{Fields, Path};
use crate::console::Pages;
use crate::page::{Answer, Page, Section};
use crate::pages::subscription::Named;
use crate::pages::{deletion, not_found};
use crate::parts::{after, button, refused};
use crate::visit::Visit;

/// The actions of which the page of the subscription shows the effect.
const ACTIONS: [&str; 5] = ["pause", "resume", "enable", "disable", "validate"];

/// Acts on the state.
pub(crate) async fn act(
    pages: Pages,
    visit: Visit,
    Path([topic, name, action]): Path<3>,
) -> Result<Redirect, Page> {
    let named = Named {
        topic: &topic,
        name: &name,
    };
    if !ACTIONS.contains(&action.as_str()) {
        return Err(not_found().await);
    }
    let done = pages
        .api
        .post::<SubscriptionSettings>(named.target(&[&action]))
        .await;
    done.map_err(|refusal| refused(&refusal, &named.page(&[])))?;
    Ok(Redirect::to(&after(&named.page(&[]), &action, visit.now)))
}

/// Forces the subscription. Its page says whether that ended a hold.
pub(crate) async fn force(
    pages: Pages,
    visit: Visit,
    Path([topic, name]): Path<2>,
) -> Result<Redirect, Page> {
    let named = Named {
        topic: &topic,
        name: &name,
    };
    let forced = pages.api.post::<ForcedView>(named.target(&["force"])).await;
    let forced = forced
        .map_err(|refusal| refused(&refusal, &named.page(&[])))?
        .forced;
    let words = if forced.is_empty() {
        "no-hold,forced"
    } else {
        "hold-ended,forced"
    };
    Ok(Redirect::to(&after(&named.page(&[]), words, visit.now)))
}

/// Sends a test event, and shows the request and its answer.
pub(crate) async fn test(pages: Pages, visit: Visit, Path([topic, name]): Path<2>) -> Answer {
    let named = Named {
        topic: &topic,
        name: &name,
    };
    let attempt = pages.api.post::<TestAttempt>(named.target(&["test"])).await;
    let attempt = attempt.map_err(|refusal| refused(&refusal, &named.page(&[])))?;
    let body = html! {
        (tested::tested(&attempt))
        div.actions { (button(&visit, &named.page(&["test"]), "", "Send another test event")) }
        (back(named))
    };
    Ok(Page::new(format!("Test of {topic} / {name}"), body).of(Section::Topics))
}

/// Rotates the signing secret, and shows the new one, this once.
pub(crate) async fn rotate(pages: Pages, Path([topic, name]): Path<2>, fields: Fields) -> Answer {
    let named = Named {
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
        .send(
            Method::POST,
            named.target(&["rotate-secret"]),
            None,
            &rotation,
        )
        .await;
    let rotated: RotatedSecret = rotated
        .map_err(|refusal| refused(&refusal, &named.page(&[])))?
        .body;
    let body = html! {
        p.done role="status" { "The new secret signs first from now on." }
        (secret(rotated.secret.expose()))
        (not_again())
        @if let Some(key) = &rotated.public_key {
            p { "Receivers verify with the public key " code { (key) } "." }
        }
        @if !rotated.ended.is_empty() {
            p {
                "These secrets sign no more: "
                @for ended in &rotated.ended { code { (ended.masked_as_one_of_several().expose()) } " " }
            }
        }
        (back(named))
    };
    Ok(Page::new(format!("New secret of {topic} / {name}"), body).of(Section::Topics))
}

/// Deletes the subscription.
pub(crate) async fn delete(
    pages: Pages,
    visit: Visit,
    Path([topic, name]): Path<2>,
    fields: Fields,
) -> Result<Redirect, Page> {
    let named = Named {
        topic: &topic,
        name: &name,
    };
    deletion::check(&fields, &name, &named.page(&[]))?;
    let deleted = pages.api.delete(named.target(&[])).await;
    deleted.map_err(|refusal| refused(&refusal, &named.page(&[])))?;
    Ok(Redirect::to(&after(
        &address::topic(&topic, &[]),
        "subscription-deleted",
        visit.now,
    )))
}

/// A secret that was made.
pub(crate) fn secret(secret: &str) -> Markup {
    html! {
        p { "Copy the secret to the receiver now. It is never shown again." }
        pre tabindex="0" role="region" aria-label="Signing secret" { (secret) }
    }
}

/// The warning of a page whose form is sent again by a reload.
pub(crate) fn not_again() -> Markup {
    html! { p { strong { "Do not reload this page: that would make another one." } } }
}

fn back(named: Named<'_>) -> Markup {
    html! { p { a href=(named.page(&[])) { "To the subscription" } } }
}
