//! The numbers of waiting events, over a queue that does not tell them.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::delivery_log::{LogRecord, LogResult, RecordKind, WaitTransition};
use posthaste_core::model::Timestamp;
use posthaste_core::stored::{WAITING, layout};
use posthaste_ports::{ErrorKind, OutgoingMessage, QueueName, QueueSender};
use posthaste_testkit::memory::{MemoryQueue, MemoryStore, SetClock};
use posthaste_testkit::records::{subscription_name, topic_name};
use posthaste_testkit::{CallFault, FaultPlan, Faulty, PortOperation, Recorded, RecordedCalls};

use super::*;

const UNTIL: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const QUIET: Duration = Duration::from_mins(5);

/// The time from one look to the next: the schedule.
const LOOK_EVERY: Duration = Duration::from_mins(10);

type State = Recorded<Faulty<MemoryStore>>;

struct World {
    queue: MemoryQueue,
    slow: MemoryQueue,
    store: MemoryStore,
    state: State,
    clock: SetClock,
    calls: RecordedCalls,
    book: WaitingBook<State, SetClock>,
}

impl World {
    fn new() -> Self {
        Self::with(&FaultPlan::none())
    }

    fn with(plan: &FaultPlan) -> Self {
        let store = MemoryStore::like_s3(7);
        let calls = RecordedCalls::default();
        let state = Recorded::new(Faulty::new(store.clone(), "state", plan), "state", &calls);
        let clock = SetClock::default();
        let queue = MemoryQueue::like_sqs();
        Self {
            slow: queue.sibling_queue(QueueName::SlowDeliveries),
            queue,
            book: WaitingBook::new(state.clone(), clock.clone()),
            store,
            state,
            clock,
            calls,
        }
    }

    fn gather(&self, message: &str, subscription: &str, waits: &[WaitTransition]) {
        self.book
            .gather_changes(changes(message, subscription, waits));
    }

    async fn look(&self) {
        let others =
            [QueueName::Records, QueueName::Redrive].map(|name| self.queue.sibling_queue(name));
        let others = others.each_ref();
        self.book
            .compare_if_due(&self.queue, &others)
            .await
            .unwrap();
    }

    /// Two looks that see the same.
    async fn come_to_rest(&self) {
        self.look().await;
        self.clock.advance(LOOK_EVERY);
        self.look().await;
    }

    async fn send(&self, name: QueueName) {
        let message = OutgoingMessage {
            body: Bytes::from_static(b"{}"),
            group: None,
            delay: Duration::from_mins(10),
        };
        let sent = self
            .queue
            .sibling_queue(name)
            .send_batch(vec![message])
            .await;
        sent.unwrap().remove(0).unwrap();
    }

    fn hold(&self, subscription: &str, id: &str) {
        let topic = topic_name("orders");
        let name = subscription_name(subscription);
        let key = layout::held_key(&topic, &name, self.clock.now(), id);
        self.store.write(&key, "");
    }

    fn events(&self) -> WaitingEvents<'_, MemoryQueue, State, SetClock> {
        WaitingEvents {
            deliveries: &self.queue,
            slow_deliveries: Some(&self.slow),
            state: &self.state,
            clock: &self.clock,
            recorded_until: Some(UNTIL),
        }
    }

    /// The figure of a subscription as it is shown: the number of events, and whether there may be
    /// more.
    async fn shown(&self, subscription: &str) -> (u64, bool) {
        let topic = topic_name("orders");
        let name = subscription_name(subscription);
        let names = [name.clone()];
        let one = self.events().count_for(&topic, &names).await.unwrap()[0].waiting_view(None);
        let all = self.events().count_all().await.unwrap();
        let of_all = all.for_subscription(&topic, &name).waiting_view(None);
        assert_eq!(of_all.count, one.count);
        (one.count, one.at_least)
    }
}

fn changes(message: &str, subscription: &str, waits: &[WaitTransition]) -> WaitChanges {
    let record = |wait: &WaitTransition| LogRecord {
        topic: "orders".to_owned(),
        subscription: subscription.to_owned(),
        kind: RecordKind::Attempt,
        result: LogResult::Retry,
        wait: *wait,
        ..LogRecord::default()
    };
    let records: Vec<_> = waits.iter().map(record).collect();
    WaitChanges::from_records(message, records.iter())
}

#[tokio::test]
async fn figure_is_a_lower_bound_until_everything_was_at_rest() {
    let world = World::new();
    assert_eq!(world.shown("a").await, (0, true));
    world.look().await;
    assert_eq!(world.shown("a").await, (0, true));
    world.clock.advance(LOOK_EVERY);
    world.look().await;
    assert_eq!(world.shown("a").await, (0, false));
    world.gather(
        "m-1",
        "a",
        &[WaitTransition::Begins, WaitTransition::Begins],
    );
    world.book.write_gathered().await.unwrap();
    assert_eq!(world.shown("a").await, (2, false));
    let all = world.events().count_all().await.unwrap().total();
    assert_eq!((all.total(), all.recorded_until), (2, Some(UNTIL)));
}

/// Events that were never received have no record.
#[tokio::test]
async fn figure_is_a_lower_bound_while_anything_is_queued() {
    for queue in [QueueName::Deliveries, QueueName::SlowDeliveries] {
        let world = World::new();
        world.come_to_rest().await;
        assert_eq!(world.shown("a").await, (0, false));
        world.send(queue).await;
        assert_eq!(world.shown("a").await, (0, true));
    }
}

/// As after a while in which a program of release 0.1 worked alone.
#[tokio::test]
async fn figure_is_a_lower_bound_once_looks_have_stopped() {
    let world = World::new();
    world.come_to_rest().await;
    world.clock.advance(Duration::from_mins(26));
    assert_eq!(world.shown("a").await, (0, true));
    world.look().await;
    assert_eq!(world.shown("a").await, (0, true));
    world.clock.advance(LOOK_EVERY);
    world.look().await;
    assert_eq!(world.shown("a").await, (0, false));
}

#[tokio::test]
async fn number_below_zero_is_not_exact() {
    let world = World::new();
    world.come_to_rest().await;
    world.gather("m-1", "a", &[WaitTransition::Ends]);
    world.book.write_gathered().await.unwrap();
    assert_eq!(world.shown("a").await, (0, true));
}

/// The store does not take the numbers for long.
#[tokio::test]
async fn messages_beyond_the_bound_become_one_doubtful_sum() {
    let world = World::new();
    world.come_to_rest().await;
    for number in 1..=COUNTED_MESSAGES_MAX {
        let is_full = world.book.gather_changes(changes(
            &format!("m-{number}"),
            "a",
            &[WaitTransition::Begins],
        ));
        assert_eq!(is_full, number == COUNTED_MESSAGES_MAX);
    }
    world.gather("n-1", "a", &[WaitTransition::Begins]);
    let gathered: usize = world.book.unwritten.lock().values().map(Vec::len).sum();
    assert_eq!(gathered, 2);
    world.book.write_gathered().await.unwrap();
    let all = COUNTED_MESSAGES_MAX as u64 + 1;
    assert_eq!(world.shown("a").await, (all, true));
}

#[tokio::test]
async fn part_takes_a_read_and_a_write_a_batch_however_many_messages() {
    let world = World::new();
    for message in 0..200 {
        world.gather(&format!("m-{message}"), "a", &[WaitTransition::Begins]);
        world.gather(&format!("n-{message}"), "b", &[WaitTransition::None]);
    }
    world.book.write_gathered().await.unwrap();
    let count = |operation| world.calls.count(operation);
    assert_eq!(
        (count(PortOperation::Get), count(PortOperation::Put)),
        (1, 1)
    );
    world.book.write_gathered().await.unwrap();
    assert_eq!(
        (count(PortOperation::Get), count(PortOperation::Put)),
        (1, 1)
    );
    assert_eq!(world.shown("a").await.0, 200);
}

/// Another instance writes between the read and the write of this one.
#[tokio::test]
async fn writes_of_two_instances_add_up() {
    let world = World::new();
    let other = WaitingBook::new(world.state.clone(), world.clock.clone());
    for round in 0..8 {
        world.gather(&format!("m-{round}"), "a", &[WaitTransition::Begins]);
        other.gather_changes(changes(
            &format!("n-{round}"),
            "a",
            &[WaitTransition::Begins],
        ));
        let (one, two) = tokio::join!(world.book.write_gathered(), other.write_gathered());
        one.and(two).unwrap();
    }
    assert_eq!(world.shown("a").await.0, 16);
}

/// The store wrote the part, and its response was lost.
#[tokio::test]
async fn write_whose_answer_was_lost_counts_once() {
    let plan = FaultPlan::by(|effect| {
        let is_first = effect.operation == PortOperation::Put && effect.number == 1;
        is_first.then_some(CallFault::After(ErrorKind::TimedOut))
    });
    let world = World::with(&plan);
    world.gather("m-1", "a", &[WaitTransition::Begins]);
    assert!(world.book.write_gathered().await.is_err());
    world.gather("m-2", "a", &[WaitTransition::Begins]);
    world.book.write_gathered().await.unwrap();
    assert_eq!(world.shown("a").await.0, 2);
}

#[tokio::test]
async fn numbers_are_set_right_when_everything_is_at_rest() {
    let world = World::new();
    world.gather(
        "m-1",
        "a",
        &[WaitTransition::Begins, WaitTransition::Begins],
    );
    world.gather("m-2", "b", &[WaitTransition::Ends]);
    world.gather("m-3", "c", &[WaitTransition::Unknown]);
    world.book.write_gathered().await.unwrap();
    world.hold("b", "x.5.1700000000");
    for _ in 0..2 {
        world.look().await;
        assert_eq!(world.shown("a").await, (2, true));
        world.clock.advance(LOOK_EVERY);
    }
    world.look().await;
    assert_eq!(world.shown("a").await, (0, false));
    assert_eq!(world.shown("b").await, (5, false));
    assert_eq!(world.shown("c").await, (0, false));
    // The held events are delivered.
    for (key, _) in world.store.objects_under("held/") {
        world.state.delete(&key).await.unwrap();
    }
    world.gather("m-4", "b", &[WaitTransition::Ends; 5]);
    world.book.write_gathered().await.unwrap();
    assert_eq!(world.shown("b").await, (0, false));
}

/// No record counts them before their first attempt, nor after it.
#[tokio::test]
async fn scheduled_events_are_not_corrected() {
    let world = World::new();
    world.gather(
        "m-1",
        "a",
        &[WaitTransition::Begins, WaitTransition::Begins],
    );
    world.book.write_gathered().await.unwrap();
    world.hold("a", "x.5.1700000000");
    let topic = topic_name("orders");
    let name = subscription_name("a");
    let later = world.clock.now() + Duration::from_hours(2);
    let key = layout::scheduled_key(later, &topic, &name, "r", &[Bytes::from_static(b"{}")]);
    world.store.write(&key, "");
    world.clock.advance(QUIET);
    world.come_to_rest().await;
    assert_eq!(world.shown("a").await, (6, false));
    // They go into the queue, and are delivered at once.
    world.state.delete(&key).await.unwrap();
    world.gather("m-2", "a", &[WaitTransition::None]);
    world.book.write_gathered().await.unwrap();
    assert_eq!(world.shown("a").await, (5, false));
}

/// The first look comes just when an object was released, and its message is in no queue's count.
#[tokio::test]
async fn events_that_move_between_two_looks_are_not_overlooked() {
    let world = World::new();
    world.gather("m-1", "a", &[WaitTransition::Begins; 5]);
    world.book.write_gathered().await.unwrap();
    world.clock.advance(QUIET);
    world.look().await;
    world.hold("a", "x.5.1700000000");
    world.clock.advance(LOOK_EVERY);
    world.look().await;
    assert_eq!(world.shown("a").await, (5, true));
    world.clock.advance(LOOK_EVERY);
    world.look().await;
    assert_eq!(world.shown("a").await, (5, false));
}

#[tokio::test]
async fn message_in_a_queue_puts_the_correction_off() {
    let names = [
        QueueName::Deliveries,
        QueueName::Records,
        QueueName::Redrive,
    ];
    for name in names {
        let world = World::new();
        world.gather("m-1", "a", &[WaitTransition::Begins]);
        world.book.write_gathered().await.unwrap();
        world.clock.advance(QUIET);
        world.send(name).await;
        world.come_to_rest().await;
        assert_eq!(world.shown("a").await, (1, true));
    }
}

/// Objects of 0.1.0 do not say how many events they carry.
#[tokio::test]
async fn object_without_its_number_puts_the_correction_off() {
    let world = World::new();
    world.hold("a", "x");
    world.come_to_rest().await;
    assert_eq!(world.shown("a").await, (1, true));
}

#[tokio::test]
async fn damaged_or_newer_part_leaves_a_lower_bound() {
    let world = World::new();
    world.come_to_rest().await;
    let key = waiting_part_key(waiting_part("orders.a"));
    world.store.write(&key, "{");
    assert_eq!(world.shown("a").await, (0, true));
    world.gather("m-1", "a", &[WaitTransition::Begins]);
    world.book.write_gathered().await.unwrap();
    assert_eq!(world.shown("a").await, (1, true));
    world.store.write(&key, r#"{"v":9}"#);
    assert_eq!(world.shown("a").await, (0, true));
    world.gather("m-2", "a", &[WaitTransition::Begins]);
    assert!(world.book.write_gathered().await.is_err());
}

#[tokio::test]
async fn store_that_fails_leaves_a_lower_bound() {
    let plan = FaultPlan::by(|effect| {
        effect
            .key
            .starts_with(WAITING)
            .then_some(CallFault::Before(ErrorKind::Other))
    });
    let world = World::with(&plan);
    world.hold("a", "x.3.1700000000");
    assert_eq!(world.shown("a").await, (3, true));
}
