//! A subscription that is not active: what becomes of events that wait for it and of those that
//! come.

use std::time::Duration;

use posthaste_core::api::handshake::status_after_action;
use posthaste_core::api::{
    IsoTimestamp, NewHandshake, StatusState, StatusView, SubscriptionAction,
};
use posthaste_core::model::{SubscriptionIntake, Timestamp};
use posthaste_ports::{Clock, QueueName};
use posthaste_simulation::{Answer, World, event};
use serde_json::json;

const HOUR: Duration = Duration::from_hours(1);

/// Writes a status into the record of the subscription, as manage does.
async fn write(world: &World, status: StatusView) {
    let mut record = world.record().await;
    for settings in record.settings.subscriptions.values_mut() {
        settings.status = Some(status.clone());
    }
    world.write_record(record.render()).await;
}

async fn set(world: &World, state: StatusState) {
    write(world, StatusView::new(state, None, world.clock.now())).await;
}

/// A world whose subscription is in this state, and one event on its way to it.
async fn with(state: StatusState, time_to_live: Duration) -> World {
    let world = World::new();
    world.subscribe(json!({})).await;
    set(&world, state).await;
    world.publish(&[event("1")], time_to_live).await;
    world.deliver_all().await;
    world
}

/// Goes on in steps of a minute.
async fn go_on(world: &World, minutes: u32) {
    for _ in 0..minutes {
        world.clock.advance(Duration::from_mins(1));
        world.wake().await;
        world.deliver_all().await;
    }
}

#[tokio::test]
async fn long_pause_costs_the_queue_nothing_and_ends_in_a_minute() {
    let world = with(StatusState::Paused, 24 * HOUR).await;
    assert_eq!(
        (
            world.delayed(QueueName::Deliveries).await,
            world.held().await.len()
        ),
        (0, 1)
    );
    let calls = |world: &World| {
        world
            .calls
            .all()
            .iter()
            .filter(|call| call.port == "deliveries")
            .count()
    };
    let before = calls(&world);
    go_on(&world, 6 * 60).await;
    assert_eq!((calls(&world) - before, world.held().await.len()), (0, 1));
    set(&world, StatusState::Active).await;
    go_on(&world, 1).await;
    assert_eq!(
        (world.endpoint.take().len(), world.held().await.len()),
        (1, 0)
    );
}

/// Events for a pending or paused subscription wait untried, and go out when it is active.
#[tokio::test]
async fn events_of_a_pending_or_paused_subscription_wait_untried() {
    for state in [StatusState::Pending, StatusState::Paused] {
        let world = with(state, HOUR).await;
        go_on(&world, 30).await;
        assert_eq!(world.endpoint.take().len(), 0, "{state:?}");
        set(&world, StatusState::Active).await;
        go_on(&world, 1).await;
        let requests = world.endpoint.take();
        assert_eq!(requests.len(), 1, "{state:?}");
        assert_eq!(requests[0].headers["aeg-delivery-count"], "0");
    }
}

#[tokio::test]
async fn events_that_wait_too_long_expire_with_their_time_to_live() {
    for state in [
        StatusState::Pending,
        StatusState::Paused,
        StatusState::Failed,
    ] {
        let world = with(state, Duration::from_mins(20)).await;
        go_on(&world, 30).await;
        world.bury().await;
        let [(_, letter)] = &world.buried().await[..] else {
            panic!("one dead letter of a {state:?} one")
        };
        let letters: serde_json::Value = serde_json::from_slice(letter).unwrap();
        assert_eq!(letters[0]["deadletterreason"], "TimeToLiveExceeded");
        assert_eq!(letters[0]["deliveryattempts"], 0);
        assert_eq!(world.endpoint.take().len(), 0);
    }
}

#[tokio::test]
async fn events_that_wait_for_a_disabled_one_are_dead_letters() {
    let world = with(StatusState::Paused, HOUR).await;
    set(&world, StatusState::Disabled).await;
    go_on(&world, 6).await;
    world.clock.advance(Duration::from_mins(6));
    world.bury().await;
    let letters: serde_json::Value = serde_json::from_slice(&world.buried().await[0].1).unwrap();
    assert_eq!(letters[0]["deadletterreason"], "EndpointGone");
    assert_eq!(world.endpoint.take().len(), 0);
}

/// An endpoint that is gone is disabled with its reason, and enabled by hand.
#[tokio::test]
async fn gone_endpoint_is_disabled_with_its_reason_and_reenabled() {
    let world = World::new();
    world.subscribe(json!({})).await;
    world
        .endpoint
        .answer([Answer::Status(410), Answer::Status(204)]);
    world.publish(&[event("1")], HOUR).await;
    world.deliver_all().await;
    let record = world.record().await;
    let settings = record.settings.subscriptions.values().next().unwrap();
    let reason = Some("the endpoint answered 410 Gone".to_owned());
    assert_eq!(
        settings.status,
        Some(StatusView::new(
            StatusState::Disabled,
            reason,
            world.clock.now()
        ))
    );
    let code = posthaste_core::api::SecretText::new("code");
    let enabled = status_after_action(
        SubscriptionAction::Enable,
        settings,
        NewHandshake {
            now: world.clock.now(),
            code: &code,
        },
    )
    .unwrap();
    write(&world, enabled).await;
    world.endpoint.take();
    world.publish(&[event("2")], HOUR).await;
    world.deliver_all().await;
    assert_eq!(world.endpoint.take().len(), 1);
}

/// A handshake whose time is over holds events as a failed one does, and passes new ones by.
#[tokio::test]
async fn expired_handshake_holds_events_and_takes_no_new_ones() {
    let world = World::new();
    world.subscribe(json!({})).await;
    let until: Timestamp = world.clock.now() + Duration::from_mins(10);
    let handshake = json!({ "code": "code", "expiresAt": IsoTimestamp(until) });
    let status =
        json!({ "state": "Pending", "since": "2023-11-14T22:13:20Z", "handshake": handshake });
    write(&world, serde_json::from_value(status).unwrap()).await;
    let takes_new_events = async |world: &World| {
        let topic = world.record().await.compile().unwrap();
        topic.subscriptions["billing"].intake_at(world.clock.now()) == SubscriptionIntake::Delivers
    };
    assert!(takes_new_events(&world).await);
    world.publish(&[event("1")], HOUR).await;
    go_on(&world, 10).await;
    assert!(!takes_new_events(&world).await);
    go_on(&world, 10).await;
    assert_eq!(
        (world.endpoint.take().len(), world.held().await.len()),
        (0, 1)
    );
}
