//! Under pressure: what waits goes on, slower where the queue itself is under pressure, and what
//! has expired always goes.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::{Delivery, SubscriptionName, Timestamp, TopicName};
use posthaste_core::pressure::{
    ByteUsage, DatabaseSpace, PressureLevel, PressureSettings, PressureState, ResourceReadings,
    evaluate_pressure,
};
use posthaste_core::stored::delivery::{parse_delivery, render_delivery};
use posthaste_core::stored::parked::render_parked;
use posthaste_core::stored::{PRESSURE_KEY, layout};
use posthaste_ports::{Clock, ErrorKind, ObjectStore};
use posthaste_testkit::{CallFault, FaultPlan};
use posthaste_wake::{WakeError, WakeReport};

use crate::world::{RUN, World, is_parked_list};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const MARK: &str = "forcing/orders.billing";

/// A delivery as an older program wrote it.
const MESSAGE: &[u8] =
    include_bytes!("../../../../shared/core/src/stored/fixtures/delivery-v1.json");

/// A place where a test puts deliveries.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Parked,
    Held,
}

/// Writes the state that follows from these readings.
async fn press(world: &World, readings: ResourceReadings) {
    let now = world.clock.now();
    let settings = PressureSettings::default();
    let (state, _) = evaluate_pressure(&PressureState::normal(now), &readings, &settings, now);
    assert_ne!(
        state.effective_level(),
        PressureLevel::Normal,
        "{readings:?}"
    );
    world.write(PRESSURE_KEY, state.render().into()).await;
}

/// The delivery queue under this pressure.
fn queue(visible: u64, drain_secs: u64) -> ResourceReadings {
    ResourceReadings {
        visible: Some(visible),
        drain_secs: Some(drain_secs),
        ..ResourceReadings::default()
    }
}

/// A delivery that expires then.
fn message(expires_at: Timestamp) -> Bytes {
    let mut delivery: Delivery = parse_delivery(&Bytes::from_static(MESSAGE)).unwrap();
    delivery
        .events
        .iter_mut()
        .for_each(|entry| entry.expires_at = expires_at);
    render_delivery(&delivery)
}

/// Puts an object of these messages where they wait since a minute ago: due, or with something that
/// has expired.
async fn wait(
    world: &World,
    place: Place,
    subscription: &str,
    id: &str,
    messages: &[Bytes],
) -> String {
    let topic = TopicName::parse("orders").unwrap();
    let name = SubscriptionName::parse(subscription).unwrap();
    let key = match place {
        Place::Parked => layout::parked_key(world.clock.now(), &topic, &name, id),
        Place::Held => layout::held_key(&topic, &name, world.clock.now(), id),
    };
    world.write(&key, render_parked(messages)).await;
    key
}

/// The same, with deliveries that expire in an hour.
async fn wait_for_an_hour(
    world: &World,
    place: Place,
    subscription: &str,
    id: &str,
    deliveries: usize,
) {
    let messages = vec![message(world.clock.now() + HOUR); deliveries];
    wait(world, place, subscription, id, &messages).await;
}

/// One run a minute later, in which time passes whenever it pauses.
async fn run(world: &World) -> WakeReport {
    world.clock.advance(MINUTE);
    world
        .in_time(world.wake.run_until(world.clock.monotonic() + RUN))
        .await
        .unwrap()
}

/// The numbers of parked, forced and held deliveries that a run sent.
fn sent(report: &WakeReport) -> [usize; 3] {
    [report.sent, report.forced_sent, report.held_sent]
}

/// The number of messages that an object has left.
async fn left(world: &World, key: &str) -> usize {
    let object = world.store.get(key).await.unwrap();
    object.map_or(0, |object| {
        posthaste_core::stored::parked::parse_parked(&object.bytes)
            .unwrap()
            .len()
    })
}

#[tokio::test]
async fn full_disk_and_dead_letter_backlog_slow_no_release() {
    let full = ByteUsage {
        used: 9_400 << 20,
        total: 10_000 << 20,
    };
    let disk = ResourceReadings {
        database: Some(DatabaseSpace::Disk(full)),
        ..queue(0, 0)
    };
    let letters = ResourceReadings {
        dead_letters: Some(2_000),
        ..queue(0, 0)
    };
    for readings in [disk, letters] {
        let world = World::new();
        for place in [Place::Parked, Place::Held] {
            wait_for_an_hour(&world, place, "one", "a", 700).await;
        }
        press(&world, readings).await;
        assert_eq!(sent(&run(&world).await), [700, 0, 700], "{readings:?}");
    }
}

#[tokio::test]
async fn at_medium_of_the_drain_time_each_place_sends_a_part_in_a_run() {
    let world = World::new();
    for id in ["a", "b", "c"] {
        wait_for_an_hour(&world, Place::Parked, "one", id, 300).await;
        wait_for_an_hour(&world, Place::Held, "one", id, 200).await;
        wait_for_an_hour(&world, Place::Held, "two", id, 200).await;
    }
    for expected in [[500, 0, 500], [400, 0, 500], [0, 0, 200], [0; 3]] {
        press(&world, queue(100, 60)).await;
        assert_eq!(sent(&run(&world).await), expected);
    }
    assert_eq!(
        world.store.keys("parked/").len() + world.store.keys("held/").len(),
        0
    );
}

/// At High of the queue, one object goes in a run, and each kind of waiting has its turn.
#[tokio::test]
async fn high_queue_pressure_releases_one_object_a_run_in_turn() {
    let world = World::new();
    // The first run begins in an odd minute.
    world.clock.advance(MINUTE);
    let forced = world.clock.now() + 5 * HOUR;
    let topic = TopicName::parse("orders").unwrap();
    let name = SubscriptionName::parse("billing").unwrap();
    for id in ["a", "b", "c"] {
        wait_for_an_hour(&world, Place::Parked, "one", id, 2).await;
        wait_for_an_hour(&world, Place::Held, "one", id, 3).await;
        let key = layout::parked_key(forced, &topic, &name, id);
        world
            .write(&key, render_parked(&vec![message(forced); 4]))
            .await;
    }
    world.write(MARK, Bytes::new()).await;
    let mut went = Vec::new();
    for _ in 0..10 {
        press(&world, queue(10_000, 40)).await;
        let report = run(&world).await;
        assert!(report.was_slowed || report.sent == 0);
        went.push(sent(&report));
    }
    let parked = [2, 0, 0];
    let forced = [0, 4, 0];
    let held = [0, 0, 3];
    let expected = [
        held, parked, forced, parked, held, parked, forced, held, forced, [0; 3],
    ];
    assert_eq!(went, expected);
}

#[tokio::test]
async fn large_object_sends_at_most_two_hundred_a_run_at_high() {
    let world = World::new();
    wait_for_an_hour(&world, Place::Parked, "one", "a", 450).await;
    let mut went = Vec::new();
    for _ in 0..4 {
        press(&world, queue(20_000, 1_000)).await;
        went.push(run(&world).await.sent);
    }
    assert_eq!(went, [200, 200, 50, 0]);
}

#[tokio::test]
async fn expired_deliveries_go_at_high_and_their_neighbours_stay() {
    for place in [Place::Parked, Place::Held] {
        let world = World::new();
        let past = world.clock.now();
        let later = world.clock.now() + HOUR;
        let mut keys = Vec::new();
        for n in 0..20 {
            let messages = [message(later), message(past), message(later)];
            keys.push(wait(&world, place, &format!("s{n:02}"), "x", &messages).await);
        }
        press(&world, queue(20_000, 1_000)).await;
        let report = run(&world).await;
        // One of each, and the two others of the one object that a run may have.
        assert_eq!(report.sent + report.held_sent, 22, "{place:?}");
        let mut objects = Vec::new();
        for key in &keys {
            objects.push(left(&world, key).await);
        }
        objects.sort_unstable();
        assert_eq!(objects, [vec![0], vec![2; 19]].concat(), "{place:?}");
        // Nothing else has expired, so the next run has one object more.
        press(&world, queue(20_000, 1_000)).await;
        let report = run(&world).await;
        assert_eq!(report.sent + report.held_sent, 2, "{place:?}");
    }
}

#[tokio::test]
async fn search_for_expired_continues_where_the_last_run_ended() {
    let world = World::new();
    for n in 0..1_100 {
        wait_for_an_hour(&world, Place::Parked, "one", &format!("{n:04}"), 1).await;
    }
    wait(
        &world,
        Place::Parked,
        "one",
        "last",
        &[message(world.clock.now())],
    )
    .await;
    let mut went = Vec::new();
    for _ in 0..3 {
        press(&world, queue(20_000, 1_000)).await;
        went.push((
            run(&world).await.sent,
            world.lease().await.get("expiredTo").is_some(),
        ));
    }
    assert_eq!(went, [(1, true), (2, false), (1, true)]);
}

/// Parks three deliveries: the last two have expired. Under pressure the first goes by itself.
async fn park_three(world: &World) {
    let past = world.clock.now();
    let later = world.clock.now() + HOUR;
    for (id, expires_at) in [("a", later), ("b", past), ("c", past)] {
        wait(world, Place::Parked, "one", id, &[message(expires_at)]).await;
    }
}

#[tokio::test]
async fn expired_deliveries_refused_by_the_queue_are_tried_next_run() {
    let plan = FaultPlan::at(CallFault::Before(ErrorKind::Other), |_| true);
    let world = World::with(&FaultPlan::none(), &plan);
    park_three(&world).await;
    let mut went = Vec::new();
    for _ in 0..2 {
        press(&world, queue(20_000, 1_000)).await;
        went.push(run(&world).await.sent);
        plan.switch(false);
    }
    assert_eq!(went, [0, 3]);
}

/// A run that cannot list the next page stores how far it looked for expired deliveries.
#[tokio::test]
async fn failed_list_still_stores_how_far_expired_were_searched() {
    let plan = FaultPlan::nth_of(1, CallFault::Before(ErrorKind::Other), is_parked_list);
    let world = World::with(&plan, &FaultPlan::none());
    park_three(&world).await;
    let last = wait(
        &world,
        Place::Parked,
        "one",
        "d",
        &[message(world.clock.now())],
    )
    .await;
    press(&world, queue(20_000, 1_000)).await;
    world.clock.advance(MINUTE);
    let ended = world
        .wake
        .run_until(world.clock.monotonic() + Duration::from_secs(55))
        .await;
    assert!(matches!(ended, Err(WakeError::List(_))), "{ended:?}");
    let reached = world.lease().await["expiredTo"].as_str().map(str::to_owned);
    assert!(reached.is_some_and(|reached| reached < last && reached.contains("/c")));
    assert_eq!(world.store.keys(layout::PARKED), [last]);
}

#[tokio::test]
async fn an_object_that_cannot_be_read_takes_no_other_s_place_at_high() {
    let world = World::new();
    let broken = wait(&world, Place::Parked, "one", "a", &[]).await;
    world.write(&broken, Bytes::from_static(b"{")).await;
    wait_for_an_hour(&world, Place::Parked, "one", "b", 1).await;
    press(&world, queue(20_000, 1_000)).await;
    assert_eq!(run(&world).await.sent, 1);
    assert_eq!(world.store.keys("parked/"), [broken]);
}

/// At High, each subscription's held deliveries have turns beside retries that are always due.
#[tokio::test]
async fn held_deliveries_have_their_turn_beside_due_retries_at_high() {
    let check = async |folders: usize, is_forced: bool| {
        let world = World::new();
        let far = world.clock.now() + 30 * HOUR;
        let topic = TopicName::parse("orders").unwrap();
        let name = SubscriptionName::parse("billing").unwrap();
        for n in 0..60 {
            wait_for_an_hour(&world, Place::Parked, "one", &format!("{n:02}"), 1).await;
            for folder in 0..folders {
                wait_for_an_hour(
                    &world,
                    Place::Held,
                    &format!("s{folder}"),
                    &format!("{n:02}"),
                    1,
                )
                .await;
            }
            if is_forced {
                let key = layout::parked_key(far, &topic, &name, &format!("{n:02}"));
                world.write(&key, render_parked(&[message(far)])).await;
            }
        }
        if is_forced {
            world.write(MARK, Bytes::new()).await;
        }
        for _ in 0..4 * (folders + 2) {
            press(&world, queue(20_000, 1_000)).await;
            run(&world).await;
        }
        for folder in 0..folders {
            let left = world.store.keys(&format!("held/orders.s{folder}/")).len();
            assert!(left < 60, "{folder} of {folders}, forced: {is_forced}");
        }
    };
    for folders in [2, 4] {
        check(folders, false).await;
        check(folders, true).await;
    }
}
