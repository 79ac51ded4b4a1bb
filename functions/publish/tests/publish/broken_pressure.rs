//! Answers to producers while the monitor is stopped, and where its state is stale, garbage, from
//! the future or absent.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_core::pressure::{
    ByteUsage, DatabaseSpace, PressureSettings, PressureState, ResourceReadings, evaluate_pressure,
};
use posthaste_core::stored::PRESSURE_KEY;
use posthaste_ports::{Clock, ObjectStore, PutCondition};

use crate::world::{MINIMAL, START, STRUCTURED, World, one};

/// The outcome for a producer.
#[derive(Debug, PartialEq, Eq)]
enum Got {
    Accepted,
    AcceptedAfter(Duration),
    Refused,
}

const FIRST_STEP: Duration = Duration::from_secs(10);

fn at_start() -> Timestamp {
    Timestamp::parse(START).unwrap()
}

/// A state of this moment, in which a full disk refuses everybody.
fn refusing(at: Timestamp) -> Vec<u8> {
    let disk = Some(DatabaseSpace::Disk(ByteUsage {
        used: 99 << 30,
        total: 100 << 30,
    }));
    let readings = ResourceReadings {
        database: disk,
        ..ResourceReadings::default()
    };
    evaluate_pressure(
        &PressureState::normal(at),
        &readings,
        &PressureSettings::default(),
        at,
    )
    .0
    .render()
}

async fn put(world: &World, bytes: Vec<u8>) {
    world
        .store
        .put(PRESSURE_KEY, bytes.into(), PutCondition::Always)
        .await
        .unwrap();
}

/// Publishes one event, and waits where it is held.
async fn publish(world: &World) -> Got {
    let began = world.clock.now();
    let before = world.packed().len();
    let mut answer = pin!(world.post(&[STRUCTURED], MINIMAL));
    let answer = loop {
        match answer
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(answer) => break answer,
            Poll::Pending if world.clock.sleepers() > 0 => {
                assert_eq!(
                    world.packed().len(),
                    before,
                    "held before anything is written"
                );
                world.clock.advance_to_next();
            }
            // The write is a task of its own.
            Poll::Pending => tokio::task::yield_now().await,
        }
    };
    let waited = world.clock.now().since(began);
    assert_eq!(
        world.packed().len() - before,
        usize::from(answer.status == 200)
    );
    match answer.status {
        200 if waited.is_zero() => Got::Accepted,
        200 => Got::AcceptedAfter(waited),
        503 => Got::Refused,
        other => panic!("answered {other}: {}", answer.body),
    }
}

async fn check(object: Option<Vec<u8>>, expected: Got) {
    let world = World::new(one()).await;
    let shown = object
        .as_deref()
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    if let Some(bytes) = object {
        put(&world, bytes).await;
    }
    assert_eq!(publish(&world).await, expected, "{shown:?}");
}

#[tokio::test]
async fn a_state_that_is_absent_or_garbage_holds_nobody() {
    check(Some(refusing(at_start())), Got::Refused).await;
    check(None, Got::Accepted).await;
    let mut endless = PressureState::normal(at_start());
    endless.tarpit_ms = u64::MAX;
    let garbage: [&[u8]; 6] = [b"", b"{", b"null", b"[]", b"\xff\xfe", br#"{"v":2,"at":0}"#];
    for bytes in garbage
        .map(<[u8]>::to_vec)
        .into_iter()
        .chain([endless.render()])
    {
        check(Some(bytes), Got::Accepted).await;
    }
}

#[tokio::test]
async fn a_state_from_the_future_counts_by_how_far_it_is_off() {
    let ahead = |ms| Some(refusing(at_start() + Duration::from_millis(ms)));
    check(ahead(6_000), Got::Refused).await;
    check(ahead(6_001), Got::AcceptedAfter(FIRST_STEP)).await;
    check(ahead(900_000), Got::AcceptedAfter(FIRST_STEP)).await;
    check(ahead(900_001), Got::Accepted).await;
    check(ahead(u64::MAX / 4), Got::Accepted).await;
}

/// A monitor that stops holds no producer forever, and lets no flood in.
#[tokio::test]
async fn stopped_monitor_neither_blocks_forever_nor_lets_floods_in() {
    let world = World::new(one()).await;
    put(&world, refusing(at_start())).await;
    assert_eq!(publish(&world).await, Got::Refused);
    world.clock.advance(Duration::from_millis(6_001));
    // Whoever publishes again and again waits each time.
    for _ in 0..89 {
        assert_eq!(publish(&world).await, Got::AcceptedAfter(FIRST_STEP));
    }
    world.clock.advance(Duration::from_secs(4));
    assert_eq!(publish(&world).await, Got::Accepted);
    // It comes back, and its word counts at once.
    put(&world, refusing(world.clock.now())).await;
    assert_eq!(publish(&world).await, Got::Refused);
}

#[tokio::test]
async fn a_stale_state_delays_nobody_whom_it_did_not_hold() {
    let world = World::new(one()).await;
    put(&world, PressureState::normal(at_start()).render()).await;
    for secs in [0, 7, 600, 600] {
        world.clock.advance(Duration::from_secs(secs));
        assert_eq!(publish(&world).await, Got::Accepted);
    }
}
