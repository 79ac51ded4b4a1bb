//! Keys that no object can have, in requests to manage over the embedded stores.

use posthaste_simulation::{World, finds_no_object_under_a_long_name, refuses_bad_keys};
use serde_json::json;

#[tokio::test]
async fn bad_keys_are_the_callers_error_at_every_door() {
    let world = World::new();
    world.subscribe(json!({})).await;
    refuses_bad_keys(&world.api()).await;
}

/// A file has no such name, or it would be one of the store's own: the object is not there.
#[tokio::test]
async fn name_that_no_file_can_have_is_no_object() {
    let world = World::new();
    world.subscribe(json!({})).await;
    finds_no_object_under_a_long_name(&world.api()).await;
}
