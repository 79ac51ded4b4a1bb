//! The start of a list: past the objects that were released, which a list walks past for days.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::stored::layout;
use posthaste_core::stored::parked::render_parked;
use posthaste_ports::{Clock, ErrorKind};
use posthaste_testkit::recorded::PortOperation;
use posthaste_testkit::{CallFault, FaultPlan};

use crate::world::{World, from, is_parked_list, key};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// A plan, off at first, that makes these operations fail.
fn failing(operation: PortOperation) -> FaultPlan {
    let plan = FaultPlan::at(CallFault::Before(ErrorKind::Other), move |effect| {
        let is_meant = effect.key.is_empty() || effect.key.starts_with(layout::PARKED);
        effect.operation == operation && is_meant
    });
    plan.switch(false);
    plan
}

/// The first list begins at the start, and the next ones ten minutes before the last run.
#[tokio::test]
async fn first_list_begins_at_the_start_later_ones_before_last_run() {
    let world = World::new();
    assert_eq!(world.begun_after(Duration::ZERO).await, [None]);
    assert_eq!(
        world.begun_after(MINUTE).await,
        [Some(from("2026-03-07T03:55:00Z"))]
    );
    assert_eq!(
        world.begun_after(MINUTE).await,
        [Some(from("2026-03-07T03:56:00Z"))]
    );
}

#[tokio::test]
async fn list_begins_ten_minutes_before_the_oldest_object_left() {
    let plan = failing(PortOperation::SendBatch);
    let world = World::with(&FaultPlan::none(), &plan);
    world.run_after(Duration::ZERO).await;
    world.park(20 * MINUTE, "left", 1).await;
    plan.switch(true);
    assert_eq!(world.run_after(HOUR).await.left, 1);
    // It does not go back further with every run that fails.
    for _ in 0..3 {
        assert_eq!(
            world.begun_after(MINUTE).await,
            [Some(from("2026-03-07T04:15:00Z"))]
        );
    }
    plan.switch(false);
    assert_eq!(world.run_after(MINUTE).await.released, 1);
    assert_eq!(
        world.begun_after(MINUTE).await,
        [Some(from("2026-03-07T04:59:00Z"))]
    );
}

#[tokio::test]
async fn a_run_whose_list_fails_in_the_middle_leaves_how_far_it_came() {
    let plan = FaultPlan::nth_of(1, CallFault::Before(ErrorKind::TimedOut), is_parked_list);
    let world = World::with(&plan, &FaultPlan::none());
    for n in 1..=5 {
        world.park(n * 20 * MINUTE, "x", 1).await;
    }
    world.clock.advance(2 * HOUR);
    world.wake.run().await.unwrap_err();
    // The first page held three objects, the last of 05:05.
    assert_eq!(
        world.lease().await["openFromMinute"],
        (world.clock.now().minute_rounded_down() - 60)
    );
    assert_eq!(world.store.keys(layout::PARKED).len(), 2);
    world.wake.run().await.unwrap();
    assert_eq!(world.store.keys(layout::PARKED).len(), 0);
}

#[tokio::test]
async fn an_object_that_cannot_be_understood_holds_no_list_back() {
    let world = World::new();
    world.run_after(Duration::ZERO).await;
    let key = world.park(20 * MINUTE, "broken", 1).await;
    world.write(&key, Bytes::from_static(b"{")).await;
    assert_eq!(world.run_after(HOUR).await.left, 1);
    assert_eq!(
        world.begun_after(MINUTE).await,
        [Some(from("2026-03-07T04:55:00Z"))]
    );
    assert_eq!(world.store.keys(layout::PARKED), [key]);
}

#[tokio::test]
async fn an_object_that_was_written_late_is_released_within_a_day() {
    let world = World::new();
    world.run_after(Duration::ZERO).await;
    let late = key(world.clock.now(), "late");
    world.run_after(HOUR).await;
    world
        .write(&late, render_parked(&[Bytes::from_static(b"\"late\"")]))
        .await;
    assert_eq!(world.run_after(22 * HOUR + 59 * MINUTE).await.released, 0);
    assert_eq!(world.run_after(MINUTE).await.released, 1);
    assert_eq!(world.queue.take_bodies(), ["\"late\""]);
    // Then it is a day again. With the other day, what is due later is looked at as well.
    assert_eq!(world.begun_after(MINUTE).await.len(), 1);
    let later = Some(from("2026-03-09T04:08:00Z"));
    assert_eq!(
        world.begun_after(DAY).await,
        [later, Some(from("2026-03-08T03:56:00Z")), None]
    );
}

/// A scan of the list's start that fails does not fail its run, and is repeated in an hour.
#[tokio::test]
async fn failed_scan_of_the_start_fails_no_run_and_repeats_hourly() {
    let failing = Arc::new(AtomicUsize::new(0));
    let lists_left = Arc::clone(&failing);
    let plan = FaultPlan::by(move |effect| {
        let is_hit = is_parked_list(effect) && lists_left.fetch_sub(1, Ordering::Relaxed) == 1;
        is_hit.then_some(CallFault::Before(ErrorKind::TimedOut))
    });
    let world = World::with(&plan, &FaultPlan::none());
    world.run_after(Duration::ZERO).await;
    // After what is due later, and what is due.
    failing.store(3, Ordering::Relaxed);
    let soon = key(world.clock.now() + DAY, "soon");
    world
        .write(&soon, render_parked(&[Bytes::from_static(b"\"soon\"")]))
        .await;
    assert_eq!(world.run_after(DAY).await.released, 1);
    let scan_at = (world.clock.now() + HOUR).as_millis();
    assert_eq!(world.lease().await["scanAt"], scan_at);
    failing.store(2, Ordering::Relaxed);
    assert_eq!(world.begun_after(HOUR).await.len(), 1);
    assert_eq!(plan.faults(), 2);
}

#[tokio::test]
async fn cursor_of_a_clock_that_was_ahead_hides_no_parked_object() {
    let world = World::new();
    let next_year = world.clock.now() + 365 * DAY;
    let now = world.clock.now();
    let lease = format!(
        r#"{{"lapsesAt":0,"holder":"x","openFromMinute":{},"scanAt":{}}}"#,
        next_year.minute_rounded_down(),
        next_year.as_millis()
    );
    world.write(layout::WAKE_LEASE, Bytes::from(lease)).await;
    world.park(Duration::ZERO, "due", 1).await;
    assert_eq!(
        world.begun_after(Duration::ZERO).await,
        [Some(from("2026-03-07T03:55:00Z")), None]
    );
    assert_eq!(
        world.lease().await["openFromMinute"],
        now.minute_rounded_down()
    );
    assert_eq!(world.queue.take_bodies().len(), 1);
}

/// A lease of an older program, or one that cannot be read, starts from the beginning.
#[tokio::test]
async fn lease_of_an_older_program_starts_from_the_beginning() {
    for lease in [
        r#"{"lapsesAt":0}"#,
        "{",
        r#"{"lapsesAt":0,"openFromMinute":"x"}"#,
    ] {
        let world = World::new();
        world.write(layout::WAKE_LEASE, Bytes::from(lease)).await;
        assert_eq!(world.begun_after(Duration::ZERO).await, [None], "{lease}");
        assert_eq!(
            world.lease().await["openFromMinute"],
            world.clock.now().minute_rounded_down(),
            "{lease}"
        );
    }
}
