//! A run ends by itself before its deadline, and says what it sent.

use std::collections::BTreeSet;
use std::time::Duration;

use posthaste_core::stored::layout;
use posthaste_ports::Clock;
use posthaste_testkit::recorded::PortOperation;
use posthaste_testkit::{CallFault, FaultPlan};
use posthaste_wake::{WakeError, WakeReport};

use crate::world::{RUN, World};

/// One run, while the clock goes on whenever nothing else can.
async fn run(world: &World) -> (Result<WakeReport, WakeError>, Duration) {
    let began = world.clock.monotonic();
    let ended = world.in_time(world.wake.run_until(began + RUN)).await;
    (ended, world.clock.monotonic().saturating_sub(began))
}

fn hangs_once(operation: PortOperation, key: &'static str, nth: u64) -> FaultPlan {
    FaultPlan::nth_of(nth, CallFault::HangBefore, move |effect| {
        effect.operation == operation && effect.key.starts_with(key)
    })
}

#[tokio::test]
async fn messages_sent_before_a_hanging_send_are_not_sent_again() {
    // Eighty are under way at once: the second wave's second batch never comes back.
    let world = World::with(
        &FaultPlan::none(),
        &hangs_once(PortOperation::SendBatch, "", 9),
    );
    world.park(Duration::ZERO, "x", 200).await;
    let (ended, took) = run(&world).await;
    assert_eq!((ended.unwrap().left, took < RUN), (1, true), "{took:?}");
    assert_eq!(world.queue.take_bodies().len(), 150);
    let report = world.run_after(Duration::from_secs(5)).await;
    assert_eq!((report.was_busy, report.sent), (false, 120));
    let rest: BTreeSet<_> = world.queue.take_bodies().into_iter().collect();
    assert!(!rest.contains("\"x-0\"".as_bytes()) && rest.contains("\"x-199\"".as_bytes()));
}

#[tokio::test]
async fn a_listing_a_read_or_a_lease_that_hangs_ends_the_run_in_time() {
    for (operation, key) in [
        (PortOperation::List, layout::PARKED),
        (PortOperation::Get, layout::PARKED),
        (PortOperation::Get, layout::WAKE_LEASE),
        (PortOperation::Put, layout::WAKE_LEASE),
    ] {
        let world = World::with(&hangs_once(operation, key, 0), &FaultPlan::none());
        world.park(Duration::ZERO, "x", 1).await;
        let (ended, took) = run(&world).await;
        assert!(
            ended.is_err() && took < RUN,
            "{operation:?} {key}: {took:?}"
        );
        let report = world.run_after(Duration::from_secs(5)).await;
        assert_eq!(
            (report.was_busy, report.sent),
            (false, 1),
            "{operation:?} {key}"
        );
    }
}

#[tokio::test]
async fn lease_that_cannot_be_given_back_still_ends_the_run_in_time() {
    let world = World::with(
        &hangs_once(PortOperation::Put, layout::WAKE_LEASE, 1),
        &FaultPlan::none(),
    );
    world.park(Duration::ZERO, "x", 1).await;
    let (ended, took) = run(&world).await;
    assert_eq!((ended.unwrap().sent, took <= RUN), (1, true), "{took:?}");
}

#[tokio::test]
async fn a_run_with_no_time_left_begins_nothing() {
    let world = World::new();
    world.park(Duration::ZERO, "x", 1).await;
    world.clock.advance(Duration::from_mins(1));
    let report = world
        .wake
        .run_until(world.clock.monotonic() + Duration::from_secs(10))
        .await;
    assert!(matches!(report, Err(WakeError::List(_))), "{report:?}");
    assert_eq!(world.queue.take_bodies().len(), 0);
}
