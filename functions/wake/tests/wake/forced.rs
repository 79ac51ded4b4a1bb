//! Deliveries that an operator forces: all that is parked for a subscription goes, a bounded part
//! in each run.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::{SubscriptionName, TopicName};
use posthaste_core::stored::layout;
use posthaste_core::stored::parked::render_parked;
use posthaste_ports::{Clock, ErrorKind, ObjectStore};
use posthaste_testkit::recorded::PortOperation;
use posthaste_testkit::{CallFault, FaultPlan};

use crate::world::World;

const HOUR: Duration = Duration::from_hours(1);
const MARK: &str = "forcing/orders.billing";

/// Parks one delivery of a subscription.
async fn park(world: &World, subscription: &str, wait: Duration, id: &str) -> String {
    let topic = TopicName::parse("orders").unwrap();
    let name = SubscriptionName::parse(subscription).unwrap();
    let key = layout::parked_key(world.clock.now() + wait, &topic, &name, id);
    world
        .write(&key, render_parked(&[Bytes::from(format!("\"{id}\""))]))
        .await;
    key
}

#[tokio::test]
async fn all_that_is_parked_for_it_goes_and_nothing_else() {
    let world = World::new();
    let other = park(&world, "other", 5 * HOUR, "other").await;
    for n in 1..=10 {
        park(&world, "billing", n * HOUR, &n.to_string()).await;
    }
    world.write(MARK, Bytes::new()).await;
    let report = world.run_after(Duration::ZERO).await;
    assert_eq!(
        (report.forced_sent, world.queue.take_bodies().len()),
        (10, 10)
    );
    assert_eq!(
        (
            world.store.keys(layout::PARKED),
            world.store.keys(layout::FORCING).len()
        ),
        (vec![other], 0)
    );
}

/// Parked deliveries that are due within a minute are left to the ordinary release.
#[tokio::test]
async fn deliveries_due_within_a_minute_are_left_to_normal_release() {
    let world = World::new();
    for wait in [
        Duration::ZERO,
        Duration::from_mins(1),
        Duration::from_mins(2),
    ] {
        park(&world, "billing", wait, "x").await;
    }
    world.write(MARK, Bytes::new()).await;
    let report = world.run_after(Duration::ZERO).await;
    assert_eq!((report.forced_sent, report.sent), (1, 1));
    assert_eq!(world.run_after(Duration::from_mins(1)).await.sent, 1);
}

#[tokio::test]
async fn a_walk_that_does_not_come_to_the_end_goes_on_in_the_next_run() {
    let world = World::new();
    // A page has three: these are twenty pages and one.
    for n in 0..61 {
        park(&world, "other", 2 * HOUR, &format!("{n:02}")).await;
    }
    park(&world, "billing", 3 * HOUR, "x").await;
    world.write(MARK, Bytes::new()).await;
    assert_eq!(world.run_after(Duration::ZERO).await.forced_sent, 0);
    let mark = world.store.get(MARK).await.unwrap().unwrap();
    assert!(
        std::str::from_utf8(&mark.bytes)
            .unwrap()
            .contains("orders.other/59.json"),
        "{mark:?}"
    );
    assert_eq!(world.run_after(Duration::from_mins(1)).await.forced_sent, 1);
    assert_eq!(world.store.keys(layout::FORCING).len(), 0);
}

#[tokio::test]
async fn objects_pulled_in_behind_a_walk_are_forced_too() {
    let world = World::new();
    let mut others = Vec::new();
    // A page has three: these are twenty pages and one.
    for n in 0..61 {
        others.push(park(&world, "other", 2 * HOUR, &format!("{n:02}")).await);
    }
    park(
        &world,
        "billing",
        3 * HOUR,
        &layout::parked_id(world.clock.now(), "x"),
    )
    .await;
    world.write(MARK, Bytes::new()).await;
    assert_eq!(world.run_after(Duration::ZERO).await.forced_sent, 0);
    // A page less, so that one run looks at all the rest.
    for other in others.iter().take(3) {
        world.store.delete(other).await.unwrap();
    }
    world.clock.set_back(6 * HOUR);
    let report = world.run_after(Duration::from_mins(1)).await;
    assert_eq!((report.pulled_in, report.forced_sent), (1, 1));
    assert_eq!(world.store.keys(layout::FORCING).len(), 0);
}

#[tokio::test]
async fn mark_written_again_meanwhile_stays_for_its_own_walk() {
    let world = World::new();
    park(&world, "billing", 2 * HOUR, "x").await;
    let store = world.store.clone();
    let mark = Bytes::from_static(b"{}");
    world.write(MARK, mark.clone()).await;
    let plan = FaultPlan::by(move |effect| {
        if effect.operation == PortOperation::Delete && effect.key.starts_with(layout::PARKED) {
            store.write(MARK, mark.clone());
        }
        None
    });
    let wake = world.failing(&plan);
    assert_eq!(wake.run().await.unwrap().forced_sent, 1);
    assert_eq!(world.store.keys(layout::FORCING).len(), 1);
    world.run_after(Duration::from_mins(1)).await;
    assert_eq!(world.store.keys(layout::FORCING).len(), 0);
}

#[tokio::test]
async fn deliveries_refused_by_the_queue_are_forced_in_the_next_run() {
    let refuses = FaultPlan::by(|effect| {
        (effect.operation == PortOperation::SendBatch)
            .then_some(CallFault::Before(ErrorKind::Other))
    });
    let world = World::with(&FaultPlan::none(), &refuses);
    for n in 1..=5 {
        park(&world, "billing", n * HOUR, &n.to_string()).await;
    }
    world.write(MARK, Bytes::new()).await;
    assert_eq!(world.run_after(Duration::ZERO).await.forced_sent, 0);
    let report = world.second().run().await.unwrap();
    assert_eq!(
        (report.forced_sent, world.store.keys(layout::FORCING).len()),
        (5, 0)
    );
}
