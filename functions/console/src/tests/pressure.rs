//! The page of back pressure.

use std::sync::Arc;

use posthaste_core::pressure::PressureState;
use posthaste_core::stored::PRESSURE_KEY;
use posthaste_ports::Clock;
use serde_json::{Value, json};

use super::World;
use super::overview::{SteadyHistory, step};

fn queue() -> Value {
    json!({
        "resource": "submission-queue", "level": "high", "since": 1_699_999_000_000_u64, "reading": 12_345,
        "readAt": 1_700_000_000_000_u64, "thresholds": { "normal": 2_000, "medium": 4_000, "high": 10_000 },
        "acts": true, "polls": 310, "historyDepth": 300, "refusedFrom": "standard",
        "tarpits": true, "measures": ["trim-caches", "dehydrate"],
    })
}

fn write(world: &World, tarpit_ms: u64, resources: Value) {
    let mut state = PressureState::normal(world.clock.now());
    state.tarpit_ms = tarpit_ms;
    state.next_tarpit_ms = Some(20_000);
    state.resources = serde_json::from_value(resources).unwrap();
    world.state.write(PRESSURE_KEY, state.render());
}

#[tokio::test]
async fn before_the_first_poll_producers_are_accepted() {
    let world = World::signed_in().await;
    let page = world.get("/console/pressure").await;
    page.has(&[
        "missing",
        "No resource has been read yet",
        "accepted",
        "data-live",
        "on AWS no process sees all deliveries",
    ]);
    page.has_not(&["<svg", "Last hour"]);
}

#[tokio::test]
async fn a_resource_is_shown_with_what_follows_from_it() {
    let world = World::signed_in().await;
    write(&world, 15_000, json!([queue()]));
    let page = world.get("/console/pressure").await;
    page.has(&[
        "submission-queue",
        "12,345",
        "messages",
        "2,000",
        "4,000",
        "10,000",
        "310 of 300",
        "passed",
    ]);
    page.has(&[
        "badge bad\">high",
        "empties caches, stores events beside their messages",
        "standard</span> and",
    ]);
    page.has(&[
        "internal</td><td role=\"cell\" data-label=\"Producers\">critical producers",
        "standard</td><td role=\"cell\" data-label=\"Producers\">ordinary producers",
        "bulk</td><td role=\"cell\" data-label=\"Producers\">imports and replays",
        "waits</span> 15 s",
        "refused</span> with 503",
        "20 s, if that finds the same",
    ]);
    page.has(&[
        "The <a href=\"/console/words#tarpit\">tarpit</a> makes acknowledgements wait",
        "Polls: how many times in a row",
    ]);
}

/// Database disks are shown as the data folder's disk, or on AWS as messages in flight.
#[tokio::test]
async fn disk_of_data_folder_differs_from_messages_in_flight() {
    let world = World::signed_in().await;
    let check = async |in_flight: bool, expected: &str, other: &str| {
        let mut disk = queue();
        disk["resource"] = "database-disk".into();
        disk["inFlight"] = in_flight.into();
        write(&world, 0, json!([disk]));
        world
            .get("/console/pressure")
            .await
            .has(&[expected])
            .has_not(&[other]);
    };
    check(false, "the disk with the data folder", "messages in flight").await;
    check(true, "messages in flight", "the disk with the data folder").await;
}

#[tokio::test]
async fn an_old_state_says_how_little_it_counts() {
    let world = World::signed_in().await;
    write(&world, 15_000, json!([queue()]));
    world.clock.advance(std::time::Duration::from_mins(10));
    world.get("/console/pressure").await.has(&[
        "stale",
        "The monitor has missed polls. Until it reads again, nobody is refused",
    ]);
    world.clock.advance(std::time::Duration::from_mins(10));
    world
        .get("/console/pressure")
        .await
        .has(&["forgotten", "badge good\">normal", "accepted"]);
}

#[tokio::test]
async fn a_history_is_drawn_for_an_hour_or_a_day() {
    let world = World::new().changed(|console, world| {
        console.with_history(Arc::new(SteadyHistory {
            until: world.clock.now(),
            step: step(),
        }))
    });
    world.sign_in_well().await;
    write(&world, 0, json!([queue()]));
    let hour = world.get("/console/pressure").await;
    hour.has(&[
        "submission-queue, the last hour. last 3,900, least 3,900, most 3,900",
        "medium 4,000",
    ]);
    hour.has(&[r#"href="/console/pressure?hours=1" aria-current="true""#]);
    let day = world.get("/console/pressure?hours=24").await;
    day.has(&[
        "the last 24 hours. last 3,900",
        r#"href="/console/pressure?hours=24" aria-current="true""#,
    ]);
    for other in ["0", "2", "-1", "x", "99999999999"] {
        assert_eq!(
            world
                .get(&format!("/console/pressure?hours={other}"))
                .await
                .status,
            400,
            "{other}"
        );
    }
}
