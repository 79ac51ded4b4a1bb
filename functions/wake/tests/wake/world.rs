//! wake, wired up, and what the tests do with it.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::{SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::layout;
use posthaste_core::stored::parked::render_parked;
use posthaste_ports::{Bundle, Clock, ObjectStore, PutCondition};
use posthaste_services::{Activity, LinkHealth, PressureReader, Registry};
use posthaste_testkit::endpoint::MemoryEndpoint;
use posthaste_testkit::memory::{MemoryQueue, MemoryStore};
use posthaste_testkit::{Faulty, ManualClock, Plan, SeededEntropy};
use posthaste_wake::{Wake, WakePorts, WakeReport};
use serde_json::Value;

type Store = Faulty<MemoryStore>;

pub(crate) type TestWake =
    Wake<Bundle<Faulty<MemoryQueue>, Store, Store, MemoryEndpoint, ManualClock, SeededEntropy>>;

/// Most objects of a page, whatever is asked for.
pub(crate) const SHORT_PAGE: usize = 3;

/// How long a run may take.
pub(crate) const RUN: Duration = Duration::from_secs(55);

pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) store: MemoryStore,
    pub(crate) queue: MemoryQueue,
    pub(crate) wake: TestWake,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(&Plan::none(), &Plan::none())
    }

    /// A world in which the store and the queue fail by these plans.
    pub(crate) fn with(store_plan: &Plan, queue_plan: &Plan) -> Self {
        let clock = ManualClock::new(Timestamp::parse("2026-03-07T04:05:00Z").unwrap());
        let (store, queue) = (MemoryStore::like_s3(SHORT_PAGE), MemoryQueue::default());
        let wake = wake(&clock, &store, store_plan, &queue, queue_plan, 1);
        Self { clock, store, queue, wake }
    }

    /// Another instance over the same store and queue.
    pub(crate) fn second(&self) -> TestWake {
        wake(&self.clock, &self.store, &Plan::none(), &self.queue, &Plan::none(), 2)
    }

    /// Another instance, whose store fails by this plan.
    pub(crate) fn failing(&self, store_plan: &Plan) -> TestWake {
        wake(&self.clock, &self.store, store_plan, &self.queue, &Plan::none(), 3)
    }

    /// Parks so many deliveries in one object, due this long from now.
    pub(crate) async fn park(&self, wait: Duration, id: &str, deliveries: usize) -> String {
        let key = key(self.clock.now() + wait, id);
        let messages: Vec<_> = (0..deliveries).map(|n| Bytes::from(format!(r#""{id}-{n}""#))).collect();
        self.write(&key, render_parked(&messages)).await;
        key
    }

    pub(crate) async fn write(&self, key: &str, bytes: Bytes) {
        self.store.put(key, bytes, PutCondition::Always).await.unwrap();
    }

    /// One run, `later` than now.
    pub(crate) async fn run_after(&self, later: Duration) -> WakeReport {
        self.clock.advance(later);
        self.wake.run_until(self.clock.monotonic() + RUN).await.unwrap()
    }

    /// After which keys the listings of one run began, `later` than now.
    pub(crate) async fn begun_after(&self, later: Duration) -> Vec<Option<String>> {
        self.store.take_listed(layout::PARKED);
        self.run_after(later).await;
        self.store.take_listed(layout::PARKED)
    }

    /// The lease as it is stored.
    pub(crate) async fn lease(&self) -> Value {
        let object = self.store.get(layout::WAKE_LEASE).await.unwrap().unwrap();
        serde_json::from_slice(&object.bytes).unwrap()
    }
}

/// The key that a list begins after which starts at this time's minute.
pub(crate) fn from(time: &str) -> String {
    layout::parked_before(Timestamp::parse(time).unwrap().minute())
}

/// The key of an object that is due then.
pub(crate) fn key(due: Timestamp, id: &str) -> String {
    let (topic, subscription) = (TopicName::parse("orders"), SubscriptionName::parse("billing"));
    layout::parked(due, &topic.unwrap(), &subscription.unwrap(), id)
}

fn wake(
    clock: &ManualClock,
    store: &MemoryStore,
    store_plan: &Plan,
    queue: &MemoryQueue,
    queue_plan: &Plan,
    seed: u64,
) -> TestWake {
    let store = Faulty::new(store.clone(), "state", store_plan);
    Wake::new(WakePorts {
        deliveries: Faulty::new(queue.clone(), "deliveries", queue_plan),
        state: store.clone(),
        dead_letters: store.clone(),
        registry: Registry::new(store.clone(), clock.clone(), Duration::ZERO),
        links: LinkHealth::new(store.clone(), clock.clone(), HealthSettings::default()),
        pressure: PressureReader::new(store, clock.clone(), Duration::ZERO),
        activity: Activity::default(),
        clock: clock.clone(),
        entropy: SeededEntropy::new(seed),
    })
}
