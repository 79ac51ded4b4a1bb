//! Tools of this crate's unit tests: the ports in memory, and builders of the parts of an
//! invocation.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use parking_lot::Mutex;
use posthaste_core::api::{SubscriptionSettings, TopicSettings, compile_subscription};
use posthaste_core::attempt::DrawnJitter;
use posthaste_core::circuit::{DeliveryTarget, HealthSettings};
use posthaste_core::delivery_log::{LogRecord, parse_records};
use posthaste_core::model::{
    Delivery, DeliveryLogMode, EventPayload, EventSchema, Link, SendFailure, Subscription,
    SubscriptionName, Timestamp, TopicName,
};
use posthaste_core::stored::{TopicRecord, layout};
use posthaste_ports::{
    LastLook, LateAnswer, MessageId, ObjectStore, PortBundle, PutCondition, QueueName,
    QueueReceiver, QueueSender, ReceiptHandle, ReceiveRequest, ReceivedMessage, WebhookAnswer,
    WebhookClient, WebhookRequest, WebhookResponse,
};
use posthaste_services::{LinkHealth, TopicRegistry, WakeSignaller};
use posthaste_testkit::memory::{MemoryQueue, MemoryStore, message};
use posthaste_testkit::{
    FaultPlan, Faulty, ManualClock, Recorded, RecordedCalls, SeededEntropy, records,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::circuit::CircuitBreaker;
use crate::current::CurrentSubscriptions;
use crate::deadlines::InvocationDeadlines;
use crate::invocation::{DeliveryJob, EntryRef, Invocation, MessageHandle};
use crate::lanes::DeliveryQueues;
use crate::limits::DisablingMode;
use crate::notify::NoticePorts;
use crate::plan::{RequestKind, RequestPlan};

pub(crate) type Store = Faulty<Recorded<MemoryStore>>;
pub(crate) type Queue = Faulty<Recorded<MemoryQueue>>;
pub(crate) type TestPorts =
    PortBundle<Queue, Store, MemoryStore, MemoryStore, Endpoint, ManualClock, SeededEntropy>;

/// The time at which every test begins.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// The time of an invocation.
pub(crate) const INVOCATION: Duration = Duration::from_mins(2);

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// The ports in memory, with a record of their calls.
pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) calls: RecordedCalls,
    pub(crate) memory: MemoryStore,
    pub(crate) state: Arc<Store>,
    pub(crate) messages: MemoryQueue,
    pub(crate) queue: Arc<Queue>,
    /// The queue of the slow lane.
    pub(crate) slow_queue: Arc<Queue>,
    /// The queue of records.
    pub(crate) records: Arc<Queue>,
    pub(crate) endpoint: Endpoint,
    pub(crate) entropy: SeededEntropy,
    pub(crate) stopped: CancellationToken,
}

/// An endpoint that answers these statuses, one after the other, and then 204. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Endpoint(Arc<Mutex<Script>>);

#[derive(Debug, Default)]
struct Script {
    answers: VecDeque<Answer>,
    requests: Vec<WebhookRequest>,
    links_dropped: Vec<Link>,
    when_asked: WhenAsked,
    when_connecting: WhenAsked,
}

/// An action that is taken while each request is under way.
#[derive(Default)]
struct WhenAsked(Option<Box<dyn Fn() + Send + Sync>>);

impl std::fmt::Debug for WhenAsked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WhenAsked")
    }
}

/// One answer of the script.
#[derive(Debug)]
pub(crate) enum Answer {
    Status(u16),
    /// A status with `Retry-After`.
    RetryAfter(u16, &'static str),
    /// A 200 with this body.
    Body(&'static str),
    /// No answer in time. The request goes on, and this status comes in the end.
    Late(u16),
    Failure(SendFailure),
    Panic,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(&FaultPlan::none(), &FaultPlan::none())
    }

    /// A world in which calls of the state bucket and of the queue fail by plan.
    pub(crate) fn with(state: &FaultPlan, queue: &FaultPlan) -> Self {
        Self::wired(state, queue, &FaultPlan::none())
    }

    /// A world in which calls of both queues fail by plan: the delivery queue, and the queue of
    /// records.
    pub(crate) fn with_queues(queue: &FaultPlan, records: &FaultPlan) -> Self {
        Self::wired(&FaultPlan::none(), queue, records)
    }

    fn wired(state: &FaultPlan, queue: &FaultPlan, records: &FaultPlan) -> Self {
        let calls = RecordedCalls::default();
        let memory = MemoryStore::default();
        let messages = MemoryQueue::default();
        let state = Faulty::new(
            Recorded::new(memory.clone(), "state", &calls),
            "state",
            state,
        );
        let queue = Faulty::new(
            Recorded::new(messages.clone(), "queue", &calls),
            "queue",
            queue,
        );
        let slow = messages.sibling_queue(QueueName::SlowDeliveries);
        let slow_queue = Faulty::new(Recorded::new(slow, "slow", &calls), "slow", records);
        let beside = messages.sibling_queue(QueueName::Records);
        let records = Faulty::new(Recorded::new(beside, "records", &calls), "records", records);
        Self {
            clock: ManualClock::new(START),
            calls,
            memory,
            state: Arc::new(state),
            messages,
            queue: Arc::new(queue),
            slow_queue: Arc::new(slow_queue),
            records: Arc::new(records),
            endpoint: Endpoint::default(),
            entropy: SeededEntropy::new(7),
            stopped: CancellationToken::new(),
        }
    }

    /// The delivery queues.
    pub(crate) fn queues(&self) -> DeliveryQueues<Queue> {
        DeliveryQueues {
            quick: Arc::clone(&self.queue),
            slow: Some(Arc::clone(&self.slow_queue)),
        }
    }

    /// The state bucket of this world, under another name and without faults.
    pub(crate) fn store(&self, name: &'static str) -> Store {
        Faulty::new(
            Recorded::new(self.memory.clone(), name, &self.calls),
            name,
            &FaultPlan::none(),
        )
    }

    /// A worker that has not signalled wake.
    pub(crate) fn wake(&self) -> Arc<WakeSignaller<Store, ManualClock>> {
        Arc::new(WakeSignaller::new(
            Arc::new(self.store("wake")),
            self.clock.clone(),
        ))
    }

    /// Knowledge about links of its own, over the state bucket of this world.
    pub(crate) fn links(&self) -> Arc<LinkHealth<Store, ManualClock>> {
        Arc::new(LinkHealth::new(
            self.store("links"),
            self.clock.clone(),
            HealthSettings::default(),
        ))
    }

    /// A circuit breaker of its own, over the state bucket of this world.
    pub(crate) fn circuit(&self) -> CircuitBreaker<TestPorts> {
        self.circuit_over(self.links())
    }

    /// The same, over this knowledge about links.
    pub(crate) fn circuit_over(
        &self,
        links: Arc<LinkHealth<Store, ManualClock>>,
    ) -> CircuitBreaker<TestPorts> {
        CircuitBreaker::new(
            links,
            self.wake(),
            Arc::new(self.endpoint.clone()),
            self.clock.clone(),
            self.entropy.clone(),
        )
    }

    /// The way of notices. Topics are read from the state bucket of this world.
    pub(crate) fn notice_ports(&self) -> Arc<NoticePorts<TestPorts>> {
        let registry = TopicRegistry::new(self.store("topics"), self.clock.clone(), Duration::ZERO);
        Arc::new(NoticePorts {
            queue: Arc::clone(&self.queue),
            state: Arc::clone(&self.state),
            registry: Arc::new(registry),
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
        })
    }

    /// Writes the record of `orders` with the one subscription `billing`, of these settings (an
    /// endpoint is added), and answers the subscription.
    pub(crate) async fn subscribe(&self, more: Value) -> Arc<Subscription> {
        self.write_topic(topic_settings(&more)).await;
        subscription(more)
    }

    /// Writes the record of `orders`.
    pub(crate) async fn write_topic(&self, settings: TopicSettings) {
        let key = layout::topic_record_key(&records::topic_name("orders"));
        let bytes = topic_record(settings).render();
        let written = self.memory.put(&key, bytes, PutCondition::Always).await;
        written.unwrap();
    }

    /// Subscriptions as the state bucket of this world has them now.
    pub(crate) fn current(&self) -> Arc<CurrentSubscriptions<TestPorts>> {
        self.current_where(DisablingMode::AtOnce)
    }

    /// The same, where subscriptions are disabled in this way.
    pub(crate) fn current_where(
        &self,
        disabling: DisablingMode,
    ) -> Arc<CurrentSubscriptions<TestPorts>> {
        let registry = TopicRegistry::new(self.store("topics"), self.clock.clone(), Duration::ZERO);
        let registry = Arc::new(registry);
        let clock = self.clock.clone();
        Arc::new(CurrentSubscriptions::new(registry, clock, disabling))
    }

    /// An invocation that began now.
    pub(crate) fn invocation(&self, jobs: Vec<DeliveryJob>) -> Invocation {
        let mut invocation = self.invocation_of(&[]);
        invocation.jobs = jobs;
        invocation
    }

    /// An invocation with these messages that began now.
    pub(crate) fn invocation_of(&self, batch: &[ReceivedMessage]) -> Invocation {
        use posthaste_ports::Clock;
        let began = self.clock.monotonic();
        Invocation::new(
            InvocationDeadlines {
                began,
                end: began + INVOCATION,
            },
            batch,
        )
    }

    /// A message that was sent to the delivery queue and received from it.
    pub(crate) async fn received(&self) -> ReceivedMessage {
        self.messages.send_batch(vec![message("{}")]).await.unwrap();
        let request = ReceiveRequest {
            max: 1,
            visibility: secs(360),
            wait: Duration::ZERO,
        };
        self.messages
            .receive(request)
            .await
            .unwrap()
            .pop()
            .expect("a message")
    }

    /// The records that were sent, by message. They leave the queue.
    pub(crate) fn recorded(&self) -> Vec<Vec<LogRecord>> {
        let bodies = self
            .messages
            .sibling_queue(QueueName::Records)
            .take_bodies();
        bodies
            .iter()
            .map(|body| parse_records(body).unwrap())
            .collect()
    }

    /// The bodies of the messages in a queue that are visible within a quarter of an hour.
    pub(crate) async fn sent(&self, to: QueueName) -> Vec<Bytes> {
        self.messages.advance(secs(901));
        let request = ReceiveRequest {
            max: 10,
            visibility: secs(360),
            wait: Duration::ZERO,
        };
        let received = self
            .messages
            .sibling_queue(to)
            .receive(request)
            .await
            .unwrap();
        received.into_iter().map(|message| message.body).collect()
    }
}

impl Endpoint {
    pub(crate) fn answer(&self, answers: impl IntoIterator<Item = Answer>) {
        self.0.lock().answers.extend(answers);
    }

    /// Has this happen while each request is under way.
    pub(crate) fn when_asked(&self, act: impl Fn() + Send + Sync + 'static) {
        self.0.lock().when_asked = WhenAsked(Some(Box::new(act)));
    }

    /// Has this happen while each request waits for its connection.
    pub(crate) fn when_connecting(&self, act: impl Fn() + Send + Sync + 'static) {
        self.0.lock().when_connecting = WhenAsked(Some(Box::new(act)));
    }

    /// Whether there was a wait for a connection.
    fn connects(&self) -> bool {
        let WhenAsked(act) = &self.0.lock().when_connecting;
        if let Some(act) = act {
            act();
        }
        act.is_some()
    }

    /// The bodies of the requests that were made.
    pub(crate) fn bodies(&self) -> Vec<String> {
        let body = |request: &WebhookRequest| String::from_utf8(request.body.concat()).unwrap();
        self.0.lock().requests.iter().map(body).collect()
    }

    /// The URLs of the requests that were made.
    pub(crate) fn urls(&self) -> Vec<String> {
        self.0
            .lock()
            .requests
            .iter()
            .map(|request| request.url.as_str().to_owned())
            .collect()
    }

    /// Whether each request was to go out on a new connection.
    pub(crate) fn new_connections(&self) -> Vec<bool> {
        let script = self.0.lock();
        script
            .requests
            .iter()
            .map(|request| request.needs_new_connection)
            .collect()
    }

    pub(crate) fn links_dropped(&self) -> usize {
        self.0.lock().links_dropped.len()
    }
}

impl WebhookClient for Endpoint {
    /// Connections of the endpoint are there before they are needed, unless something happens
    /// meanwhile.
    async fn send_if(&self, request: WebhookRequest, look: &impl LastLook) -> WebhookAnswer {
        if self.connects() && !look.may_begin().await {
            return WebhookAnswer {
                result: Err(SendFailure::Withdrawn),
                failure_text: None,
                took: Duration::from_millis(5),
                late: None,
            };
        }
        let answer = {
            let mut script = self.0.lock();
            script.requests.push(request);
            if let WhenAsked(Some(act)) = &script.when_asked {
                act();
            }
            script.answers.pop_front().unwrap_or(Answer::Status(204))
        };
        let mut late = None;
        let result = match answer {
            Answer::Status(status) => Ok(response(status, None, "")),
            Answer::RetryAfter(status, after) => Ok(response(status, Some(after), "")),
            Answer::Body(body) => Ok(response(200, None, body)),
            Answer::Failure(failure) => Err(failure),
            Answer::Panic => panic!("as the test wants it"),
            Answer::Late(status) => {
                late = Some(LateAnswer::new(
                    async move { Ok(response(status, None, "")) },
                ));
                Err(SendFailure::TimedOut)
            }
        };
        WebhookAnswer {
            failure_text: None,
            result,
            took: Duration::from_millis(5),
            late,
        }
    }

    fn drop_link(&self, link: &Link) {
        self.0.lock().links_dropped.push(link.clone());
    }
}

pub(crate) fn response(
    status: u16,
    retry_after: Option<&'static str>,
    body: &'static str,
) -> WebhookResponse {
    let mut headers = HeaderMap::new();
    if let Some(after) = retry_after {
        headers.insert(http::header::RETRY_AFTER, HeaderValue::from_static(after));
    }
    let status = StatusCode::from_u16(status).unwrap();
    let body = Bytes::from_static(body.as_bytes());
    WebhookResponse {
        status,
        headers,
        body,
        body_is_whole: true,
    }
}

/// A record of the topic `orders` with these settings.
pub(crate) fn topic_record(settings: TopicSettings) -> TopicRecord {
    records::topic_record(records::topic_name("orders"), settings, START)
}

/// Settings of a topic with the one subscription `billing`, of these settings (an endpoint is
/// added).
pub(crate) fn topic_settings(more: &Value) -> TopicSettings {
    let mut topic: TopicSettings = serde_json::from_value(json!({})).unwrap();
    let name = records::subscription_name("billing");
    topic
        .subscriptions
        .insert(name, subscription_settings(more));
    topic
}

/// Settings of a subscription (an endpoint is added).
fn subscription_settings(more: &Value) -> SubscriptionSettings {
    let mut settings = json!({ "endpoint": { "url": "https://billing.example.com/hooks" } });
    settings
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    serde_json::from_value(settings).unwrap()
}

/// The subscription `billing` of `orders`, with these settings (an endpoint is added).
pub(crate) fn subscription(more: Value) -> Arc<Subscription> {
    subscription_named("billing", more)
}

#[expect(clippy::needless_pass_by_value, reason = "a literal at every call")]
pub(crate) fn subscription_named(name: &str, more: Value) -> Arc<Subscription> {
    let topic = TopicName::parse("orders").unwrap();
    let name = SubscriptionName::parse(name).unwrap();
    let settings = subscription_settings(&more);
    Arc::new(compile_subscription(&topic, EventSchema::CloudEvents, &name, &settings).unwrap())
}

pub(crate) fn event(index: usize) -> String {
    format!(r#"{{"specversion":"1.0","id":"{index}","source":"/shop","type":"paid"}}"#)
}

/// A delivery of `billing` that was published now. Its events have the keys `k-0`, `k-1` … and
/// expire in a day.
pub(crate) fn delivery(events: usize) -> Delivery {
    let to = (
        records::topic_name("orders"),
        records::subscription_name("billing"),
    );
    let payloads = (0..events).map(|index| EventPayload::Inline(Bytes::from(event(index))));
    records::delivery(to, "k", payloads, START)
}

pub(crate) fn handle(id: &str) -> MessageHandle {
    MessageHandle {
        id: MessageId(id.into()),
        receipt: ReceiptHandle(id.into()),
        receive_count: 1,
    }
}

pub(crate) fn job(delivery: Delivery, subscription: &Arc<Subscription>) -> DeliveryJob {
    let verdicts = Mutex::new(vec![None; delivery.events.len()]);
    let message = handle("m");
    let subscription = Some(Arc::clone(subscription));
    let log = DeliveryLogMode::Off;
    let records = Mutex::default();
    DeliveryJob {
        message,
        delivery,
        subscription,
        acknowledged_late: BTreeSet::new(),
        verdicts,
        log,
        records,
        redirects: Mutex::default(),
    }
}

/// A request with all events of the first job.
pub(crate) fn request_plan(job: &DeliveryJob) -> RequestPlan {
    let delivery = &job.delivery;
    RequestPlan {
        subscription: Arc::clone(job.subscription.as_ref().expect("a subscription")),
        kind: RequestKind {
            schema: delivery.schema,
            hops: delivery.hops,
            attempts_before: delivery.attempts,
            name_was_unknown: false,
            replayed: false,
            is_problem: false,
        },
        jitter: DrawnJitter::new(0.0),
        has_waited: delivery.has_waited(),
        entries: (0..delivery.events.len())
            .map(|entry| EntryRef { job: 0, entry })
            .collect(),
    }
}

pub(crate) fn target(subscription: &Subscription) -> DeliveryTarget {
    DeliveryTarget::for_subscription(subscription)
}
