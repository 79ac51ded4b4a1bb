//! The manage function: its ports and its settings.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderValue;
use posthaste_core::model::{AddressPolicy, KeyDigest, PublishUrls};
use posthaste_ports::Ports;
use posthaste_services::{Activity, LinkHealth, Outbound};
use url::Url;

/// The manage function over its ports.
#[derive(Debug)]
pub struct Manage<P: Ports> {
    /// The state bucket.
    pub state: P::Store,
    /// The dead-letter bucket.
    pub dead_letters: P::DeadLetters,
    /// The way to the endpoints, for handshakes and test events.
    pub webhooks: P::Webhook,
    /// Links and subscriptions that are not well.
    pub links: LinkHealth<P::Store, P::Clock>,
    /// The last use of topics and subscriptions.
    pub activity: Activity,
    /// Time.
    pub clock: P::Clock,
    /// Chance, for keys and secrets.
    pub entropy: P::Entropy,
    /// The digest of the key that opens the API.
    pub admin_key: KeyDigest,
    /// The addresses that endpoints may have.
    pub address_policy: AddressPolicy,
    /// The URLs that no endpoint may have, because this installation publishes there.
    pub own_publish_urls: PublishUrls,
    /// Settings of the function.
    pub settings: ManageSettings,
}

/// Settings of the function.
#[derive(Debug, Clone)]
pub struct ManageSettings {
    /// The URL of the publish function, where that is another one: on AWS the two have a URL each. Shown as
    /// every topic's `endpoint`.
    pub publish_url: Option<Url>,
    /// The URL of this function as seen from outside, if that is known. Endpoints are asked to consent there.
    pub public_url: Option<Url>,
    /// The sender of requests, for `WebHook-Request-Origin`: the same as with every delivery.
    pub origin: HeaderValue,
}

impl<P: Ports> Manage<P> {
    /// The way to endpoints.
    pub(crate) fn outbound(&self) -> Outbound<'_, P::Webhook, P::Clock> {
        Outbound { webhook: &self.webhooks, clock: &self.clock, origin: &self.settings.origin }
    }
}

/// The function, as handlers receive it.
pub(crate) type Managed<P> = State<Arc<Manage<P>>>;
