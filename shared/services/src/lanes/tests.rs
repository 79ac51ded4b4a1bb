use bytes::Bytes;
use posthaste_core::lane::{EMPTY_LANES_MAX_AGE, SLOW_FOR};
use posthaste_ports::{ErrorKind, PutCondition, QueueName};
use posthaste_testkit::memory::{MemoryQueue, MemoryStore, message};
use posthaste_testkit::{
    CallFault, FaultPlan, Faulty, ManualClock, PortOperation, Recorded, RecordedCalls, records,
};
use serde_json::json;

use super::*;

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// The second late request of an invocation.
const SECOND: LaneObservation = LaneObservation::Late {
    in_invocation: 2,
    holds_others_up: true,
};

type Store = Faulty<Recorded<MemoryStore>>;

/// A state bucket, and processes over it.
struct World {
    clock: ManualClock,
    memory: MemoryStore,
    calls: RecordedCalls,
}

impl World {
    fn new() -> Self {
        Self {
            clock: ManualClock::new(START),
            memory: MemoryStore::default(),
            calls: RecordedCalls::default(),
        }
    }

    fn process(&self) -> SlowTargetCache<Store, ManualClock> {
        self.process_with(&FaultPlan::none())
    }

    fn process_with(&self, plan: &FaultPlan) -> SlowTargetCache<Store, ManualClock> {
        let store = Recorded::new(self.memory.clone(), "state", &self.calls);
        let store = Faulty::new(store, "state", plan);
        SlowTargetCache::new(Arc::new(store), self.clock.clone())
    }

    /// The number of reads and of writes since the last call.
    fn requests(&self) -> (usize, usize) {
        let calls = self.calls.take();
        let count = |kinds: &[PortOperation]| {
            let of = calls.iter().filter(|call| kinds.contains(&call.operation));
            of.count()
        };
        (
            count(&[PortOperation::Get, PortOperation::GetIfChanged]),
            count(&[PortOperation::Put]),
        )
    }

    async fn stored(&self) -> SlowTargets {
        let object = self.memory.get(layout::LANES).await.unwrap();
        object.map_or_else(SlowTargets::default, |object| {
            SlowTargets::parse(&object.bytes).unwrap()
        })
    }
}

fn billing() -> DeliveryTarget {
    DeliveryTarget::parse("https://a.example:443 orders.billing").unwrap()
}

#[tokio::test]
async fn slow_targets_are_read_every_ten_seconds() {
    let world = World::new();
    let one = world.process();
    let other = world.process();
    assert!(one.refreshed_targets().await.is_empty_at(START));
    other.note_slowness(SECOND, &billing()).await;
    assert_eq!(world.requests(), (2, 1));
    for (max_age, reads) in [(EMPTY_LANES_MAX_AGE, (1, 0)), (LANES_MAX_AGE, (1, 0))] {
        world
            .clock
            .advance(max_age.saturating_sub(Duration::from_millis(1)));
        one.refreshed_targets().await;
        assert_eq!(world.requests(), (0, 0));
        world.clock.advance(Duration::from_millis(1));
        assert!(
            one.refreshed_targets()
                .await
                .is_slow(&billing(), world.clock.now())
        );
        assert_eq!(world.requests(), reads);
    }
}

#[tokio::test]
async fn targets_that_cannot_be_read_stay_as_they_are_known() {
    let world = World::new();
    world.process().note_slowness(SECOND, &billing()).await;
    let plan = FaultPlan::nth(1, CallFault::Before(ErrorKind::Other));
    let process = world.process_with(&plan);
    assert!(process.refreshed_targets().await.is_slow(&billing(), START));
    world.clock.advance(LANES_MAX_AGE);
    assert!(process.refreshed_targets().await.is_slow(&billing(), START));
    // Damaged, of a newer program, and gone.
    for bytes in ["{", r#"{"v":9}"#] {
        let put = world
            .memory
            .put(layout::LANES, bytes.into(), PutCondition::Always);
        put.await.unwrap();
        world.clock.advance(LANES_MAX_AGE);
        assert!(
            process.refreshed_targets().await.is_slow(&billing(), START),
            "{bytes}"
        );
    }
    world.memory.delete(layout::LANES).await.unwrap();
    world.clock.advance(LANES_MAX_AGE);
    assert!(!process.refreshed_targets().await.is_slow(&billing(), START));
}

/// Each sees two late requests of the target at the same time.
#[tokio::test]
async fn workers_that_see_the_same_write_it_down_once() {
    let world = World::new();
    let workers = [world.process(), world.process(), world.process()];
    let target = billing();
    let noted = workers
        .iter()
        .map(|worker| worker.note_slowness(SECOND, &target));
    futures_util::future::join_all(noted).await;
    assert_eq!(world.stored().await.count_at(START), 1);
    assert!(
        workers
            .iter()
            .all(|worker| worker.known_targets().is_slow(&billing(), START))
    );
}

#[tokio::test]
async fn worker_asks_the_store_once_for_simultaneous_late_requests() {
    let world = World::new();
    let worker = world.process();
    let target = billing();
    let noted = (0..5).map(|_| worker.note_slowness(SECOND, &target));
    futures_util::future::join_all(noted).await;
    assert_eq!(world.requests(), (1, 1));
}

#[tokio::test]
async fn time_of_a_slow_target_is_written_once_in_half_of_it() {
    let world = World::new();
    let worker = world.process();
    worker.note_slowness(SECOND, &billing()).await;
    world.requests();
    let mut writes = 0;
    for _ in 0..60 {
        world.clock.advance(Duration::from_secs(10));
        worker
            .note_slowness(LaneObservation::SlowAnswer, &billing())
            .await;
        writes += world.requests().1;
    }
    assert_eq!(writes, 3);
    assert!(world.stored().await.is_slow(&billing(), world.clock.now()));
}

#[tokio::test]
async fn answers_of_quick_targets_cost_no_request() {
    let world = World::new();
    let worker = world.process();
    worker
        .note_slowness(LaneObservation::SlowAnswer, &billing())
        .await;
    let alone = LaneObservation::Late {
        in_invocation: 1,
        holds_others_up: false,
    };
    worker.note_slowness(alone, &billing()).await;
    assert_eq!(world.requests(), (0, 0));
}

#[tokio::test]
async fn write_that_fails_is_not_tried_again_for_ten_seconds() {
    for fault in [
        CallFault::Before(ErrorKind::Other),
        CallFault::After(ErrorKind::TimedOut),
    ] {
        let world = World::new();
        let was_written = matches!(fault, CallFault::After(_));
        let plan = FaultPlan::by(move |effect| {
            let is_hit = effect.operation == PortOperation::Put && effect.number < 2;
            is_hit.then(|| fault.clone())
        });
        let worker = world.process_with(&plan);
        worker.note_slowness(SECOND, &billing()).await;
        assert_eq!(world.stored().await.count_at(START) == 1, was_written);
        world.requests();
        worker.note_slowness(SECOND, &billing()).await;
        assert_eq!(world.requests(), (0, 0));
        world.clock.advance(LANES_MAX_AGE);
        worker.note_slowness(SECOND, &billing()).await;
        assert!(world.stored().await.is_slow(&billing(), world.clock.now()));
    }
}

#[tokio::test]
async fn damaged_object_begins_anew_and_a_newer_one_is_left() {
    let world = World::new();
    let put = |text: &'static str| {
        let bytes = Bytes::from_static(text.as_bytes());
        world.memory.put(layout::LANES, bytes, PutCondition::Always)
    };
    put(r#"{"v":9}"#).await.unwrap();
    world.process().note_slowness(SECOND, &billing()).await;
    let left = world.memory.get(layout::LANES).await.unwrap().unwrap();
    assert_eq!(left.bytes, r#"{"v":9}"#);
    put("{").await.unwrap();
    world.process().note_slowness(SECOND, &billing()).await;
    assert_eq!(world.stored().await.count_at(START), 1);
}

/// The slow lane of a world in which `orders.billing` is slow, and the topic `orders`.
async fn slow_lane(world: &World) -> SlowLane<MemoryQueue, Store, ManualClock> {
    world.process().note_slowness(SECOND, &billing()).await;
    let settings = records::topic_settings(json!({ "subscriptions": {
        "billing": { "endpoint": { "url": "https://a.example/hooks" } },
        "crm": { "endpoint": { "url": "https://b.example/hooks" } },
    } }));
    let record = records::topic_record(records::topic_name("orders"), settings, START);
    let key = layout::topic_record_key(&records::topic_name("orders"));
    world.memory.write(&key, record.render());
    SlowLane {
        queue: MemoryQueue::default().sibling_queue(QueueName::SlowDeliveries),
        lanes: world.process(),
    }
}

fn groups(names: &[&str]) -> SlowGroups {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn slow_groups_are_those_of_slow_subscriptions() {
    let world = World::new();
    let lane = slow_lane(&world).await;
    let store = Recorded::new(world.memory.clone(), "topics", &world.calls);
    let store = Faulty::new(store, "topics", &FaultPlan::none());
    let registry = TopicRegistry::new(store, world.clock.clone(), Duration::ZERO);
    let topic = registry.topic(&records::topic_name("orders")).await;
    let topic = topic.unwrap().unwrap();
    assert_eq!(lane.slow_groups(&topic).await, groups(&["orders.billing"]));
    let asked = groups(&["orders.billing", "orders.crm", "users.mail", "none"]);
    assert_eq!(
        lane.slow_among(&registry, asked).await,
        groups(&["orders.billing"])
    );
    let others = groups(&["orders.crm"]);
    assert_eq!(lane.slow_among(&registry, others).await, groups(&[]));
    // When its time is over, no topic is looked up for it.
    world.clock.advance(SLOW_FOR);
    lane.lanes.refreshed_targets().await;
    world.requests();
    assert_eq!(
        lane.slow_among(&registry, groups(&["orders.billing"]))
            .await,
        groups(&[])
    );
    assert_eq!(world.requests(), (0, 0));
}

#[tokio::test]
async fn messages_go_to_their_lanes_and_answers_keep_their_order() {
    let quick = MemoryQueue::default();
    let broken = FaultPlan::nth(0, CallFault::Before(ErrorKind::Full));
    let slow = Faulty::new(
        quick.sibling_queue(QueueName::SlowDeliveries),
        "slow",
        &broken,
    );
    let of = |group: Option<&str>| OutgoingMessage {
        group: group.map(str::to_owned),
        ..message("x")
    };
    let messages = vec![of(Some("orders.crm")), of(Some("orders.billing")), of(None)];
    let slow_groups = groups(&["orders.billing"]);
    let plain = Faulty::new(quick.clone(), "quick", &FaultPlan::none());
    let way = Some((&slow, &slow_groups));
    let sent = send_by_lane(&plain, way, messages.clone()).await;
    let is_sent: Vec<_> = sent.iter().map(Result::is_ok).collect();
    assert_eq!(is_sent, [true, false, true]);
    let sent = send_by_lane(&plain, way, messages).await;
    assert!(sent.iter().all(Result::is_ok));
    let slow_bodies = quick.sibling_queue(QueueName::SlowDeliveries).take_bodies();
    assert_eq!((quick.take_bodies().len(), slow_bodies.len()), (4, 1));
}
