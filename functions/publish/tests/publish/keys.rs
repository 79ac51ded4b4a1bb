//! Keys of a topic, where they are offered, and their rotation.

use crate::world::{MINIMAL, STRUCTURED, World, one, request, send};

async fn check(world: &World, key: (&str, &str), expected: u16) {
    let answer = world.post(&[key, STRUCTURED], MINIMAL).await;
    assert_eq!(answer.status, expected, "{key:?}");
}

#[tokio::test]
async fn both_keys_open_the_topic_in_both_headers() {
    let world = World::new(one()).await;
    for key in ["key-one", "key-two"] {
        check(&world, ("aeg-sas-key", key), 200).await;
        check(&world, ("authorization", &format!("Bearer {key}")), 200).await;
    }
    assert_eq!(world.packed().len(), 4);
}

#[tokio::test]
async fn a_wrong_key_publishes_nothing_wherever_it_is() {
    let world = World::new(one()).await;
    for wrong in ["", "key", "key-three", "key-one ,key-two"] {
        check(&world, ("aeg-sas-key", wrong), 401).await;
        check(&world, ("authorization", &format!("Bearer {wrong}")), 401).await;
        check(&world, ("authorization", wrong), 401).await;
    }
    world.assert_untouched();
}

/// A key works until it is regenerated, and the other one works all the time.
#[tokio::test]
async fn key_works_until_regenerated_and_the_other_always_does() {
    let world = World::new(one()).await;
    let app = posthaste_publish::router(world.publish().into());
    let status = async |key: &'static str| {
        let headers = [("aeg-sas-key", key), STRUCTURED];
        send(
            app.clone(),
            request("/topics/orders/events", &headers, MINIMAL),
        )
        .await
        .status
    };
    assert_eq!(
        (status("key-one").await, status("key-two").await),
        (200, 200)
    );
    world.put_topic(one(), "key-new", "key-two").await;
    assert_eq!(
        (
            status("key-one").await,
            status("key-two").await,
            status("key-new").await
        ),
        (401, 200, 200)
    );
}
