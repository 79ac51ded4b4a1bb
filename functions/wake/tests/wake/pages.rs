//! A page that is shorter than was asked for is not the last.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::Timestamp;
use posthaste_core::stored::layout;
use posthaste_ports::Clock;

use crate::wiring::PAGE;
use crate::world::World;

#[tokio::test]
async fn everything_due_is_released_however_short_the_pages_are() {
    let world = World::new();
    for n in 0..=3 * PAGE {
        world.park(Duration::ZERO, &n.to_string(), 2).await;
    }
    let later = world.park(Duration::from_mins(1), "later", 1).await;
    let report = world.run_after(Duration::ZERO).await;
    assert_eq!((report.released, report.sent, report.left), (10, 20, 0));
    assert_eq!(world.store.keys(layout::PARKED), [later]);
}

#[tokio::test]
async fn every_old_payload_is_deleted_however_short_the_pages_are() {
    for (leaves, expected) in [(false, 1), (true, 12)] {
        let world = World::new();
        world
            .clock
            .advance_to(Timestamp::parse("2026-03-07T05:00:00Z").unwrap());
        let old = (0..11).map(|n| format!("payloads/20200101/{n}"));
        for key in old.chain([layout::payload_key(world.clock.now(), "young")]) {
            world.write(&key, Bytes::from_static(b"{}")).await;
        }
        let wake = if leaves {
            world.second().leaving_payloads()
        } else {
            world.second()
        };
        wake.run().await.unwrap();
        assert_eq!(
            world.store.keys(layout::PAYLOADS).len(),
            expected,
            "{leaves}"
        );
    }
}
