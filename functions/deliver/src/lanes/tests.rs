//! The whole function over both of its queues, and endpoints that take their time.

use bytes::Bytes;
use futures_util::future::select;
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use posthaste_core::circuit::HealthSettings;
use posthaste_core::lane::SLOW_FOR;
use posthaste_core::model::{Delivery, DeliveryLogMode, EventPayload, Link};
use posthaste_core::stored::delivery::{parse_delivery, render_delivery};
use posthaste_core::stored::layout;
use posthaste_ports::{
    BatchResponse, ErrorKind, LastLook, ObjectStore, PortBundle, QueueName, QueueReceiver,
    QueueSender, ReceiveRequest, ReceivedMessage, WebhookAnswer, WebhookClient, WebhookRequest,
    WebhookResponse,
};
use posthaste_services::{DrainMeter, LinkHealth, TopicRegistry};
use posthaste_testkit::memory::{MemoryQueue, MemoryStore};
use posthaste_testkit::{
    CallFault, FaultPlan, Faulty, ManualClock, PortOperation, Recorded, RecordedCalls,
    SeededEntropy, records,
};
use serde_json::json;

use super::*;
use crate::testing::{INVOCATION, Queue, START, Store, event, secs};
use crate::{Deliver, DeliverPorts};

type TimedPorts =
    PortBundle<Queue, Store, MemoryStore, MemoryStore, Timed, ManualClock, SeededEntropy>;

/// The visibility timeout of the queues.
const VISIBILITY: Duration = Duration::from_secs(730);

/// An endpoint that answers 204 after a time, or 503.
#[derive(Debug, Clone)]
struct Timed {
    clock: ManualClock,
    takes: Arc<Mutex<Duration>>,
    status: Arc<Mutex<StatusCode>>,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl WebhookClient for Timed {
    async fn send_if(&self, request: WebhookRequest, _: &impl LastLook) -> WebhookAnswer {
        let takes = *self.takes.lock();
        self.clock.sleep(takes).await;
        let body = String::from_utf8(request.body.concat()).unwrap();
        self.bodies.lock().push(body);
        let response = WebhookResponse {
            status: *self.status.lock(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            body_is_whole: true,
        };
        WebhookAnswer {
            result: Ok(response),
            failure_text: None,
            took: takes,
            late: None,
        }
    }

    fn drop_link(&self, _: &Link) {}
}

/// The topic `orders` with the subscription `billing`, and both delivery queues.
struct World {
    clock: ManualClock,
    calls: RecordedCalls,
    memory: MemoryStore,
    quick: MemoryQueue,
    endpoint: Timed,
}

impl World {
    fn new() -> Self {
        let clock = ManualClock::new(START);
        let memory = MemoryStore::default();
        let settings = records::topic_settings(json!({ "subscriptions": {
            "billing": { "endpoint": { "url": "https://billing.example.com/hooks" } },
        } }));
        let record = records::topic_record(records::topic_name("orders"), settings, START);
        let key = layout::topic_record_key(&records::topic_name("orders"));
        memory.write(&key, record.render());
        let endpoint = Timed {
            clock: clock.clone(),
            takes: Arc::default(),
            status: Arc::new(Mutex::new(StatusCode::NO_CONTENT)),
            bodies: Arc::default(),
        };
        Self {
            clock,
            calls: RecordedCalls::default(),
            memory,
            quick: MemoryQueue::default(),
            endpoint,
        }
    }

    fn slow(&self) -> MemoryQueue {
        self.quick.sibling_queue(QueueName::SlowDeliveries)
    }

    fn deliver(&self) -> Deliver<TimedPorts> {
        self.deliver_with(&FaultPlan::none(), SlowLaneMode::On)
    }

    fn store(&self, label: &'static str, plan: &FaultPlan) -> Store {
        let store = Recorded::new(self.memory.clone(), label, &self.calls);
        Faulty::new(store, label, plan)
    }

    fn deliver_with(&self, plan: &FaultPlan, slow_lane: SlowLaneMode) -> Deliver<TimedPorts> {
        let queue = |name, label| {
            let queue = Recorded::new(self.quick.sibling_queue(name), label, &self.calls);
            Faulty::new(queue, label, plan)
        };
        let topics = self.store("topics", &FaultPlan::none());
        let links = self.store("links", &FaultPlan::none());
        let ports = DeliverPorts {
            queue: queue(QueueName::Deliveries, "quick"),
            slow_queue: Some(queue(QueueName::SlowDeliveries, "slow")),
            records: queue(QueueName::Records, "records"),
            state: self.store("state", plan),
            registry: TopicRegistry::new(topics, self.clock.clone(), Duration::ZERO),
            links: LinkHealth::new(links, self.clock.clone(), HealthSettings::default()),
            webhook: self.endpoint.clone(),
            clock: self.clock.clone(),
            entropy: SeededEntropy::new(7),
            drain: DrainMeter::default(),
        };
        let settings = DeliverSettings {
            slow_lane,
            delivery_log: DeliveryLogMode::Off,
            ..DeliverSettings::default()
        };
        Deliver::new(ports, settings)
    }

    /// Sends deliveries of these events, one each, to the quick queue.
    async fn publish(&self, events: std::ops::Range<usize>) {
        for number in events {
            let payload = EventPayload::Inline(Bytes::from(event(number)));
            let to = (
                records::topic_name("orders"),
                records::subscription_name("billing"),
            );
            let delivery = records::delivery(to, &format!("k{number}"), [payload], START);
            let message = posthaste_ports::OutgoingMessage {
                body: render_delivery(&delivery),
                group: Some(delivery.message_group_id()),
                delay: Duration::ZERO,
            };
            self.quick.send_batch(vec![message]).await.unwrap();
        }
    }

    async fn take(&self, lane: DeliveryLane) -> Vec<ReceivedMessage> {
        let request = ReceiveRequest {
            max: 10,
            visibility: VISIBILITY,
            wait: Duration::ZERO,
        };
        let queue = self.quick.sibling_queue(lane.into());
        queue.receive(request).await.unwrap()
    }

    /// Takes a batch of a lane's queue, and works on it while the clock moves. What is not reported
    /// as failed is deleted, as the mapping does.
    async fn invoke(&self, deliver: &Deliver<TimedPorts>, lane: DeliveryLane) -> usize {
        let batch = self.take(lane).await;
        let receipts: Vec<_> = batch
            .iter()
            .map(|message| (message.id.clone(), message.receipt.clone()))
            .collect();
        let count = batch.len();
        if batch.is_empty() {
            return 0;
        }
        let response = self.handled(deliver, lane, batch).await;
        let done = receipts
            .into_iter()
            .filter(|(id, _)| !response.failures.contains(id));
        for (_, receipt) in done {
            let _ = self
                .quick
                .sibling_queue(lane.into())
                .acknowledge(&receipt)
                .await;
        }
        count
    }

    async fn handled(
        &self,
        deliver: &Deliver<TimedPorts>,
        lane: DeliveryLane,
        batch: Vec<ReceivedMessage>,
    ) -> BatchResponse {
        let deadline = self.clock.monotonic() + INVOCATION;
        let handled = Box::pin(deliver.handle_in(lane, batch, deadline));
        let moving = Box::pin(async {
            loop {
                tokio::task::yield_now().await;
                if self.clock.advance_to_next().is_none() {
                    tokio::task::yield_now().await;
                }
            }
        });
        match select(handled, moving).await {
            futures_util::future::Either::Left((response, _)) => response,
            futures_util::future::Either::Right(((), _)) => unreachable!("it never ends"),
        }
    }

    async fn slow_targets(&self) -> SlowTargets {
        let object = self.memory.get(layout::LANES).await.unwrap();
        object.map_or_else(SlowTargets::default, |object| {
            SlowTargets::parse(&object.bytes).unwrap()
        })
    }

    /// Writes down that `billing` is slow.
    fn make_slow(&self) {
        let late = LaneObservation::Late {
            in_invocation: 2,
            holds_others_up: true,
        };
        let targets = SlowTargets::default().after_observation(late, &billing(), self.clock.now());
        self.memory.write(layout::LANES, targets.unwrap().render());
    }

    fn takes(&self, takes: Duration) {
        *self.endpoint.takes.lock() = takes;
    }

    /// The number of times that each event of these was taken.
    fn taken(&self, events: std::ops::Range<usize>) -> Vec<usize> {
        let bodies = self.endpoint.bodies.lock();
        let of = |number| bodies.iter().filter(|body| **body == event(number)).count();
        events.map(of).collect()
    }

    /// The number of reads and of writes of the slow targets since the last call.
    fn lane_requests(&self) -> (usize, usize) {
        let calls = self.calls.take();
        let of = |operation| {
            let of = calls
                .iter()
                .filter(|call| call.key == layout::LANES && call.operation == operation);
            of.count()
        };
        let reads = of(PortOperation::Get) + of(PortOperation::GetIfChanged);
        (reads, of(PortOperation::Put))
    }
}

fn billing() -> DeliveryTarget {
    DeliveryTarget::parse("https://billing.example.com:443 orders.billing").unwrap()
}

fn bodies(queue: &MemoryQueue) -> Vec<Delivery> {
    let bodies = queue.take_bodies();
    bodies
        .iter()
        .map(|body| parse_delivery(body).unwrap())
        .collect()
}

/// The second late request writes it down, while both are open.
#[tokio::test]
async fn two_late_requests_of_a_batch_make_their_target_slow() {
    let world = World::new();
    world.takes(secs(10));
    world.publish(0..2).await;
    world.invoke(&world.deliver(), DeliveryLane::Quick).await;
    let until = START + secs(2) + SLOW_FOR;
    let targets = world.slow_targets().await;
    assert_eq!(
        targets.slow_at(START).collect::<Vec<_>>(),
        [(&billing(), until)]
    );
    assert_eq!(world.taken(0..2), [1, 1]);
}

#[tokio::test]
async fn quick_requests_and_messages_alone_ask_nothing_of_lanes() {
    let world = World::new();
    let deliver = world.deliver();
    for takes in [0, 10] {
        world.takes(secs(takes));
        world.publish(0..1).await;
        world.invoke(&deliver, DeliveryLane::Quick).await;
    }
    assert_eq!(world.lane_requests(), (0, 0));
    world.takes(secs(0));
    for _ in 0..3 {
        world.publish(0..2).await;
        world.invoke(&deliver, DeliveryLane::Quick).await;
    }
    assert_eq!(world.lane_requests(), (1, 0));
}

#[tokio::test]
async fn message_of_a_slow_target_is_handed_over_as_it_is() {
    let world = World::new();
    world.make_slow();
    world.publish(0..3).await;
    let sent = world.quick.messages();
    world.invoke(&world.deliver(), DeliveryLane::Quick).await;
    assert_eq!(
        (world.slow().messages(), world.quick.messages().len()),
        (sent, 0)
    );
    assert_eq!(world.taken(0..3), [0, 0, 0]);
    world.invoke(&world.deliver(), DeliveryLane::Slow).await;
    assert_eq!(
        (world.taken(0..3), world.slow().messages().len()),
        (vec![1, 1, 1], 0)
    );
}

#[tokio::test]
async fn slow_target_is_delivered_quickly_once_its_time_is_over() {
    let world = World::new();
    world.make_slow();
    world.clock.advance(SLOW_FOR);
    world.publish(0..2).await;
    world.invoke(&world.deliver(), DeliveryLane::Quick).await;
    assert_eq!(
        (world.taken(0..2), world.slow().messages().len()),
        (vec![1, 1], 0)
    );
}

/// The requests of a slow target end in time.
#[tokio::test]
async fn answers_after_half_of_the_time_keep_their_target_slow() {
    for (millis, is_kept) in [(1000, false), (1001, true)] {
        let world = World::new();
        world.make_slow();
        world.clock.advance(SLOW_FOR.saturating_sub(secs(60)));
        world.takes(Duration::from_millis(millis));
        world.publish(0..2).await;
        let deliver = world.deliver();
        world.invoke(&deliver, DeliveryLane::Quick).await;
        world.invoke(&deliver, DeliveryLane::Slow).await;
        assert_eq!(world.taken(0..2), [1, 1]);
        let targets = world.slow_targets().await;
        let is_slow = targets.is_slow(&billing(), START + SLOW_FOR);
        assert_eq!(is_slow, is_kept, "{millis} ms");
    }
}

/// A delivery that is in the slow queue then is made, and retried, from there.
#[tokio::test]
async fn slow_lane_sends_nothing_back_to_the_quick_lane() {
    let world = World::new();
    world.make_slow();
    world.publish(0..2).await;
    let deliver = world.deliver();
    world.invoke(&deliver, DeliveryLane::Quick).await;
    world.clock.advance(SLOW_FOR);
    *world.endpoint.status.lock() = StatusCode::SERVICE_UNAVAILABLE;
    world.invoke(&deliver, DeliveryLane::Slow).await;
    assert_eq!(world.taken(0..2), [1, 1]);
    let attempts: Vec<_> = bodies(&world.slow()).iter().map(|it| it.attempts).collect();
    assert_eq!((attempts, world.quick.messages().len()), (vec![1, 1], 0));
}

#[tokio::test]
async fn retry_to_a_target_that_became_slow_takes_the_slow_lane() {
    let world = World::new();
    let deliver = world.deliver();
    world.publish(0..2).await;
    let batch = world.take(DeliveryLane::Quick).await;
    *world.endpoint.status.lock() = StatusCode::SERVICE_UNAVAILABLE;
    world.takes(secs(10));
    // The targets as they were known at the beginning decide: the next batch knows better.
    world.handled(&deliver, DeliveryLane::Quick, batch).await;
    assert_eq!(
        (world.quick.messages().len(), world.slow().messages().len()),
        (2, 0)
    );
    world.quick.advance(secs(900));
    world.invoke(&deliver, DeliveryLane::Quick).await;
    assert_eq!(
        (world.quick.messages().len(), world.slow().messages().len()),
        (0, 2)
    );
}

#[tokio::test]
async fn drained_lane_is_delivered_and_sent_nothing() {
    let world = World::new();
    world.make_slow();
    world.publish(0..2).await;
    world.invoke(&world.deliver(), DeliveryLane::Quick).await;
    let drained = world.deliver_with(&FaultPlan::none(), SlowLaneMode::Drained);
    *world.endpoint.status.lock() = StatusCode::SERVICE_UNAVAILABLE;
    world.takes(secs(10));
    world.invoke(&drained, DeliveryLane::Slow).await;
    assert_eq!(
        (world.quick.messages().len(), world.slow().messages().len()),
        (2, 0)
    );
    assert_eq!(world.slow_targets().await, SlowTargets::default());
    *world.endpoint.status.lock() = StatusCode::NO_CONTENT;
    world.quick.advance(secs(900));
    world.invoke(&drained, DeliveryLane::Quick).await;
    assert_eq!(
        (world.taken(0..2), world.quick.messages().len()),
        (vec![2; 2], 0)
    );
    // It looked once, and nothing is slow again.
    assert_eq!(world.slow_targets().await, SlowTargets::default());
}

/// Release 0.1.0 has one queue and no lanes.
#[tokio::test]
async fn worker_without_lanes_delivers_beside_one_with_lanes() {
    let world = World::new();
    world.make_slow();
    world.publish(0..4).await;
    let mut without = world.deliver();
    without.lanes = None;
    let batch: Vec<_> = world.take(DeliveryLane::Quick).await;
    let (one, other) = batch.split_at(2);
    let deliver = world.deliver();
    for (worker, part) in [(&deliver, one), (&without, other)] {
        let response = world
            .handled(worker, DeliveryLane::Quick, part.to_vec())
            .await;
        assert_eq!(response.failures, []);
    }
    assert_eq!(world.taken(0..4), [0, 0, 1, 1]);
    world.invoke(&deliver, DeliveryLane::Slow).await;
    assert_eq!(world.taken(0..4), [1, 1, 1, 1]);
}

/// Works on both queues until they are empty, over the time in which messages come again.
async fn finish(world: &World, deliver: &Deliver<TimedPorts>) {
    for _ in 0..6 {
        world.invoke(deliver, DeliveryLane::Quick).await;
        world.invoke(deliver, DeliveryLane::Slow).await;
        world.quick.advance(VISIBILITY);
    }
}

/// The read and the write of the slow targets, the send to the other queue and the delete, each
/// failing before and after it happened, and cut off before and after.
#[tokio::test]
async fn fault_at_any_effect_of_lanes_loses_no_event() {
    let faults = [
        CallFault::Before(ErrorKind::Other),
        CallFault::After(ErrorKind::TimedOut),
        CallFault::HangBefore,
        CallFault::HangAfter,
    ];
    let is_of_lanes = |port: &str, key: &str| key == layout::LANES || port == "quick";
    for fault in faults {
        let is_before = matches!(fault, CallFault::Before(_) | CallFault::HangBefore);
        for number in 0..8 {
            let world = World::new();
            world.takes(secs(10));
            let hit = fault.clone();
            let seen = Mutex::new(0);
            let plan = FaultPlan::by(move |effect| {
                if !is_of_lanes(effect.port, effect.key) {
                    return None;
                }
                let mut seen = seen.lock();
                *seen += 1;
                (*seen == number + 1).then(|| hit.clone())
            });
            let failing = world.deliver_with(&plan, SlowLaneMode::On);
            // The first batch makes the target slow, the second is handed over.
            world.publish(0..2).await;
            world.invoke(&failing, DeliveryLane::Quick).await;
            world.clock.advance(secs(10));
            world.publish(2..4).await;
            world.invoke(&failing, DeliveryLane::Quick).await;
            finish(&world, &world.deliver()).await;
            let taken = world.taken(0..4);
            assert!(
                taken.iter().all(|times| *times >= 1),
                "{fault:?} {number}: {taken:?}"
            );
            assert!(
                !is_before || taken.iter().all(|times| *times == 1),
                "{fault:?} {number}: {taken:?}"
            );
            let left = (world.quick.messages().len(), world.slow().messages().len());
            assert_eq!(left, (0, 0), "{fault:?} {number}");
        }
    }
}

#[test]
fn queue_of_an_invocation_is_that_of_its_lane() {
    let queues = DeliveryQueues {
        quick: Arc::new("quick"),
        slow: Some(Arc::new("slow")),
    };
    let deadlines = crate::deadlines::InvocationDeadlines {
        began: Duration::ZERO,
        end: secs(1),
    };
    let mut invocation = Invocation::new(deadlines, &[]);
    assert_eq!(*queues.for_invocation(&invocation), "quick");
    invocation.lane = DeliveryLane::Slow;
    assert_eq!(*queues.for_invocation(&invocation), "slow");
    let one = DeliveryQueues {
        quick: Arc::new("quick"),
        slow: None,
    };
    assert_eq!(*one.for_invocation(&invocation), "quick");
}
