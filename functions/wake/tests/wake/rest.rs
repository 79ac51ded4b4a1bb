//! Rest: minutes in which there can be no work cost two reads.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::stored::{WAKE_LEASE, WAKE_SIGNAL, layout};
use posthaste_ports::{Clock, ErrorKind, ObjectStore};
use posthaste_services::signal_wake;
use posthaste_testkit::{CallFault, FaultPlan, PortOperation};

use crate::world::{RUN, World};

const MINUTE: Duration = Duration::from_mins(1);

/// The minutes in which wake looks for work. It is started once in each of this number of minutes,
/// without a signal.
async fn looks(world: &World, minutes: u64) -> Vec<u64> {
    let mut looks = Vec::new();
    for minute in 1..=minutes {
        if !world.run_unsignalled_after(MINUTE).await.rested {
            looks.push(minute);
        }
    }
    looks
}

/// A world on AWS whose first run has found nothing.
async fn idle() -> World {
    let world = World::new().on_aws();
    assert!(!world.run_unsignalled_after(Duration::ZERO).await.rested);
    world
}

#[tokio::test]
async fn idle_wake_looks_every_fourteenth_minute() {
    let world = idle().await;
    world.store.take_listed(layout::PARKED);
    assert_eq!(looks(&world, 40).await, [14, 28]);
    assert_eq!(world.store.take_listed(layout::PARKED).len(), 2);
}

#[tokio::test]
async fn a_parked_delivery_ends_the_rest_in_its_minute() {
    let world = idle().await;
    world.park(20 * MINUTE, "x", 1).await;
    // The second look sees when it is due. What was found to do is looked for once more.
    assert_eq!(looks(&world, 30).await, [14, 20, 21]);
    assert_eq!(world.queue.take_bodies().len(), 1);
}

#[tokio::test]
async fn a_signal_is_heard_until_all_that_it_announces_was_seen() {
    let world = idle().await;
    world.clock.advance(2 * MINUTE);
    signal_wake(&world.store, world.clock.now()).await.unwrap();
    // Ten minutes and the one that began after them.
    assert_eq!(
        looks(&world, 30).await,
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 25]
    );
}

#[tokio::test]
async fn work_of_every_kind_keeps_wake_from_resting_until_it_is_done() {
    let held =
        layout::held_past("orders.billing").replace("orders.billing0", "orders.billing/x/x.json");
    let kinds = [
        "forcing/orders.billing",
        "telling/orders.billing",
        "replaying/x",
        "temporary/a.b",
        &held,
    ];
    for key in kinds {
        let world = World::new().on_aws();
        world.write(key, Bytes::from_static(b"?")).await;
        assert!(
            !world.run_unsignalled_after(Duration::ZERO).await.rested,
            "{key}"
        );
        assert!(!world.run_unsignalled_after(MINUTE).await.rested, "{key}");
    }
}

/// The lease that a run left which came as far as this key with this list.
async fn leave(world: &World, cursor: &str, key: &str) {
    let began = world.clock.now().as_millis();
    let lease = format!(r#"{{"lapsesAt":0,"beganAt":{began},"{cursor}":"{key}"}}"#);
    world.write(WAKE_LEASE, Bytes::from(lease)).await;
}

#[tokio::test]
async fn list_from_the_middle_that_finds_nothing_is_no_rest() {
    let held =
        layout::held_past("orders.billing").replace("orders.billing0", "orders.billing/x/x.json");
    for (cursor, key, past) in [
        ("heldTo", &*held, "held/z"),
        ("sweptTo", "temporary/a.b", "temporary/z"),
    ] {
        let world = World::new().on_aws();
        world.write(key, Bytes::from_static(b"?")).await;
        leave(&world, cursor, past).await;
        assert_eq!(looks(&world, 3).await, [1, 2, 3], "{cursor}");
        // Where there is nothing before the key either, the next run sees that.
        let world = World::new().on_aws();
        leave(&world, cursor, past).await;
        assert_eq!(looks(&world, 16).await, [1, 2, 16], "{cursor}");
    }
}

/// A failed list, an unreadable signal and a clock that was ahead each prevent a rest.
#[tokio::test]
async fn failed_list_bad_signal_or_wrong_clock_is_no_rest() {
    for prefix in [
        "forcing/",
        "telling/",
        "replaying/",
        "temporary/",
        "held/",
        "links/",
        "parked/",
    ] {
        let plan = FaultPlan::at(CallFault::Before(ErrorKind::Other), move |effect| {
            effect.operation == PortOperation::List && effect.key == prefix
        });
        let world = World::with(&plan, &FaultPlan::none()).on_aws();
        let _ = world.try_run(RUN).await;
        assert!(world.lease().await.get("restUntil").is_none(), "{prefix}");
    }
    let world = idle().await;
    world.write(WAKE_SIGNAL, Bytes::from_static(b"?")).await;
    assert_eq!(looks(&world, 3).await, [1, 2, 3]);
    let world = idle().await;
    world.clock.set_back(MINUTE);
    assert!(!world.run_unsignalled_after(Duration::ZERO).await.rested);
}

#[tokio::test]
async fn a_run_without_time_to_look_gives_no_rest() {
    let world = World::new().on_aws();
    world.try_run(Duration::from_secs(13)).await.unwrap_err();
    assert!(world.lease().await.get("restUntil").is_none());
}

#[tokio::test]
async fn a_rest_is_no_outage_and_an_outage_after_one_is_seen() {
    let world = idle().await;
    looks(&world, 14).await;
    assert!(world.lease().await.get("awakeSince").is_none());
    world.run_unsignalled_after(14 * MINUTE + 11 * MINUTE).await;
    assert!(world.lease().await["awakeSince"].is_number());
}

#[tokio::test]
async fn a_lease_of_an_older_program_gives_no_rest() {
    let world = World::new().on_aws();
    world
        .write(
            WAKE_LEASE,
            Bytes::from_static(br#"{"lapsesAt":0,"beganAt":1,"openFromMinute":1}"#),
        )
        .await;
    assert!(!world.run_unsignalled_after(Duration::ZERO).await.rested);
    assert!(world.store.get(WAKE_LEASE).await.unwrap().is_some());
}

#[tokio::test]
async fn wake_that_deletes_old_objects_looks_in_their_minutes_too() {
    let world = World::new();
    world.run_unsignalled_after(Duration::ZERO).await;
    // It is five past; the minutes of old objects are 0 and 30.
    assert_eq!(looks(&world, 60).await, [14, 25, 39, 53, 55]);
}
