//! The reach of a failure: its event alone, its subscription, or every subscription on the link.

use std::time::Duration;

use posthaste_core::circuit::{DeliveryTarget, TargetPhase};
use posthaste_core::model::SendFailure;
use posthaste_simulation::{Answer, Request, World, event};
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

/// Two subscriptions on one host: `orders.billing` at `/hooks`, and `ops.pager` at `/pager`.
async fn neighbours(billing: Value) -> World {
    let world = World::new();
    world.chance.hold(0.0);
    world.subscribe(billing).await;
    world
        .tell_ops(json!({ "endpoint": { "url": "https://billing.example.com/pager" } }))
        .await;
    world
}

/// Publishes an event of each number to `billing`, an invocation for each.
async fn publish(world: &World, numbers: std::ops::Range<u32>) {
    for number in numbers {
        world.publish(&[event(&number.to_string())], DAY).await;
        world.deliver().await;
    }
}

/// Publishes to the neighbour; whether it is sent at once.
async fn reaches_neighbour(world: &World) -> bool {
    world.endpoint.take();
    world.publish_to_ops(&[event("for-pager")], DAY).await;
    world.deliver().await;
    world
        .endpoint
        .take()
        .iter()
        .any(|request| request.url.contains("/pager"))
}

fn phase(world: &World, target: &str) -> Option<TargetPhase> {
    world
        .links
        .condition(&DeliveryTarget::parse(target).unwrap())
        .map(|it| it.phase)
}

/// The delivery that asks is drawn. With three of thirteen that fail, nine in a row do once in half
/// a million times.
const OTHERS_ASK_WITHIN_MINUTES: u32 = 10 + 10 + 10 + 6 * 15;

const LINK: &str = "https://billing.example.com:443";
const BILLING: &str = "https://billing.example.com:443 orders.billing";

#[tokio::test]
async fn failure_decides_which_target_is_left_alone() {
    let check =
        async |answer: Answer, link: Option<TargetPhase>, subscription: Option<TargetPhase>| {
            let world = neighbours(json!({})).await;
            world.endpoint.answer_at("/hooks", answer.clone());
            publish(&world, 0..12).await;
            assert_eq!(
                (phase(&world, LINK), phase(&world, BILLING)),
                (link, subscription),
                "{answer:?}"
            );
            let sent = if link.is_some() || subscription.is_some() {
                10
            } else {
                12
            };
            assert_eq!(world.endpoint.take().len(), sent, "{answer:?}");
            assert_eq!(
                reaches_neighbour(&world).await,
                link.is_none(),
                "{answer:?}"
            );
        };
    let glitch = Some(TargetPhase::Glitch);
    let unresolved = SendFailure::Resolution {
        does_not_exist: false,
    };
    for failure in [
        SendFailure::Socket,
        SendFailure::Tls,
        SendFailure::ConnectTimedOut,
        unresolved,
    ] {
        check(Answer::Failure(failure), glitch, None).await;
    }
    check(Answer::Failure(SendFailure::TimedOut), None, glitch).await;
    for status in [500, 503, 429, 408, 302] {
        check(Answer::Status(status), None, glitch).await;
    }
    for status in [400, 404, 413, 422] {
        check(Answer::Status(status), None, None).await;
    }
    check(
        Answer::Failure(SendFailure::Resolution {
            does_not_exist: true,
        }),
        None,
        None,
    )
    .await;
}

/// A link that is down is probed once for all of its subscriptions, and returns for all.
#[tokio::test]
async fn down_link_is_probed_once_for_all_its_subscriptions() {
    let world = neighbours(json!({})).await;
    world
        .endpoint
        .answer([Answer::Failure(SendFailure::Socket)]);
    publish(&world, 0..10).await;
    for _ in 0..5 {
        assert!(!reaches_neighbour(&world).await);
    }
    world.pass(4 * MINUTE).await;
    assert_eq!(
        (world.endpoint.take().len(), phase(&world, LINK)),
        (3, Some(TargetPhase::Retry))
    );
    // One is the notice that the link is failing.
    assert_eq!(world.held_deliveries().await.len(), 16);
    world.endpoint.answer([Answer::Status(204)]);
    world.pass(12 * MINUTE).await;
    let mut requests = world.endpoint.take();
    // The failure counts for the link, too.
    requests.retain(|request| !request.body.contains("dev.posthaste.link"));
    let to_pager = requests
        .iter()
        .filter(|request| request.url.contains("/pager"))
        .count();
    assert_eq!(
        (requests.len(), to_pager, world.is_at_rest().await),
        (15, 5, true)
    );
}

/// Events that fail where others succeed go alone and last and stop nobody.
#[tokio::test]
async fn problem_events_go_alone_and_last_and_stop_nobody() {
    let policy = json!({ "schedule": ["PT10S"], "maxDeliveryAttempts": 6 });
    let world =
        neighbours(json!({ "retryPolicy": policy, "batching": { "maxEventsPerBatch": 10 } })).await;
    world.endpoint.answer([Answer::By(
        |body, _| if body.contains("poison") { 500 } else { 204 },
    )]);
    world
        .publish(&["poison-1", "poison-2", "poison-3"].map(event), DAY)
        .await;
    let mut poisoned = Vec::new();
    for round in 0..8 {
        world.deliver_all().await;
        let requests = world.endpoint.take();
        poisoned.push(
            requests
                .iter()
                .map(|request| request.body.matches("poison").count())
                .collect::<Vec<_>>(),
        );
        // A second before those that failed come again.
        world.pass(9 * SECOND).await;
        world.publish(&[event(&format!("good-{round}"))], DAY).await;
        world.deliver_all().await;
        assert_eq!(world.endpoint.take().len(), 1, "{round}");
        world
            .publish(&[event(&format!("beside-{round}"))], DAY)
            .await;
        world.clock.advance(SECOND);
    }
    // Twice together, and then one by one, each behind what came with them.
    assert_eq!(poisoned[0], [3]);
    assert_eq!(poisoned[1].iter().sum::<usize>(), 3);
    for round in &poisoned[2..6] {
        assert_eq!(*round, [0, 1, 1, 1]);
    }
    assert_eq!(poisoned[6], [0]);
    assert_eq!(phase(&world, BILLING), None);
    let letters = world.letters().await;
    let shown: Vec<_> = letters
        .iter()
        .map(|it| (&*it.id, &*it.reason, it.attempts))
        .collect();
    let given_up = |id| (id, "MaxDeliveryAttemptsExceeded", 6);
    assert_eq!(shown, ["poison-1", "poison-2", "poison-3"].map(given_up));
}

/// An event that fails by itself does not keep a target that is well again from the others.
#[tokio::test]
async fn problem_event_does_not_keep_a_healthy_target_from_others() {
    let world = neighbours(json!({})).await;
    world.endpoint.answer([Answer::Status(503)]);
    for id in ["poison-1", "poison-2", "poison-3"] {
        // The events of this subscription expire first, so they are the first to ask.
        world
            .publish(&[event(id)], DAY.saturating_sub(10 * MINUTE))
            .await;
        world.deliver().await;
    }
    // Each expires in a minute of its own, and so is in an object of its own.
    for number in 0..10 {
        world
            .publish(&[event(&number.to_string())], DAY + number * MINUTE)
            .await;
        world.deliver().await;
    }
    world.pass(5 * MINUTE).await;
    assert_eq!(phase(&world, BILLING), Some(TargetPhase::Retry));
    world.endpoint.answer([Answer::By(
        |body, _| if body.contains("poison") { 500 } else { 204 },
    )]);
    world.endpoint.take();
    let mut minutes = 0;
    let is_of_others =
        |request: &Request| request.url.contains("/hooks") && !request.body.contains("poison");
    while !world.endpoint.take().iter().any(is_of_others) {
        world.pass_by(10 * SECOND, MINUTE).await;
        minutes += 1;
        assert!(minutes <= OTHERS_ASK_WITHIN_MINUTES, "nobody else asks");
    }
}
