//! One HTTP request to a subscriber's endpoint, and its result.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use posthaste_core::model::{EndpointUrl, Link, SendFailure};

/// A request. The client adds `host`, `accept-encoding` and `content-length` and nothing else.
#[derive(Debug, Clone)]
pub struct WebhookRequest {
    /// `POST`, or what a handshake asks for.
    pub method: Method,
    /// The URL that it goes to.
    pub url: EndpointUrl,
    /// All headers but those three.
    pub headers: HeaderMap,
    /// The body: these slices, one after the other.
    pub body: Vec<Bytes>,
    /// Whether it goes out on a new connection, and not on one that was kept after another request.
    pub needs_new_connection: bool,
    /// Whether the body of a successful response is needed. If not, the status decides as soon as
    /// it is there, and the rest of the response is read only as far as it comes within two
    /// seconds.
    pub needs_body: bool,
    /// One deadline over name resolution, connect, TLS, sending, and reading the response.
    pub timeout: Duration,
}

/// A response, as far as it was read.
#[derive(Debug, Clone)]
pub struct WebhookResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// At most the first 64 KiB of the body.
    pub body: Bytes,
    /// Whether that is all of the body: it was not longer, did not break off, and came in time.
    pub body_is_whole: bool,
}

/// The rest of a request that had no response in time. The request continues while this is awaited;
/// dropping it closes the connection.
pub struct LateAnswer(Pin<Box<dyn Future<Output = Result<WebhookResponse, SendFailure>> + Send>>);

impl LateAnswer {
    /// Wraps a future that returns the response and has no deadline of its own.
    pub fn new(
        answer: impl Future<Output = Result<WebhookResponse, SendFailure>> + Send + 'static,
    ) -> Self {
        Self(Box::pin(answer))
    }
}

impl Future for LateAnswer {
    type Output = Result<WebhookResponse, SendFailure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for LateAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LateAnswer")
    }
}

/// The result of a request, and how long it took.
#[derive(Debug)]
pub struct WebhookAnswer {
    /// The response, or why there was none.
    pub result: Result<WebhookResponse, SendFailure>,
    /// The failure in a sentence that says more than its kind, such as each fault of a certificate.
    pub failure_text: Option<Box<str>>,
    /// The time from the start of the attempt to its end.
    pub took: Duration,
    /// The request itself, if it was sent and its time ran out before a response came.
    pub late: Option<LateAnswer>,
}

/// The last check before a request begins: the settings that it was made by may have changed.
pub trait LastLook: Sync {
    /// Whether the request may begin now.
    fn may_begin(&self) -> impl Future<Output = bool> + Send;
}

/// The look of a request that may begin at any time.
#[derive(Debug, Clone, Copy)]
pub struct AlwaysBegin;

impl LastLook for AlwaysBegin {
    async fn may_begin(&self) -> bool {
        true
    }
}

/// Sends requests to endpoints.
///
/// Redirects are never followed. The host's addresses are vetted after resolution, every one of
/// them, and the connection goes to a vetted address. A response whose head arrived in time counts,
/// whatever its body does: an endless body is read to 64 KiB, one that stalls for two seconds, or to
/// the deadline where the request needs it, and a broken one as far as it goes. So does one whose
/// status line arrived and whose headers cannot be read.
pub trait WebhookClient: Send + Sync {
    /// Sends one request. A broken endpoint is a result, not an error.
    fn send(&self, request: WebhookRequest) -> impl Future<Output = WebhookAnswer> + Send {
        self.send_if(request, &AlwaysBegin)
    }

    /// Sends one request if it may still begin. The client asks after everything that takes time
    /// before the first byte, above all a connect, and before it sends the request once more. If
    /// the request may not begin, the result is [`SendFailure::Withdrawn`].
    fn send_if(
        &self,
        request: WebhookRequest,
        look: &impl LastLook,
    ) -> impl Future<Output = WebhookAnswer> + Send;

    /// Forgets what is known of a link, because it is down: the next request to it resolves its
    /// name and connects afresh. Requests under way continue.
    fn drop_link(&self, link: &Link);
}
