//! The caches of one process, full of what publish and deliver do, and trimmed by what the monitor
//! says: over the real registry, embedded store and webhook client.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::Request;
use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::AddressPolicy;
use posthaste_core::pressure::{ByteUsage, PressureLevel, PressureState, RELIEF_EVERY};
use posthaste_deliver::{Deliver, DeliverPorts, DeliverSettings};
use posthaste_http::{ClientSettings, HyperWebhookClient, LookupError, NameLookup};
use posthaste_local::{EmbeddedStore, LocalOptions, LocalQueue, StateStore};
use posthaste_monitor::{Monitor, MonitorPorts, MonitorSettings};
use posthaste_ports::{
    Clock, EvictedAmount, ObjectStore, PortBundle, ProbeSample, PutCondition, QueueName,
    QueueReceiver, ReceiveRequest, ReceivedMessage, ResourceProbe,
};
use posthaste_publish::{BodyBudget, Publish, PublishSettings, TarpitTurns};
use posthaste_services::{
    ActivityNotes, DrainMeter, LinkHealth, MemoryReliever, PressureReader, ReliefResult,
    TopicRegistry,
};
use posthaste_simulation::{data_folder, event, start};
use posthaste_system::resident_bytes;
use posthaste_testkit::{ManualClock, SeededEntropy, TestPorts};
use posthaste_testkit::{PortOperation, Recorded, RecordedCalls};
use serde_json::json;
use tokio::net::TcpListener;

const POLL: Duration = Duration::from_secs(2);
const TOPIC: &str = "topics/orders.json";

type Store = Recorded<StateStore>;
type Queue = LocalQueue<ManualClock>;

/// A machine whose memory is used as the test says: of a hundred bytes so many by this process, and
/// by all.
#[derive(Debug, Clone, Default)]
struct Machine(Arc<Mutex<(u64, u64)>>);

impl ResourceProbe for Machine {
    fn sample(&self) -> ProbeSample {
        let (process, used) = *self.0.lock().unwrap();
        let memory = Some(ByteUsage { used, total: 100 });
        ProbeSample {
            process_bytes: Some(process),
            memory,
            ..ProbeSample::default()
        }
    }
}

/// Knows one name, and how often it was asked for it.
#[derive(Clone, Default)]
struct Loopback(Arc<AtomicUsize>);

impl NameLookup for Loopback {
    async fn lookup(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        assert_eq!(host, "billing.test");
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(vec![IpAddr::from([127, 0, 0, 1])])
    }

    fn forget_all(&self) {}
}

type Client = HyperWebhookClient<ManualClock, Loopback>;

/// The caches that `serve` has in one process.
struct Process {
    clock: ManualClock,
    calls: RecordedCalls,
    machine: Machine,
    names: Loopback,
    queue: Queue,
    client: Client,
    publish: Arc<Publish<TestPorts<Queue, Store>>>,
    deliver: Deliver<PortBundle<Queue, Store, Store, Store, Client, ManualClock, SeededEntropy>>,
    monitor: Monitor<TestPorts<Queue, Store>, Machine, DrainMeter>,
    reliever: MemoryReliever<ManualClock>,
    record_bytes: usize,
    _folder: tempfile::TempDir,
}

impl Process {
    /// A process with one topic, whose subscriber answers 200 to everything.
    async fn new() -> Self {
        let folder = data_folder();
        let clock = ManualClock::new(start());
        let entropy = SeededEntropy::new(7);
        let calls = RecordedCalls::default();
        let local = EmbeddedStore::open(
            folder.path(),
            LocalOptions::default(),
            clock.clone(),
            entropy.clone(),
        )
        .unwrap();
        let store = Recorded::new(local.state_store(), "state", &calls);
        let record = record(&subscriber().await);
        local
            .state_store()
            .put(TOPIC, record.clone(), PutCondition::Always)
            .await
            .unwrap();
        let registry = TopicRegistry::new(store.clone(), clock.clone(), Duration::ZERO);
        let addresses = AddressPolicy {
            allowed: vec!["127.0.0.0/8".parse().unwrap()],
            ..AddressPolicy::default()
        };
        let settings = ClientSettings {
            addresses,
            ..ClientSettings::default()
        };
        let machine = Machine::default();
        let names = Loopback::default();
        let drain = DrainMeter::default();
        let client =
            HyperWebhookClient::with_names(settings, clock.clone(), names.clone()).unwrap();
        let queue = local.queue(QueueName::Deliveries);
        let reliever = MemoryReliever::new(clock.clone(), resident_bytes)
            .with_cache("topics", registry.clone())
            .with_cache("bodies", local.clone())
            .with_cache("connections", client.clone());
        let publish = Publish {
            deliveries: queue.clone(),
            slow_lane: None,
            records: Some(local.queue(QueueName::Records)),
            registry: registry.clone(),
            payloads: store.clone(),
            pressure: PressureReader::new(store.clone(), clock.clone(), Duration::ZERO),
            clock: clock.clone(),
            entropy: entropy.clone(),
            activity: ActivityNotes::default(),
            bodies: BodyBudget::new(1_000_000),
            advice: TarpitTurns::default(),
            wrong_keys: posthaste_services::WrongKeys::default(),
            traces: posthaste_services::EventTraces::default(),
            settings: PublishSettings::default(),
        };
        // Nothing takes records out of their queue here.
        let delivery_log = posthaste_core::model::DeliveryLogMode::Off;
        let deliver = DeliverPorts {
            queue: queue.clone(),
            slow_queue: None,
            records: local.queue(QueueName::Records),
            state: store.clone(),
            registry: registry.clone(),
            links: LinkHealth::new(store.clone(), clock.clone(), HealthSettings::default()),
            webhook: client.clone(),
            clock: clock.clone(),
            entropy: entropy.clone(),
            drain: drain.clone(),
        };
        let monitor = MonitorPorts {
            deliveries: queue.clone(),
            slow_lane: None,
            dead_letters: local.queue(QueueName::DeadLetters),
            state: store,
            probe: machine.clone(),
            clock: clock.clone(),
            drain,
            registry,
            entropy,
        };
        Self {
            clock,
            calls,
            machine,
            names,
            queue,
            client,
            publish: Arc::new(publish),
            deliver: Deliver::new(
                deliver,
                DeliverSettings {
                    delivery_log,
                    ..DeliverSettings::default()
                },
            ),
            monitor: Monitor::new(monitor, MonitorSettings::default()).unwrap(),
            reliever,
            record_bytes: record.len(),
            _folder: folder,
        }
    }

    async fn publish(&self, id: &str) {
        let request = Request::post("/topics/orders/events")
            .header("aeg-sas-key", "k1")
            .header("content-type", "application/cloudevents+json");
        self.publish
            .publish("orders", request.body(Body::from(event(id))).unwrap())
            .await
            .unwrap();
    }

    async fn receive(&self) -> Vec<ReceivedMessage> {
        let request = ReceiveRequest {
            max: 10,
            visibility: Duration::from_mins(6),
            wait: Duration::ZERO,
        };
        self.queue.receive(request).await.unwrap()
    }

    /// Has deliver settle a message.
    async fn deliver(&self, batch: Vec<ReceivedMessage>) {
        let response = self
            .deliver
            .handle(batch, self.clock.monotonic() + Duration::from_mins(1))
            .await;
        assert_eq!(response.failures.len(), 0);
    }

    /// One poll, with so many percent of the memory used by the process and by all, and what is
    /// done after it.
    async fn poll(&mut self, process: u64, used: u64) -> (PressureState, ReliefResult) {
        *self.machine.0.lock().unwrap() = (process, used);
        let state = self.monitor.poll_once().await.unwrap();
        let relieved = self.reliever.relieve(self.reliever.take_due_relief(&state));
        self.clock.advance(POLL);
        (state, relieved)
    }

    /// The number of times that the topic's record was read, bytes and all.
    fn reads(&self) -> usize {
        let calls = self.calls.take();
        calls
            .iter()
            .filter(|call| call.operation == PortOperation::Get && call.key == TOPIC)
            .count()
    }
}

/// A subscriber that answers 200, and where it is.
async fn subscriber() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = axum::Router::new().fallback(|| std::future::ready(http::StatusCode::OK));
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://billing.test:{port}/")
}

fn record(url: &str) -> Bytes {
    let record = json!({
        "v": 1, "name": "orders", "key1": "k1", "key2": "k2", "createdAt": 0, "updatedAt": 0,
        "settings": { "subscriptions": { "billing": { "endpoint": { "url": url } } } },
    });
    record.to_string().into()
}

#[tokio::test]
async fn caches_give_memory_back_under_pressure_and_work_goes_on() {
    let mut process = Process::new().await;
    process.publish("delivered").await;
    process.deliver(process.receive().await).await;
    process.publish("waiting").await;
    assert_eq!((process.client.idle_connections(), process.reads()), (1, 1));
    let (state, relieved) = process.poll(70, 50).await;
    assert_eq!(
        (state.effective_level(), relieved),
        (PressureLevel::Normal, ReliefResult::default())
    );

    let (state, relieved) = process.poll(73, 50).await;
    assert_eq!(
        (state.effective_level(), relieved.names),
        (PressureLevel::Medium, None)
    );
    let waiting = process.receive().await;
    let held = [TOPIC.len() + process.record_bytes, waiting[0].body.len()];
    // The topic, the body that waited and the connection, whose bytes are unknown.
    assert_eq!(
        relieved.trimmed,
        Some(EvictedAmount {
            entries: 3,
            bytes: held.iter().sum()
        })
    );
    assert_eq!(process.client.idle_connections(), 0);

    process.publish("next").await;
    assert_eq!(process.reads(), 1);
    process.deliver(waiting).await;
    process.deliver(process.receive().await).await;
    assert_eq!((process.client.idle_connections(), process.reads()), (1, 0));
}

/// Caches are trimmed again every thirty seconds while the pressure lasts, and not after.
#[tokio::test]
async fn caches_are_trimmed_every_thirty_seconds_under_pressure() {
    let mut process = Process::new().await;
    let mut trimmed_at = Vec::new();
    let began = process.clock.monotonic();
    let polls_in_rest = u32::try_from(RELIEF_EVERY.as_secs() / POLL.as_secs()).unwrap();
    // 72 % is above the normal threshold of the process's memory, though its level is Normal.
    for process_percent in [70, 72, 73, 70]
        .into_iter()
        .flat_map(|percent| vec![percent; 20])
    {
        let now = process.clock.monotonic().saturating_sub(began);
        let (_, relieved) = process.poll(process_percent, 50).await;
        if relieved.trimmed.is_some() {
            trimmed_at.push(now);
        }
    }
    assert_eq!(
        trimmed_at,
        [20, 20 + polls_in_rest, 20 + 2 * polls_in_rest].map(|polls| polls * POLL)
    );
}

#[tokio::test]
async fn at_high_names_are_forgotten_too_and_are_looked_up_anew() {
    let mut process = Process::new().await;
    process.publish("a").await;
    process.deliver(process.receive().await).await;
    process.publish("b").await;
    assert_eq!(process.poll(10, 92).await.1.names, None);
    let (state, relieved) = process.poll(10, 94).await;
    assert_eq!(
        (state.effective_level(), relieved),
        (
            PressureLevel::High,
            ReliefResult {
                trimmed: None,
                names: Some(1)
            }
        )
    );
    assert_eq!(process.names.0.load(Ordering::Relaxed), 1);
    process.deliver(process.receive().await).await;
    assert_eq!(
        (
            process.names.0.load(Ordering::Relaxed),
            process.client.idle_connections()
        ),
        (2, 1)
    );
}
