//! The API through its router, over stores in memory.

mod audit;
mod bad_requests;
mod collaborators;
mod conditions;
mod dead_letters;
mod delivery_headers;
mod description;
mod doctor;
mod documents;
mod events;
mod failing;
mod find_subscriptions;
mod handshakes;
mod import;
mod keys;
mod letter_groups;
mod letter_work;
mod links;
mod memory;
mod named_letters;
mod replays;
mod resend;
mod resolve;
mod revealed;
mod rotation;
mod secrets;
mod status;
mod stores;
mod subscriptions;
mod temporary;
mod test_event;
mod topics;
mod unfinished;
mod waiting;
mod webhook_keys;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode};
use bytes::Bytes;
use http_body_util::BodyExt;
use posthaste_core::circuit::HealthSettings;
use posthaste_core::delivery_log::LogGap;
use posthaste_core::model::{
    AddressPolicy, DeliveryLogMode, KeyDigest, PublishUrls, SendFailure, SenderHeaders,
};
use posthaste_services::{ActivityNotes, LinkHealth};
use serde_json::{Value, json};
use tower::ServiceExt;

use self::memory::{FixedClock, Memory, Numbers};
use posthaste_ports::{InstallationExaminer, PortBundle};
use posthaste_testkit::MemoryEndpoint;
use posthaste_testkit::memory::MemoryQueue;

use crate::{
    BegunRequests, DeliveryLog, LogSettings, Manage, ManageSettings, RequestCaches, SummaryStore,
    router,
};

pub(crate) const ADMIN_KEY: &str = "the-admin-key-of-tests";

/// The settings of the delivery log, as `serve` has them.
pub(crate) const LOG: LogSettings = LogSettings {
    mode: DeliveryLogMode::Payloads,
    retention: Some(Duration::from_hours(7 * 24)),
    delay: Duration::from_secs(5),
    gaps: Vec::new(),
};

/// The adapters of tests.
pub(crate) type TestPorts =
    PortBundle<MemoryQueue, Memory, Memory, Memory, MemoryEndpoint, FixedClock, Numbers>;

pub(crate) struct Api {
    pub(crate) state: Memory,
    pub(crate) dead_letters: Memory,
    pub(crate) log: Memory,
    pub(crate) queue: MemoryQueue,
    pub(crate) endpoint: MemoryEndpoint,
    pub(crate) clock: FixedClock,
    pub(crate) manage: Arc<Manage<TestPorts>>,
    pub(crate) router: axum::Router,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Api {
    pub(crate) fn new() -> Self {
        Self::over(Memory::default(), Memory::default())
    }

    /// An API over stores that others may use at the same moment.
    pub(crate) fn over(state: Memory, dead_letters: Memory) -> Self {
        Self::wire(state, dead_letters, None, ADMIN_KEY)
    }

    /// The same installation in a process that only runs while it answers.
    pub(crate) fn then_looking_beside_answers(self) -> Self {
        drop(self.router);
        let mut manage = Arc::into_inner(self.manage).unwrap();
        manage.work = BegunRequests::looking_beside_answers();
        let manage = Arc::new(manage);
        let router = router(Arc::clone(&manage));
        Self {
            manage,
            router,
            ..self
        }
    }

    /// The same installation, whose summaries of the log are in a store of their own, as in `serve`.
    pub(crate) fn then_with_summaries_in(self, store: Memory) -> Self {
        drop(self.router);
        let mut manage = Arc::into_inner(self.manage).unwrap();
        manage.log =
            DeliveryLog::with_summaries(self.log.clone(), SummaryStore::in_own_store(store));
        let manage = Arc::new(manage);
        let router = router(Arc::clone(&manage));
        Self {
            manage,
            router,
            ..self
        }
    }

    /// The same installation, whose log may lack records of these times.
    pub(crate) fn then_with_gaps(self, gaps: Vec<LogGap>) -> Self {
        drop(self.router);
        let mut manage = Arc::into_inner(self.manage).unwrap();
        manage.settings.log.gaps = gaps;
        let manage = Arc::new(manage);
        let router = router(Arc::clone(&manage));
        Self {
            manage,
            router,
            ..self
        }
    }

    /// The same installation, whose queue does not tell what waits by subscription.
    pub(crate) fn then_like_aws(self) -> Self {
        drop(self.router);
        let mut manage = Arc::into_inner(self.manage).unwrap();
        manage.deliveries = MemoryQueue::like_sqs();
        let manage = Arc::new(manage);
        let router = router(Arc::clone(&manage));
        Self {
            manage,
            router,
            ..self
        }
    }

    /// The same installation with something that looks at its machine.
    pub(crate) fn then_examined_by(self, examiner: Arc<dyn InstallationExaminer>) -> Self {
        drop(self.router);
        let mut manage = Arc::into_inner(self.manage).unwrap();
        manage.examiner = Some(examiner);
        let manage = Arc::new(manage);
        let router = router(Arc::clone(&manage));
        Self {
            manage,
            router,
            ..self
        }
    }

    /// An API beside which events are published elsewhere.
    pub(crate) fn publishing_at(url: &str) -> Self {
        Self::wire(
            Memory::default(),
            Memory::default(),
            Some(url.parse().unwrap()),
            ADMIN_KEY,
        )
    }

    /// An API with another admin key.
    pub(crate) fn opened_by(key: &str) -> Self {
        Self::wire(Memory::default(), Memory::default(), None, key)
    }

    /// The same installation where its publish function is at this URL.
    pub(crate) fn then_publishing_at(self, url: &str) -> Self {
        Self::wire(
            self.state,
            self.dead_letters,
            Some(url.parse().unwrap()),
            ADMIN_KEY,
        )
    }

    fn wire(
        state: Memory,
        dead_letters: Memory,
        publish_url: Option<url::Url>,
        admin_key: &str,
    ) -> Self {
        let clock = FixedClock::default();
        let endpoint = MemoryEndpoint::default();
        let queue = MemoryQueue::default();
        let log = Memory::default();
        // Until a test says how the endpoint answers, it cannot be reached.
        endpoint.answer(|_| Err(SendFailure::Socket));
        let links = LinkHealth::new(state.clone(), clock.clone(), HealthSettings::default());
        let manage = Manage::<TestPorts> {
            links,
            state: state.clone(),
            dead_letters: dead_letters.clone(),
            log: DeliveryLog::with_summaries(log.clone(), SummaryStore::in_log(log.clone())),
            deliveries: queue.clone(),
            slow_deliveries: Some(queue.sibling_queue(posthaste_ports::QueueName::SlowDeliveries)),
            webhooks: endpoint.clone(),
            clock: clock.clone(),
            entropy: Numbers::default(),
            admin_key: KeyDigest::for_key(admin_key),
            wrong_keys: posthaste_services::WrongKeys::default(),
            activity: ActivityNotes::default(),
            address_policy: AddressPolicy::default(),
            examiner: None,
            own_publish_urls: PublishUrls::default().with_base(publish_url.clone()),
            settings: ManageSettings {
                publish_url,
                public_url: Some("https://manage.example/base".parse().unwrap()),
                origin: HeaderValue::from_static("posthaste.example"),
                sender_headers: SenderHeaders::default(),
                notices_topic: None,
                log: LOG,
            },
            work: BegunRequests::default(),
            caches: RequestCaches::default(),
        };
        let manage = Arc::new(manage);
        let router = router(Arc::clone(&manage));
        Self {
            state,
            dead_letters,
            log,
            queue,
            endpoint,
            clock,
            manage,
            router,
        }
    }

    /// An API with the topic `Orders` and its subscription `Billing`.
    pub(crate) async fn with_billing() -> Self {
        let api = Self::new();
        assert_eq!(api.put("/topics/Orders", json!({})).await.status, 201);
        assert_eq!(
            api.put("/topics/Orders/subscriptions/Billing", billing())
                .await
                .status,
            201
        );
        api
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
        }
    }

    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        request = request.header("authorization", format!("Bearer {ADMIN_KEY}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(body.into()).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, &[], "").await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.call(
            "PUT",
            path,
            &[("content-type", "application/json")],
            body.to_string(),
        )
        .await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, &[], "").await
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    /// Checks that this is a problem of this status and kind, and answers its body.
    pub(crate) fn problem(&self, status: u16, kind: &str) -> Value {
        assert_eq!(self.status, status, "{:?}", self.body);
        assert_eq!(self.header("content-type"), "application/problem+json");
        let body = self.json();
        let type_uri = match kind {
            "about:blank" => kind.to_owned(),
            own => format!("urn:posthaste:problem:{own}"),
        };
        assert_eq!(body["type"], type_uri, "{body}");
        assert_eq!(
            body["status"],
            StatusCode::from_u16(status).unwrap().as_u16()
        );
        body
    }
}

pub(crate) fn billing() -> Value {
    json!({ "endpoint": { "url": "https://billing.example.com/hooks" } })
}
