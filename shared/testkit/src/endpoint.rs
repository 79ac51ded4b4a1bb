//! An endpoint in memory that answers as a test says.

use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use parking_lot::{Mutex, MutexGuard};
use posthaste_core::model::{Link, SendFailure};
use posthaste_ports::{LastLook, WebhookAnswer, WebhookClient, WebhookRequest, WebhookResponse};

/// A response, or the reason why there is none.
pub type EndpointResult = Result<WebhookResponse, SendFailure>;

type ResponseScript = Arc<dyn Fn(&WebhookRequest) -> EndpointResult + Send + Sync>;

/// The endpoint behind every URL. It responds with 204 until [`answer`](Self::answer) is called,
/// after a millisecond, and remembers its requests. Clones share it.
#[derive(Clone, Default)]
pub struct MemoryEndpoint(Arc<Mutex<EndpointState>>);

#[derive(Default)]
struct EndpointState {
    answer: Option<ResponseScript>,
    hangs: bool,
    requests: Vec<WebhookRequest>,
    links_dropped: usize,
}

impl MemoryEndpoint {
    /// Sets the response for all requests from now on.
    pub fn answer(
        &self,
        answer: impl Fn(&WebhookRequest) -> EndpointResult + Send + Sync + 'static,
    ) {
        self.lock().answer = Some(Arc::new(answer));
    }

    /// Makes every request from now on wait forever.
    pub fn hang(&self) {
        self.lock().hangs = true;
    }

    /// Ends the hanging: responds as before.
    pub fn go_on(&self) {
        self.lock().hangs = false;
    }

    /// The requests since the last call, in the order in which they came.
    pub fn take(&self) -> Vec<WebhookRequest> {
        std::mem::take(&mut self.lock().requests)
    }

    /// The number of links that were dropped.
    pub fn links_dropped(&self) -> usize {
        self.lock().links_dropped
    }

    fn lock(&self) -> MutexGuard<'_, EndpointState> {
        self.0.lock()
    }
}

/// A response of this status, these headers and this body.
pub fn answered(status: u16, headers: &[(&'static str, &str)], body: &str) -> EndpointResult {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, value.parse().unwrap());
    }
    let status = StatusCode::from_u16(status).unwrap();
    let body = Bytes::copy_from_slice(body.as_bytes());
    Ok(WebhookResponse {
        status,
        headers: map,
        body,
        body_is_whole: true,
    })
}

impl WebhookClient for MemoryEndpoint {
    /// Sends without the last look: connections in memory take no time.
    async fn send_if(&self, request: WebhookRequest, _: &impl LastLook) -> WebhookAnswer {
        let (answer, hangs) = {
            let mut inner = self.lock();
            inner.requests.push(request.clone());
            (inner.answer.clone(), inner.hangs)
        };
        if hangs {
            pending::<()>().await;
        }
        let result = answer.map_or_else(|| answered(204, &[], ""), |answer| answer(&request));
        WebhookAnswer {
            failure_text: None,
            result,
            took: Duration::from_millis(1),
            late: None,
        }
    }

    fn drop_link(&self, _: &Link) {
        self.lock().links_dropped += 1;
    }
}

impl fmt::Debug for MemoryEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryEndpoint")
    }
}
