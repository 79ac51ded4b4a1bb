//! The request of a handshake: asks one endpoint whether it wants events.

use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::api::edit::PendingHandshake;
use posthaste_core::api::handshake::{judge_failure, judge_response};
use posthaste_core::api::{HandshakeContext, HandshakeResult, SubscriptionSettings};
use posthaste_core::model::{HANDSHAKE_TIMEOUT_MAX, RequestRate, Subscription, Topic};
use posthaste_ports::{Clock, Entropy, Ports};
use posthaste_services::OutboundSender;

use crate::manage::{Manage, ManageSettings, url_below};
use crate::shared_port::SharedPort;

/// The sender of the requests of handshakes.
pub(crate) struct EndpointAsker<P: Ports> {
    webhooks: SharedPort<P, P::Webhook>,
    clock: P::Clock,
    entropy: SharedPort<P, P::Entropy>,
    settings: SharedPort<P, ManageSettings>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for EndpointAsker<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            webhooks: SharedPort::new(manage, |it| &it.webhooks),
            clock: manage.clock.clone(),
            entropy: SharedPort::new(manage, |it| &it.entropy),
            settings: SharedPort::new(manage, |it| &it.settings),
        }
    }
}

impl<P: Ports> EndpointAsker<P> {
    /// Asks the endpoint of a subscription, and judges its answer.
    pub(crate) async fn ask_endpoint(
        &self,
        topic: &Topic,
        settings: &SubscriptionSettings,
        subscription: &Subscription,
        pending: &PendingHandshake,
    ) -> HandshakeResult {
        let validation = settings.endpoint.validation;
        let code = &pending.code;
        let path = [
            "validate",
            topic.name.as_str(),
            subscription.name.as_str(),
            code.expose(),
        ];
        let callback = self
            .settings
            .public_url
            .as_ref()
            .map(|base| url_below(base, &path));
        let ask = HandshakeContext {
            subscription,
            validation,
            origin: &self.settings.origin,
            sender_headers: &self.settings.sender_headers,
            rate: settings
                .endpoint
                .max_requests_per_second
                .and_then(RequestRate::per_second),
            callback: callback.as_deref(),
            code,
            id: &self.entropy.uuid().to_string(),
            at: self.clock.now(),
        };
        let outbound = OutboundSender {
            webhook: &*self.webhooks,
            clock: &self.clock,
        };
        let sent = outbound
            .ask_consent(&ask, subscription.timeout.min(HANDSHAKE_TIMEOUT_MAX))
            .await;
        let failure_words = sent.failure_words().unwrap_or_default();
        let asked = (validation, &self.settings.origin, code);
        match sent.result {
            Ok(answer) => judge_response(
                asked,
                callback.is_some(),
                answer.status,
                &answer.headers,
                &answer.body,
            ),
            Err(_) => judge_failure(&failure_words),
        }
    }
}
