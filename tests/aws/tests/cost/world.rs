//! The functions over the AWS adapters and the strict double, the event source mapping between
//! them, and the requests of each to SQS and S3.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::future::join_all;
use http::Request;
use posthaste_aws::{AwsClients, AwsSettings, QueueUrls, S3Store, SqsQueue};
use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::{
    ArrivalSettings, CREATION_ID_BYTES, CreationId, DeliveryLogMode, Identity, Timestamp, TopicName,
};
use posthaste_core::pressure::PressureState;
use posthaste_core::stored::delivery::parse_delivery;
use posthaste_core::stored::{TopicRecord, layout};
use posthaste_deliver::{
    DELAY_STEP_AWS, Deliver, DeliverPorts, DeliverSettings, DisablingMode, RecordsSettings,
};
use posthaste_monitor::{Monitor, MonitorPorts, MonitorSettings};
use posthaste_ports::{
    Clock, NoMachine, PortBundle, QueueName, QueueReceiver, ReceiveRequest, ReceivedMessage,
};
use posthaste_publish::{BodyBudget, Publish, PublishSettings, TarpitTurns};
use posthaste_record::{
    AsideStore, HealthPorts, LogRecorder, RecordPorts, RecordSettings, SummaryStore, WaitingPorts,
};
use posthaste_services::{
    ActivityNotes, ArrivalTracker, DrainMeter, DrainPost, DrainReports, LinkHealth, PressureReader,
    SlowLane, SlowTargetCache, TopicRegistry, WaitingBook, WakeSignaller,
};
use posthaste_simulation::{Answer, ScriptedEndpoint};
use posthaste_testkit::recorded::{PortOperation, RecordedCalls};
use posthaste_testkit::{ManualClock, Recorded, SeededEntropy, TestPorts, records};
use posthaste_tests_aws::double::{Access, Double};
use posthaste_tests_aws::lingering::lingering;
use posthaste_wake::{DeliveryLog, Wake, WakePorts};
use serde_json::{Value, json};

use crate::bill::{Bill, Requests};
use crate::event::{events_in, status_of};

mod log;

/// Greatest age of a topic before a function looks it up again: the template's default.
pub(crate) const TOPIC_MAX_AGE: Duration = Duration::from_secs(5);

/// Greatest age of the pressure before a function reads it again, as `infra/lambda` wires it.
const PRESSURE_MAX_AGE: Duration = Duration::from_secs(5);

/// Most messages that one invocation of deliver takes: the template's default.
pub(crate) const BATCH_MAX: usize = 10;

/// The visibility timeout of the delivery queue in the template.
pub(crate) const VISIBILITY: Duration = Duration::from_secs(730);

/// The timeout of deliver in the template.
pub(crate) const DELIVER_TIMEOUT: Duration = Duration::from_mins(2);

/// Requests of a run of wake that looks for work and finds none: the lease is read, taken and given
/// back, the pressure and the book of health read; what is parked, forced, held, temporary, to be recovered, to be replayed,
/// to be told and to be disabled, and links that are not well, are listed.
pub(crate) const WAKE_LOOK: Requests = Requests {
    sends: 0,
    receives: 0,
    deletes: 0,
    others: 0,
    puts: 11,
    gets: 3,
};

/// Requests of a run of wake in a minute without work: the lease and the signal are read.
pub(crate) const WAKE_REST: Requests = Requests {
    sends: 0,
    receives: 0,
    deletes: 0,
    others: 0,
    puts: 0,
    gets: 2,
};

pub(crate) const TOPIC: &str = "orders";
const STATE: &str = "state";
const DELIVERIES: &str = "deliveries";
const LOG: &str = "log";

type Queue = Recorded<SqsQueue<ManualClock>>;
type Store = Recorded<S3Store>;
type DeliverFunction = Deliver<
    PortBundle<Queue, Store, Store, Store, Recorded<ScriptedEndpoint>, ManualClock, SeededEntropy>,
>;
type WakeFunction = Wake<TestPorts<Queue, Store, Store, ScriptedEndpoint, Store>>;
type RecordFunction = LogRecorder<TestPorts<Queue, Store, Store, ScriptedEndpoint, Store>>;
type MonitorFunction =
    Monitor<TestPorts<Queue, Store>, NoMachine, DrainReports<Store, ManualClock>>;

/// The functions, wired up as in Lambda, one instance of each.
pub(crate) struct World {
    /// The time.
    pub(crate) clock: ManualClock,
    /// The requests until now, by function.
    pub(crate) bill: Bill,
    /// The requests of an instance of deliver that starts.
    pub(crate) start: Requests,
    /// Every call of a port.
    pub(crate) calls: RecordedCalls,
    endpoint: ScriptedEndpoint,
    double: Double,
    mapping: SqsQueue<ManualClock>,
    publish: Arc<Publish<TestPorts<Queue, Store>>>,
    deliver: DeliverFunction,
    drain: DrainPost<Store, ManualClock>,
    wake: WakeFunction,
    monitor: MonitorFunction,
    /// The queue of records, as its mapping has it.
    records: SqsQueue<ManualClock>,
    record: RecordFunction,
}

/// The start of every world: a whole minute.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_700_000_040_000);

/// The adapters that the functions share.
struct Wiring {
    clients: AwsClients,
    urls: QueueUrls,
    clock: ManualClock,
    calls: RecordedCalls,
    endpoint: ScriptedEndpoint,
    drain: DrainMeter,
    log: DeliveryLogMode,
}

impl Wiring {
    fn queue(&self, name: QueueName) -> SqsQueue<ManualClock> {
        self.clients
            .queue(name, self.urls.clone(), self.clock.clone())
    }

    fn recorded(&self, name: QueueName) -> Queue {
        Recorded::new(self.queue(name), "queue", &self.calls)
    }

    fn state(&self) -> Store {
        Recorded::new(self.clients.store(STATE), STATE, &self.calls)
    }

    fn registry(&self, max_age: Duration) -> TopicRegistry<Store, ManualClock> {
        TopicRegistry::new(self.state(), self.clock.clone(), max_age)
    }

    fn pressure(&self) -> PressureReader<Store, ManualClock> {
        PressureReader::new(self.state(), self.clock.clone(), PRESSURE_MAX_AGE)
    }

    fn links(&self) -> LinkHealth<Store, ManualClock> {
        LinkHealth::new(self.state(), self.clock.clone(), HealthSettings::default())
    }

    fn slow_lane(&self) -> SlowLane<Queue, Store, ManualClock> {
        SlowLane {
            queue: self.recorded(QueueName::SlowDeliveries),
            lanes: SlowTargetCache::new(Arc::new(self.state()), self.clock.clone()),
        }
    }

    fn publish(&self) -> Publish<TestPorts<Queue, Store>> {
        Publish {
            deliveries: self.recorded(QueueName::Deliveries),
            slow_lane: Some(self.slow_lane()),
            records: Some(self.recorded(QueueName::Records)),
            registry: self.registry(TOPIC_MAX_AGE),
            payloads: self.state(),
            pressure: self.pressure(),
            clock: self.clock.clone(),
            entropy: SeededEntropy::new(1),
            activity: ActivityNotes::default(),
            bodies: BodyBudget::new(6 << 20),
            advice: TarpitTurns::default(),
            wrong_keys: posthaste_services::WrongKeys::default(),
            traces: posthaste_services::EventTraces::default(),
            settings: PublishSettings::default(),
        }
    }

    /// deliver, with what it knows of links.
    fn deliver(&self, links: LinkHealth<Store, ManualClock>) -> DeliverFunction {
        let ports = DeliverPorts {
            queue: self.recorded(QueueName::Deliveries),
            slow_queue: Some(self.recorded(QueueName::SlowDeliveries)),
            records: self.recorded(QueueName::Records),
            state: self.state(),
            registry: self.registry(TOPIC_MAX_AGE),
            links,
            webhook: Recorded::new(self.endpoint.clone(), "webhook", &self.calls),
            clock: self.clock.clone(),
            // Chance of its own, so that draws of others do not change its jitter.
            entropy: SeededEntropy::new(2),
            drain: self.drain.clone(),
        };
        let records = RecordsSettings::AWS;
        let delivery_log = self.log;
        Deliver::new(
            ports,
            DeliverSettings {
                records,
                delay_step: DELAY_STEP_AWS,
                delivery_log,
                disabling: DisablingMode::ByWake,
                ..DeliverSettings::default()
            },
        )
    }

    fn wake(&self) -> WakeFunction {
        Wake::new(WakePorts {
            deliveries: self.recorded(QueueName::Deliveries),
            slow_lane: Some(self.slow_lane()),
            state: self.state(),
            dead_letters: self.state(),
            log: DeliveryLog::new(self.state()),
            log_delay: Duration::ZERO,
            registry: self.registry(Duration::ZERO),
            pressure: self.pressure(),
            links: self.links(),
            activity: ActivityNotes::default(),
            clock: self.clock.clone(),
            entropy: SeededEntropy::new(3),
        })
        .leaving_payloads()
    }

    fn record(&self) -> RecordFunction {
        let log = || Recorded::new(self.clients.store(LOG), LOG, &self.calls);
        let ports = RecordPorts {
            records: self.recorded(QueueName::Records),
            state: self.state(),
            log: log(),
            aside: AsideStore::in_log(log()),
            summaries: SummaryStore::in_log(log()),
            health: Some(HealthPorts {
                arrivals: ArrivalTracker::new(self.state(), self.clock.clone()).with_counting(),
                wake: WakeSignaller::new(Arc::new(self.state()), self.clock.clone()),
                delayed_after: ArrivalSettings::default().delayed_after,
            }),
            waiting: Some(WaitingPorts {
                book: WaitingBook::new(self.state(), self.clock.clone()),
                deliveries: Some(self.recorded(QueueName::Deliveries)),
                others: [
                    QueueName::SlowDeliveries,
                    QueueName::DeadLetters,
                    QueueName::Redrive,
                ]
                .map(|name| self.recorded(name))
                .into(),
            }),
            clock: self.clock.clone(),
            entropy: SeededEntropy::new(5),
        };
        LogRecorder::new(ports, RecordSettings::default().on_aws())
    }

    fn monitor(&self) -> MonitorFunction {
        let ports = MonitorPorts {
            deliveries: self.recorded(QueueName::Deliveries),
            slow_lane: Some(self.slow_lane()),
            dead_letters: self.recorded(QueueName::DeadLetters),
            state: self.state(),
            probe: NoMachine,
            clock: self.clock.clone(),
            drain: DrainReports::new(self.state(), self.clock.clone()),
            registry: self.registry(TOPIC_MAX_AGE),
            entropy: SeededEntropy::new(4),
        };
        Monitor::new(ports, MonitorSettings::default()).expect("settings that make sense")
    }
}

impl World {
    /// A world with one topic of these subscriptions, and without a delivery log.
    pub(crate) async fn new(subscriptions: &Value) -> Self {
        Self::with_log(subscriptions, DeliveryLogMode::Off).await
    }

    /// A world with one topic of these subscriptions.
    pub(crate) async fn with_log(subscriptions: &Value, log: DeliveryLogMode) -> Self {
        let clock = ManualClock::new(START);
        let calls = RecordedCalls::default();
        let double = Double::start(clock.clone()).await;
        double.bucket(STATE, Access::Full);
        double.bucket(LOG, Access::Full);
        double.put(
            STATE,
            &layout::topic_record_key(&topic_name()),
            record(subscriptions).render(),
        );
        let urls = QueueUrls::from([
            (QueueName::Deliveries, double.queue(DELIVERIES, None)),
            (
                QueueName::SlowDeliveries,
                double.queue("deliveries-slow", None),
            ),
            (QueueName::DeadLetters, double.queue("deadletters", None)),
            (QueueName::Redrive, double.queue("redrive", None)),
            (QueueName::Records, double.queue("records", None)),
        ]);
        let clients = AwsClients::new(&settings(&double.endpoint()));
        let endpoint = ScriptedEndpoint::new(clock.clone());
        endpoint.answer([Answer::By(status_of)]);
        let wiring = Wiring {
            clients,
            urls,
            clock,
            calls,
            endpoint,
            drain: DrainMeter::default(),
            log,
        };
        // The start of an instance is counted by itself.
        let links = wiring.links();
        links.read_start_once().await;
        let start = Requests::of(&double.take_journal());
        wiring.calls.take();
        Self {
            start,
            publish: Arc::new(wiring.publish()),
            deliver: wiring.deliver(links),
            drain: DrainPost::new(
                wiring.drain.clone(),
                wiring.state(),
                wiring.clock.clone(),
                "one",
            ),
            wake: wiring.wake(),
            monitor: wiring.monitor(),
            records: wiring.queue(QueueName::Records),
            record: wiring.record(),
            mapping: wiring.queue(QueueName::Deliveries),
            clock: wiring.clock,
            endpoint: wiring.endpoint,
            bill: Bill::default(),
            calls: wiring.calls,
            double,
        }
    }

    /// Writes an object into the bucket of state and dead letters.
    pub(crate) fn put(&self, key: &str, bytes: impl Into<Bytes>) {
        self.double.put(STATE, key, bytes);
    }

    /// The bytes of an object there.
    pub(crate) fn object(&self, key: &str) -> Option<Bytes> {
        self.double.object(STATE, key)
    }

    /// One invocation of publish with these events in one request.
    pub(crate) async fn publish(&mut self, events: &[String]) {
        self.publish_named(events, None).await;
    }

    /// The same with an `Idempotency-Key`.
    pub(crate) async fn publish_named(&mut self, events: &[String], name: Option<&str>) {
        let body = format!("[{}]", events.join(","));
        let request = Request::post("/")
            .header("aeg-sas-key", records::TOPIC_KEY)
            .header("content-type", "application/cloudevents-batch+json");
        let request = name.into_iter().fold(request, |request, name| {
            request.header("idempotency-key", name)
        });
        let request = request.body(Body::from(body)).expect("a request");
        Box::pin(self.publish.publish(TOPIC, request))
            .await
            .expect("a publish");
        self.bill.publish += self.take();
        self.bill.publish_invocations += 1;
    }

    /// Works as the event source mapping while there are messages: receives a batch, invokes
    /// deliver, and deletes what was not reported as failed.
    pub(crate) async fn deliver_all(&mut self) {
        self.deliver_in(&[BATCH_MAX]).await;
    }

    /// The same with batches of these sizes, in turns.
    pub(crate) async fn deliver_in(&mut self, sizes: &[usize]) {
        for size in sizes.iter().cycle() {
            if !self.deliver_batch(*size).await {
                return;
            }
        }
    }

    /// The same with one batch of this size at most. False if there was nothing.
    pub(crate) async fn deliver_batch(&mut self, size: usize) -> bool {
        let batch = self.receive(size).await;
        if batch.is_empty() {
            return false;
        }
        let receipts: Vec<_> = batch
            .iter()
            .map(|m| (m.id.clone(), m.receipt.clone()))
            .collect();
        let deadline = self.clock.monotonic() + DELIVER_TIMEOUT;
        let invocation = async {
            let response = Box::pin(self.deliver.handle(batch, deadline)).await;
            Box::pin(self.drain.post_if_due()).await;
            response
        };
        let response = lingering(&self.clock, Box::pin(invocation)).await;
        self.bill.deliver += self.take();
        self.bill.deliver_invocations += 1;
        assert_eq!(response.failures, [], "nothing fails here");
        // The mapping cannot know which of them the function has deleted already.
        let deleting = receipts
            .iter()
            .map(|(_, receipt)| self.mapping.replace(receipt, vec![]));
        let deleted = lingering(&self.clock, join_all(deleting)).await;
        deleted
            .into_iter()
            .collect::<Result<Vec<_>, _>>()
            .expect("deletes");
        self.bill.mapping += self.take();
        true
    }

    /// An empty receive does not belong to the cost of a delivery: the mapping polls all the time.
    async fn receive(&mut self, max: usize) -> Vec<ReceivedMessage> {
        let request = ReceiveRequest {
            max,
            visibility: VISIBILITY,
            wait: Duration::ZERO,
        };
        let batch = self.mapping.receive(request).await.expect("a receive");
        let asked = self.take();
        if !batch.is_empty() {
            self.bill.mapping += asked;
        }
        batch
    }

    /// One run of wake. The requests of every run belong to the cost of a minute and not of a
    /// delivery. Answers whether it looked for work.
    pub(crate) async fn wake(&mut self) -> bool {
        let report = lingering(&self.clock, Box::pin(self.wake.run()))
            .await
            .expect("a run of wake");
        self.bill.wake += self
            .take()
            .beside(if report.rested { WAKE_REST } else { WAKE_LOOK });
        !report.rested
    }

    /// One sample of the monitor.
    pub(crate) async fn sample(&mut self) -> PressureState {
        let state = self.monitor.poll_once().await.expect("a sample");
        self.bill.monitor += self.take();
        state
    }

    /// The number of requests to the endpoint.
    pub(crate) fn posts(&self) -> usize {
        self.calls.count(PortOperation::Post)
    }

    /// The number of events that the endpoint took since the last call.
    pub(crate) fn take_delivered(&self) -> usize {
        let taken = self
            .endpoint
            .take()
            .into_iter()
            .filter(|request| status_of(&request.body, request.at) == 204);
        taken.map(|request| events_in(&request.body).len()).sum()
    }

    /// The time at which the next waiting message is due.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        let bodies = self.double.bodies(DELIVERIES);
        let due = |body: String| {
            parse_delivery(&Bytes::from(body))
                .expect("a delivery")
                .not_before
        };
        bodies.into_iter().map(due).min()
    }

    fn take(&self) -> Requests {
        Requests::of(&self.double.take_journal())
    }
}

fn settings(endpoint: &str) -> AwsSettings {
    AwsSettings::from_env(|name| {
        let value = match name {
            "AWS_REGION" => "us-east-1",
            "AWS_ACCESS_KEY_ID" => "AKIDEXAMPLE",
            "AWS_SECRET_ACCESS_KEY" => "secret",
            "AWS_ENDPOINT_URL" => endpoint,
            _ => return None,
        };
        Some(value.to_owned())
    })
    .expect("settings that make sense")
}

/// The identity of each subscription of the topic.
pub(crate) fn identity() -> Identity {
    let id = CreationId::new([7; CREATION_ID_BYTES]);
    Identity {
        topic: id,
        subscription: id,
    }
}

/// The topic's record with these subscriptions.
pub(crate) fn record(subscriptions: &Value) -> TopicRecord {
    let settings = records::topic_settings(json!({ "subscriptions": subscriptions }));
    let record = records::topic_record(topic_name(), settings, START);
    record.with_identities(None, START, || CreationId::new([7; CREATION_ID_BYTES]))
}

pub(crate) fn topic_name() -> TopicName {
    records::topic_name(TOPIC)
}
