//! Messages of the embedded queue, on a clock that is moved by hand.

use bytes::Bytes;
use posthaste_core::model::Timestamp;
use posthaste_local::{EmbeddedStore, LocalOptions, LocalQueue};
use posthaste_ports::{OutgoingMessage, QueueName, QueueSender, ReceiveRequest};
use posthaste_testkit::Faulty;
use posthaste_testkit::faulty::{CallFault, FaultPlan, PortEffect};
use posthaste_testkit::recorded::PortOperation;
use posthaste_testkit::{ManualClock, SeededEntropy};

use super::*;

const URL: &str = "https://sqs.eu-central-1.amazonaws.com/123456789012/shop-deliveries";
const VISIBILITY: Duration = Duration::from_secs(730);
const INVOCATION: Duration = Duration::from_mins(2);

/// Reports the messages with this body, and checks that its deadline leaves the time to rest.
struct Fails(ManualClock, &'static str);

impl BatchHandler for Fails {
    async fn handle(&self, batch: SqsBatch, deadline: Duration) -> BatchResponse {
        assert_eq!(deadline + BACKOFF_TIME, self.0.monotonic() + INVOCATION);
        let failed = batch
            .messages
            .into_iter()
            .filter(|message| message.body == self.1);
        BatchResponse {
            failures: failed.map(|message| message.id).collect(),
        }
    }
}

struct World {
    clock: ManualClock,
    queue: LocalQueue<ManualClock>,
    resting: RedeliveryBackoff<Fails, Faulty<LocalQueue<ManualClock>>, ManualClock>,
    _folder: tempfile::TempDir,
}

impl World {
    async fn with(plan: &FaultPlan) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::new(Timestamp::from_millis(1_000_000));
        let entropy = SeededEntropy::new(1);
        let local = EmbeddedStore::open(
            folder.path(),
            LocalOptions::default(),
            clock.clone(),
            entropy,
        )
        .unwrap();
        let queue = local.queue(QueueName::Deliveries);
        for body in ["good", "bad"] {
            let message = OutgoingMessage {
                body: Bytes::from(body),
                group: None,
                delay: Duration::ZERO,
            };
            assert!(queue.send_batch(vec![message]).await.unwrap()[0].is_ok());
        }
        let source = SourceQueue::new(URL, Faulty::new(queue.clone(), "queue", plan), VISIBILITY);
        let resting =
            RedeliveryBackoff::new(Fails(clock.clone(), "bad"), vec![source], clock.clone());
        Self {
            clock,
            queue,
            resting,
            _folder: folder,
        }
    }

    async fn receive(&self) -> SqsBatch {
        let request = ReceiveRequest {
            max: 10,
            visibility: VISIBILITY,
            wait: Duration::ZERO,
        };
        let messages = self.queue.receive(request).await.unwrap();
        SqsBatch {
            queue: "shop-deliveries".to_owned(),
            messages,
        }
    }

    /// Runs an invocation with these messages and returns the number of those that were handed
    /// back. The others are deleted, as the mapping does.
    async fn invoke(&self, batch: SqsBatch) -> usize {
        let received: Vec<_> = batch
            .messages
            .iter()
            .map(|m| (m.id.clone(), m.receipt.clone()))
            .collect();
        let response = self
            .resting
            .handle(batch, self.clock.monotonic() + INVOCATION)
            .await;
        for (_, receipt) in received
            .iter()
            .filter(|(id, _)| !response.failures.contains(id))
        {
            self.queue.acknowledge(receipt).await.unwrap();
        }
        response.failures.len()
    }

    async fn visible(&self) -> u64 {
        self.queue.counts().await.unwrap().visible
    }

    async fn visible_after(&self, secs: u64) -> u64 {
        self.clock.advance(Duration::from_secs(secs));
        self.visible().await
    }
}

/// Messages that were handed back rest ten seconds, and twice as long each further time.
#[tokio::test]
async fn failed_messages_rest_ten_seconds_then_twice_as_long() {
    let world = World::with(&FaultPlan::none()).await;
    assert_eq!(world.invoke(world.receive().await).await, 1);
    for rest in [10, 20, 40, 80, 160, 320, 640] {
        assert_eq!(
            (
                world.visible_after(rest - 1).await,
                world.visible_after(1).await
            ),
            (0, 1),
            "{rest}"
        );
        assert_eq!(world.invoke(world.receive().await).await, 1);
    }
    assert_eq!(
        (world.visible_after(729).await, world.visible_after(1).await),
        (0, 1)
    );
}

#[tokio::test]
async fn a_queue_that_hangs_does_not_keep_the_answer() {
    let hangs = |effect: PortEffect<'_>| {
        (effect.operation == PortOperation::ChangeVisibility).then_some(CallFault::HangBefore)
    };
    let world = World::with(&FaultPlan::by(hangs)).await;
    let batch = world.receive().await;
    let began = world.clock.monotonic();
    let ticks = async {
        while world.clock.sleepers() == 0 {
            tokio::task::yield_now().await;
        }
        world.clock.advance_to_next();
    };
    assert_eq!(tokio::join!(world.invoke(batch), ticks), (1, ()));
    assert_eq!(world.clock.monotonic(), began + BACKOFF_TIME);
    assert_eq!(world.visible_after(60).await, 0);
}

#[tokio::test]
async fn a_queue_that_fails_does_not_change_the_answer() {
    let fails = |effect: PortEffect<'_>| {
        (effect.operation == PortOperation::ChangeVisibility)
            .then_some(CallFault::Before(ErrorKind::Other))
    };
    let world = World::with(&FaultPlan::by(fails)).await;
    assert_eq!(world.invoke(world.receive().await).await, 1);
}

#[tokio::test]
async fn messages_of_an_unknown_queue_are_handed_back_unchanged() {
    let world = World::with(&FaultPlan::none()).await;
    let batch = SqsBatch {
        queue: "shop-redrive".to_owned(),
        ..world.receive().await
    };
    assert_eq!(world.invoke(batch).await, 1);
    assert_eq!(world.visible_after(60).await, 0);
}
