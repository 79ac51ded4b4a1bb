//! The addressees of notices, and notices that cannot be sent.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::api::notice::DisabledNotice;
use posthaste_core::model::{SubscriptionName, Timestamp};
use posthaste_core::stored::delivery::parse_delivery;
use serde_json::{Value, json};

use super::*;
use posthaste_ports::{PutCondition, QueueReceiver, ReceiveRequest};
use posthaste_testkit::memory::{MemoryQueue, MemoryStore, SetClock};
use posthaste_testkit::{CallFault, FaultPlan, Faulty};

#[derive(Debug, Clone)]
struct Zero;

impl Entropy for Zero {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

/// `orders`, whose notices go to `ops`.
struct World {
    state: MemoryStore,
    queue: MemoryQueue,
    clock: SetClock,
}

impl World {
    fn new() -> Self {
        Self {
            state: MemoryStore::default(),
            queue: MemoryQueue::default(),
            clock: SetClock::default(),
        }
    }

    async fn topic(&self, name: &str, settings: Value) {
        let record = json!({
            "v": 1, "name": name, "key1": "a", "key2": "b", "createdAt": 0, "updatedAt": 0,
            "settings": settings,
        });
        self.raw_topic(name, record.to_string()).await;
    }

    async fn raw_topic(&self, name: &str, record: String) {
        let key = format!("topics/{name}.json");
        self.state
            .put(&key, record.into(), PutCondition::Always)
            .await
            .unwrap();
    }

    /// Tells that a subscription of `orders` was disabled; the state bucket and the queue may fail.
    async fn tell(&self, state: &FaultPlan, queue: &FaultPlan) -> Result<(), NoticeError> {
        let registry = TopicRegistry::new(
            Faulty::new(self.state.clone(), "state", state),
            self.clock.clone(),
            Duration::ZERO,
        );
        let payloads = Faulty::new(self.state.clone(), "state", state);
        let deliveries = Faulty::new(self.queue.clone(), "deliveries", queue);
        let fan_out = FanOut {
            deliveries: &deliveries,
            slow: None,
            payloads: &payloads,
            clock: &self.clock,
            entropy: &Zero,
        };
        let topic = TopicName::parse("orders").unwrap();
        let disabled = DisabledNotice {
            topic: &topic,
            subscription: &SubscriptionName::parse("billing").unwrap(),
            reason: "gone",
            since: Timestamp::EPOCH,
        };
        Notifier {
            registry: &registry,
            fan_out,
        }
        .send_about_topic(&topic, &[Notice::Disabled(disabled)])
        .await
    }

    async fn queued(&self) -> Vec<Bytes> {
        let request = ReceiveRequest {
            max: 10,
            visibility: Duration::from_secs(1),
            wait: Duration::ZERO,
        };
        let received = self.queue.receive(request).await.unwrap();
        received.into_iter().map(|message| message.body).collect()
    }
}

fn to_ops() -> Value {
    json!({ "noticesTopic": "Ops" })
}

fn with_pager() -> Value {
    json!({ "subscriptions": { "pager": { "endpoint": { "url": "https://pager.example.com/" } } } })
}

/// The addressee, if there is one, with two topics of these settings.
async fn check(orders: Option<Value>, ops: Option<Value>, expected: &[&str]) {
    let world = World::new();
    for (name, settings) in [("orders", orders), ("ops", ops)] {
        if let Some(settings) = settings {
            world.topic(name, settings).await;
        }
    }
    world
        .tell(&FaultPlan::none(), &FaultPlan::none())
        .await
        .unwrap();
    let delivery = |body: &Bytes| parse_delivery(body).unwrap();
    let deliveries: Vec<_> = world.queued().await.iter().map(delivery).collect();
    let told: Vec<_> = deliveries
        .iter()
        .map(|d| format!("{}.{}", d.topic, d.subscription))
        .collect();
    assert_eq!(told, expected);
    assert!(
        deliveries
            .iter()
            .flat_map(|delivery| &delivery.events)
            .all(|entry| entry.marks == MARKS)
    );
}

#[tokio::test]
async fn the_subscribers_of_the_notices_topic_are_told() {
    check(Some(to_ops()), Some(with_pager()), &["ops.pager"]).await;
}

#[tokio::test]
async fn a_topic_may_be_told_of_itself() {
    let mut settings = with_pager();
    settings["noticesTopic"] = "orders".into();
    check(Some(settings), None, &["orders.pager"]).await;
}

#[tokio::test]
async fn notices_without_an_existing_addressee_go_nowhere() {
    check(None, Some(with_pager()), &[]).await;
    check(Some(json!({})), Some(with_pager()), &[]).await;
    check(Some(to_ops()), None, &[]).await;
    check(Some(to_ops()), Some(json!({})), &[]).await;
}

/// A failure that may work the next time is an error, and one that never will is not.
#[tokio::test]
async fn temporary_failure_is_an_error_and_a_final_one_is_not() {
    for (kind, is_error) in [
        (ErrorKind::Other, true),
        (ErrorKind::TimedOut, true),
        (ErrorKind::Full, true),
        (ErrorKind::Throttled { retry_after: None }, true),
        (ErrorKind::Denied, false),
        (ErrorKind::NotFound, false),
        (ErrorKind::Invalid, false),
    ] {
        let world = World::new();
        world.topic("orders", to_ops()).await;
        world.topic("ops", with_pager()).await;
        let told = world
            .tell(
                &FaultPlan::none(),
                &FaultPlan::by(move |_| Some(CallFault::Before(kind))),
            )
            .await;
        assert_eq!(told.is_err(), is_error, "{kind:?}");
        let told = world
            .tell(
                &FaultPlan::by(move |_| Some(CallFault::Before(kind))),
                &FaultPlan::none(),
            )
            .await;
        assert!(
            matches!(told, Err(NoticeError::Topic(_))),
            "nobody knows who is to be told"
        );
    }
}

#[tokio::test]
async fn a_broken_record_keeps_nobody_waiting() {
    let world = World::new();
    world.raw_topic("orders", "{".to_owned()).await;
    world
        .tell(&FaultPlan::none(), &FaultPlan::none())
        .await
        .unwrap();
    world.topic("orders", to_ops()).await;
    world.raw_topic("ops", "{".to_owned()).await;
    world
        .tell(&FaultPlan::none(), &FaultPlan::none())
        .await
        .unwrap();
    assert!(world.queued().await.is_empty());
}
