//! The lease: of two runs at the same time, one holds it.

use std::time::Duration;

use crate::world::World;

#[tokio::test]
async fn two_runs_in_one_millisecond_leave_one_running() {
    let world = World::new();
    world.park(Duration::ZERO, "x", 3).await;
    let second = world.second();
    let (one, other) = tokio::join!(world.wake.run(), second.run());
    let one = one.unwrap();
    let other = other.unwrap();
    assert_eq!((one.was_busy, other.was_busy), (false, true));
    assert_eq!(world.queue.take_bodies().len(), 3);
}
