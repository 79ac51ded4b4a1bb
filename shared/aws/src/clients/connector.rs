//! The HTTP client under both services: plain for an emulator, TLS for AWS, and each set up when it is first needed.
//!
//! The SDK's own client loads and parses the platform's roots whenever a service client is made, also for an endpoint
//! without TLS. That would be most of a cold start.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};
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
        Self { sleep, connectors: Mutex::default() }
    }
}

impl HttpClient for LazyClient {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        _components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let timeouts = (settings.connect_timeout(), settings.read_timeout());
        // Nothing panics while it holds the lock, and the map would be whole even then.
        let mut connectors = self.connectors.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || SharedHttpConnector::new(ByScheme::new(settings.clone(), self.sleep.clone()));
        connectors.entry(timeouts).or_insert_with(make).clone()
    }
}

/// Two connectors, of which a process usually needs one.
#[derive(Debug)]
struct ByScheme {
    settings: HttpConnectorSettings,
    sleep: SharedAsyncSleep,
    plain: OnceLock<Connector>,
    tls: OnceLock<Connector>,
}

impl ByScheme {
    fn new(settings: HttpConnectorSettings, sleep: SharedAsyncSleep) -> Self {
        Self { settings, sleep, plain: OnceLock::new(), tls: OnceLock::new() }
    }

    fn builder(&self) -> ConnectorBuilder {
        Connector::builder().connector_settings(self.settings.clone()).sleep_impl(self.sleep.clone())
    }

    fn plain(&self) -> &Connector {
        self.plain.get_or_init(|| self.builder().build_http())
    }

    fn tls(&self) -> &Connector {
        self.tls.get_or_init(|| self.builder().tls_provider(Provider::Rustls(CryptoMode::Ring)).build())
    }
}

impl HttpConnector for ByScheme {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let is_plain = request.uri().starts_with("http:");
        if is_plain { self.plain().call(request) } else { self.tls().call(request) }
    }
}
