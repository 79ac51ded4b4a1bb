//! The state's object: its writers, and failures to read or write it.

use super::*;

#[tokio::test]
async fn two_monitors_at_once_count_the_history_once() {
    // One poll at the start, one at the end, and one every two seconds between: what the two write
    // together.
    for offset_ms in [0, 1, 500, 1000, 1500, 1999] {
        let world = World::new();
        world.machine.0.lock().unwrap().batch_points = Some(2000);
        let mut one = world.monitor();
        let mut other = world.monitor();
        let [before, after] = [offset_ms, 2000 - offset_ms].map(Duration::from_millis);
        for _ in 0..20 {
            one.poll_once().await.unwrap();
            world.clock.advance(before);
            other.poll_once().await.unwrap();
            world.clock.advance(after);
        }
        let polls = one
            .poll_once()
            .await
            .unwrap()
            .resource(Resource::BatchPoints)
            .unwrap()
            .polls;
        assert_eq!(polls, 21, "at an offset of {offset_ms} ms");
    }
}

#[tokio::test]
async fn monitor_that_loses_a_race_takes_the_winning_state() {
    let lost = CallFault::Before(ErrorKind::PreconditionFailed);
    let plan = FaultPlan::by(move |effect| (effect.number == 3).then(|| lost.clone()));
    let world = World::with(&plan);
    let mut monitor = world.monitor();
    let first = monitor.poll_once().await.unwrap();
    world.clock.advance(POLL);
    assert_eq!(monitor.poll_once().await.unwrap(), first);
    assert_eq!((plan.faults(), world.puts()), (1, 2));
}

#[tokio::test]
async fn a_state_that_was_not_written_does_not_stop_the_monitor() {
    let fault = CallFault::After(ErrorKind::TimedOut);
    let plan = FaultPlan::by(move |effect| {
        (effect.operation == PortOperation::Put && effect.number == 1).then(|| fault.clone())
    });
    let world = World::with(&plan);
    world.machine.0.lock().unwrap().batch_points = Some(2000);
    let mut monitor = world.monitor();
    assert!(matches!(
        monitor.poll_once().await,
        Err(MonitorError::Write(_))
    ));
    // The answer was lost, the write was not: the next poll goes on from it.
    world.clock.advance(POLL);
    let state = monitor.poll_once().await.unwrap();
    assert_eq!(state.resource(Resource::BatchPoints).unwrap().polls, 2);
}

#[tokio::test]
async fn a_monitor_started_anew_goes_on_with_the_history() {
    let world = World::new();
    world.machine.0.lock().unwrap().batch_points = Some(2000);
    world.monitor().poll_once().await.unwrap();
    world.clock.advance(POLL);
    let state = world.monitor().poll_once().await.unwrap();
    assert_eq!(
        (
            state.tarpit_ms,
            state.resource(Resource::BatchPoints).unwrap().polls
        ),
        (15_000, 2)
    );
}

#[tokio::test]
async fn garbage_in_the_states_place_counts_as_normal_and_is_replaced() {
    let world = World::new();
    world
        .store
        .put(
            PRESSURE_KEY,
            Bytes::from_static(b"{]"),
            PutCondition::Always,
        )
        .await
        .unwrap();
    let reader = world.reader();
    assert_eq!(reader.state().await, None);
    let written = world.monitor().poll_once().await.unwrap();
    world.clock.advance(POLL);
    assert_eq!(reader.state().await.as_deref(), Some(&written));
}

#[tokio::test]
async fn switched_off_it_writes_normal_once() {
    let mut world = World::new();
    world.machine.0.lock().unwrap().batch_points = Some(2000);
    world.monitor().poll_once().await.unwrap();
    world.settings.enable_resource_monitoring = false;
    let mut monitor = world.monitor();
    let reader = world.reader();
    for _ in 0..5 {
        world.clock.advance(POLL);
        assert_eq!(
            monitor.poll_once().await.unwrap().effective_level(),
            PressureLevel::Normal
        );
    }
    assert_eq!(
        (
            world.puts(),
            reader.admit(ProducerTier::Bulk).await.admission
        ),
        (2, Admission::Accept)
    );
}

#[tokio::test]
async fn a_stopped_monitor_holds_nobody_for_ever() {
    let world = World::new();
    world.machine.0.lock().unwrap().memory = Some(full(95));
    let reader = world.reader();
    world.monitor().poll_once().await.unwrap();
    let mut heard = Vec::new();
    for secs in [0, 7, 893, 1] {
        world.clock.advance(Duration::from_secs(secs));
        heard.push(match reader.admit(ProducerTier::Standard).await.admission {
            Admission::Accept => "accepted",
            Admission::Delay(_) => "delayed",
            Admission::Refuse { .. } => "refused",
        });
    }
    assert_eq!(heard, ["refused", "delayed", "delayed", "accepted"]);
    assert_eq!(reader.state().await, None);
}
