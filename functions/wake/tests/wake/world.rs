//! The world of every test: wake over ports in memory, and what the tests do with it.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::{SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::layout;
use posthaste_core::stored::parked::render_parked;
use posthaste_ports::{Clock, ObjectStore, PutCondition};
use posthaste_services::signal_wake;
use posthaste_testkit::faulty::PortEffect;
use posthaste_testkit::memory::{MemoryQueue, MemoryStore};
use posthaste_testkit::{FaultPlan, ManualClock, PortOperation};
use posthaste_wake::{Wake, WakeError, WakeReport};
use serde_json::Value;

use crate::wiring::{PAGE, TestPorts, ports};

pub(crate) type TestWake = Wake<TestPorts>;

/// The longest time of a run.
pub(crate) const RUN: Duration = Duration::from_secs(55);

pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) store: MemoryStore,
    pub(crate) queue: MemoryQueue,
    pub(crate) wake: TestWake,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(&FaultPlan::none(), &FaultPlan::none())
    }

    /// A world in which the store and the queue fail by these plans.
    pub(crate) fn with(store_plan: &FaultPlan, queue_plan: &FaultPlan) -> Self {
        let clock = ManualClock::new(Timestamp::parse("2026-03-07T04:05:00Z").unwrap());
        let store = MemoryStore::like_s3(PAGE);
        let queue = MemoryQueue::default();
        let wake = Wake::new(ports(
            &clock,
            (&store, store_plan),
            &MemoryStore::default(),
            (&queue, queue_plan),
            1,
        ));
        Self {
            clock,
            store,
            queue,
            wake,
        }
    }

    /// The same world, whose bucket deletes old objects by itself.
    pub(crate) fn on_aws(self) -> Self {
        Self {
            wake: self.wake.leaving_payloads(),
            ..self
        }
    }

    /// Another instance over the same store and queue.
    pub(crate) fn second(&self) -> TestWake {
        Wake::new(ports(
            &self.clock,
            (&self.store, &FaultPlan::none()),
            &MemoryStore::default(),
            (&self.queue, &FaultPlan::none()),
            2,
        ))
    }

    /// Another instance, whose store fails by this plan.
    pub(crate) fn failing(&self, store_plan: &FaultPlan) -> TestWake {
        Wake::new(ports(
            &self.clock,
            (&self.store, store_plan),
            &MemoryStore::default(),
            (&self.queue, &FaultPlan::none()),
            3,
        ))
    }

    /// Parks deliveries in one object, due this long from now.
    pub(crate) async fn park(&self, wait: Duration, id: &str, deliveries: usize) -> String {
        let key = key(self.clock.now() + wait, id);
        let messages: Vec<_> = (0..deliveries)
            .map(|n| Bytes::from(format!(r#""{id}-{n}""#)))
            .collect();
        self.write(&key, render_parked(&messages)).await;
        key
    }

    pub(crate) async fn write(&self, key: &str, bytes: Bytes) {
        self.store
            .put(key, bytes, PutCondition::Always)
            .await
            .unwrap();
    }

    /// One run, `later` than now, that was signalled: these tests write into the store themselves.
    pub(crate) async fn run_after(&self, later: Duration) -> WakeReport {
        signal_wake(&self.store, self.clock.now() + later)
            .await
            .unwrap();
        self.run_unsignalled_after(later).await
    }

    /// One run, `later` than now.
    pub(crate) async fn run_unsignalled_after(&self, later: Duration) -> WakeReport {
        self.clock.advance(later);
        self.try_run(RUN).await.unwrap()
    }

    /// One run now, of at most this length.
    pub(crate) async fn try_run(&self, length: Duration) -> Result<WakeReport, WakeError> {
        self.wake.run_until(self.clock.monotonic() + length).await
    }

    /// Works, and whenever that waits, a second passes.
    pub(crate) async fn in_time<T>(&self, work: impl Future<Output = T>) -> T {
        let time = async {
            loop {
                // As many turns as the longest chain of calls that are answered at once.
                for _ in 0..1000 {
                    tokio::task::yield_now().await;
                }
                self.clock.advance(Duration::from_secs(1));
            }
        };
        tokio::select! {
            answer = work => answer,
            () = time => unreachable!("time has no end"),
        }
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

/// Tells whether parked deliveries are being listed.
pub(crate) fn is_parked_list(effect: PortEffect<'_>) -> bool {
    effect.operation == PortOperation::List && effect.key == layout::PARKED
}

/// The key that a list begins after which starts at this time's minute.
pub(crate) fn from(time: &str) -> String {
    layout::parked_before(Timestamp::parse(time).unwrap().minute_rounded_down())
}

/// The key of an object that is due then.
pub(crate) fn key(due: Timestamp, id: &str) -> String {
    let topic = TopicName::parse("orders");
    let subscription = SubscriptionName::parse("billing");
    layout::parked_key(due, &topic.unwrap(), &subscription.unwrap(), id)
}
