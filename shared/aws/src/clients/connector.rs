//! The HTTP client under both services: plain for an emulator, TLS for AWS, and each set up at its
//! first request.
//!
//! The SDK's own client loads and parses the platform's roots whenever a service client is made,
//! also for an endpoint without TLS. That would be most of a cold start.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_async::rt::sleep::SharedAsyncSleep;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::{Connector, ConnectorBuilder};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use parking_lot::Mutex;

/// Time that an idle connection is kept. A function that is frozen does not see its connections
/// close; after a pause longer than this it makes new ones, where it would otherwise send its next
/// request into a closed one.
const IDLE_KEPT: Duration = Duration::from_secs(20);

/// Connect timeout and read timeout: a connector has its own, and its own pool of connections.
type ConnectorTimeouts = (Option<Duration>, Option<Duration>);

/// Makes a connector for each pair of timeouts, once.
#[derive(Debug)]
pub(super) struct LazyClient {
    sleep: SharedAsyncSleep,
    connectors: Mutex<HashMap<ConnectorTimeouts, SharedHttpConnector>>,
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
        let connector = connectors.entry(timeouts).or_insert_with(|| {
            SharedHttpConnector::new(SchemeConnectors::new(settings.clone(), self.sleep.clone()))
        });
        connector.clone()
    }
}

/// Two connectors, of which a process usually needs one.
#[derive(Debug)]
pub(super) struct SchemeConnectors {
    settings: HttpConnectorSettings,
    sleep: SharedAsyncSleep,
    plain: Arc<RenewableConnector>,
    tls: Arc<RenewableConnector>,
}

/// A connector with its idle connections. It is made anew after a timeout: a connection that is
/// silent may have been forgotten by a NAT, and the other idle ones with it. Without that, each
/// attempt of a call may meet another such connection.
#[derive(Debug, Default)]
struct RenewableConnector(Mutex<CurrentConnector>);

#[derive(Debug, Default)]
struct CurrentConnector {
    connector: Option<Arc<Connector>>,
    /// The number of connectors before this one.
    generation: u64,
}

impl RenewableConnector {
    fn get(&self, make: impl FnOnce() -> Connector) -> (Arc<Connector>, u64) {
        let mut current = self.0.lock();
        let connector = current.connector.get_or_insert_with(|| Arc::new(make()));
        (Arc::clone(connector), current.generation)
    }

    /// Forgets the connector of this generation, if it is still there. Calls under way continue.
    fn forget_generation(&self, generation: u64) {
        let mut current = self.0.lock();
        if current.generation == generation {
            current.generation += 1;
            current.connector = None;
        }
    }
}

impl SchemeConnectors {
    pub(super) fn new(settings: HttpConnectorSettings, sleep: SharedAsyncSleep) -> Self {
        Self {
            settings,
            sleep,
            plain: Arc::default(),
            tls: Arc::default(),
        }
    }

    fn builder(&self) -> ConnectorBuilder {
        Connector::builder()
            .connector_settings(self.settings.clone())
            .sleep_impl(self.sleep.clone())
            .pool_idle_timeout(IDLE_KEPT)
    }

    fn make_tls(&self) -> Connector {
        self.builder()
            .tls_provider(Provider::Rustls(CryptoMode::Ring))
            .build()
    }
}

impl HttpConnector for SchemeConnectors {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (renewed, (connector, generation)) = if request.uri().starts_with("http:") {
            (&self.plain, self.plain.get(|| self.builder().build_http()))
        } else {
            (&self.tls, self.tls.get(|| self.make_tls()))
        };
        let renewed = Arc::clone(renewed);
        HttpConnectorFuture::new(async move {
            let answered = connector.call(request).await;
            if answered.as_ref().is_err_and(ConnectorError::is_timeout) {
                renewed.forget_generation(generation);
            }
            answered
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use aws_smithy_async::rt::sleep::{AsyncSleep, Sleep, TokioSleep};
    use aws_smithy_types::body::SdkBody;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::Notify;

    use super::*;

    fn by_scheme() -> SchemeConnectors {
        let timeout = Duration::from_secs(5);
        let settings = HttpConnectorSettings::builder()
            .connect_timeout(timeout)
            .read_timeout(timeout)
            .build();
        SchemeConnectors::new(settings, SharedAsyncSleep::new(TokioSleep::new()))
    }

    /// Sends a request to a port of this machine without a listener.
    async fn fails(connector: &SchemeConnectors, scheme: &str) {
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
        let are_made =
            || [&connector.plain, &connector.tls].map(|it| it.0.lock().connector.is_some());
        assert_eq!(are_made(), [false, false]);
        fails(&connector, "http").await;
        assert_eq!(are_made(), [true, false]);
        fails(&connector, "https").await;
        assert_eq!(are_made(), [true, true]);
    }

    /// Time that has passed when the test says so.
    #[derive(Debug, Clone, Default)]
    struct Time(Arc<Notify>);

    impl AsyncSleep for Time {
        fn sleep(&self, _: Duration) -> Sleep {
            let time = Arc::clone(&self.0);
            Sleep::new(async move { time.notified().await })
        }
    }

    /// A service that responds to the first request of each of its connections, and to which all
    /// but the last connection are lost after that, without a word.
    struct Forgetful {
        listener: tokio::net::TcpListener,
    }

    impl Forgetful {
        async fn answer_one(stream: &mut tokio::net::TcpStream) {
            Self::read_one(stream).await;
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(answer).await.unwrap();
        }

        async fn read_one(stream: &mut tokio::net::TcpStream) {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                assert_ne!(stream.read_buf(&mut head).await.unwrap(), 0);
            }
        }
    }

    #[tokio::test]
    async fn call_after_a_timeout_takes_no_connection_from_before() {
        let service = Forgetful {
            listener: tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap(),
        };
        let uri = format!("http://{}/", service.listener.local_addr().unwrap());
        let request = || {
            let mut request = HttpRequest::new(SdkBody::empty());
            request.set_uri(uri.clone()).unwrap();
            request
        };
        let time = Time::default();
        let settings = HttpConnectorSettings::builder()
            .read_timeout(Duration::from_secs(5))
            .build();
        let connector = SchemeConnectors::new(settings, SharedAsyncSleep::new(time.clone()));
        // Three calls at once, so that three connections are idle afterwards.
        let accept = async {
            let mut kept = Vec::new();
            for _ in 0..3 {
                kept.push(service.listener.accept().await.unwrap().0);
            }
            for stream in &mut kept {
                Forgetful::answer_one(stream).await;
            }
            kept
        };
        let calls = async {
            let calls = [0, 1, 2].map(|_| connector.call(request()));
            for answered in futures_util::future::join_all(calls).await {
                assert_eq!(answered.unwrap().status().as_u16(), 200);
            }
        };
        let (mut kept, ()) = tokio::join!(accept, calls);
        let pass_time = async {
            let read = kept
                .iter_mut()
                .map(|stream| Box::pin(Forgetful::read_one(stream)));
            futures_util::future::select_all(read).await;
            time.0.notify_one();
        };
        let (answered, ()) = tokio::join!(connector.call(request()), pass_time);
        assert!(answered.unwrap_err().is_timeout());
        let fresh = async {
            let (mut stream, _) = service.listener.accept().await.unwrap();
            Forgetful::answer_one(&mut stream).await;
        };
        let (answered, ()) = tokio::join!(connector.call(request()), fresh);
        assert_eq!(answered.unwrap().status().as_u16(), 200);
    }
}
