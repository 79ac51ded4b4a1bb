//! Endpoints that answer after a time that depends on their host.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use posthaste_core::model::{Link, SendFailure};
use posthaste_ports::{
    Clock, LastLook, WebhookAnswer, WebhookClient, WebhookRequest, WebhookResponse,
};
use posthaste_testkit::ManualClock;

use crate::event::events_in;

/// The time of an endpoint for its answer, by its host and the time since the beginning.
pub(super) type AnswerTime = fn(&str, Duration) -> Duration;

/// All endpoints. Clones share what was seen.
#[derive(Debug, Clone)]
pub(super) struct Endpoints {
    clock: ManualClock,
    answer_time: AnswerTime,
    shared: Arc<Mutex<Seen>>,
}

/// Requests and events that the endpoints saw.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The beginning of each request, in their order.
    pub(super) requests: Vec<Duration>,
    /// The times at which each event was taken, by its id and the host.
    pub(super) taken: BTreeMap<(String, String), Vec<Duration>>,
    open: usize,
    /// The most requests that were open at once.
    pub(super) open_most: usize,
}

impl Endpoints {
    pub(super) fn new(clock: ManualClock, answer_time: AnswerTime) -> Self {
        Self {
            clock,
            answer_time,
            shared: Arc::default(),
        }
    }

    /// Looks at what was seen.
    pub(super) fn seen<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.shared.lock())
    }

    /// The number of deliveries: an event that was taken twice counts once.
    pub(super) fn delivered(&self) -> usize {
        self.shared.lock().taken.len()
    }

    fn begin(&self) {
        let mut seen = self.shared.lock();
        seen.requests.push(self.clock.monotonic());
        seen.open += 1;
        seen.open_most = seen.open_most.max(seen.open);
    }

    fn end(&self, host: &str, taken: &[Bytes]) {
        let mut seen = self.shared.lock();
        seen.open -= 1;
        if taken.is_empty() {
            return;
        }
        for event in events_in(&String::from_utf8_lossy(&taken.concat())) {
            let id = event["id"].as_str().expect("an id").to_owned();
            seen.taken
                .entry((id, host.to_owned()))
                .or_default()
                .push(self.clock.monotonic());
        }
    }
}

impl WebhookClient for Endpoints {
    async fn send_if(&self, request: WebhookRequest, _: &impl LastLook) -> WebhookAnswer {
        let host = request.url.link().host;
        let took = (self.answer_time)(&host, self.clock.monotonic());
        self.begin();
        self.clock.sleep(took.min(request.timeout)).await;
        if took > request.timeout {
            self.end(&host, &[]);
            return WebhookAnswer {
                failure_text: None,
                result: Err(SendFailure::TimedOut),
                took: request.timeout,
                late: None,
            };
        }
        self.end(&host, &request.body);
        let response = WebhookResponse {
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            body_is_whole: true,
        };
        WebhookAnswer {
            failure_text: None,
            result: Ok(response),
            took,
            late: None,
        }
    }

    fn drop_link(&self, _: &Link) {}
}
