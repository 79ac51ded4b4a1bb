//! An endpoint in memory that answers handshakes as a test says, for tests alone.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use posthaste_core::attempt::SendFailure;
use posthaste_core::model::Link;
use posthaste_ports::{WebhookAnswer, WebhookClient, WebhookRequest, WebhookResponse};

type Result = std::result::Result<WebhookResponse, SendFailure>;

/// How a request is answered.
type Answer = Arc<dyn Fn(&WebhookRequest) -> Result + Send + Sync>;

#[derive(Clone, Default)]
pub(crate) struct Endpoint(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    answer: Option<Answer>,
    hangs: bool,
    seen: Vec<WebhookRequest>,
}

impl Endpoint {
    /// Answers so from now on. Until this is called, nobody listens.
    pub(crate) fn answer(&self, answer: impl Fn(&WebhookRequest) -> Result + Send + Sync + 'static) {
        self.0.lock().unwrap().answer = Some(Arc::new(answer));
    }

    /// Never answers from now on.
    pub(crate) fn hang(&self) {
        self.0.lock().unwrap().hangs = true;
    }

    /// Answers again as it did before it hung.
    pub(crate) fn go_on(&self) {
        self.0.lock().unwrap().hangs = false;
    }

    /// Takes what was asked since the last time.
    pub(crate) fn take(&self) -> Vec<WebhookRequest> {
        std::mem::take(&mut self.0.lock().unwrap().seen)
    }
}

/// An answer of this status, these headers and this body.
#[expect(clippy::unnecessary_wraps, reason = "a script may also answer with a failure")]
pub(crate) fn answered(status: u16, headers: &[(&'static str, &str)], body: &str) -> Result {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, value.parse().unwrap());
    }
    let status = StatusCode::from_u16(status).unwrap();
    Ok(WebhookResponse {
        status,
        headers: map,
        body: Bytes::copy_from_slice(body.as_bytes()),
        body_is_whole: true,
    })
}

impl WebhookClient for Endpoint {
    async fn send(&self, request: WebhookRequest) -> WebhookAnswer {
        let (answer, hangs) = {
            let mut inner = self.0.lock().unwrap();
            inner.seen.push(request.clone());
            (inner.answer.clone(), inner.hangs)
        };
        if hangs {
            std::future::pending::<()>().await;
        }
        let result = answer.map_or(Err(SendFailure::Socket), |answer| answer(&request));
        WebhookAnswer { result, took: Duration::ZERO, late: None }
    }

    /// It keeps nothing.
    fn drop_link(&self, _: &Link) {}
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Endpoint")
    }
}
