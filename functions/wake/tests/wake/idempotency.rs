//! Idempotency keys are remembered for a day and then go, once an hour.

use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_core::stored::{IdempotencyRecord, RequestDigest};
use posthaste_ports::Clock;

use crate::world::World;

/// When old keys are looked for: half past the hour, 25 minutes after the world begins.
const NEXT: Duration = Duration::from_mins(25);

/// A world with a key that was written so long before the next look, among others.
fn world(ages: &[Duration]) -> World {
    let world = World::new();
    for (number, age) in ages.iter().enumerate() {
        let written =
            (world.clock.now() + NEXT).as_millis() - u64::try_from(age.as_millis()).unwrap();
        let key = format!("idempotency/orders/{number}");
        world
            .store
            .write_at(&key, "{}", Timestamp::from_millis(written));
    }
    world
}

async fn check(age: Duration, later: Duration, is_deleted: bool) {
    let world = world(&[age]);
    world.run_after(later).await;
    assert_eq!(
        world.store.keys("idempotency/").is_empty(),
        is_deleted,
        "{age:?} {later:?}"
    );
}

#[tokio::test]
async fn a_key_goes_after_a_day_and_not_before() {
    // A key is kept for an hour more, for a request that claims it again.
    let day = Duration::from_hours(25);
    check(day, NEXT, true).await;
    check(day.saturating_sub(Duration::from_millis(1)), NEXT, false).await;
    check(Duration::ZERO, NEXT, false).await;
}

#[tokio::test]
async fn a_key_that_was_claimed_anew_since_it_was_listed_stays() {
    let world = World::new();
    let now = world.clock.now() + NEXT;
    let listed = Timestamp::from_millis(now.as_millis() - 30 * 3_600_000);
    let digest = || RequestDigest::from_request([], b"");
    let claim = |at: Timestamp| IdempotencyRecord::new_claim(digest(), String::new(), at).render();
    world
        .store
        .write_at("idempotency/orders/claimed", claim(now), listed);
    world
        .store
        .write_at("idempotency/orders/over", claim(listed), listed);
    world.run_after(NEXT).await;
    assert_eq!(
        world.store.keys("idempotency/"),
        ["idempotency/orders/claimed"]
    );
}

#[tokio::test]
async fn old_keys_are_looked_for_once_an_hour() {
    let week = Duration::from_hours(168);
    check(week, NEXT.saturating_sub(Duration::from_mins(1)), false).await;
    check(week, NEXT + Duration::from_mins(1), false).await;
    check(week, NEXT + Duration::from_hours(1), true).await;
}

#[tokio::test]
async fn old_keys_go_from_every_page_and_young_ones_stay() {
    let old = Duration::from_hours(30);
    let young = Duration::from_hours(3);
    let world = world(&[old, young, old, old, old, young, old, old]);
    world.run_after(NEXT).await;
    assert_eq!(
        world.store.keys("idempotency/"),
        ["idempotency/orders/1", "idempotency/orders/5"]
    );
}

#[tokio::test]
async fn lifecycle_of_the_bucket_replaces_deletion_by_wake() {
    let world = world(&[Duration::from_hours(168)]);
    world.clock.advance(NEXT);
    world.second().leaving_payloads().run().await.unwrap();
    assert_eq!(world.store.keys("idempotency/").len(), 1);
}
