//! Batches that are refused for their content: one bad event never costs its neighbours.

use std::time::Duration;

use posthaste_core::model::{Delivery, HOPS_HEADER, Hops, Timestamp};
use posthaste_core::stored::delivery::{parse_delivery, render_delivery};
use posthaste_ports::{Clock, QueueName};
use posthaste_simulation::{Answer, World, event};
use serde_json::{Value, json};

const DAY: Duration = Duration::from_hours(24);

/// Refuses what holds a bad event.
fn refuses<const STATUS: u16>(body: &str, _at: Timestamp) -> u16 {
    if body.contains("bad") { STATUS } else { 204 }
}

/// A world whose subscription takes batches of up to 200 events, each tried so often, ten seconds
/// apart.
async fn world(answer: Answer, attempts: u16) -> World {
    let world = World::new();
    world.chance.hold(0.0);
    let policy = json!({ "schedule": ["PT10S"], "maxDeliveryAttempts": attempts });
    let batching = json!({ "maxEventsPerBatch": 200 });
    world
        .subscribe(json!({ "batching": batching, "retryPolicy": policy }))
        .await;
    world.endpoint.answer([answer]);
    world
}

/// Publishes so many events, the bad ones at these places.
async fn publish(world: &World, events: usize, bad: &[usize]) {
    let id = |n: usize| {
        if bad.contains(&n) {
            format!("bad-{n}")
        } else {
            format!("good-{n}")
        }
    };
    world
        .publish(&(0..events).map(|n| event(&id(n))).collect::<Vec<_>>(), DAY)
        .await;
    world.deliver().await;
}

/// One invocation, in which time passes whenever it waits.
async fn invoke(world: &World) {
    let time = async {
        loop {
            world.rest().await;
            world.clock.advance_to_next();
        }
    };
    tokio::select! {
        biased;
        _ = Box::pin(world.deliver_within(Duration::from_mins(2))) => {}
        () = time => unreachable!("time never ends"),
    }
}

/// The numbers of events in the requests since the last time.
fn sizes(world: &World) -> Vec<usize> {
    let events = |body: &str| match serde_json::from_str(body).expect("JSON") {
        Value::Array(events) => events.len(),
        _ => 1,
    };
    world
        .endpoint
        .take()
        .iter()
        .map(|request| events(&request.body))
        .collect()
}

/// Every dead letter's event, and its number of attempts.
async fn letters(world: &World) -> Vec<(String, u64)> {
    world
        .letters()
        .await
        .into_iter()
        .map(|letter| (letter.id, letter.attempts))
        .collect()
}

fn bad(events: &[usize], attempts: u64) -> Vec<(String, u64)> {
    events
        .iter()
        .map(|n| (format!("bad-{n}"), attempts))
        .collect()
}

/// A batch refused twice for one event loses only that one, by its own rule.
#[tokio::test]
async fn batch_refused_twice_for_one_event_loses_only_that_event() {
    let check = async |answer: Answer| {
        let world = world(answer.clone(), 4).await;
        publish(&world, 10, &[3]).await;
        assert_eq!(sizes(&world), [10], "{answer:?}");
        world.pass(Duration::from_secs(10)).await;
        assert_eq!(sizes(&world), [10, 5, 2, 3, 1, 2, 1, 1, 5], "{answer:?}");
        world.pass(Duration::from_mins(1)).await;
        // The second attempt was one for all of them, and the other two are the bad event's alone.
        assert_eq!(sizes(&world), [1, 1], "{answer:?}");
        assert_eq!(letters(&world).await, bad(&[3], 4), "{answer:?}");
    };
    check(Answer::By(refuses::<422>)).await;
    check(Answer::By(refuses::<409>)).await;
    check(Answer::By(refuses::<415>)).await;
    check(Answer::By(refuses::<451>)).await;
}

#[tokio::test]
async fn a_batch_refused_for_good_is_split_at_once() {
    let check = async |answer: Answer| {
        let world = world(answer, 4).await;
        publish(&world, 4, &[0]).await;
        assert_eq!(sizes(&world), [4, 2, 1, 1, 2]);
        assert_eq!(letters(&world).await, bad(&[0], 1));
    };
    check(Answer::By(refuses::<400>)).await;
    check(Answer::By(refuses::<413>)).await;
}

#[tokio::test]
async fn an_answer_that_speaks_of_the_endpoint_splits_nothing() {
    for status in [401, 403, 404, 408, 429, 500, 503] {
        let world = world(Answer::Status(status), 3).await;
        publish(&world, 4, &[]).await;
        world
            .pass_by(Duration::from_secs(10), Duration::from_mins(10))
            .await;
        let attempts = if status < 408 { 1 } else { 3 };
        assert_eq!(sizes(&world), vec![4; attempts], "{status}");
        assert_eq!(letters(&world).await.len(), 4, "{status}");
    }
}

#[tokio::test]
async fn refusals_that_are_not_in_a_row_split_nothing() {
    let world = world(Answer::Status(204), 9).await;
    world
        .endpoint
        .answer([422, 500, 422, 500, 204].map(Answer::Status));
    publish(&world, 4, &[]).await;
    world.pass(Duration::from_mins(1)).await;
    assert_eq!(sizes(&world), [4; 5]);
    assert_eq!(letters(&world).await, []);
}

#[tokio::test]
async fn endpoint_that_refuses_eight_single_events_refuses_the_batch() {
    let world = world(Answer::Status(422), 2).await;
    publish(&world, 128, &[]).await;
    assert_eq!(sizes(&world), [128]);
    let split = [128, 64, 32, 16, 8, 4, 2, 1, 1, 2, 1, 1, 4, 2, 1, 1, 2, 1, 1];
    world.pass(Duration::from_secs(10)).await;
    assert_eq!(sizes(&world), split);
    let letters = letters(&world).await;
    assert!(
        letters.len() == 128 && letters.iter().all(|(_, attempts)| *attempts == 2),
        "{letters:?}"
    );
}

/// An endpoint that refuses everything for good is asked for eight events of a batch.
#[tokio::test]
async fn endpoint_that_refuses_everything_gets_eight_of_a_batch() {
    let world = world(Answer::Status(400), 4).await;
    publish(&world, 128, &[]).await;
    assert_eq!(
        sizes(&world).iter().filter(|events| **events == 1).count(),
        8
    );
    let letters = letters(&world).await;
    assert!(
        letters.len() == 128 && letters.iter().all(|(_, attempts)| *attempts == 1),
        "{letters:?}"
    );
}

#[tokio::test]
async fn an_endpoint_that_is_slow_to_refuse_costs_no_neighbour_either() {
    let refuses_bad = |body: &str| if body.contains("bad") { 400 } else { 204 };
    let world = world(Answer::SlowBy(Duration::from_secs(25), refuses_bad), 4).await;
    let events: Vec<_> = (0..10)
        .map(|n| event(&format!("{}-{n}", if n == 3 { "bad" } else { "good" })))
        .collect();
    world.publish(&events, DAY).await;
    let began = world.clock.now();
    while !world.is_at_rest().await {
        // Three requests of 25 seconds find time in the two minutes of an invocation: too few for
        // halves of ten.
        invoke(&world).await;
        world.clock.advance(Duration::from_mins(1));
        assert!(
            world.clock.now() < began + Duration::from_hours(2),
            "{:?}",
            sizes(&world)
        );
    }
    assert_eq!(sizes(&world)[..6], [10, 1, 9, 9, 1, 8]);
    assert_eq!(letters(&world).await, bad(&[3], 1));
}

#[tokio::test]
async fn splitting_goes_on_while_the_endpoint_takes_some_events() {
    let world = world(Answer::By(refuses::<400>), 4).await;
    // The third and the fourth go through, so that the ten bad ones that come later do not stop it.
    let ten: Vec<_> = [0, 1].into_iter().chain(4..14).collect();
    publish(&world, 32, &ten).await;
    let mut expected = bad(&ten, 1);
    expected.sort();
    assert_eq!(letters(&world).await, expected);
}

#[tokio::test]
async fn looped_events_are_refused_without_their_neighbours() {
    let world = world(Answer::By(refuses::<400>), 4).await;
    let looped: Vec<_> = (0..8).map(|n| event(&format!("bad-{n}"))).collect();
    let delivery = parse_delivery(&world.message(&looped, DAY).body).expect("a delivery");
    let body = render_delivery(&Delivery {
        hops: Hops::new(7),
        ..delivery
    });
    world.send(QueueName::Deliveries, body).await;
    publish(&world, 92, &[]).await;
    let requests = world.endpoint.take();
    let fresh: Vec<_> = requests
        .iter()
        .filter(|request| request.body.contains("good"))
        .collect();
    let [request] = &fresh[..] else {
        panic!("one request: {fresh:?}")
    };
    assert_eq!(request.headers[HOPS_HEADER], "1");
    assert!(requests.len() > 1 && !request.body.contains("bad"));
    assert_eq!(letters(&world).await, bad(&[0, 1, 2, 3, 4, 5, 6, 7], 1));
}
