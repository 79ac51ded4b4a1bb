//! Paths of one host and port that never answer, each with 3,000 events waiting, beside a healthy
//! newcomer there: its requests begin at once.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use posthaste_ports::Clock;
use posthaste_simulation::{LinkPath, World, event};

const INVOCATION: Duration = Duration::from_mins(2);

/// The time at which a request to a path that hangs ends.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Events that wait for each path.
const WAITING: usize = 3000;

/// Events in a message, as publish packs them.
const PACKED: usize = 10;

/// Invocations at once, of ten messages each: more than the messages that may be in flight.
const INVOCATIONS: usize = 120;

/// A newcomer is measured more than once.
const NEWCOMERS: usize = 20;

/// The places of a link but those that are kept for subscriptions that have nothing open.
const SHARED: usize = 48;

/// A world with so many subscriptions whose paths hang, and `well`, on the same host and port.
async fn world(hanging: usize) -> World {
    let world = World::new();
    let hanging = (0..hanging).map(|index| LinkPath::hanging(&format!("orders.hang{index}")));
    let paths: Vec<_> = hanging.chain([LinkPath::healthy("orders.well")]).collect();
    world.subscribe_paths(&paths).await;
    world
}

async fn publish_many(world: &World, place: &str) {
    let events: Vec<_> = (0..PACKED)
        .map(|number| event(&number.to_string()))
        .collect();
    world.publish_to(place, &events, WAITING / PACKED).await;
}

/// Lets everything go on that needs no time, and answers how many requests came since the last
/// time: to paths that hang, and to the others.
async fn come(world: &World) -> (usize, usize) {
    let mut seen = usize::MAX;
    while seen != world.endpoint.seen() {
        seen = world.endpoint.seen();
        world.rest().await;
    }
    let requests = world.endpoint.take();
    let hanging = requests
        .iter()
        .filter(|request| request.url.contains(".hang"))
        .count();
    (hanging, requests.len() - hanging)
}

/// As many invocations at once as the messages in flight fill.
async fn invocations(world: &World) {
    let mut running: Vec<_> = (0..INVOCATIONS)
        .map(|_| Box::pin(world.deliver_within(INVOCATION)))
        .collect();
    poll_fn(|cx| {
        running.retain_mut(|invocation| invocation.as_mut().poll(cx).is_pending());
        if running.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

async fn check(hanging: usize) {
    let world = world(hanging).await;
    for index in 0..hanging {
        publish_many(&world, &format!("orders.hang{index}")).await;
    }
    let start = world.clock.now();
    let pollers = invocations(&world);
    let script = async {
        let (open, _) = come(&world).await;
        // The shared connection, and one each for those that had nothing open.
        assert!(
            (SHARED..SHARED + hanging).contains(&open),
            "{hanging} paths: {open}"
        );
        for _ in 0..NEWCOMERS {
            world.publish_to("orders.well", &[event("new")], 1).await;
            let (delivered, came) = tokio::join!(world.deliver_within(INVOCATION), come(&world));
            assert_eq!(
                (delivered.failures, came),
                (vec![], (0, 1)),
                "{hanging} paths"
            );
        }
        assert_eq!(world.clock.now(), start, "the newcomer waited");
        world.stop();
        world.clock.advance(TIMEOUT);
    };
    tokio::join!(pollers, script);
}

#[tokio::test]
async fn beside_one_path_that_hangs_a_newcomer_begins_at_once() {
    check(1).await;
}

#[tokio::test]
async fn beside_four_paths_that_hang_a_newcomer_begins_at_once() {
    check(4).await;
}

#[tokio::test]
async fn beside_sixteen_paths_that_hang_a_newcomer_begins_at_once() {
    check(16).await;
}
