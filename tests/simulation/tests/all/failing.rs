//! An endpoint that fails, from the first failure to its recovery: the documents' traces, on a
//! clock that is moved by hand.

use std::time::Duration;

use posthaste_core::circuit::{DeliveryTarget, TargetPhase};
use posthaste_core::model::SendFailure;
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ErrorKind, QueueName};
use posthaste_simulation::{Answer, Faults, Letter, Request, VISIBILITY, World, event, start};
use posthaste_testkit::faulty::{CallFault, FaultPlan};
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
/// Time of a slow answer.
const ANSWER_TIME: Duration = Duration::from_millis(100);
const DAY: Duration = Duration::from_hours(24);

async fn failing(faults: &Faults, answer: Answer) -> World {
    let world = World::with(faults);
    world.chance.hold(0.0);
    world.subscribe(json!({})).await;
    world.endpoint.answer([answer]);
    world
}

/// Publishes an event of each number, a message and an invocation for each.
async fn publish(world: &World, numbers: std::ops::Range<u32>) {
    for number in numbers {
        world.publish(&[event(&number.to_string())], DAY).await;
        world.deliver().await;
    }
}

fn subscription() -> DeliveryTarget {
    DeliveryTarget::parse("https://billing.example.com:443 orders.billing").unwrap()
}

/// The event's id, and how many attempts were made before.
fn sent(request: &Request) -> (String, u32) {
    let body: Value = serde_json::from_str(&request.body).unwrap();
    let before = request.headers["aeg-delivery-count"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    (body["id"].as_str().unwrap().to_owned(), before)
}

fn phase(world: &World) -> Option<(TargetPhase, u32)> {
    world
        .links
        .condition(&subscription())
        .map(|it| (it.phase, it.hold))
}

/// The first ten fail, the others are delayed, one asks a minute later, and all go through.
#[tokio::test]
async fn ten_failures_delay_the_others_until_a_probe_succeeds() {
    let world = failing(&Faults::none(), Answer::Status(503)).await;
    publish(&world, 0..10).await;
    assert_eq!(
        (world.endpoint.take().len(), phase(&world)),
        (10, Some((TargetPhase::Glitch, 1)))
    );
    publish(&world, 10..25).await;
    world.pass(59 * SECOND).await;
    assert_eq!(
        (
            world.endpoint.seen(),
            world.delayed(QueueName::Deliveries).await
        ),
        (0, 25)
    );
    world.endpoint.answer([Answer::Late(ANSWER_TIME, 204)]);
    world.clock.advance(SECOND);
    let mut at_once = Vec::new();
    // The queue may take a moment to show what has become due.
    while world.endpoint.seen() == 0 {
        world.in_time(world.deliver()).await;
    }
    for _ in 0..60 {
        world.in_time(world.deliver()).await;
        let recovering = world.links.condition(&subscription()).unwrap();
        assert_eq!(recovering.phase, TargetPhase::Recovering);
        let steps = world.clock.now().since(recovering.since).as_secs() / 5;
        at_once.push((world.endpoint.most_at_once(), 1 << steps.min(6)));
        world.clock.advance(SECOND);
    }
    let requests = world.endpoint.take();
    // One delivery asks, and no other until it is answered; then 1, 2, 4 … at once.
    assert_eq!(requests[0].at, start() + MINUTE);
    assert!(
        requests[1].at >= start() + MINUTE + ANSWER_TIME,
        "{:?}",
        requests[1]
    );
    assert!(
        at_once.iter().all(|(most, allowed)| most <= allowed),
        "{at_once:?}"
    );
    assert!(at_once.iter().any(|(most, _)| *most > 1), "{at_once:?}");
    let mut arrived: Vec<_> = requests.iter().map(sent).collect();
    arrived.sort_by_key(|(id, _)| id.parse::<u32>().unwrap());
    let expected: Vec<_> = (0..25)
        .map(|n: u32| (n.to_string(), u32::from(n < 10)))
        .collect();
    assert_eq!(arrived, expected);
    assert!(world.is_at_rest().await);
}

/// A link that stays down is probed as Exchange does, and what waits is charged no attempt.
#[tokio::test]
async fn link_that_stays_down_is_probed_as_exchange_does() {
    let world = failing(&Faults::none(), Answer::Status(503)).await;
    publish(&world, 0..10).await;
    assert_eq!(world.endpoint.take().len(), 10);
    let mut asked = Vec::new();
    for minute in 1..=64 {
        world.pass(MINUTE).await;
        asked.extend(
            world
                .endpoint
                .take()
                .iter()
                .map(|request| request.at.since(start()).as_secs()),
        );
        publish(&world, 100 + minute..101 + minute).await;
        // In Glitch all of them wait in the queue, in Retry none does.
        let held = world.held().await.len();
        let delayed = world.delayed(QueueName::Deliveries).await;
        match minute {
            ..3 => assert_eq!((held, delayed), (0, 10 + u64::from(minute)), "{minute}"),
            // Workers that met the last probe look again.
            3 => {}
            // The last probe's own event waits for its next attempt.
            _ => assert!(held > 0 && delayed <= 1, "{minute} {held} {delayed}"),
        }
    }
    let minutes: Vec<_> = asked.iter().map(|secs| secs / 60).collect();
    assert_eq!(minutes, [1, 2, 3, 13, 23, 33, 48, 63]);
    assert_eq!(phase(&world), Some((TargetPhase::Retry, 6)));
    // Ten attempts at the beginning, and the probes: the others have none.
    world.pass(10 * MINUTE).await;
    let attempts: u16 = world
        .held_deliveries()
        .await
        .iter()
        .map(|delivery| delivery.attempts)
        .sum();
    assert_eq!(
        (world.held_deliveries().await.len(), attempts),
        (10 + 64, 10 + 8)
    );
}

/// An invocation all of whose requests fail is a streak from three on.
#[tokio::test]
async fn invocation_with_three_or_more_failures_alone_is_a_streak() {
    for (events, expected) in [(2, None), (3, Some((TargetPhase::Glitch, 1)))] {
        let world = failing(&Faults::none(), Answer::Status(503)).await;
        let events: Vec<_> = (0..events).map(|n| event(&n.to_string())).collect();
        world.publish(&events, DAY).await;
        world.deliver().await;
        assert_eq!(phase(&world), expected);
        let before = world.endpoint.take().len();
        publish(&world, 10..11).await;
        let is_sent = world.endpoint.take().len() == 1;
        assert_eq!((before, is_sent), (events.len(), expected.is_none()));
    }
}

/// An event that expires while it is held and was never tried is a dead letter of Probation.
#[tokio::test]
async fn held_event_that_expires_untried_is_a_probation_dead_letter() {
    let world = failing(&Faults::none(), Answer::Status(503)).await;
    publish(&world, 0..10).await;
    world.pass(4 * MINUTE).await;
    assert_eq!(phase(&world), Some((TargetPhase::Retry, 1)));
    world.publish(&[event("late")], 5 * MINUTE).await;
    world.pass(7 * MINUTE).await;
    let letter = Letter {
        id: "late".to_owned(),
        reason: "TimeToLiveExceeded".to_owned(),
        attempts: 0,
        outcome: "Probation".to_owned(),
    };
    assert_eq!(world.letters().await, [letter]);
}

#[tokio::test]
async fn event_delayed_in_the_queue_expires_in_time() {
    let world = failing(&Faults::none(), Answer::Status(503)).await;
    publish(&world, 0..10).await;
    world.publish(&[event("late")], 30 * SECOND).await;
    world.pass(31 * SECOND).await;
    let letters = world.letters().await;
    assert_eq!(
        letters
            .iter()
            .map(|letter| (&*letter.id, letter.attempts))
            .collect::<Vec<_>>(),
        [("late", 0)]
    );
}

/// Without the store of links everything goes out as if all were well.
#[tokio::test]
async fn missing_link_store_lets_every_delivery_out() {
    let state = FaultPlan::by(|effect| {
        effect
            .key
            .starts_with(layout::LINKS)
            .then_some(CallFault::Before(ErrorKind::Denied))
    });
    let world = failing(&Faults::in_state(&state), Answer::Status(503)).await;
    publish(&world, 0..30).await;
    assert_eq!(world.endpoint.take().len(), 30);
    world.endpoint.answer([Answer::Status(204)]);
    world.pass(2 * MINUTE).await;
    assert_eq!(
        (world.endpoint.take().len(), world.is_at_rest().await),
        (30, true)
    );
}

/// When a prober dies another one probes after its lease, and what it had comes back.
#[tokio::test]
async fn dead_prober_is_replaced_after_its_lease() {
    let world = failing(&Faults::none(), Answer::Status(503)).await;
    publish(&world, 0..10).await;
    world.endpoint.take();
    world.pass(59 * SECOND).await;
    world.endpoint.answer([Answer::Never, Answer::Status(204)]);
    world.clock.advance(SECOND);
    let is_asked = async {
        while world.endpoint.seen() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        response = world.deliver() => panic!("it hangs, and not {response:?}"),
        () = is_asked => {}
    }
    let died = world.clock.now();
    publish(&world, 10..11).await;
    world.pass(VISIBILITY + MINUTE).await;
    let requests = world.endpoint.take();
    assert_eq!(requests.len(), 1 + 11);
    assert_eq!(requests[1].at, died + 90 * SECOND);
    // The events of the dead worker are sent again, and no attempt is charged for those without an
    // answer.
    assert_eq!((sent(&requests[0]).1, world.is_at_rest().await), (1, true));
    assert_eq!(
        requests
            .iter()
            .filter(|request| sent(request) == sent(&requests[0]))
            .count(),
        2
    );
}

/// A refused connection is told to the client once for each hold.
#[tokio::test]
async fn refused_connection_drops_the_link_once_for_each_hold() {
    let world = failing(&Faults::none(), Answer::Failure(SendFailure::Socket)).await;
    publish(&world, 0..9).await;
    assert_eq!(world.endpoint.take_dropped(), []);
    publish(&world, 9..10).await;
    let link = subscription().link().clone();
    assert_eq!(world.endpoint.take_dropped(), std::slice::from_ref(&link));
    world.pass(61 * SECOND).await;
    assert_eq!(world.endpoint.take_dropped(), [link]);
}
