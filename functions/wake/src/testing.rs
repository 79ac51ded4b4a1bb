//! The world of wake's unit tests: its ports in memory, and what a test looks at.

mod wiring;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::Timestamp;
use posthaste_core::stored::layout;
use posthaste_core::stored::parked::{parse_parked, render_parked};
use posthaste_ports::{Clock, ErrorKind, ObjectStore};
use posthaste_testkit::memory::{MemoryQueue, MemoryStore};
use posthaste_testkit::records::{subscription_name, topic_name, topic_record, topic_settings};
use posthaste_testkit::{CallFault, FaultPlan, ManualClock, PortOperation};
use serde_json::{Value, json};

use crate::cancellations::CancellationCache;
use crate::ports::WakePorts;
use crate::run::WakeRun;
use wiring::ports;
pub(crate) use wiring::{PAGE, TestPorts};

/// The ports, and what a test looks at.
pub(crate) struct Kit {
    pub(crate) clock: ManualClock,
    pub(crate) store: MemoryStore,
    pub(crate) queue: MemoryQueue,
    pub(crate) ports: WakePorts<TestPorts>,
    is_stopped: AtomicBool,
    found_work: AtomicBool,
    cancellations: CancellationCache,
}

impl Kit {
    pub(crate) fn new() -> Self {
        Self::with(&FaultPlan::none(), &FaultPlan::none())
    }

    /// A kit in which the store and the queue fail by these plans.
    pub(crate) fn with(store_plan: &FaultPlan, queue_plan: &FaultPlan) -> Self {
        let clock = ManualClock::new(Timestamp::parse("2026-03-07T04:05:00Z").unwrap());
        let store = MemoryStore::like_s3(PAGE);
        let queue = MemoryQueue::default();
        let ports = ports(
            &clock,
            (&store, store_plan),
            &MemoryStore::default(),
            (&queue, queue_plan),
            1,
        );
        let (is_stopped, found_work) = Default::default();
        Self {
            clock,
            store,
            queue,
            ports,
            is_stopped,
            found_work,
            cancellations: CancellationCache::default(),
        }
    }

    /// A kit whose queue refuses these sends, counted from 0.
    pub(crate) fn refusing(sends: impl Fn(u64) -> bool + Send + Sync + 'static) -> Self {
        let plan = FaultPlan::by(move |effect| {
            let is_refused = effect.operation == PortOperation::SendBatch && sends(effect.number);
            is_refused.then_some(CallFault::Before(ErrorKind::Other))
        });
        Self::with(&FaultPlan::none(), &plan)
    }

    /// A run that begins now.
    pub(crate) fn run(&self) -> WakeRun<'_, TestPorts> {
        let deadline = self.clock.monotonic() + Duration::from_secs(55);
        self.found_work.store(false, Ordering::Relaxed);
        let found_work = &self.found_work;
        let cancellations = &self.cancellations;
        WakeRun::with_deadline(
            deadline,
            &self.ports,
            &self.is_stopped,
            found_work,
            cancellations,
        )
    }

    /// Tells runs that the process is about to end.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Parks deliveries for `orders.billing` in one object, due this long from now.
    pub(crate) fn park(&self, wait: Duration, id: &str, deliveries: usize) -> String {
        let topic = topic_name("orders");
        let subscription = subscription_name("billing");
        let key = layout::parked_key(self.clock.now() + wait, &topic, &subscription, id);
        self.store
            .write(&key, render_parked(&messages(id, deliveries)));
        key
    }

    /// Writes the topic `orders` with these settings, as if manage had done so now.
    pub(crate) fn topic(&self, settings: Value) {
        let record = topic_record(
            topic_name("orders"),
            topic_settings(settings),
            self.clock.now(),
        );
        self.store.write("topics/orders.json", record.render());
    }

    /// The messages that an object holds.
    pub(crate) async fn left(&self, key: &str) -> Vec<Bytes> {
        let object = self.store.get(key).await.unwrap();
        object
            .map(|object| parse_parked(&object.bytes).unwrap())
            .unwrap_or_default()
    }
}

/// Messages that cannot be read as deliveries, so that they go as they are.
pub(crate) fn messages(id: &str, count: usize) -> Vec<Bytes> {
    (0..count)
        .map(|n| Bytes::from(format!(r#""{id}-{n}""#)))
        .collect()
}

/// An active subscription at `https://a.example/` since the beginning of time, with these settings besides.
pub(crate) fn subscription(settings: Value) -> Value {
    let mut subscription = json!({
        "endpoint": { "url": "https://a.example/" },
        "status": { "state": "Active", "since": "1970-01-01T00:00:00Z" },
    });
    let Value::Object(settings) = settings else {
        panic!("settings of a subscription: {settings}")
    };
    subscription.as_object_mut().unwrap().extend(settings);
    subscription
}
