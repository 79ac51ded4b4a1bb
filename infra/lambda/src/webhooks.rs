//! The webhook client, made at the first request. Reading the platform's root certificates takes
//! longer than all the rest of a program's start, and an instance may be started for a batch that
//! posts nothing.

use std::fmt;
use std::time::Duration;

use posthaste_core::api::doctor::{ConnectedEndpoint, EndpointFault};
use posthaste_core::model::{Link, SendFailure};
use posthaste_http::{ClientSettings, HyperWebhookClient, TlsSetupError};
use posthaste_ports::{Clock, LastLook, WebhookAnswer, WebhookClient, WebhookRequest};
use tokio::sync::OnceCell;

/// A webhook client that is made when it is first needed.
pub struct LazyWebhooks<C> {
    settings: ClientSettings,
    clock: C,
    client: OnceCell<HyperWebhookClient<C>>,
}

impl<C: Clock> LazyWebhooks<C> {
    /// A client that is not made yet.
    pub fn new(settings: ClientSettings, clock: C) -> Self {
        Self {
            settings,
            clock,
            client: OnceCell::new(),
        }
    }

    /// Looks at an endpoint without a request, as [`HyperWebhookClient::look_at`] does. A client
    /// that cannot be made has no resources left.
    pub async fn look_at(
        &self,
        link: &Link,
        timeout: Duration,
    ) -> Result<ConnectedEndpoint, EndpointFault> {
        match self.get_or_make().await {
            Ok(client) => client.look_at(link, timeout).await,
            Err(error) => Err(EndpointFault {
                failure: SendFailure::Exhausted,
                text: Some(error.to_string().into()),
                refusal: None,
            }),
        }
    }

    async fn get_or_make(&self) -> Result<&HyperWebhookClient<C>, TlsSetupError> {
        self.client
            .get_or_try_init(async || {
                HyperWebhookClient::new(self.settings.clone(), self.clock.clone())
            })
            .await
    }
}

impl<C> fmt::Debug for LazyWebhooks<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyWebhooks")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl<C: Clock> WebhookClient for LazyWebhooks<C> {
    /// A client that cannot be made is no attempt: the event goes back and is tried again.
    async fn send_if(&self, request: WebhookRequest, look: &impl LastLook) -> WebhookAnswer {
        #[cfg(feature = "panic-probe")]
        assert!(
            !request.url.as_str().contains("/panic-probe"),
            "the endpoint asks for a panic"
        );
        match self.get_or_make().await {
            Ok(client) => client.send_if(request, look).await,
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "no webhook client"
                );
                WebhookAnswer {
                    failure_text: None,
                    result: Err(SendFailure::Exhausted),
                    took: Duration::ZERO,
                    late: None,
                }
            }
        }
    }

    fn drop_link(&self, link: &Link) {
        if let Some(client) = self.client.get() {
            client.drop_link(link);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_system::SystemClock;
    use posthaste_testkit::memory::request;

    async fn check(settings: ClientSettings, expected: SendFailure) {
        let webhooks = LazyWebhooks::new(settings, SystemClock);
        for _ in 0..2 {
            let request = request("https://10.0.0.1/", "");
            assert_eq!(webhooks.send(request).await.result.unwrap_err(), expected);
        }
    }

    #[tokio::test]
    async fn the_client_keeps_its_settings() {
        check(ClientSettings::default(), SendFailure::AddressRefused).await;
    }

    #[tokio::test]
    async fn a_client_that_cannot_be_made_is_no_attempt() {
        let settings = ClientSettings {
            extra_root_file: Some("/no/such/file".into()),
            ..ClientSettings::default()
        };
        check(settings, SendFailure::Exhausted).await;
    }
}
