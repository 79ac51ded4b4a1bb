//! The slow lane: deliveries to slow targets go to a queue of their own, once the pressure says that
//! there are some.

use std::sync::Arc;

use posthaste_core::circuit::DeliveryTarget;
use posthaste_core::lane::{LaneObservation, SLOW_FOR, SlowTargets};
use posthaste_core::model::Timestamp;
use posthaste_core::pressure::{PressureState, SlowLaneState};
use posthaste_core::stored::{PRESSURE_KEY, layout};
use posthaste_ports::{Clock, ErrorKind, QueueName};
use posthaste_publish::router;
use posthaste_services::{SlowLane, SlowTargetCache};
use posthaste_testkit::memory::MemoryQueue;
use posthaste_testkit::{CallFault, FaultPlan, Faulty, Recorded, RecordedCalls};
use serde_json::json;

use crate::world::{KEY, MINIMAL, START, STRUCTURED, World, request, send, subscriptions};

/// A world with the subscriptions `a` and `b`, of which `a` is slow.
async fn world() -> World {
    let world = World::new(subscriptions(&[("a", json!({})), ("b", json!({}))])).await;
    let target = DeliveryTarget::parse("https://a.example.com:443 orders.a").unwrap();
    let late = LaneObservation::Late {
        in_invocation: 2,
        holds_others_up: true,
    };
    let targets = SlowTargets::default().after_observation(late, &target, world.clock.now());
    world.store.write(layout::LANES, targets.unwrap().render());
    world
}

/// Writes a pressure that says how many targets are slow.
fn say_slow(world: &World, targets: usize) {
    let mut state = PressureState::normal(Timestamp::parse(START).unwrap());
    state.slow_lane = (targets > 0).then_some(SlowLaneState {
        targets,
        due: 0,
        delayed: 0,
        in_flight: 0,
        places: 1000,
    });
    world.store.write(PRESSURE_KEY, state.render());
}

/// Publishes an event where the slow queue fails by this plan. Answers the status, how many messages
/// went to the quick queue and to the slow one, and how often the slow targets were read.
async fn published(world: &World, plan: &FaultPlan) -> (u16, [usize; 2], usize) {
    let calls = RecordedCalls::default();
    let store = Recorded::new(world.store.clone(), "state", &calls);
    let over = |queue: MemoryQueue| Faulty::new(queue, "quick", &FaultPlan::none());
    let mut publish = world.publish_over(over, store.clone());
    let slow = world.queue.sibling_queue(QueueName::SlowDeliveries);
    publish.slow_lane = Some(SlowLane {
        queue: Faulty::new(slow.clone(), "slow", plan),
        lanes: SlowTargetCache::new(Arc::new(store), world.clock.clone()),
    });
    let request = request("/topics/orders/events", &[KEY, STRUCTURED], MINIMAL);
    let answer = send(router(Arc::new(publish)), request).await;
    let sent = [&world.queue, &slow].map(|queue: &MemoryQueue| queue.take_bodies().len());
    let is_read = |call: &&posthaste_testkit::recorded::RecordedCall| call.key == layout::LANES;
    (
        answer.status,
        sent,
        calls.all().iter().filter(is_read).count(),
    )
}

#[tokio::test]
async fn deliveries_to_slow_targets_go_to_their_queue() {
    let world = world().await;
    say_slow(&world, 1);
    assert_eq!(
        published(&world, &FaultPlan::none()).await,
        (200, [1, 1], 1)
    );
    world.clock.advance(SLOW_FOR);
    say_slow(&world, 1);
    let (status, sent, _) = published(&world, &FaultPlan::none()).await;
    assert_eq!((status, sent), (200, [2, 0]));
}

/// The look costs no request.
#[tokio::test]
async fn slow_targets_are_not_read_unless_the_pressure_says_so() {
    let world = world().await;
    assert_eq!(
        published(&world, &FaultPlan::none()).await,
        (200, [2, 0], 0)
    );
    say_slow(&world, 0);
    assert_eq!(
        published(&world, &FaultPlan::none()).await,
        (200, [2, 0], 0)
    );
}

/// The producer tries again, and the quick delivery may go out twice, as with any failed publish.
#[tokio::test]
async fn slow_queue_that_does_not_take_it_refuses_the_publish() {
    for fault in [
        CallFault::Before(ErrorKind::Other),
        CallFault::After(ErrorKind::TimedOut),
    ] {
        let world = world().await;
        say_slow(&world, 1);
        let was_sent = usize::from(matches!(fault, CallFault::After(_)));
        let (status, sent, _) = published(&world, &FaultPlan::nth(0, fault)).await;
        assert_eq!((status / 100, sent), (5, [1, was_sent]));
    }
}

#[tokio::test]
async fn slow_targets_that_cannot_be_read_are_quick() {
    let world = world().await;
    say_slow(&world, 1);
    world.store.write(layout::LANES, "{");
    assert_eq!(
        published(&world, &FaultPlan::none()).await,
        (200, [2, 0], 1)
    );
}
