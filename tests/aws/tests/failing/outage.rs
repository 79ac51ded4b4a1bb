//! An endpoint that fails, gets no requests, and recovers: in the queue at first, then held, then
//! delivered.

use std::collections::BTreeSet;

use posthaste_core::circuit::{DeliveryTarget, TargetCondition, TargetPhase};
use posthaste_simulation::Answer;

use crate::world::{World, settings, wait_until};

/// Events that are published while the endpoint is down: two invocations, so that the second finds
/// what the first saw.
const EVENTS: usize = 20;

async fn condition(world: &World) -> Option<TargetCondition> {
    let target = DeliveryTarget::parse("https://billing.example.com:443 orders.billing").unwrap();
    world.links.decide(&target, true).await;
    world.links.condition(&target)
}

/// Delivers until the subscription is in a phase.
async fn reach(world: &World, phase: TargetPhase) -> TargetCondition {
    wait_until(&format!("{phase:?}"), async || {
        world.deliver().await;
        condition(world).await.filter(|it| it.phase == phase)
    })
    .await
}

/// Events of an outage wait in the queue, then in the bucket, and all are delivered at its end.
#[tokio::test]
async fn events_of_an_outage_wait_in_queue_then_bucket_and_arrive() {
    let world = World::start().await;
    world.endpoint.answer([Answer::Status(503)]);
    for n in 0..EVENTS {
        world.publish(&n.to_string()).await;
    }
    reach(&world, TargetPhase::Glitch).await;
    assert_eq!(
        (world.held().await, world.queued().await),
        (0, EVENTS as u64),
        "they wait in the queue"
    );

    let down = reach(&world, TargetPhase::Retry).await;
    assert_eq!(down.probe, None);
    wait_until("everything to be held", async || {
        world.deliver().await;
        (world.queued().await == 0).then_some(())
    })
    .await;
    assert!(world.held().await > 0);
    // The streak and the requests under way beside it, and then one request for each hold that
    // ended.
    let down = condition(&world).await.unwrap();
    let holds = settings().glitches + down.hold - 1;
    let sent = world.endpoint.take().len();
    assert!(
        sent <= EVENTS + holds as usize,
        "{sent} requests in {holds} holds"
    );

    world.endpoint.answer([Answer::Status(204)]);
    wait_until("everything to be delivered", async || {
        world.wake().await;
        (world.held().await == 0 && world.queued().await == 0).then_some(())
    })
    .await;
    let bodies: Vec<_> = world
        .endpoint
        .take()
        .into_iter()
        .map(|request| request.body)
        .collect();
    let different: BTreeSet<_> = bodies.iter().collect();
    assert_eq!(
        (bodies.len(), different.len(), world.dead().await),
        (EVENTS, EVENTS, 0)
    );
    let left = condition(&world).await;
    assert!(
        left.as_ref()
            .is_none_or(|it| it.phase == TargetPhase::Recovering),
        "{left:?}"
    );
}
