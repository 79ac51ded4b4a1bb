//! The pages of replays.

use std::time::Duration;

use posthaste_core::api::ReplayView;
use posthaste_core::stored::{ReplayRecord, layout};
use serde_json::json;

use super::World;
use crate::api::Target;

async fn begin(world: &World) -> String {
    let target = Target::new(&["topics", "Orders", "subscriptions", "Billing", "dead-letters", "replay"]);
    let begun =
        world.api.send::<ReplayView>(http::Method::POST, target, None, &json!({ "ratePerSecond": 7 })).await;
    world.clock.advance(Duration::from_secs(1));
    begun.unwrap().body.id
}

#[tokio::test]
async fn replays_are_listed_newest_first() {
    let world = World::with_billing().await;
    world.get("/console/replays").await.has(&["There is no replay", "/console/dead-letters"]);
    let (first, second) = (begin(&world).await, begin(&world).await);
    let page = world.get("/console/replays").await;
    page.has(&["running", "Orders", "Billing", ">7<", "data-live"]);
    assert!(page.html.find(&second).unwrap() < page.html.find(&first).unwrap());
    world.post(&format!("/console/replays/{first}"), &format!("/console/replays/{first}/cancel"), &[]).await;
    let page = world.get("/console/replays?active=true").await;
    page.has(&[&*second, r#"value="true" checked"#]).has_not(&[&*first]);
}

#[tokio::test]
async fn a_replay_is_shown_with_its_progress_and_cancelled() {
    let world = World::with_billing().await;
    let id = begin(&world).await;
    let key = layout::replay(&id);
    let mut record = ReplayRecord::parse(&world.state.under(&key).pop().unwrap().1).unwrap();
    record.progress.found = 1_234;
    record.progress.queued = 1_200;
    world.state.write(&key, record.render());
    let path = format!("/console/replays/{id}");
    let page = world.get(&path).await;
    page.has(&["1,234", "1,200", "What became of the queued events", "data-live", "7 events per second"]);
    let cancelled = world.post(&path, &format!("{path}/cancel"), &[]).await;
    assert_eq!((cancelled.status, cancelled.location()), (303, &*format!("{path}?done=cancelled")));
    let page = world.get(cancelled.location()).await;
    page.has(&["badge bad\">cancelled", "by an operator", "The replay is cancelled"]);
    page.has_not(&["Cancel this replay"]);
    assert_eq!(world.get("/console/replays/nothing").await.status, 404);
}
