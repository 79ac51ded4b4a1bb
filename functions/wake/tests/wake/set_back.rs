//! A clock that is set back while deliveries are parked.

use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_core::stored::layout;
use posthaste_core::stored::parked::render_parked;
use posthaste_ports::{Clock, ErrorKind, ObjectStore};
use posthaste_testkit::recorded::PortOperation;
use posthaste_testkit::{CallFault, FaultPlan};
use posthaste_wake::WakeReport;

use crate::wiring::PAGE;
use crate::world::{World, is_parked_list, key};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// Parks a delivery for so long, as deliver does.
async fn park(world: &World, wait: Duration, id: &str) {
    let now = world.clock.now();
    let key = key(now + wait, &layout::parked_id(now, id));
    world
        .write(&key, render_parked(&[format!("\"{id}\"").into()]))
        .await;
}

/// For how many minutes each object waits from now, in their order.
fn waits(world: &World) -> Vec<u64> {
    let now = world.clock.now().minute_rounded_down();
    let due = world.store.keys(layout::PARKED);
    due.iter()
        .map(|key| layout::parked_due_minute(key).unwrap().saturating_sub(now))
        .collect()
}

/// A run of a process that was started since, whose clock shows what the other's would.
async fn run_of_another(world: &World) -> WakeReport {
    world.second().run().await.unwrap()
}

#[tokio::test]
async fn each_delivery_waits_from_now_as_long_as_it_was_to_wait() {
    let world = World::new();
    park(&world, 20 * MINUTE, "a").await;
    park(&world, 3 * HOUR, "b").await;
    world.run_after(Duration::ZERO).await;
    world.clock.set_back(6 * HOUR);
    // Written since, it stays where it is.
    park(&world, 2 * HOUR, "c").await;
    assert_eq!(waits(&world), [120, 380, 540]);
    assert_eq!(world.run_after(MINUTE).await.pulled_in, 2);
    assert_eq!(waits(&world), [20, 119, 180]);
    assert_eq!(world.run_after(19 * MINUTE).await.sent, 0);
    assert_eq!(world.run_after(MINUTE).await.sent, 1);
    assert_eq!(world.queue.take_bodies(), ["\"a\""]);
    assert_eq!(world.run_after(160 * MINUTE).await.sent, 2);
    assert_eq!(waits(&world), Vec::<u64>::new());
}

#[tokio::test]
async fn process_started_after_a_clock_set_back_notices_it() {
    let world = World::new();
    park(&world, 20 * MINUTE, "a").await;
    world.run_after(Duration::ZERO).await;
    world.clock.set_back(30 * DAY);
    world.clock.advance(HOUR);
    assert_eq!(run_of_another(&world).await.pulled_in, 1);
    assert_eq!(waits(&world), [20]);
    // Moved once, it stays where it is, also when the clock is set back once more.
    world.clock.advance(MINUTE);
    assert_eq!(
        (run_of_another(&world).await.pulled_in, waits(&world)),
        (0, vec![19])
    );
    world.clock.set_back(HOUR);
    assert_eq!(
        (run_of_another(&world).await.pulled_in, waits(&world)),
        (1, vec![20])
    );
}

#[tokio::test]
async fn times_too_far_ahead_are_found_once_a_day() {
    let world = World::new();
    world.run_after(Duration::ZERO).await;
    world.clock.set_back(MINUTE);
    // By a clock that was ahead between two runs, and by an older program, which did not say when.
    let next_year = world.clock.now() + 365 * DAY;
    for id in [layout::parked_id(next_year, "a"), "b".to_owned()] {
        world
            .write(
                &key(next_year + HOUR, &id),
                render_parked(&["\"x\"".into()]),
            )
            .await;
    }
    assert_eq!(world.run_after(2 * MINUTE).await.pulled_in, 0);
    let midnight = Timestamp::parse("2026-03-08T00:00:00Z").unwrap();
    assert_eq!(
        world
            .run_after(midnight.since(world.clock.now()))
            .await
            .pulled_in,
        2
    );
    assert_eq!(waits(&world), [60, 24 * 60 + 6]);
    assert_eq!(world.run_after(MINUTE).await.pulled_in, 0);
}

#[tokio::test]
async fn unmovable_object_is_tried_again_and_copied_once() {
    let plan = FaultPlan::at(CallFault::Before(ErrorKind::Other), |effect| {
        effect.operation == PortOperation::Delete && effect.key.ends_with("-a.json")
    });
    let world = World::with(&plan, &FaultPlan::none());
    // More than a page of them.
    for n in 0..=PAGE {
        park(&world, HOUR, &format!("{n}")).await;
    }
    park(&world, HOUR, "a").await;
    world.run_after(Duration::ZERO).await;
    world.clock.set_back(6 * HOUR);
    let neighbours = PAGE + 1;
    assert_eq!(world.run_after(MINUTE).await.pulled_in, neighbours);
    // The next copy is durable before the old one goes, and every try finds it.
    for _ in 0..3 {
        assert_eq!(waits(&world).len(), neighbours + 2);
        assert_eq!(world.run_after(MINUTE).await.pulled_in, 0);
    }
    plan.switch(false);
    assert_eq!(world.run_after(MINUTE).await.pulled_in, 1);
    assert!(waits(&world).iter().all(|wait| *wait == 56));
    assert_eq!(world.run_after(HOUR).await.sent, neighbours + 1);
    assert_eq!(waits(&world), Vec::<u64>::new());
}

/// Objects that a scan over several runs could not move are tried again at its end.
#[tokio::test]
async fn long_scan_retries_its_failed_moves_at_its_end() {
    let plan = FaultPlan::nth_of(0, CallFault::Before(ErrorKind::Other), |effect| {
        effect.operation == PortOperation::Get && effect.key.ends_with("-00.json")
    });
    let world = World::with(&plan, &FaultPlan::none());
    // Twenty pages, which are all that a run looks at, and some.
    let in_a_run = 20 * PAGE;
    for n in 0..in_a_run + 2 {
        park(&world, HOUR, &format!("{n:02}")).await;
    }
    world.run_after(Duration::ZERO).await;
    world.clock.set_back(6 * HOUR);
    assert_eq!(world.run_after(MINUTE).await.pulled_in, in_a_run - 1);
    assert_eq!(world.run_after(MINUTE).await.pulled_in, 2);
    assert_eq!(run_of_another(&world).await.pulled_in, 1);
    assert!(waits(&world).iter().all(|wait| *wait == 59));
    assert_eq!(world.lease().await.get("look"), None);
}

#[tokio::test]
async fn failed_scan_is_repeated_by_the_next_run_and_fails_none() {
    let plan = FaultPlan::nth_of(0, CallFault::Before(ErrorKind::TimedOut), is_parked_list);
    plan.switch(false);
    let world = World::with(&plan, &FaultPlan::none());
    park(&world, 20 * MINUTE, "a").await;
    world.run_after(Duration::ZERO).await;
    world.clock.set_back(6 * HOUR);
    plan.switch(true);
    assert_eq!(world.run_after(MINUTE).await.pulled_in, 0);
    assert_eq!(plan.faults(), 1);
    assert_eq!(world.run_after(MINUTE).await.pulled_in, 1);
    assert_eq!(world.lease().await.get("look"), None);
    assert!(world.store.get(layout::WAKE_LEASE).await.unwrap().is_some());
}
