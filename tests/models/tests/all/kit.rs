//! The functions over ports in memory whose calls are noted, each instance as one actor.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Request};
use http_body_util::BodyExt;
use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::{
    AddressPolicy, DeadLetter, DeadLetterReason, Delivery, DeliveryLogMode, EventPayload,
    KeyDigest, PublishUrls, SenderHeaders, Timestamp,
};
use posthaste_core::stored::dead_letter::dead_letter_record;
use posthaste_core::stored::delivery::render_delivery;
use posthaste_core::stored::{DeadLetterArray, layout};
use posthaste_deadletter::{DeadLetterPorts, DeadLetters};
use posthaste_deliver::{Deliver, DeliverPorts, DeliverSettings};
use posthaste_manage::{
    BegunRequests, LogSettings, Manage, ManageSettings, RequestCaches, unguarded_router,
};
use posthaste_ports::{
    BatchResponse, Clock, OutgoingMessage, QueueName, QueueReceiver, QueueSender, ReceiveRequest,
};
use posthaste_publish::{BodyBudget, Publish, PublishSettings, TarpitTurns, router};
use posthaste_services::{
    ActivityNotes, ArrivalTracker, DrainMeter, LinkHealth, PressureReader, TopicRegistry, WrongKeys,
};
use posthaste_testkit::memory::{MemoryQueue, MemoryStore};
use posthaste_testkit::records::{
    delivery, subscription_name, topic_name, topic_record, topic_settings,
};
use posthaste_testkit::{ManualClock, MemoryEndpoint, SeededEntropy, TestPorts};
use posthaste_tests_models::step::Actor;
use posthaste_tests_models::trace::{Notes, Traced};
use posthaste_wake::{DeliveryLog, Wake, WakePorts};
use serde_json::{Value, json};
use tower::ServiceExt;
use url::Url;

type Store = Traced<MemoryStore>;

/// The ports of every function.
pub(crate) type Ports = TestPorts<Traced<MemoryQueue>, Store, Store, Traced<MemoryEndpoint>>;

/// 2026-11-21T10:00:00Z.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_795_255_200_000);

/// The time of a message that was received.
const VISIBILITY: Duration = Duration::from_mins(12);

/// The functions, and what a test looks at.
pub(crate) struct Kit {
    pub(crate) clock: ManualClock,
    pub(crate) notes: Notes,
    pub(crate) state: MemoryStore,
    pub(crate) bucket: MemoryStore,
    pub(crate) queue: MemoryQueue,
    pub(crate) endpoint: MemoryEndpoint,
}

impl Kit {
    /// A kit with the topic `orders`, whose subscription `billing` has these settings besides.
    pub(crate) fn new(settings: &Value) -> Self {
        let kit = Self {
            clock: ManualClock::new(START),
            notes: Notes::default(),
            state: MemoryStore::like_s3(1000),
            bucket: MemoryStore::like_s3(1000),
            queue: MemoryQueue::like_sqs(),
            endpoint: MemoryEndpoint::default(),
        };
        kit.subscribe(settings);
        kit
    }

    /// Writes the topic with these settings of `billing` besides.
    pub(crate) fn subscribe(&self, settings: &Value) {
        let mut subscription = json!({
            "endpoint": { "url": "https://billing.example.com/" },
            "status": { "state": "Active", "since": "1970-01-01T00:00:00Z" },
        });
        let members = subscription.as_object_mut().unwrap();
        members.extend(settings.as_object().unwrap().clone());
        let settings = json!({ "subscriptions": { "billing": subscription } });
        let record = topic_record(topic_name("orders"), topic_settings(settings), START);
        let key = layout::topic_record_key(&topic_name("orders"));
        self.state.write(&key, record.render());
    }

    fn store(&self, actor: Actor) -> Store {
        Traced::new(self.state.clone(), actor, &self.notes)
    }

    fn queue(&self, name: QueueName, actor: Actor) -> Traced<MemoryQueue> {
        Traced::queue(self.queue.sibling_queue(name), name, actor, &self.notes)
    }

    fn links(&self, actor: Actor) -> LinkHealth<Store, ManualClock> {
        let settings = HealthSettings::default();
        LinkHealth::new(self.store(actor), self.clock.clone(), settings).counting_arrivals()
    }

    fn registry(&self, actor: Actor) -> TopicRegistry<Store, ManualClock> {
        TopicRegistry::new(self.store(actor), self.clock.clone(), Duration::ZERO)
    }

    fn pressure(&self, actor: Actor) -> PressureReader<Store, ManualClock> {
        PressureReader::new(self.store(actor), self.clock.clone(), Duration::ZERO)
    }

    fn entropy(actor: Actor) -> SeededEntropy {
        SeededEntropy::new(1 + actor as u64)
    }

    /// wake, as an instance that knows nothing yet.
    pub(crate) fn wake(&self, actor: Actor) -> Wake<Ports> {
        Wake::new(WakePorts {
            deliveries: self.queue(QueueName::Deliveries, actor),
            slow_lane: None,
            state: self.store(actor),
            dead_letters: Traced::new(self.bucket.clone(), actor, &self.notes),
            log: DeliveryLog::new(MemoryStore::default()),
            log_delay: Duration::from_secs(5),
            registry: self.registry(actor),
            pressure: self.pressure(actor),
            links: self.links(actor),
            activity: ActivityNotes::default(),
            clock: self.clock.clone(),
            entropy: Self::entropy(actor),
        })
    }

    /// The router of publish.
    pub(crate) fn publish(&self, actor: Actor) -> Router {
        let publish: Publish<Ports> = Publish {
            deliveries: self.queue(QueueName::Deliveries, actor),
            slow_lane: None,
            records: None,
            registry: self.registry(actor),
            payloads: self.store(actor),
            pressure: self.pressure(actor),
            clock: self.clock.clone(),
            entropy: Self::entropy(actor),
            activity: ActivityNotes::default(),
            bodies: BodyBudget::new(16_000_000),
            advice: TarpitTurns::default(),
            wrong_keys: WrongKeys::default(),
            traces: posthaste_services::EventTraces::default(),
            settings: PublishSettings::default(),
        };
        router(Arc::new(publish))
    }

    /// The router of manage.
    pub(crate) fn manage(&self, actor: Actor) -> Router {
        let manage: Manage<Ports> = Manage {
            state: self.store(actor),
            dead_letters: Traced::new(self.bucket.clone(), actor, &self.notes),
            log: DeliveryLog::new(MemoryStore::default()),
            deliveries: self.queue(QueueName::Deliveries, actor),
            slow_deliveries: None,
            webhooks: Traced::new(self.endpoint.clone(), actor, &self.notes),
            links: self.links(actor),
            activity: ActivityNotes::default(),
            clock: self.clock.clone(),
            entropy: Self::entropy(actor),
            admin_key: KeyDigest::for_key(""),
            wrong_keys: WrongKeys::default(),
            address_policy: AddressPolicy::default(),
            examiner: None,
            own_publish_urls: PublishUrls::default(),
            settings: ManageSettings {
                publish_url: None,
                public_url: Url::parse("https://manage.example").ok(),
                origin: HeaderValue::from_static("posthaste.example"),
                sender_headers: SenderHeaders::default(),
                notices_topic: None,
                log: LogSettings {
                    mode: DeliveryLogMode::Off,
                    retention: None,
                    delay: Duration::from_secs(5),
                    gaps: Vec::new(),
                },
            },
            work: BegunRequests::default(),
            caches: RequestCaches::default(),
        };
        unguarded_router(Arc::new(manage))
    }

    /// deadletter.
    pub(crate) fn dead_letters(&self, actor: Actor) -> DeadLetters<Ports> {
        DeadLetters::new(DeadLetterPorts {
            queue: self.queue(QueueName::DeadLetters, actor),
            source: QueueName::DeadLetters,
            records: self.queue(QueueName::Records, actor),
            delivery_log: DeliveryLogMode::Off,
            missed_bytes_max: None,
            deliveries: self.queue(QueueName::Deliveries, actor),
            state: self.store(actor),
            bucket: Traced::new(self.bucket.clone(), actor, &self.notes),
            registry: self.registry(actor),
            book: ArrivalTracker::new(self.store(actor), self.clock.clone()),
            clock: self.clock.clone(),
            entropy: Self::entropy(actor),
        })
    }

    /// A worker of deliver, with both lanes.
    pub(crate) fn deliver(&self, actor: Actor) -> Deliver<Ports> {
        let ports = DeliverPorts {
            queue: self.queue(QueueName::Deliveries, actor),
            slow_queue: Some(self.queue(QueueName::SlowDeliveries, actor)),
            records: self.queue(QueueName::Records, actor),
            state: self.store(actor),
            registry: self.registry(actor),
            links: self.links(actor),
            webhook: Traced::new(self.endpoint.clone(), actor, &self.notes),
            clock: self.clock.clone(),
            entropy: Self::entropy(actor),
            drain: DrainMeter::default(),
        };
        let settings = DeliverSettings {
            delivery_log: DeliveryLogMode::Off,
            ..DeliverSettings::default()
        };
        Deliver::new(ports, settings)
    }

    /// The time.
    pub(crate) fn clock_now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Puts a message into a queue.
    pub(crate) async fn send(&self, name: QueueName, body: Bytes) {
        let message = OutgoingMessage {
            body,
            group: Some("orders.billing".to_owned()),
            delay: Duration::ZERO,
        };
        self.queue
            .sibling_queue(name)
            .send_batch(vec![message])
            .await
            .unwrap();
    }

    /// Puts a delivery of this event into the delivery queue.
    pub(crate) async fn send_delivery(&self, id: &str) {
        let names = (topic_name("orders"), subscription_name("billing"));
        let delivery = delivery(
            names,
            id,
            [EventPayload::Inline(event(id))],
            self.clock.now(),
        );
        self.send(QueueName::Deliveries, render_delivery(&delivery))
            .await;
    }

    /// Receives up to so many messages of a queue, as an event source mapping of this actor, and
    /// deletes what the work on them does not hand back.
    pub(crate) async fn invoke<F>(
        &self,
        (name, actor): (QueueName, Actor),
        max: usize,
        work: impl FnOnce(Vec<posthaste_ports::ReceivedMessage>) -> F,
    ) where
        F: Future<Output = BatchResponse>,
    {
        let queue = self.queue(name, actor);
        let request = ReceiveRequest {
            max,
            visibility: VISIBILITY,
            wait: Duration::ZERO,
        };
        let batch = queue.receive(request).await.unwrap();
        let receipts: Vec<_> = batch
            .iter()
            .map(|message| (message.id.clone(), message.receipt.clone()))
            .collect();
        let response = work(batch).await;
        let plain = self.queue.sibling_queue(name);
        for (id, receipt) in receipts {
            if !response.failures.contains(&id) {
                plain.acknowledge(&receipt).await.unwrap();
            }
        }
    }

    /// Works, and the clock moves to whatever is waited for.
    pub(crate) async fn in_time<T>(&self, work: impl Future<Output = T>) -> T {
        let time = async {
            loop {
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
                self.clock.advance_to_next();
            }
        };
        tokio::select! {
            answer = work => answer,
            () = time => unreachable!("time has no end"),
        }
    }
}

/// Sends a request, and returns its status and its JSON.
pub(crate) async fn ask(router: Router, request: Request<Body>) -> (u16, Value) {
    let response = router.oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let bytes: Bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// The time of an invocation from now.
pub(crate) fn deadline(kit: &Kit, length: Duration) -> Duration {
    kit.clock.monotonic() + length
}

/// A dead letter of `billing`, written now in an object of its own. Returns the key.
pub(crate) fn write_letter(kit: &Kit, id: &str, outage_since: Option<Timestamp>) -> String {
    let now = kit.clock.now();
    let dead = dead_letter(now, id, outage_since);
    let mut gathered = DeadLetterArray::default();
    gathered.push(&dead_letter_record(
        &dead,
        &dead.delivery.events[0],
        &event(id),
    ));
    let names = (topic_name("orders"), subscription_name("billing"));
    let key = layout::dead_letter_key(&names.0, &names.1, now, id);
    kit.bucket.write_at(&key, gathered.into_object(), now);
    key
}

/// An event of `billing` that was given up.
pub(crate) fn dead_letter(now: Timestamp, id: &str, outage_since: Option<Timestamp>) -> DeadLetter {
    let names = (topic_name("orders"), subscription_name("billing"));
    DeadLetter {
        reason: DeadLetterReason::TimeToLiveExceeded,
        delivery: Delivery {
            attempts: 1,
            ..delivery(names, id, [EventPayload::Inline(event(id))], now)
        },
        storage: None,
        object: None,
        dropped: false,
        outage_since,
    }
}

/// A CloudEvent of this id.
pub(crate) fn event(id: &str) -> Bytes {
    let event = json!({ "specversion": "1.0", "id": id, "source": "/s", "type": "t" });
    event.to_string().into()
}

/// The number of an id or a key, by the order in which they are met.
pub(crate) fn number(ids: &RefCell<Vec<String>>, id: &str) -> usize {
    let mut ids = ids.borrow_mut();
    ids.iter().position(|known| known == id).unwrap_or_else(|| {
        ids.push(id.to_owned());
        ids.len() - 1
    })
}
