//! The slow lane: what is written of it, and that it bounds nobody.

use posthaste_core::circuit::DeliveryTarget;
use posthaste_core::lane::{EMPTY_LANES_MAX_AGE, LaneObservation, SLOW_FOR, SlowTargets};
use posthaste_core::pressure::SlowLaneState;
use posthaste_core::stored::layout;

use super::*;

/// A world with a slow lane.
fn world() -> World {
    let slow = Counted::default();
    slow.set(0);
    World {
        slow: Some(slow),
        ..World::new()
    }
}

fn state(targets: usize, due: u64) -> SlowLaneState {
    SlowLaneState {
        targets,
        due,
        delayed: 0,
        in_flight: 0,
        places: 1000,
    }
}

/// Writes down that a target is slow.
async fn make_slow(world: &World) {
    let target = DeliveryTarget::parse("https://a.example:443 orders.billing").unwrap();
    let late = LaneObservation::Late {
        in_invocation: 2,
        holds_others_up: true,
    };
    let targets = SlowTargets::default().after_observation(late, &target, world.clock.now());
    let object = targets.unwrap().render();
    let put = world.store.put(layout::LANES, object, PutCondition::Always);
    put.await.unwrap();
}

#[tokio::test]
async fn mark_says_that_targets_are_slow_until_their_time_is_over() {
    let world = world();
    let mut monitor = world.monitor();
    assert_eq!(monitor.poll_once().await.unwrap().slow_lane, None);
    make_slow(&world).await;
    world.clock.advance(EMPTY_LANES_MAX_AGE);
    let seen = monitor.poll_once().await.unwrap();
    assert_eq!(seen.slow_lane, Some(state(1, 0)));
    assert!(seen.has_slow_targets());
    let read = world.reader().state().await.unwrap();
    assert_eq!(read.slow_lane, Some(state(1, 0)));
    world.clock.advance(SLOW_FOR);
    assert_eq!(monitor.poll_once().await.unwrap().slow_lane, None);
}

/// However many messages it has, it is shown and slows nobody.
#[tokio::test]
async fn messages_of_the_slow_lane_press_on_no_producer() {
    let world = world();
    let slow = world.slow.as_ref().unwrap();
    slow.set(1_000_000);
    let mut monitor = world.monitor();
    for _ in 0..40 {
        let seen = monitor.poll_once().await.unwrap();
        assert_eq!(seen.slow_lane, Some(state(0, 1_000_000)));
        assert_eq!(
            (seen.effective_level(), seen.tarpit_ms),
            (PressureLevel::Normal, 0)
        );
        assert!(!seen.has_slow_targets());
        world.clock.advance(POLL);
    }
    // What cannot be counted is as it was.
    *slow.0.lock().unwrap() = None;
    let seen = monitor.poll_once().await.unwrap();
    assert_eq!(seen.slow_lane, Some(state(0, 1_000_000)));
}

/// The mark is needed, and kept fresh, whatever else is watched.
#[tokio::test]
async fn mark_is_written_where_nothing_is_watched() {
    let mut world = world();
    world.settings.enable_resource_monitoring = false;
    let mut monitor = world.monitor();
    let reader = world.reader();
    monitor.poll_once().await.unwrap();
    make_slow(&world).await;
    for minute in 0..5 {
        world.clock.advance(Duration::from_mins(1));
        monitor.poll_once().await.unwrap();
        let read = reader.state().await.unwrap();
        assert_eq!(read.has_slow_targets(), minute < 4);
        assert_eq!(read.at, world.clock.now());
    }
    let puts = world.puts();
    for _ in 0..3 {
        world.clock.advance(Duration::from_mins(1));
        monitor.poll_once().await.unwrap();
    }
    assert_eq!(world.puts(), puts);
}
