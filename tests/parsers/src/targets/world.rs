//! An installation in memory, as a request finds it.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use futures_util::poll;
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::BodyExt;
use posthaste_console::{ConsoleState, VisitorAccess};
use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::{
    AddressPolicy, DeliveryLogMode, KeyDigest, PublishUrls, SenderHeaders, Timestamp,
};
use posthaste_manage::{
    BegunRequests, DeliveryLog, LogSettings, Manage, ManageSettings, RequestCaches, SummaryStore,
    unguarded_router,
};
use posthaste_publish::{BodyBudget, Publish, PublishSettings, TarpitTurns};
use posthaste_services::{ActivityNotes, LinkHealth, PressureReader, TopicRegistry, WrongKeys};
use posthaste_testkit::memory::MemoryQueue;
use posthaste_testkit::{ManualClock, MemoryEndpoint, SeededEntropy, TestPorts};
use tower::ServiceExt;

use posthaste_testkit::memory::MemoryStore as Store;

/// The key of the console.
const ADMIN_KEY: &str = "the-admin-key-of-tests";

/// When every request arrives: 2026-11-21.
const START: Timestamp = Timestamp::from_millis(1_795_255_200_000);

/// Most turns until a request is answered.
const TURNS_MAX: usize = 20_000;

/// The objects that every request finds: a topic of each schema, and a dead letter.
const OBJECTS: &[(&str, &str)] = &[
    (
        "topics/orders.json",
        r#"{"v":2,"name":"Orders","key1":"key-one","key2":"key-two","tierKeys":{"internalKey1":"key-internal"},"createdAt":1795255000000,"updatedAt":1795255000000,"settings":{"subscriptions":{"billing":{"endpoint":{"url":"https://billing.example/hooks"},"filter":{"advancedFilters":[{"operatorType":"NumberGreaterThan","key":"data.amount","value":5}]}},"all":{"endpoint":{"url":"https://all.example/"},"contentMode":"binary"}}}}"#,
    ),
    (
        "topics/blobs.json",
        r#"{"v":2,"name":"blobs","key1":"key-one","key2":"key-two","createdAt":1795255000000,"updatedAt":1795255000000,"settings":{"inputSchema":"EventGrid","subscriptions":{"all":{"endpoint":{"url":"https://all.example/"},"deliverySchema":"CloudEvents"}}}}"#,
    ),
    (
        "topics/parcels.json",
        r#"{"v":2,"name":"parcels","key1":"key-one","key2":"key-two","createdAt":1795255000000,"updatedAt":1795255000000,"settings":{"inputSchema":"Custom","subscriptions":{"all":{"endpoint":{"url":"https://all.example/"}}}}}"#,
    ),
];

/// An installation.
pub(super) struct World {
    pub(super) queue: MemoryQueue,
    pub(super) state: Store,
    pub(super) dead_letters: Store,
    clock: ManualClock,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl World {
    /// An installation with its topics.
    pub(super) fn new() -> Self {
        let world = Self {
            queue: MemoryQueue::default(),
            state: Store::default(),
            dead_letters: Store::default(),
            clock: ManualClock::new(START),
        };
        for (key, text) in OBJECTS {
            world.state.write(key, *text);
        }
        world
    }

    /// Sends a request to publish.
    pub(super) fn publish(&self, request: Request<Body>) -> Answer {
        let clock = self.clock.clone();
        let registry = TopicRegistry::new(self.state.clone(), clock.clone(), Duration::ZERO);
        let function = Publish::<TestPorts<MemoryQueue, Store>> {
            deliveries: self.queue.clone(),
            slow_lane: None,
            records: Some(MemoryQueue::default()),
            registry,
            payloads: self.state.clone(),
            pressure: PressureReader::new(self.state.clone(), clock.clone(), Duration::ZERO),
            clock,
            entropy: SeededEntropy::new(1),
            activity: ActivityNotes::default(),
            bodies: BodyBudget::new(16_000_000),
            advice: TarpitTurns::default(),
            wrong_keys: WrongKeys::default(),
            traces: posthaste_services::EventTraces::default(),
            settings: PublishSettings::default(),
        };
        self.answer(posthaste_publish::router(Arc::new(function)), request)
    }

    /// Sends a request to the API, as its admin.
    pub(super) fn manage(&self, request: Request<Body>) -> Answer {
        self.answer(self.api(), request)
    }

    /// Sends a request to the console, of a browser that is signed in.
    pub(super) fn console(&self, request: Request<Body>) -> Answer {
        let access = VisitorAccess::new(
            self.state.clone(),
            self.clock.clone(),
            SeededEntropy::new(3),
            KeyDigest::for_key(ADMIN_KEY),
        );
        let router = posthaste_console::router(Arc::new(access), ConsoleState::new(self.api()));
        self.answer(router, request)
    }

    fn api(&self) -> Router {
        let clock = self.clock.clone();
        let log = Store::default();
        let links = LinkHealth::new(self.state.clone(), clock.clone(), HealthSettings::default());
        let function = Manage::<TestPorts<MemoryQueue, Store>> {
            links,
            state: self.state.clone(),
            dead_letters: self.dead_letters.clone(),
            log: DeliveryLog::with_summaries(log.clone(), SummaryStore::in_log(log)),
            deliveries: self.queue.clone(),
            slow_deliveries: Some(MemoryQueue::default()),
            webhooks: MemoryEndpoint::default(),
            clock,
            entropy: SeededEntropy::new(2),
            admin_key: KeyDigest::for_key(ADMIN_KEY),
            wrong_keys: WrongKeys::default(),
            activity: ActivityNotes::default(),
            address_policy: AddressPolicy::default(),
            examiner: None,
            own_publish_urls: PublishUrls::default(),
            settings: ManageSettings {
                publish_url: None,
                public_url: None,
                origin: HeaderValue::from_static("posthaste.example"),
                sender_headers: SenderHeaders::default(),
                notices_topic: None,
                log: LogSettings {
                    mode: DeliveryLogMode::Payloads,
                    retention: Some(Duration::from_hours(7 * 24)),
                    delay: Duration::from_secs(5),
                    gaps: Vec::new(),
                },
            },
            work: BegunRequests::default(),
            caches: RequestCaches::default(),
        };
        unguarded_router(Arc::new(function))
    }

    /// The answer to a request, whose waits pass at once.
    fn answer(&self, router: Router, request: Request<Body>) -> Answer {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime of one thread");
        runtime.block_on(async {
            let mut answered = pin!(async {
                let Ok(response) = router.oneshot(request).await;
                let (head, body) = response.into_parts();
                let body = body
                    .collect()
                    .await
                    .map(http_body_util::Collected::to_bytes);
                Answer {
                    status: head.status.as_u16(),
                    headers: head.headers,
                    body: body.unwrap_or_default(),
                }
            });
            for _ in 0..TURNS_MAX {
                if let Poll::Ready(answer) = poll!(&mut answered) {
                    return answer;
                }
                tokio::task::yield_now().await;
                self.clock.advance_to_next();
            }
            panic!("not answered")
        })
    }
}
