//! Each kind of object goes once its time is over, and not before, whatever becomes of the other
//! kinds.

use std::time::Duration;

use posthaste_core::model::{LATE_NOTE_KEPT, REPLAY_KEPT, Timestamp};
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ErrorKind};
use posthaste_testkit::faulty::{CallFault, FaultPlan};
use posthaste_testkit::recorded::PortOperation;

use crate::world::World;

/// On the hour, when they are looked for.
fn on_the_hour(plan: &FaultPlan) -> World {
    let world = World::with(plan, &FaultPlan::none());
    world
        .clock
        .advance_to(Timestamp::parse("2026-03-07T05:00:00Z").unwrap());
    world
}

fn ago(world: &World, age: Duration) -> Timestamp {
    Timestamp::from_millis(world.clock.now().as_millis() - u64::try_from(age.as_millis()).unwrap())
}

/// Writes an object of this age and answers whether a run deletes it.
async fn is_deleted(prefix: &str, key: impl Fn(Timestamp) -> String, age: Duration) -> bool {
    let world = on_the_hour(&FaultPlan::none());
    let written = ago(&world, age);
    world.store.write_at(&key(written), "{}", written);
    world.run_after(Duration::ZERO).await;
    world.store.keys(prefix).is_empty()
}

async fn check(prefix: &str, key: impl Fn(Timestamp) -> String, kept: Duration) {
    let older = [
        (kept.saturating_sub(Duration::from_secs(1)), false),
        (kept + Duration::from_secs(1), true),
    ];
    for (age, expected) in older {
        assert_eq!(
            is_deleted(prefix, &key, age).await,
            expected,
            "{prefix} {age:?}"
        );
    }
}

#[tokio::test]
async fn the_record_of_a_replay_goes_after_a_month() {
    check(
        layout::REPLAYS,
        |at| layout::replay_record_key(&layout::replay_id(at, "0b8b9c5e")),
        REPLAY_KEPT,
    )
    .await;
}

#[tokio::test]
async fn the_note_of_a_late_answer_goes_after_two_days() {
    check(
        layout::LATE,
        |_| "late/orders.billing/k-0".to_owned(),
        LATE_NOTE_KEPT,
    )
    .await;
}

/// A payload is deleted once the day on which it was stored is fifteen days ago.
#[tokio::test]
async fn payload_is_deleted_fifteen_days_after_its_day() {
    for (days, expected) in [(15, false), (16, true)] {
        let age = Duration::from_hours(24 * days);
        assert_eq!(
            is_deleted(layout::PAYLOADS, |at| layout::payload_key(at, "x"), age).await,
            expected,
            "{days}"
        );
    }
}

#[tokio::test]
async fn a_kind_that_cannot_be_listed_holds_up_no_other() {
    for broken in [layout::REPLAYS, layout::LATE, layout::PAYLOADS] {
        let plan = FaultPlan::by(move |effect| {
            let fails = effect.operation == PortOperation::List && effect.key == broken;
            fails.then_some(CallFault::Before(ErrorKind::Other))
        });
        let world = on_the_hour(&plan);
        for key in [
            "replays/20200101T000000Z-x.json",
            "late/orders.billing/k-0",
            "payloads/20200101/x",
        ] {
            world.store.write_at(key, "{}", Timestamp::EPOCH);
        }
        world.run_after(Duration::ZERO).await;
        let left = ["replays/", "late/", "payloads/"].map(|prefix| world.store.keys(prefix).len());
        assert_eq!(left.iter().sum::<usize>(), 1, "{broken}");
        assert_eq!(world.store.keys(broken).len(), 1, "{broken}");
    }
}
