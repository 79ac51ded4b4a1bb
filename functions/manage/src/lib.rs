//! The manage function: topics and subscriptions, keys, dead letters, pressure and health as resource-style JSON over
//! HTTP (SPEC §10). Routes and their OpenAPI description come from one place: the handlers' own attributes.
//!
//! It is an axum router, so that `posthaste serve` merges it with publish's and Lambda runs it as it is.

mod actions;
mod answer;
mod callbacks;
mod conditions;
mod cursor;
mod dead_letters;
mod document;
mod edit;
mod force;
mod guard;
mod handshakes;
mod input;
mod keys;
mod links;
mod records;
mod replays;
mod rotation;
mod status;
mod subscriptions;
mod temporary;
mod test_event;
#[cfg(test)]
mod tests;
mod time_limit;
mod topics;
mod webhook_keys;

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderValue;
use axum::middleware::from_fn_with_state;
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::model::address::AddressPolicy;
use posthaste_core::model::publish_url::PublishUrls;
use posthaste_core::model::secret::KeyDigest;
use posthaste_ports::{Clock, Entropy, ObjectStore, WebhookClient};
use posthaste_services::{Activity, LinkHealth};
use url::Url;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use crate::document::openapi;

use crate::answer::Failure;

/// What the manage function needs.
#[derive(Debug)]
pub struct Manage<S, D, W, C, E> {
    /// The state bucket.
    pub state: S,
    /// The dead-letter bucket.
    pub dead_letters: D,
    /// The way to the endpoints, for asking whether they want events.
    pub webhooks: W,
    /// Links and subscriptions that are not well.
    pub links: LinkHealth<S, C>,
    /// When something last happened to topics and subscriptions.
    pub activity: Activity,
    /// The time.
    pub clock: C,
    /// Chance, for keys and secrets.
    pub entropy: E,
    /// The digest of the key that opens the API.
    pub admin_key: KeyDigest,
    /// Where endpoints may be.
    pub address_policy: AddressPolicy,
    /// The URLs that no endpoint may have, because this installation publishes there.
    pub own_publish_urls: PublishUrls,
    /// Where the publish function is, if that is elsewhere: on AWS the two have a URL each. Shown as every topic's
    /// `endpoint`.
    pub publish_url: Option<Url>,
    /// Where this function itself is reached from outside, if that is known. Endpoints are asked to consent there.
    pub public_url: Option<Url>,
    /// Who asks, for `WebHook-Request-Origin`: the same as with every delivery.
    pub origin: HeaderValue,
}

/// An object store that a handler can hold: the bound of [`router`].
pub trait Store: ObjectStore + 'static {}

impl<T: ObjectStore + 'static> Store for T {}

/// A webhook client that a handler can hold: the bound of [`router`].
pub trait Webhooks: WebhookClient + 'static {}

impl<T: WebhookClient + 'static> Webhooks for T {}

/// How handlers receive what they need.
pub(crate) type Managed<S, D, W, C, E> = State<Arc<Manage<S, D, W, C, E>>>;

/// Routes, and what they need.
type Routes<S, D, W, C, E> = OpenApiRouter<Arc<Manage<S, D, W, C, E>>>;

/// The API. It answers unknown paths itself, so what is merged into it must have no fallback of its own.
pub fn router<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy>(
    manage: Arc<Manage<S, D, W, C, E>>,
) -> axum::Router {
    let guard = from_fn_with_state(Arc::clone(&manage), guard::require_admin_key::<S, D, W, C, E>);
    let guarded = guarded_routes().split_for_parts().0.route_layer(guard);
    let open = open_routes().split_for_parts().0;
    let limit = from_fn_with_state(Arc::clone(&manage), time_limit::limit_time::<S, D, W, C, E>);
    guarded
        .merge(open)
        .route_layer(limit)
        .method_not_allowed_fallback(|| async { Failure(Problem::new(ProblemKind::MethodNotAllowed)) })
        .fallback(|| async { Failure(Problem::new(ProblemKind::NotFound)) })
        .with_state(manage)
}

/// What needs the admin key.
pub(crate) fn guarded_routes<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy>() -> Routes<S, D, W, C, E>
{
    OpenApiRouter::new()
        .routes(routes!(topics::list_topics))
        .routes(routes!(topics::get_topic, topics::put_topic, topics::delete_topic))
        .routes(routes!(keys::get_keys))
        .routes(routes!(keys::delete_key))
        .routes(routes!(keys::regenerate_key))
        .routes(routes!(subscriptions::list_subscriptions))
        .routes(routes!(
            subscriptions::get_subscription,
            subscriptions::put_subscription,
            subscriptions::delete_subscription
        ))
        .routes(routes!(rotation::rotate_secret))
        .routes(routes!(actions::act_on_subscription))
        .routes(routes!(force::force))
        .routes(routes!(dead_letters::list_dead_letters))
        .routes(routes!(dead_letters::show_dead_letter))
        .routes(routes!(test_event::test_event))
        .routes(routes!(replays::replay))
        .routes(routes!(replays::list_replays))
        .routes(routes!(replays::show_replay, replays::cancel_replay))
        .routes(routes!(status::pressure))
        .routes(routes!(links::links))
}

/// What anybody may ask.
pub(crate) fn open_routes<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy>() -> Routes<S, D, W, C, E> {
    OpenApiRouter::new()
        .routes(routes!(status::health))
        .routes(routes!(document::openapi_json))
        .routes(routes!(webhook_keys::webhook_keys))
        .routes(routes!(callbacks::consent, callbacks::post_consent))
}
