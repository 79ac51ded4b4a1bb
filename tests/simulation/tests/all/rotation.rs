//! Rotation of a signing secret: which secrets sign an attempt is decided by the attempt's own
//! time.

use std::time::Duration;

use posthaste_simulation::{Answer, World, event, start};
use serde_json::json;

const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW: &str = "whsk_VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk=";

/// A world whose subscription's old secret ends so long after the start.
async fn rotated(overlap: Duration) -> World {
    let world = World::new();
    let expires_at = json!([null, (start() + overlap).to_string()]);
    world
        .subscribe(json!({ "signing": { "secrets": [NEW, OLD], "expiresAt": expires_at } }))
        .await;
    world
}

/// The kinds of signature of each request since the last time.
fn kinds(world: &World) -> Vec<Vec<String>> {
    let kinds = |header: &str| {
        header
            .split(' ')
            .map(|one| one.split(',').next().unwrap().to_owned())
            .collect()
    };
    world
        .endpoint
        .take()
        .iter()
        .map(|one| kinds(one.headers["webhook-signature"].to_str().unwrap()))
        .collect()
}

#[tokio::test]
async fn a_retry_after_the_overlap_is_signed_by_the_new_secret_alone() {
    let world = rotated(Duration::from_secs(20)).await;
    world.endpoint.answer([
        Answer::Status(500),
        Answer::Status(500),
        Answer::Status(204),
    ]);
    world
        .publish(&[event("e0")], Duration::from_hours(24))
        .await;
    world.deliver().await;
    world.clock.advance(Duration::from_secs(14));
    world.deliver().await;
    world.clock.advance(Duration::from_mins(1));
    world.deliver().await;
    assert_eq!(
        kinds(&world),
        [vec!["v1a", "v1"], vec!["v1a", "v1"], vec!["v1a"]]
    );
}

#[tokio::test]
async fn the_overlap_ends_to_the_millisecond_and_nobody_has_to_sweep() {
    let overlap = Duration::from_hours(24);
    for (early, expected) in [(1, vec!["v1a", "v1"]), (0, vec!["v1a"])] {
        let world = rotated(overlap).await;
        world
            .clock
            .advance(overlap.checked_sub(Duration::from_millis(early)).unwrap());
        world
            .publish(&[event("e0")], Duration::from_hours(24))
            .await;
        world.deliver().await;
        assert_eq!(kinds(&world), [expected]);
    }
}
