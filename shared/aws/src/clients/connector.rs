//! The HTTP client under both services: plain for an emulator, TLS for AWS, and each set up at its
//! first request.
//!
//! The SDK's own client loads and parses the platform's roots whenever a service client is made,
//! also for an endpoint without TLS. That would be most of a cold start.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Duration;

use aws_smithy_async::rt::sleep::SharedAsyncSleep;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::{Connector, ConnectorBuilder};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use parking_lot::Mutex;

/// Time that an idle connection is kept. A function that is frozen does not see its connections
/// close; after a pause longer than this it makes new ones, where it would otherwise send its next
/// request into a closed one.
const IDLE_KEPT: Duration = Duration::from_secs(20);

/// Connect timeout and read timeout: a connector has its own, and its own pool of connections.
type Timeouts = (Option<Duration>, Option<Duration>);

/// Makes a connector for each pair of timeouts, once.
#[derive(Debug)]
pub(super) struct LazyClient {
    sleep: SharedAsyncSleep,
    connectors: Mutex<HashMap<Timeouts, SharedHttpConnector>>,
}

impl LazyClient {
    pub(super) fn new(sleep: SharedAsyncSleep) -> Self {
        Self {
            sleep,
            connectors: Mutex::default(),
        }
    }
}

impl HttpClient for LazyClient {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        _components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let timeouts = (settings.connect_timeout(), settings.read_timeout());
        let mut connectors = self.connectors.lock();
        let make = || SharedHttpConnector::new(ByScheme::new(settings.clone(), self.sleep.clone()));
        connectors.entry(timeouts).or_insert_with(make).clone()
    }
}

/// Two connectors, of which a process usually needs one.
#[derive(Debug)]
pub(super) struct ByScheme {
    settings: HttpConnectorSettings,
    sleep: SharedAsyncSleep,
    plain: OnceLock<Connector>,
    tls: OnceLock<Connector>,
}

impl ByScheme {
    pub(super) fn new(settings: HttpConnectorSettings, sleep: SharedAsyncSleep) -> Self {
        Self {
            settings,
            sleep,
            plain: OnceLock::new(),
            tls: OnceLock::new(),
        }
    }

    fn builder(&self) -> ConnectorBuilder {
        Connector::builder()
            .connector_settings(self.settings.clone())
            .sleep_impl(self.sleep.clone())
            .pool_idle_timeout(IDLE_KEPT)
    }
}

impl HttpConnector for ByScheme {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let connector = if request.uri().starts_with("http:") {
            self.plain.get_or_init(|| self.builder().build_http())
        } else {
            self.tls.get_or_init(|| {
                self.builder()
                    .tls_provider(Provider::Rustls(CryptoMode::Ring))
                    .build()
            })
        };
        connector.call(request)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use aws_smithy_async::rt::sleep::TokioSleep;
    use aws_smithy_types::body::SdkBody;

    use super::*;

    fn by_scheme() -> ByScheme {
        let timeout = Duration::from_secs(5);
        let settings = HttpConnectorSettings::builder()
            .connect_timeout(timeout)
            .read_timeout(timeout)
            .build();
        ByScheme::new(settings, SharedAsyncSleep::new(TokioSleep::new()))
    }

    /// Sends a request to a port of this machine without a listener.
    async fn fails(connector: &ByScheme, scheme: &str) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let mut request = HttpRequest::new(SdkBody::empty());
        request.set_uri(format!("{scheme}://{address}/")).unwrap();
        let error = connector.call(request).await.unwrap_err();
        assert!(error.is_io(), "{error:?}");
    }

    #[tokio::test]
    async fn only_what_a_request_needs_is_set_up() {
        let connector = by_scheme();
        assert!(connector.plain.get().is_none() && connector.tls.get().is_none());
        fails(&connector, "http").await;
        assert!(connector.plain.get().is_some() && connector.tls.get().is_none());
        fails(&connector, "https").await;
        assert!(connector.tls.get().is_some());
    }
}
