//! Under pressure: what was accepted goes on being delivered, whatever resource is scarce, and
//! expires in time.

use std::time::Duration;

use posthaste_core::api::{StatusState, StatusView};
use posthaste_core::pressure::{
    ByteUsage, DatabaseSpace, PressureSettings, PressureState, ResourceReadings, evaluate_pressure,
};
use posthaste_core::stored::PRESSURE_KEY;
use posthaste_ports::{Clock, QueueName};
use posthaste_simulation::{Answer, World, event};
use serde_json::json;

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// A disk of 10 GB that is used to 94 %, which is Medium for its size.
fn disk_at_medium() -> ResourceReadings {
    let disk = ByteUsage {
        used: 9_400 << 20,
        total: 10_000 << 20,
    };
    ResourceReadings {
        database: Some(DatabaseSpace::Disk(disk)),
        visible: Some(0),
        drain_secs: Some(0),
        ..ResourceReadings::default()
    }
}

/// A queue that is more than full, and drains slowly.
fn queue_at_high() -> ResourceReadings {
    ResourceReadings {
        visible: Some(20_000),
        drain_secs: Some(1_000),
        ..ResourceReadings::default()
    }
}

/// Has the monitor see this.
async fn press(world: &World, readings: ResourceReadings) {
    let now = world.clock.now();
    let (state, _) = evaluate_pressure(
        &PressureState::normal(now),
        &readings,
        &PressureSettings::default(),
        now,
    );
    assert_ne!(
        state.effective_level(),
        posthaste_core::pressure::PressureLevel::Normal
    );
    world
        .write_state(PRESSURE_KEY, String::from_utf8(state.render()).unwrap())
        .await;
}

async fn set(world: &World, state: StatusState) {
    let mut record = world.record().await;
    for settings in record.settings.subscriptions.values_mut() {
        settings.status = Some(StatusView::new(state, None, world.clock.now()));
    }
    world.write_record(record.render()).await;
}

/// A minute under this pressure, and how many requests arrived in it.
async fn minute(world: &World, readings: ResourceReadings) -> usize {
    world.clock.advance(MINUTE);
    press(world, readings).await;
    world.wake().await;
    world.deliver_all().await;
    world.endpoint.take().len()
}

#[tokio::test]
async fn parked_retry_is_delivered_in_time_while_a_disk_is_full() {
    let world = World::new();
    world
        .subscribe(json!({ "retryPolicy": { "schedule": ["PT1H"] } }))
        .await;
    world
        .endpoint
        .answer([Answer::Status(422), Answer::Status(204)]);
    world.publish(&[event("e")], DAY).await;
    world.deliver_all().await;
    assert_eq!(
        (world.endpoint.take().len(), world.parked().await.len()),
        (1, 1)
    );
    world.clock.advance(HOUR + 5 * MINUTE);
    assert_eq!(minute(&world, disk_at_medium()).await, 1);
    assert_eq!(world.parked().await.len(), 0);
}

#[tokio::test]
async fn a_resumed_backlog_goes_out_while_a_disk_is_full() {
    let world = World::new();
    world.subscribe(json!({})).await;
    set(&world, StatusState::Paused).await;
    for n in 0..5 {
        world.publish(&[event(&format!("e{n}"))], DAY).await;
        world.deliver_all().await;
        world.clock.advance(MINUTE);
    }
    assert_eq!(world.held().await.len(), 5);
    set(&world, StatusState::Active).await;
    assert_eq!(minute(&world, disk_at_medium()).await, 5);
}

/// Events that wait for a paused subscription expire in time, whatever is scarce.
#[tokio::test]
async fn events_of_a_paused_subscription_expire_in_time_when_scarce() {
    for readings in [disk_at_medium(), queue_at_high()] {
        let world = World::new();
        world.subscribe(json!({})).await;
        set(&world, StatusState::Paused).await;
        for n in 0..3 {
            world.publish(&[event(&format!("e{n}"))], 10 * MINUTE).await;
            world.deliver_all().await;
            world.clock.advance(MINUTE);
        }
        assert_eq!(world.held().await.len(), 3);
        world.clock.advance(9 * MINUTE);
        assert_eq!(minute(&world, readings).await, 0);
        assert_eq!(world.held().await.len(), 0, "{readings:?}");
        assert_eq!(
            world.delayed(QueueName::DeadLetters).await,
            3,
            "{readings:?}"
        );
    }
}

#[tokio::test]
async fn with_the_queue_at_high_one_object_goes_out_a_minute() {
    let world = World::new();
    world
        .subscribe(json!({ "retryPolicy": { "schedule": ["PT1H"] } }))
        .await;
    world.endpoint.answer([Answer::Status(422)]);
    for n in 0..3 {
        world.publish(&[event(&format!("e{n}"))], DAY).await;
        world.deliver_all().await;
        world.clock.advance(MINUTE);
    }
    assert_eq!(
        (world.endpoint.take().len(), world.parked().await.len()),
        (3, 3)
    );
    world.endpoint.answer([Answer::Status(204)]);
    world.clock.advance(2 * HOUR);
    let mut arrived = Vec::new();
    for _ in 0..4 {
        arrived.push(minute(&world, queue_at_high()).await);
    }
    assert_eq!(arrived, [1, 1, 1, 0]);
}
