//! A receiver of webhooks on this machine. It verifies the signature of every request, and its host
//! answers.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use posthaste_core::model::{SigningSecret, Timestamp};
use posthaste_ports::Clock;
use posthaste_system::SystemClock;
use tokio::net::TcpListener;

use crate::signature::{SignatureError, verify_signature};

/// Largest body that is read: a batch has 1 MB, or one event of 1,000,000 bytes and its envelope.
const BODY_BYTES_MAX: usize = 16 << 20;

/// The host of a receiver.
pub trait WebhookHost: Send + Sync + 'static {
    /// The secrets that may have signed a request.
    fn secrets(&self) -> &[SigningSecret];

    /// The answer to a request.
    fn answer(&self, request: ReceivedRequest) -> impl Future<Output = Response> + Send;
}

/// A request.
#[derive(Debug)]
pub struct ReceivedRequest {
    pub at: Timestamp,
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub verdict: SignatureVerdict,
}

/// Judgement over the signature of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureVerdict {
    Verified,
    Refused(SignatureError),
    /// There is no secret to verify with.
    NotChecked,
}

/// Takes a port of this machine; 0 is a free one.
pub async fn listen_on(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
}

/// Receives until the future is dropped.
pub async fn receive_webhooks<H: WebhookHost>(
    listener: TcpListener,
    host: Arc<H>,
) -> io::Result<()> {
    let router = Router::new()
        .fallback(receive_request::<H>)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(host);
    axum::serve(listener, router).await
}

async fn receive_request<H: WebhookHost>(
    State(host): State<Arc<H>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let at = SystemClock.now();
    let verdict = match host.secrets() {
        [] => SignatureVerdict::NotChecked,
        secrets => verify_signature(secrets, &headers, &body, at)
            .map_or_else(SignatureVerdict::Refused, |()| SignatureVerdict::Verified),
    };
    let request = ReceivedRequest {
        at,
        method,
        uri,
        headers,
        body,
        verdict,
    };
    host.answer(request).await
}
