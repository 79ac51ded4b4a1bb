//! The registry over a store in memory.

mod log;
mod looking_up;
mod records;
mod trimming;

use std::pin::{Pin, pin};
use std::task::{Context, Waker};

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::sync::Semaphore;

use super::*;
use posthaste_ports::{ErrorKind, ListPage, PutCondition};
use posthaste_testkit::memory::{MemoryStore, SetClock};
use posthaste_testkit::recorded::PortOperation;
use posthaste_testkit::{CallFault, FaultPlan, Faulty, Recorded, RecordedCalls};

const MAX_AGE: Duration = Duration::from_secs(5);
const RECORD: &str = include_str!("../../../core/src/stored/fixtures/topic-v1.json");

/// A store whose reads wait for a permit, so that readers can be held where they are.
#[derive(Debug, Clone)]
struct Gated<S> {
    store: S,
    gate: Arc<Semaphore>,
}

impl<S> Gated<S> {
    async fn pass(&self) {
        self.gate.acquire().await.unwrap().forget();
    }
}

impl<S: ObjectStore> ObjectStore for Gated<S> {
    async fn get(&self, key: &str) -> Result<Option<StoredObject>, PortError> {
        self.pass().await;
        self.store.get(key).await
    }

    async fn get_if_changed(
        &self,
        key: &str,
        known: &ETag,
    ) -> Result<RevalidatedObject, PortError> {
        self.pass().await;
        self.store.get_if_changed(key, known).await
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        condition: PutCondition,
    ) -> Result<ETag, PortError> {
        self.store.put(key, bytes, condition).await
    }

    async fn delete(&self, key: &str) -> Result<(), PortError> {
        self.store.delete(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<ListPage, PortError> {
        self.store.list(prefix, after, max).await
    }
}

struct World {
    store: MemoryStore,
    clock: SetClock,
    calls: RecordedCalls,
    gate: Arc<Semaphore>,
    registry: TopicRegistry<Gated<Recorded<Faulty<MemoryStore>>>, SetClock>,
}

impl World {
    /// A world in which reads wait for permits.
    fn gated(plan: &FaultPlan, max_age: Duration) -> Self {
        let store = MemoryStore::default();
        let clock = SetClock::default();
        let calls = RecordedCalls::default();
        let decorated = Recorded::new(Faulty::new(store.clone(), "state", plan), "state", &calls);
        let gate = Arc::new(Semaphore::new(0));
        let gated = Gated {
            store: decorated,
            gate: Arc::clone(&gate),
        };
        let registry = TopicRegistry::new(gated, clock.clone(), max_age);
        Self {
            store,
            clock,
            calls,
            gate,
            registry,
        }
    }

    fn with(plan: &FaultPlan) -> Self {
        let world = Self::gated(plan, MAX_AGE);
        world.gate.add_permits(1000);
        world
    }

    async fn write(&self, bytes: impl Into<Bytes>) {
        self.store
            .put("topics/orders.json", bytes.into(), PutCondition::Always)
            .await
            .unwrap();
    }

    /// The topic's state: `there`, `absent` or `unknown`.
    async fn look(&self) -> &'static str {
        match self
            .registry
            .topic(&TopicName::parse("Orders").unwrap())
            .await
        {
            Ok(Some(topic)) => {
                assert_eq!(topic.subscriptions.len(), 1);
                "there"
            }
            Ok(None) => "absent",
            Err(_) => "unknown",
        }
    }

    fn reads(&self) -> usize {
        self.calls.count(PortOperation::Get) + self.calls.count(PortOperation::GetIfChanged)
    }
}

fn waits<F: Future>(future: Pin<&mut F>) -> bool {
    future
        .poll(&mut Context::from_waker(Waker::noop()))
        .is_pending()
}

/// Everything that can be wrong with a record.
fn broken() -> Vec<Bytes> {
    let newer = RECORD.replace("\"v\":1", "\"v\":3");
    let unacceptable = RECORD.replace("https://", "gopher://");
    assert!(newer != RECORD && unacceptable != RECORD);
    let truncated = &RECORD[..RECORD.len() / 2];
    ["", truncated, &newer, &unacceptable, "null", "{}"]
        .map(|text| Bytes::from(text.to_owned()))
        .to_vec()
}

/// The response to the write of a tombstone is lost, and the store says on the second try that
/// another one wrote.
#[tokio::test]
async fn topic_whose_deletion_had_no_answer_is_deleted() {
    let lost = |is_made: bool| {
        let kind = ErrorKind::PreconditionFailed;
        let fault = if is_made {
            CallFault::After(kind)
        } else {
            CallFault::Before(kind)
        };
        FaultPlan::nth_of(0, fault, |effect| effect.operation == PortOperation::Put)
    };
    for is_made in [true, false] {
        let plan = lost(is_made);
        let store = MemoryStore::default();
        let put = store.put("topics/orders.json", RECORD.into(), PutCondition::Always);
        let etag = put.await.unwrap();
        let faulty = Faulty::new(store.clone(), "state", &plan);
        let record = TopicRecord::parse(RECORD.as_bytes()).unwrap();
        let now = Timestamp::from_millis(1_700_000_000_000);
        let deleted = delete_topic(&faulty, record, etag, now).await;
        assert_eq!(deleted.is_ok(), is_made);
        assert_eq!(
            store.get("topics/orders.json").await.unwrap().is_none(),
            is_made
        );
    }
}
