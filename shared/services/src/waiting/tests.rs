//! Waiting events are counted once, wherever they wait.

use bytes::Bytes;
use posthaste_core::model::{Delivery, EventPayload, Timestamp};
use posthaste_core::stored::delivery::render_delivery;
use posthaste_ports::{ErrorKind, OutgoingMessage, QueueSender, ReceiveRequest};
use posthaste_testkit::memory::{MemoryQueue, MemoryStore, SetClock};
use posthaste_testkit::records::{delivery, subscription_name, topic_name};
use posthaste_testkit::{CallFault, FaultPlan, Faulty};

use super::*;

/// The time up to which records are counted.
const UNTIL: Timestamp = Timestamp::from_millis(1_700_000_000_000);

#[derive(Default)]
struct World {
    queue: MemoryQueue,
    state: MemoryStore,
    clock: SetClock,
}

fn accepted(topic: &str, name: &str, events: usize, secs: u64) -> Delivery {
    let payloads = (0..events).map(|_| EventPayload::Inline(Bytes::from_static(b"{}")));
    let at = Timestamp::from_millis(secs * 1000);
    delivery(
        (topic_name(topic), subscription_name(name)),
        "k",
        payloads,
        at,
    )
}

impl World {
    async fn send(&self, delivery: &Delivery, delay_secs: u64) {
        let message = OutgoingMessage {
            body: render_delivery(delivery),
            group: Some(delivery.message_group_id()),
            delay: Duration::from_secs(delay_secs),
        };
        let sent = self.queue.send_batch(vec![message]).await.unwrap();
        assert!(sent.iter().all(Result::is_ok));
    }

    fn park(&self, delivery: &Delivery, due: Timestamp) {
        let id = layout::id_with_carried("x", &[render_delivery(delivery)]);
        let key = layout::parked_key(due, &delivery.topic, &delivery.subscription, &id);
        self.state.write(&key, "");
    }

    fn hold(&self, delivery: &Delivery) {
        let id = layout::id_with_carried("x", &[render_delivery(delivery)]);
        let topic = &delivery.topic;
        let name = &delivery.subscription;
        let key = layout::held_key(topic, name, delivery.expires_first(), &id);
        self.state.write(&key, "");
    }

    fn events(&self) -> WaitingEvents<'_, MemoryQueue, MemoryStore, SetClock> {
        WaitingEvents {
            deliveries: &self.queue,
            slow_deliveries: None,
            state: &self.state,
            clock: &self.clock,
            recorded_until: Some(UNTIL),
        }
    }

    async fn of(&self, name: &str) -> WaitingCount {
        let names = [subscription_name(name)];
        self.events()
            .count_for(&topic_name("orders"), &names)
            .await
            .unwrap()[0]
    }
}

fn at(secs: u64) -> Timestamp {
    Timestamp::from_millis(secs * 1000)
}

/// Events are counted in each place where they wait, and the sum is that of all.
#[tokio::test]
async fn waiting_events_are_counted_everywhere_and_summed() {
    let world = World::default();
    let now = world.clock.now();
    world.send(&accepted("orders", "a", 3, 90), 0).await;
    world.send(&accepted("orders", "a", 10, 80), 60).await;
    world.send(&accepted("Orders", "A", 1, 70), 0).await;
    world.send(&accepted("orders", "b", 5, 60), 0).await;
    world.send(&accepted("parcels", "a", 7, 50), 0).await;
    let request = ReceiveRequest {
        max: 1,
        visibility: Duration::from_secs(30),
        wait: Duration::ZERO,
    };
    let taken = world.queue.receive(request).await.unwrap();
    assert_eq!(taken.len(), 1);
    let due = at((now.minute_rounded_down() + 60) * 60);
    world.park(&accepted("orders", "a", 20, 100), due);
    world.hold(&accepted("orders", "a", 400, 40));
    world.hold(&accepted("parcels", "b", 9, 30));
    let a = world.of("A").await;
    let expected = WaitingCount {
        due: 4 - a.under_way,
        delayed: 10,
        under_way: a.under_way,
        parked: 20,
        held: 400,
        oldest: Some(at(40)),
        next_due: Some(at(60)),
        ..WaitingCount::default()
    };
    assert_eq!(a, expected);
    let all = world.events().count_all().await.unwrap();
    let sum = all.total();
    assert_eq!(
        (sum.due + sum.under_way, sum.delayed, sum.parked, sum.held),
        (16, 10, 20, 409)
    );
    assert_eq!((sum.total(), sum.oldest), (455, Some(at(30))));
    let totals = all.by_group.iter().map(|(of, it)| (&**of, it.total()));
    let totals: Vec<_> = totals.collect();
    let expected = [
        ("orders.a", 434),
        ("orders.b", 5),
        ("parcels.a", 7),
        ("parcels.b", 9),
    ];
    assert_eq!(totals, expected);
    let of_a = all.for_subscription(&topic_name("ORDERS"), &subscription_name("a"));
    // The next attempts are looked up for some subscriptions, not for all.
    assert_eq!((of_a.total(), of_a.oldest), (a.total(), a.oldest));
    assert_eq!(
        all.for_subscription(&topic_name("none"), &subscription_name("a"))
            .total(),
        0
    );
}

#[tokio::test]
async fn objects_of_0_1_0_make_a_count_a_lower_bound() {
    let world = World::default();
    let topic = topic_name("orders");
    let name = subscription_name("a");
    world
        .state
        .write(&layout::held_key(&topic, &name, at(9), "x"), "");
    let parked = layout::parked_key(at(120), &topic, &name, "x");
    world.state.write(&parked, "");
    let a = world.of("a").await;
    assert_eq!((a.held, a.parked, a.is_partial), (1, 1, true));
    assert_eq!((a.oldest, a.next_due), (None, Some(at(120))));
    assert!(world.events().count_all().await.unwrap().total().is_partial);
    assert!(!world.of("b").await.is_partial);
}

#[tokio::test]
async fn a_list_that_fails_is_an_error() {
    let plan = FaultPlan::nth(1, CallFault::Before(ErrorKind::Other));
    let world = World::default();
    let events = WaitingEvents {
        deliveries: &world.queue,
        slow_deliveries: None,
        state: &Faulty::new(world.state.clone(), "state", &plan),
        clock: &world.clock,
        recorded_until: Some(UNTIL),
    };
    let topic = topic_name("orders");
    let names = [subscription_name("a")];
    assert!(events.count_for(&topic, &names).await.is_err());
    let counts = events.count_for(&topic, &names).await.unwrap();
    assert_eq!(counts, [WaitingCount::default()]);
}

/// The count until then is a lower bound.
#[tokio::test]
async fn list_without_time_for_all_is_cut() {
    let world = World::default();
    let topic = topic_name("orders");
    let name = subscription_name("a");
    for index in 0..1_001 {
        let key = layout::held_key(&topic, &name, at(9), &index.to_string());
        world.state.write(&key, "");
    }
    let cut = world.events().count_all_within(Duration::ZERO).await;
    let cut = cut.unwrap();
    assert!(cut.is_cut && cut.total().is_partial);
    assert_eq!(cut.total().held, 1_000);
    let all = world.events().count_all().await.unwrap();
    assert_eq!((all.is_cut, all.total().held), (false, 1_001));
}
