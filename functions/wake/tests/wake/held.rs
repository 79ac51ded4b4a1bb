//! Held deliveries: released in passes, in turn over the subscriptions, as far as there is room,
//! and by the state of their link.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::circuit::{DeliveryTarget, HealthSettings, Observation, RequestFailure};
use posthaste_core::model::{OutcomeName, SubscriptionName, TopicName};
use posthaste_core::pressure::{
    PressureSettings, PressureState, ResourceReadings, evaluate_pressure,
};
use posthaste_core::stored::parked::render_parked;
use posthaste_core::stored::{PRESSURE_KEY, TopicRecord, layout};
use posthaste_ports::{Clock, ErrorKind};
use posthaste_services::LinkHealth;
use posthaste_testkit::faulty::{CallFault, FaultPlan, PortEffect};
use posthaste_testkit::recorded::PortOperation;
use posthaste_wake::WakeReport;
use serde_json::{Value, json};

use crate::wiring::PAGE;
use crate::world::World;
use posthaste_testkit::memory::MemoryStore;

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

/// The time before its end in which a run begins nothing new.
const LAST: Duration = Duration::from_secs(13);

const LINK: &str = "https://a.example:443";

/// Holds deliveries in one object, of a subscription of the topic `orders`; they expire after
/// `wait`.
async fn hold(
    world: &World,
    subscription: &str,
    wait: Duration,
    id: &str,
    deliveries: usize,
) -> String {
    let topic = TopicName::parse("orders").unwrap();
    let name = SubscriptionName::parse(subscription).unwrap();
    let key = layout::held_key(&topic, &name, world.clock.now() + wait, id);
    let message = |n| Bytes::from(format!(r#""{subscription}-{id}-{n}""#));
    let messages: Vec<_> = (0..deliveries).map(message).collect();
    world.write(&key, render_parked(&messages)).await;
    key
}

/// A topic `orders` of these subscriptions, all of them on one link.
async fn subscribe(world: &World, names: &[&str]) {
    subscribe_at(world, names, json!({ "url": "https://a.example/" })).await;
}

/// The same, of this endpoint.
async fn subscribe_at(world: &World, names: &[&str], endpoint: Value) {
    let now = world.clock.now();
    let subscription = json!({
        "endpoint": endpoint,
        "status": { "state": "Active", "since": now.to_string() },
    });
    let subscriptions: serde_json::Map<String, Value> = names
        .iter()
        .map(|name| ((*name).to_owned(), subscription.clone()))
        .collect();
    let record = json!({
        "v": 1, "name": "Orders", "key1": "a", "key2": "b", "createdAt": now, "updatedAt": now,
        "settings": { "subscriptions": subscriptions },
    });
    let record = TopicRecord::parse(record.to_string().as_bytes()).unwrap();
    world.write("topics/orders.json", record.render()).await;
}

/// Runs once, for at most this number of passes, while the clock goes on whenever the run pauses.
async fn run(world: &World, passes: u64) -> WakeReport {
    let deadline = world.clock.monotonic() + LAST + Duration::from_secs(passes);
    world.in_time(world.wake.run_until(deadline)).await.unwrap()
}

/// Of which subscriptions the messages are that were sent since this was asked last.
fn sent(world: &World) -> Vec<String> {
    let owner = |body: &Bytes| {
        let text = std::str::from_utf8(body)
            .unwrap()
            .trim_matches('"')
            .to_owned();
        text.split('-').next().unwrap().to_owned()
    };
    world.queue.take_bodies().iter().map(owner).collect()
}

fn links(world: &World) -> LinkHealth<MemoryStore, posthaste_testkit::ManualClock> {
    LinkHealth::new(
        world.store.clone(),
        world.clock.clone(),
        HealthSettings::default(),
    )
}

async fn observe(world: &World, observation: Observation) {
    let links = links(world);
    let link = DeliveryTarget::parse(LINK).unwrap();
    links.decide(&link, true).await;
    links.observe(&[(link, observation)]).await.unwrap();
}

/// Makes the link fail until no delivery goes to it for ten minutes.
async fn retry(world: &World) {
    let last = RequestFailure {
        outcome: OutcomeName::SocketError,
        status: None,
    };
    for _ in 0..4 {
        world.clock.advance(MINUTE);
        let began = world.clock.now();
        observe(
            world,
            Observation::Failing {
                failures: 10,
                last,
                began,
            },
        )
        .await;
    }
}

/// Writes the pressure as the monitor does when it finds this number of visible messages.
async fn write_pressure(world: &World, visible: u64) {
    let now = world.clock.now();
    let readings = ResourceReadings {
        visible: Some(visible),
        drain_secs: Some(0),
        ..ResourceReadings::default()
    };
    let before = PressureState::normal(now);
    let (state, _) = evaluate_pressure(&before, &readings, &PressureSettings::default(), now);
    world.write(PRESSURE_KEY, state.render().into()).await;
}

#[tokio::test]
async fn subscriptions_take_turns_within_their_part_of_a_pass() {
    let world = World::new();
    for n in 0..8 {
        hold(&world, "one", HOUR, &n.to_string(), 150).await;
    }
    hold(&world, "two", HOUR, "x", 30).await;
    let report = run(&world, 2).await;
    let sent = sent(&world);
    let of = |name: &str, pass: &[String]| pass.iter().filter(|owner| *owner == name).count();
    let (first, second) = sent.split_at(230);
    assert_eq!((of("one", first), of("two", first)), (200, 30));
    assert_eq!(
        (of("one", second), of("two", second), report.held_sent),
        (200, 0, 430)
    );
}

/// A hundred thousand deliveries go in order of age, in twelve runs and with few requests.
#[tokio::test]
async fn hundred_thousand_deliveries_go_by_age_in_twelve_runs() {
    let calls: Arc<[AtomicU64; 4]> = Arc::default();
    let counted = Arc::clone(&calls);
    let plan = FaultPlan::by(move |effect| {
        let index: Option<usize> = match effect.operation {
            PortOperation::Get if effect.key.starts_with(layout::HELD) => Some(0),
            PortOperation::Delete => Some(1),
            PortOperation::Put if effect.key.starts_with(layout::HELD) => Some(2),
            PortOperation::SendBatch => Some(3),
            _ => None,
        };
        if let Some(index) = index {
            counted[index].fetch_add(1, Ordering::Relaxed);
        }
        None
    });
    let world = World::with(&plan, &plan);
    for n in 0..500 {
        hold(&world, "one", HOUR + n * MINUTE, &format!("{n:03}"), 200).await;
    }
    let mut runs = 0;
    while !world.store.keys(layout::HELD).is_empty() {
        runs += 1;
        assert!(run(&world, 42).await.held_sent <= 42 * 200);
        // The time that a run is not at work.
        world.clock.advance(Duration::from_secs(18));
    }
    let bodies = world.queue.take_bodies();
    let objects: Vec<_> = bodies
        .chunks(200)
        .map(|pass| pass.iter().map(|body| body.slice(..8)).max())
        .collect();
    assert_eq!((bodies.len(), objects.is_sorted()), (100_000, true));
    let [gets, deletes, puts, sends] =
        [0, 1, 2, 3].map(|index: usize| calls[index].load(Ordering::Relaxed));
    assert_eq!(
        (runs, gets, deletes, puts, sends),
        (12, 500, 500, 0, 10_000)
    );
}

/// The delivery that expires first goes first, and an object sent in part keeps the rest.
#[tokio::test]
async fn first_expiry_goes_first_and_a_partial_object_keeps_the_rest() {
    let world = World::new();
    let late = hold(&world, "one", 2 * HOUR, "late", 150).await;
    hold(&world, "one", HOUR, "soon", 150).await;
    run(&world, 1).await;
    let bodies = world.queue.take_bodies();
    assert!(
        bodies[..150]
            .iter()
            .all(|body| body.starts_with(b"\"one-soon"))
    );
    assert_eq!(
        (bodies.len(), world.store.keys(layout::HELD)),
        (200, vec![late])
    );
    run(&world, 1).await;
    let bodies = world.queue.take_bodies();
    assert_eq!(
        (bodies.len(), &bodies[0][..]),
        (100, &b"\"one-late-50\""[..])
    );
}

#[tokio::test]
async fn folders_and_objects_are_all_found_with_short_pages() {
    let world = World::new();
    for subscription in ["a", "a-b", "ab", "b"] {
        for n in 0..7 {
            hold(&world, subscription, HOUR, &n.to_string(), 2).await;
        }
    }
    let report = run(&world, 1).await;
    assert_eq!((report.held_sent, report.held_left), (56, 0));
    assert_eq!(world.store.keys(layout::HELD), Vec::<String>::new());
}

#[tokio::test]
async fn run_that_cannot_see_all_folders_leaves_the_cursor() {
    let world = World::new();
    for n in 0..601 {
        hold(&world, &format!("s{n:03}"), HOUR, "x", 1).await;
    }
    assert_eq!(run(&world, 5).await.held_sent, 600);
    assert_eq!(world.lease().await["heldTo"], "held/orders.s5990");
    assert_eq!(run(&world, 5).await.held_sent, 1);
    assert_eq!(world.lease().await["heldTo"], Value::Null);
}

/// Folders found before a failed page have their turn, and the next run begins with that page.
#[tokio::test]
async fn folders_before_a_failed_page_have_their_turn() {
    for page in 0..4 {
        let is_list =
            |e: PortEffect<'_>| e.operation == PortOperation::List && e.key == layout::HELD;
        let fault = CallFault::Before(ErrorKind::Throttled { retry_after: None });
        let fails = FaultPlan::nth_of(page as u64, fault, is_list);
        let world = World::with(&fails, &FaultPlan::none());
        for n in 0..10 {
            hold(&world, &format!("s{n}"), HOUR, "x", 1).await;
        }
        assert_eq!(run(&world, 5).await.held_sent, page * PAGE);
        let after = (page > 0).then(|| format!("held/orders.s{}0", page * PAGE - 1));
        assert_eq!(world.lease().await["heldTo"], json!(after));
        assert_eq!(
            (run(&world, 5).await.held_sent, fails.faults()),
            (10 - page * PAGE, 1)
        );
        assert_eq!(world.lease().await["heldTo"], Value::Null);
    }
}

#[tokio::test]
async fn released_deliveries_do_not_exceed_the_room_in_the_queue() {
    let check = async |visible, expected| {
        let world = World::new();
        for n in 0..10 {
            hold(&world, &format!("s{n}"), HOUR, "x", 200).await;
        }
        write_pressure(&world, visible).await;
        assert_eq!(run(&world, 4).await.held_sent, expected, "{visible}");
    };
    check(0, 1_000).await;
    check(700, 300).await;
    check(3_000, 50).await;
}

#[tokio::test]
async fn stopped_process_releases_no_held_delivery() {
    let world = World::new();
    hold(&world, "one", HOUR, "x", 1).await;
    world.wake.stop();
    assert_eq!(run(&world, 5).await.held_sent, 0);
    assert_eq!(world.second().run().await.unwrap().held_sent, 1);
}

#[tokio::test]
async fn an_object_that_cannot_be_understood_stays_and_keeps_no_other() {
    let world = World::new();
    let broken = hold(&world, "one", HOUR, "broken", 1).await;
    world.write(&broken, Bytes::from_static(b"{")).await;
    hold(&world, "one", 2 * HOUR, "x", 3).await;
    world.write("held/foreign", Bytes::new()).await;
    let report = run(&world, 3).await;
    assert_eq!((report.held_sent, report.held_left), (3, 1));
    assert_eq!(
        world.store.keys(layout::HELD),
        ["held/foreign".to_owned(), broken]
    );
}

#[tokio::test]
async fn a_queue_that_takes_nothing_ends_it_and_the_next_run_goes_on() {
    let refuses = FaultPlan::by(|effect| {
        (effect.operation == PortOperation::SendBatch)
            .then_some(CallFault::Before(ErrorKind::Other))
    });
    let world = World::with(&FaultPlan::none(), &refuses);
    for n in 0..20 {
        hold(&world, &format!("s{n:02}"), HOUR, "x", 1).await;
    }
    let report = run(&world, 5).await;
    // Three have a turn at once, which is what a pass has room for.
    assert_eq!(
        (
            report.held_sent,
            report.held_left,
            world.queue.take_bodies().len()
        ),
        (0, 3, 0)
    );
    assert_eq!(world.second().run().await.unwrap().held_sent, 20);
}

#[tokio::test]
async fn while_its_link_is_left_alone_only_what_expires_goes() {
    let world = World::new();
    subscribe(&world, &["one"]).await;
    hold(&world, "one", 5 * MINUTE, "soon", 2).await;
    hold(&world, "one", HOUR, "x", 5).await;
    retry(&world).await;
    assert_eq!(run(&world, 3).await.held_sent, 0);
    world.clock.advance(MINUTE);
    assert_eq!(run(&world, 3).await.held_sent, 2);
    assert_eq!(sent(&world).len(), 2);
}

/// A link whose hold is over is probed with one delivery of all that wait for it.
#[tokio::test]
async fn link_after_its_hold_is_probed_with_one_delivery() {
    let world = World::new();
    subscribe(&world, &["one", "two"]).await;
    for subscription in ["one", "two"] {
        hold(&world, subscription, HOUR, "x", 5).await;
    }
    retry(&world).await;
    world.clock.advance(10 * MINUTE);
    for _ in 0..2 {
        assert_eq!(run(&world, 3).await.held_sent, 1);
    }
    // Somebody has taken the right to the probe.
    let target = DeliveryTarget::parse(LINK).unwrap();
    assert!(
        links(&world)
            .claim_probe(&target, "somebody")
            .await
            .unwrap()
            .is_some()
    );
    world.clock.advance(Duration::from_secs(5));
    assert_eq!(run(&world, 3).await.held_sent, 0);
}

#[tokio::test]
async fn deliveries_to_a_recovering_link_go_little_by_little() {
    let check = async |ago_secs, passes, expected| {
        let world = World::new();
        subscribe(&world, &["one", "two"]).await;
        for subscription in ["one", "two"] {
            hold(&world, subscription, HOUR, "x", 200).await;
        }
        retry(&world).await;
        observe(&world, Observation::Succeeded).await;
        world.clock.advance(Duration::from_secs(ago_secs));
        assert_eq!(run(&world, passes).await.held_sent, expected, "{ago_secs}");
    };
    // The ramp: one at once for five seconds, then two.
    check(0, 4, 4).await;
    check(5, 4, 8).await;
    // Over already: 1, 2, 4, 8.
    check(60, 4, 15).await;
    check(300, 1, 400).await;
}

/// A delivery whose object cannot be shortened is sent once in a run.
#[tokio::test]
async fn delivery_of_an_object_that_cannot_shrink_goes_once_a_run() {
    let fails = FaultPlan::by(|effect| {
        let is_shortened =
            effect.operation == PortOperation::Put && effect.key.starts_with(layout::HELD);
        is_shortened.then_some(CallFault::Before(ErrorKind::Throttled {
            retry_after: None,
        }))
    });
    let world = World::with(&fails, &FaultPlan::none());
    subscribe(&world, &["one"]).await;
    hold(&world, "one", HOUR, "x", 5).await;
    retry(&world).await;
    observe(&world, Observation::Succeeded).await;
    world.clock.advance(MINUTE);
    let report = run(&world, 4).await;
    assert_eq!((report.held_sent, report.held_left), (1, 1));
}

#[tokio::test]
async fn forced_and_held_deliveries_share_the_room_of_each_pass() {
    let world = World::new();
    for n in 1..=10 {
        world.park(n * HOUR, &n.to_string(), 200).await;
    }
    world.write("forcing/orders.billing", Bytes::new()).await;
    hold(&world, "one", HOUR, "x", 200).await;
    write_pressure(&world, 3_000).await;
    let report = run(&world, 4).await;
    assert_eq!((report.forced_sent, report.held_sent), (25, 25));
}

/// A subscription with a rate gets in a run what it may send in a minute.
#[tokio::test]
async fn rated_subscription_gets_per_run_what_it_may_send_a_minute() {
    let world = World::new();
    let limited = json!({ "url": "https://a.example/", "maxRequestsPerSecond": 0.5 });
    subscribe_at(&world, &["one"], limited).await;
    hold(&world, "one", HOUR, "x", 100).await;
    for _ in 0..3 {
        assert_eq!(run(&world, 3).await.held_sent, 30);
    }
    assert_eq!(run(&world, 3).await.held_sent, 10);
}

#[tokio::test]
async fn subscriptions_have_their_turns_side_by_side() {
    let held = Arc::new(AtomicU64::new(0));
    let most = Arc::new(AtomicU64::new(0));
    let counted = (Arc::clone(&held), Arc::clone(&most));
    let plan = FaultPlan::by(move |effect| {
        match effect.operation {
            PortOperation::Get if effect.key.starts_with(layout::HELD) => {
                let open = counted.0.fetch_add(1, Ordering::Relaxed) + 1;
                counted.1.fetch_max(open, Ordering::Relaxed);
            }
            PortOperation::Delete if effect.key.starts_with(layout::HELD) => {
                counted.0.fetch_sub(1, Ordering::Relaxed);
            }
            _ => {}
        }
        None
    });
    let world = World::with(&plan, &FaultPlan::none());
    let names: Vec<_> = (0..20).map(|n| format!("s{n:02}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let limited = json!({ "url": "https://a.example/", "maxRequestsPerSecond": 0.02 });
    subscribe_at(&world, &names, limited).await;
    for name in &names {
        hold(&world, name, HOUR, "x", 1).await;
    }
    assert_eq!(run(&world, 1).await.held_sent, 20);
    assert_eq!(
        (most.load(Ordering::Relaxed), held.load(Ordering::Relaxed)),
        (8, 0)
    );
}
