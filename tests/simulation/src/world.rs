//! Everything wired up, with the handles a test needs.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::api::{SecretText, SubscriptionSettings, TierKeys, TopicSettings};
use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::delivery::{Delivery, Entry, Marks, group};
use posthaste_core::model::hops::Hops;
use posthaste_core::model::identity::{CREATION_ID_BYTES, Creation, CreationId, Creations, Identity};
use posthaste_core::model::name::{SubscriptionName, TopicName};
use posthaste_core::model::payload::{Payload, PayloadDigest};
use posthaste_core::model::schema::Schema;
use posthaste_core::model::time::Timestamp;
use posthaste_core::pressure::Drained;
use posthaste_core::stored::delivery::render_delivery;
use posthaste_core::stored::layout;
use posthaste_core::stored::replay::ReplayRecord;
use posthaste_core::stored::topic::{RECORD_VERSION, TopicRecord};
use posthaste_deadletter::{DeadLetterPorts, DeadLetters};
use posthaste_deliver::{Deliver, DeliverPorts, DeliverSettings};
use posthaste_local::{FileStore, Local, LocalOptions, LocalQueue, StateStore};
use posthaste_ports::{
    BatchResponse, Clock, DrainSource, ObjectStore, OutgoingMessage, PutCondition, QueueName, QueueReceiver,
    QueueSender, ReceivedMessage,
};
use posthaste_services::{DrainMeter, LinkHealth, PressureReader, Registry};
use posthaste_testkit::faulty::Plan;
use posthaste_testkit::recorded::Calls;
use posthaste_testkit::{Faulty, ManualClock, Recorded, SeededEntropy, TestPorts};
use posthaste_wake::{Wake, WakeError, WakePorts, WakeReport};
use serde_json::Value;
use tempfile::TempDir;

use crate::worker::{MESSAGES_MAX, receive};
use crate::{Chance, ScriptedEndpoint, Worker};

/// A queue, as the functions see it.
pub(crate) type Queue = Faulty<Recorded<LocalQueue<ManualClock>>>;
/// The state bucket, as the functions see it.
pub type State = Faulty<Recorded<StateStore>>;
type Bucket = Faulty<Recorded<FileStore>>;

/// What may go wrong, by part.
#[derive(Debug, Clone)]
pub struct Faults {
    /// In the queues.
    pub queues: Plan,
    /// In the state bucket.
    pub state: Plan,
    /// In the dead-letter bucket.
    pub bucket: Plan,
}

/// The functions, wired up.
pub struct World {
    /// The time.
    pub clock: ManualClock,
    /// The other side.
    pub endpoint: ScriptedEndpoint,
    /// Every call of a port.
    pub calls: Calls,
    /// The embedded queues and state.
    pub local: Local<ManualClock>,
    /// The dead-letter bucket.
    pub bucket: FileStore,
    /// Links that are not well, as all functions see them.
    pub links: LinkHealth<State, ManualClock>,
    /// What deliver tells of the drain.
    pub drain: DrainMeter,
    /// What deliver draws its jitter from.
    pub chance: Chance,
    worker: Worker,
    faults: Faults,
    dead_letters: DeadLetters<TestPorts<Queue, State, Bucket>>,
    redrive: DeadLetters<TestPorts<Queue, State, Bucket>>,
    wake: Wake<TestPorts<Queue, State, Bucket, ScriptedEndpoint>>,
    created: Mutex<Created>,
    folder: TempDir,
}

/// The longest that is waited for: wake's pauses, and answers that take a moment. Limits are further off.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The creations of the topic and its subscription.
#[derive(Debug, Clone, Copy)]
struct Created {
    topic: u8,
    subscription: u8,
}

/// As many turns as others need to go on with what needs no port.
const TURNS: usize = 100;

/// When every world begins.
pub fn start() -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000)
}

/// A CloudEvent of this id.
pub fn event(id: &str) -> String {
    format!(r#"{{"specversion":"1.0","id":"{id}","source":"/shop","type":"order.paid"}}"#)
}

impl Faults {
    /// None.
    pub fn none() -> Self {
        Self { queues: Plan::none(), state: Plan::none(), bucket: Plan::none() }
    }
}

impl World {
    /// A world in which nothing goes wrong.
    pub fn new() -> Self {
        Self::with(&Faults::none())
    }

    /// A world with faults.
    pub fn with(faults: &Faults) -> Self {
        Self::remembering(faults, Duration::ZERO)
    }

    /// A world with faults, in which what is known of a topic is asked for again only after so long, as on AWS.
    pub fn remembering(faults: &Faults, topic_max_age: Duration) -> Self {
        Self::wired(faults, topic_max_age, DeliverSettings::default(), LocalOptions::default())
    }

    /// A world with faults, in which deliver has other bounds.
    pub fn bounded(faults: &Faults, settings: DeliverSettings) -> Self {
        Self::wired(faults, Duration::ZERO, settings, LocalOptions::default())
    }

    /// A world in which so many messages of the delivery queue may be in flight.
    pub fn with_in_flight_max(deliveries_in_flight_max: usize) -> Self {
        let options = LocalOptions { deliveries_in_flight_max, ..LocalOptions::default() };
        Self::wired(&Faults::none(), Duration::ZERO, DeliverSettings::default(), options)
    }

    /// A world over what another process left in a data folder. It goes on at this time.
    pub fn over(folder: TempDir, now: Timestamp) -> Self {
        let (settings, options) = (DeliverSettings::default(), LocalOptions::default());
        Self::wired_over((folder, now), &Faults::none(), Duration::ZERO, settings, options)
    }

    /// Ends all functions in order, and gives the data folder.
    pub async fn end(self) -> TempDir {
        self.local.close().await;
        self.folder
    }

    /// The same, in which wake tells the subscribers of `ops` of links.
    #[must_use]
    pub fn telling_ops(self) -> Self {
        Self { wake: self.wake.telling(TopicName::parse("ops").ok()), ..self }
    }

    fn wired(
        faults: &Faults,
        topic_max_age: Duration,
        settings: DeliverSettings,
        options: LocalOptions,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self::wired_over((folder, start()), faults, topic_max_age, settings, options)
    }

    fn wired_over(
        (folder, now): (TempDir, Timestamp),
        faults: &Faults,
        topic_max_age: Duration,
        settings: DeliverSettings,
        options: LocalOptions,
    ) -> Self {
        let (clock, entropy, calls) = (ManualClock::new(now), SeededEntropy::new(7), Calls::default());
        let local =
            Local::open(folder.path(), options, clock.clone(), entropy.clone()).expect("an embedded store");
        let bucket = FileStore::open(&folder.path().join("dead-letters")).expect("a folder of files");
        let queue = |name: QueueName| queue(&local, name, &calls, faults);
        let state = || Faulty::new(Recorded::new(local.state(), "state", &calls), "state", &faults.state);
        let registry = || Registry::new(state(), clock.clone(), topic_max_age);
        let links = LinkHealth::new(state(), clock.clone(), HealthSettings::default());
        let endpoint = ScriptedEndpoint::new(clock.clone());
        let letters = |source: QueueName| {
            DeadLetters::new(DeadLetterPorts {
                queue: queue(source),
                source,
                deliveries: queue(QueueName::Deliveries),
                state: state(),
                bucket: Faulty::new(
                    Recorded::new(bucket.clone(), "bucket", &calls),
                    "bucket",
                    &faults.bucket,
                ),
                registry: registry(),
                clock: clock.clone(),
                entropy: entropy.clone(),
            })
        };
        let (drain, chance) = (DrainMeter::default(), Chance::new(7));
        let ports = DeliverPorts {
            queue: queue(QueueName::Deliveries),
            state: state(),
            registry: registry(),
            links: links.clone(),
            webhook: endpoint.clone(),
            clock: clock.clone(),
            entropy: chance.clone(),
            drain: drain.clone(),
        };
        let deliver = Deliver::new(ports, settings);
        let worker = Worker {
            links: links.clone(),
            deliver,
            local: local.clone(),
            clock: clock.clone(),
            calls: calls.clone(),
        };
        Self {
            worker,
            faults: faults.clone(),
            dead_letters: letters(QueueName::DeadLetters),
            redrive: letters(QueueName::Redrive),
            wake: Wake::new(WakePorts {
                deliveries: queue(QueueName::Deliveries),
                state: state(),
                dead_letters: Faulty::new(
                    Recorded::new(bucket.clone(), "bucket", &calls),
                    "bucket",
                    &faults.bucket,
                ),
                registry: registry(),
                pressure: PressureReader::new(state(), clock.clone(), Duration::ZERO),
                links: links.clone(),
                clock: clock.clone(),
                entropy: entropy.clone(),
            }),
            clock,
            endpoint,
            calls,
            local,
            bucket,
            links,
            drain,
            chance,
            created: Mutex::new(Created { topic: 1, subscription: 1 }),
            folder,
        }
    }

    /// Writes the topic `orders` with one subscription, `billing`, of these settings (an endpoint is added).
    pub async fn subscribe(&self, settings: Value) {
        let mut subscription =
            serde_json::json!({ "endpoint": { "url": "https://billing.example.com/hooks" } });
        let members = subscription.as_object_mut().expect("an object");
        members.extend(settings.as_object().expect("an object").clone());
        let subscription: SubscriptionSettings =
            serde_json::from_value(subscription).expect("settings of a subscription");
        let mut topic = TopicSettings::default();
        topic.subscriptions.insert(subscription_name(), subscription);
        self.write_topic(topic).await;
    }

    /// Has notices about `orders` go to the topic `ops`, whose one subscription, `pager`, has these settings (an endpoint
    /// is added).
    pub async fn tell_ops(&self, pager: Value) {
        let orders = TopicRecord { settings: TopicSettings::default(), ..self.record().await };
        let ops = TopicName::parse("ops").expect("a name");
        let mut told = self.record().await;
        told.settings.notices_topic = Some(ops.clone());
        self.write_record(told.render()).await;
        let mut subscription = serde_json::json!({ "endpoint": { "url": "https://pager.example.com/" } });
        let members = subscription.as_object_mut().expect("an object");
        members.extend(pager.as_object().expect("an object").clone());
        let subscription = serde_json::from_value(subscription).expect("settings of a subscription");
        let mut record = TopicRecord { name: ops.clone(), ..orders };
        record.settings.subscriptions.insert(SubscriptionName::parse("pager").expect("a name"), subscription);
        let key = layout::topic(&ops);
        self.local.state().put(&key, record.render(), PutCondition::Always).await.expect("a write");
    }

    /// Deletes the subscription and creates it again with these settings.
    pub async fn subscribe_again(&self, settings: Value) {
        self.created.lock().expect("no panic").subscription += 1;
        self.subscribe(settings).await;
    }

    /// Deletes the topic and creates it again, with a subscription of these settings.
    pub async fn create_topic_again(&self, settings: Value) {
        self.created.lock().expect("no panic").topic += 1;
        self.subscribe_again(settings).await;
    }

    /// The identity of the subscription as it is now.
    pub fn identity(&self) -> Identity {
        let Created { topic, subscription } = *self.created.lock().expect("no panic");
        Identity { topic: creation_id(topic), subscription: creation_id(subscription) }
    }

    /// What a record says of it when it was created at this time.
    fn creations(&self, at: Timestamp) -> Creations {
        let Identity { topic, subscription } = self.identity();
        let [topic, subscription] = [topic, subscription].map(|id| Creation { id, at: Some(at) });
        Creations { topic: Some(topic), subscriptions: [(subscription_name(), subscription)].into() }
    }

    /// Deletes the subscription.
    pub async fn unsubscribe(&self) {
        self.write_topic(TopicSettings::default()).await;
    }

    /// The topic's record, as it is stored.
    pub async fn record(&self) -> TopicRecord {
        let object = self.local.state().get(&layout::topic(&topic_name())).await.expect("a read");
        TopicRecord::parse(&object.expect("the topic").bytes).expect("a record")
    }

    /// Writes these bytes where the topic's record is.
    pub async fn write_record(&self, bytes: Bytes) {
        let key = layout::topic(&topic_name());
        self.local.state().put(&key, bytes, PutCondition::Always).await.expect("a write");
    }

    /// Writes an object into the state bucket.
    pub async fn write_state(&self, key: &str, text: String) {
        let put = self.local.state().put(key, Bytes::from(text), PutCondition::Always).await;
        put.expect("a write");
    }

    async fn write_topic(&self, settings: TopicSettings) {
        let now = self.clock.now();
        let record = TopicRecord {
            v: RECORD_VERSION,
            name: topic_name(),
            key1: SecretText::new("k1"),
            key2: SecretText::new("k2"),
            tier_keys: TierKeys::default(),
            created_at: now,
            updated_at: now,
            deleted_at: None,
            creations: Creations::default(),
            settings,
        };
        self.write_record(TopicRecord { creations: self.creations(now), ..record }.render()).await;
    }

    /// Puts one delivery of these events into the queue, as publish does.
    pub async fn publish(&self, events: &[String], time_to_live: Duration) {
        let payloads = events.iter().map(|json| Payload::Inline(Bytes::from(json.clone())));
        self.publish_payloads(payloads.collect(), time_to_live).await;
    }

    /// Puts one delivery of these events into the queue for `pager` of the topic `ops`, as publish does.
    pub async fn publish_to_ops(&self, events: &[String], time_to_live: Duration) {
        let payloads = events.iter().map(|json| Payload::Inline(Bytes::from(json.clone())));
        let delivery = Delivery {
            topic: TopicName::parse("ops").expect("a name"),
            subscription: SubscriptionName::parse("pager").expect("a name"),
            ..self.delivery(payloads.collect(), time_to_live)
        };
        self.send(QueueName::Deliveries, render_delivery(&delivery)).await;
    }

    /// Puts one delivery into the queue whose event is, or was, in the state bucket under this key: this text.
    pub async fn publish_stored(&self, key: &str, json: &str) {
        let digest = Some(PayloadDigest::of(json.as_bytes()));
        let payload = Payload::Stored { key: key.to_owned(), bytes: json.len(), digest };
        self.publish_payloads(vec![payload], Duration::from_hours(24)).await;
    }

    async fn publish_payloads(&self, payloads: Vec<Payload>, time_to_live: Duration) {
        self.send(QueueName::Deliveries, render_delivery(&self.delivery(payloads, time_to_live))).await;
    }

    /// One delivery of these events, as a message that publish would send.
    pub fn message(&self, events: &[String], time_to_live: Duration) -> OutgoingMessage {
        let payloads = events.iter().map(|json| Payload::Inline(Bytes::from(json.clone())));
        message(render_delivery(&self.delivery(payloads.collect(), time_to_live)))
    }

    fn delivery(&self, payloads: Vec<Payload>, time_to_live: Duration) -> Delivery {
        let now = self.clock.now();
        let entry = |(index, payload): (usize, Payload)| Entry {
            key: format!("k{}-{index}", now.as_millis()),
            expires_at: now + time_to_live,
            traceparent: None,
            marks: Marks::default(),
            envelope: None,
            payload,
        };
        Delivery {
            topic: topic_name(),
            subscription: subscription_name(),
            schema: Schema::CloudEvents,
            published_at: now,
            not_before: now,
            attempts: 0,
            last: None,
            timed_out: false,
            identity: Some(self.identity()),
            hops: Hops::default(),
            events: payloads.into_iter().enumerate().map(entry).collect(),
        }
    }

    /// Puts a body into a queue as it is.
    pub async fn send(&self, queue: QueueName, body: Bytes) {
        let queue = self.local.queue(queue);
        let sent = self.calls.unnoted(queue.send_batch(vec![message(body)])).await.expect("a batch");
        assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    }

    /// Receives what is visible in a queue, without waiting.
    pub async fn receive(&self, queue: QueueName) -> Vec<ReceivedMessage> {
        receive(&self.local, queue, MESSAGES_MAX).await
    }

    /// One invocation of deliver with what is visible, a minute before its deadline.
    pub async fn deliver(&self) -> BatchResponse {
        self.deliver_within(Duration::from_mins(1)).await
    }

    /// One invocation of deliver with what is visible, as the event source mapping makes it.
    pub async fn deliver_within(&self, left: Duration) -> BatchResponse {
        Box::pin(self.worker.deliver_within(left)).await
    }

    /// Another worker of deliver, which sees links through a book of its own, and draws its own chance.
    pub fn another_worker(&self, seed: u64) -> Worker {
        let state = || {
            Faulty::new(Recorded::new(self.local.state(), "state", &self.calls), "state", &self.faults.state)
        };
        let links = LinkHealth::new(state(), self.clock.clone(), HealthSettings::default());
        let ports = DeliverPorts {
            queue: queue(&self.local, QueueName::Deliveries, &self.calls, &self.faults),
            state: state(),
            registry: Registry::new(state(), self.clock.clone(), Duration::ZERO),
            links: links.clone(),
            webhook: self.endpoint.clone(),
            clock: self.clock.clone(),
            entropy: Chance::new(seed),
            drain: self.drain.clone(),
        };
        let deliver = Deliver::new(ports, DeliverSettings::default());
        let (local, clock, calls) = (self.local.clone(), self.clock.clone(), self.calls.clone());
        Worker { links, deliver, local, clock, calls }
    }

    /// Listens for late answers, until deliver is stopped.
    pub async fn hear_late_answers(&self) {
        self.worker.deliver.hear_late_answers().await;
    }

    /// Stops deliver, as a process does that is to end.
    pub fn stop(&self) {
        self.worker.deliver.stop();
    }

    /// The keys of the notes of late answers.
    pub async fn late_notes(&self) -> Vec<String> {
        let page = self.local.state().list(layout::LATE, None, 1000).await.expect("a listing");
        page.objects.into_iter().map(|object| object.key).collect()
    }

    /// Runs deliver until nothing is visible.
    pub async fn deliver_all(&self) {
        while self.visible(QueueName::Deliveries).await > 0 {
            self.deliver().await;
        }
    }

    /// What deliver told of the drain since the last time.
    pub async fn drained(&self) -> Drained {
        let told = self.drain.drained(0, Duration::ZERO).await.expect("a meter");
        told.expect("a meter always tells")
    }

    /// One invocation of deadletter with what is visible, a minute before its deadline.
    pub async fn bury(&self) -> BatchResponse {
        self.bury_within(Duration::from_mins(1)).await
    }

    /// One invocation of deadletter with what is visible.
    pub async fn bury_within(&self, left: Duration) -> BatchResponse {
        let batch = self.receive(QueueName::DeadLetters).await;
        self.dead_letters.handle(batch, self.clock.monotonic() + left).await
    }

    /// One invocation of deadletter for the redrive queue, a minute before its deadline.
    pub async fn bury_redriven(&self) -> BatchResponse {
        let deadline = self.clock.monotonic() + Duration::from_mins(1);
        self.redrive.handle(self.receive(QueueName::Redrive).await, deadline).await
    }

    /// One run of wake, in which time passes whenever it pauses.
    pub async fn wake(&self) -> WakeReport {
        self.try_wake().await.expect("a run of wake")
    }

    /// The same, which may fail.
    pub async fn try_wake(&self) -> Result<WakeReport, WakeError> {
        self.in_time(Box::pin(self.wake.run())).await
    }

    /// Lets others do what can be done without time: they have had their turns since a call of a port was under
    /// way, and since time passed.
    pub async fn rest(&self) {
        let (mut turns, mut now) = (0, self.clock.monotonic());
        while turns < TURNS {
            tokio::task::yield_now().await;
            let is_still = self.calls.under_way() == 0 && self.clock.monotonic() == now;
            (turns, now) = (if is_still { turns + 1 } else { 0 }, self.clock.monotonic());
        }
    }

    /// Works, and whenever that waits for a second or less, so much time passes.
    pub async fn in_time<F: Future>(&self, work: F) -> F::Output {
        let pauses = async {
            loop {
                self.rest().await;
                let soon = self.clock.now() + PAUSE_MAX;
                if self.clock.next_due().is_some_and(|due| due <= soon) {
                    self.clock.advance_to_next();
                }
            }
        };
        tokio::select! {
            biased;
            output = work => output,
            () = pauses => unreachable!("pauses never end"),
        }
    }

    /// How many messages of a queue are due and not in flight.
    pub async fn visible(&self, queue: QueueName) -> u64 {
        self.calls.unnoted(self.local.queue(queue).counts()).await.expect("counts").visible
    }

    /// How many messages of a queue are not due yet.
    pub async fn delayed(&self, queue: QueueName) -> u64 {
        self.local.queue(queue).counts().await.expect("counts").delayed
    }

    /// The dead-letter objects, by key.
    pub async fn buried(&self) -> Vec<(String, Bytes)> {
        let page = self.bucket.list("", None, 1000).await.expect("a listing");
        let mut objects = Vec::new();
        for meta in page.objects {
            let object = self.bucket.get(&meta.key).await.expect("a read").expect("an object");
            objects.push((meta.key, object.bytes));
        }
        objects
    }

    /// Asks for a replay of the subscription's dead letters, as manage does, and answers its id.
    pub async fn replay(&self, request: Value) -> String {
        let request = serde_json::from_value(request).expect("a request to replay");
        let (now, state) = (self.clock.now(), self.local.state());
        let id = layout::replay_id(now, "0b8b9c5e-6a0c");
        let subscription = (subscription_name(), &self.record().await.created(&subscription_name()));
        let record = ReplayRecord::new(id.clone(), topic_name(), subscription, request, now);
        for (key, bytes) in [(layout::replaying(&id), Bytes::new()), (layout::replay(&id), record.render())] {
            state.put(&key, bytes, PutCondition::Always).await.expect("a write");
        }
        id
    }

    /// A replay, as it stands.
    pub async fn replayed(&self, id: &str) -> ReplayRecord {
        let object = self.local.state().get(&layout::replay(id)).await.expect("a read");
        ReplayRecord::parse(&object.expect("the replay").bytes).expect("a record")
    }

    /// The markers of the replays that have not ended.
    pub async fn replaying(&self) -> Vec<String> {
        let page = self.local.state().list(layout::REPLAYING, None, 1000).await.expect("a listing");
        page.objects.into_iter().map(|object| object.key).collect()
    }

    /// The keys of what is parked.
    pub async fn parked(&self) -> Vec<String> {
        self.keys(layout::PARKED).await
    }

    /// The keys of what is held.
    pub async fn held(&self) -> Vec<String> {
        self.keys(layout::HELD).await
    }

    /// The first keys in the state bucket that begin like this.
    pub async fn keys(&self, prefix: &str) -> Vec<String> {
        let page = self.local.state().list(prefix, None, 1000).await.expect("a listing");
        page.objects.into_iter().map(|object| object.key).collect()
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

fn queue(local: &Local<ManualClock>, name: QueueName, calls: &Calls, faults: &Faults) -> Queue {
    let label = match name {
        QueueName::Deliveries => "deliveries",
        QueueName::DeadLetters => "deadletters",
        QueueName::Redrive => "redrive",
    };
    Faulty::new(Recorded::new(local.queue(name), label, calls), label, &faults.queues)
}

fn message(body: Bytes) -> OutgoingMessage {
    let group = Some(group(&topic_name(), &subscription_name()));
    OutgoingMessage { body, group, delay_secs: 0 }
}

fn creation_id(number: u8) -> CreationId {
    CreationId::new([number; CREATION_ID_BYTES])
}

fn topic_name() -> TopicName {
    TopicName::parse("orders").expect("a name")
}

fn subscription_name() -> SubscriptionName {
    SubscriptionName::parse("billing").expect("a name")
}
