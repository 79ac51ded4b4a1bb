//! Host names that do not exist: one retry after five minutes, then a dead letter, whatever is
//! known of the link.

use std::time::Duration;

use posthaste_core::circuit::{DeliveryTarget, TargetPhase};
use posthaste_core::model::SendFailure;
use posthaste_simulation::{Answer, Letter, World, event};
use serde_json::json;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

const NO_SUCH_NAME: Answer = Answer::Failure(SendFailure::Resolution {
    does_not_exist: true,
});

async fn world(answer: Answer) -> World {
    let world = World::new();
    world.chance.hold(0.0);
    world.subscribe(json!({})).await;
    world.endpoint.answer([answer]);
    world
}

/// Publishes twelve events, an invocation for each.
async fn publish_twelve(world: &World) {
    for number in 0..12 {
        world.publish(&[event(&format!("{number:02}"))], DAY).await;
        world.deliver_all().await;
    }
}

fn phase(world: &World) -> Option<TargetPhase> {
    let link = DeliveryTarget::parse("https://billing.example.com:443").expect("a link");
    world.links.condition(&link).map(|it| it.phase)
}

/// All twelve, each given up after so many attempts because its name does not exist.
fn given_up(letters: &[Letter], attempts: impl Fn(u64) -> bool) {
    let ids: Vec<_> = letters.iter().map(|letter| letter.id.clone()).collect();
    assert_eq!(
        ids,
        (0..12)
            .map(|number| format!("{number:02}"))
            .collect::<Vec<_>>()
    );
    for letter in letters {
        assert_eq!(
            [&*letter.reason, &*letter.outcome],
            ["UndeliverableDueToClientError", "ResolutionError"]
        );
        assert!(attempts(letter.attempts), "{letter:?}");
    }
}

/// Twelve events become twelve dead letters after one retry, and the link is well.
#[tokio::test]
async fn unknown_name_makes_dead_letters_and_leaves_the_link_well() {
    let world = world(NO_SUCH_NAME).await;
    publish_twelve(&world).await;
    assert_eq!((world.endpoint.take().len(), phase(&world)), (12, None));
    world.pass((5 * MINUTE).saturating_sub(SECOND)).await;
    assert_eq!((world.endpoint.take().len(), phase(&world)), (0, None));
    world.pass(SECOND).await;
    assert_eq!((world.endpoint.take().len(), phase(&world)), (12, None));
    assert!(world.is_at_rest().await);
    given_up(&world.letters().await, |attempts| attempts == 2);
}

#[tokio::test]
async fn a_name_that_is_back_at_the_retry_is_delivered_to() {
    let world = world(NO_SUCH_NAME).await;
    publish_twelve(&world).await;
    world.endpoint.answer([Answer::Status(204)]);
    world.pass(5 * MINUTE).await;
    assert_eq!(
        (world.endpoint.take().len(), world.is_at_rest().await),
        (24, true)
    );
}

/// A probe that meets no such name releases what is held, each to its own verdict.
#[tokio::test]
async fn probe_that_finds_no_name_releases_each_to_its_own_verdict() {
    let world = world(Answer::Failure(SendFailure::Socket)).await;
    publish_twelve(&world).await;
    world.pass(6 * MINUTE).await;
    assert_eq!(phase(&world), Some(TargetPhase::Retry));
    assert!(
        world.held_deliveries().await.len() >= 10,
        "what waits is held"
    );
    world.endpoint.take();
    world.endpoint.answer([NO_SUCH_NAME]);
    // The hold of ten minutes, the ramp, and then the one retry of each.
    world.pass(8 * MINUTE).await;
    assert_eq!(phase(&world), Some(TargetPhase::Recovering));
    assert_eq!(world.endpoint.take().len(), 12);
    world.pass(10 * MINUTE).await;
    assert_eq!(
        (world.endpoint.take().len(), world.is_at_rest().await),
        (12, true)
    );
    given_up(&world.letters().await, |attempts| {
        (2..=4).contains(&attempts)
    });
}

#[tokio::test]
async fn a_link_whose_name_does_not_exist_is_not_told_to_be_up() {
    let world = world(Answer::Failure(SendFailure::Socket))
        .await
        .telling_ops();
    world.tell_ops(json!({})).await;
    world.endpoint.answer_at("pager", Answer::Status(204));
    publish_twelve(&world).await;
    world.pass(10 * MINUTE).await;
    let notices = |kind: &str| {
        let requests = world.endpoint.take();
        requests
            .iter()
            .filter(|request| request.body.contains(kind))
            .count()
    };
    assert_eq!(notices("dev.posthaste.link.down"), 1);
    world.endpoint.answer([NO_SUCH_NAME]);
    world.pass(30 * MINUTE).await;
    assert_eq!(notices("dev.posthaste.link.up"), 0);
    // Once a request succeeds, it is.
    world.endpoint.answer([Answer::Status(204)]);
    world.publish(&[event("back")], DAY).await;
    world.pass(7 * MINUTE).await;
    assert_eq!(notices("dev.posthaste.link.up"), 1);
}
