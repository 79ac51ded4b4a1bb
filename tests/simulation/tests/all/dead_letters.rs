//! deadletter: objects a person can read, and a bucket that refuses.

use std::time::Duration;

use bytes::Bytes;
use metrics_exporter_prometheus::PrometheusBuilder;
use posthaste_ports::{Clock, ErrorKind, QueueName};
use posthaste_simulation::{Answer, Faults, World, event};
use posthaste_testkit::faulty::{CallFault, FaultPlan};
use posthaste_testkit::recorded::PortOperation;
use serde_json::json;

const DAY: Duration = Duration::from_hours(24);

async fn refuse(world: &World, ids: &[&str]) {
    world.endpoint.answer([Answer::Status(400)]);
    for id in ids {
        world.publish(&[event(id)], DAY).await;
    }
    world.deliver_all().await;
    world.clock.advance(Duration::from_mins(5));
}

fn refusing() -> FaultPlan {
    FaultPlan::at(CallFault::Before(ErrorKind::Denied), |effect| {
        effect.operation == PortOperation::Put
    })
}

#[tokio::test]
async fn many_dead_letters_of_a_subscription_lie_in_one_object() {
    let world = World::new();
    world.subscribe(json!({})).await;
    refuse(&world, &["a", "b", "c"]).await;
    assert_eq!(world.bury().await.failures, []);
    let buried = world.buried().await;
    assert_eq!(buried.len(), 1);
    let events: Vec<serde_json::Value> = serde_json::from_slice(&buried[0].1).unwrap();
    assert_eq!(events.len(), 3);
    assert_eq!(
        events[0]["deadletterreason"],
        "UndeliverableDueToClientError"
    );
    assert_eq!(events[0]["lastdeliveryoutcome"], "BadRequest");
    assert_eq!(events[0]["lasthttpstatuscode"], 400);
    world.clock.advance(DAY);
    assert_eq!(world.visible(QueueName::DeadLetters).await, 0);
}

#[tokio::test]
async fn a_bucket_that_refuses_is_tried_for_days_and_nothing_is_lost() {
    let world = World::with(&Faults::in_bucket(&refusing()));
    world.subscribe(json!({})).await;
    refuse(&world, &["a"]).await;
    for _ in 0..300 {
        assert_eq!(world.bury().await.failures, []);
        world.clock.advance(Duration::from_mins(15));
    }
    assert_eq!(world.visible(QueueName::DeadLetters).await, 1);
    assert_eq!(world.visible(QueueName::Redrive).await, 0);
}

#[tokio::test]
async fn a_subscription_may_say_when_to_give_up() {
    let world = World::with(&Faults::in_bucket(&refusing()));
    world
        .subscribe(json!({ "deadLetter": { "giveUpAfter": "PT4H" } }))
        .await;
    refuse(&world, &["a"]).await;
    let began = world.clock.now();
    while world.clock.now().since(began) < Duration::from_hours(4) {
        world.bury().await;
        let counts = (
            world.visible(QueueName::DeadLetters).await,
            world.delayed(QueueName::DeadLetters).await,
        );
        assert_eq!(counts, (0, 1), "after {:?}", world.clock.now().since(began));
        world.clock.advance(Duration::from_mins(15));
    }
    world.bury().await;
    assert_eq!(world.delayed(QueueName::DeadLetters).await, 0);
}

#[test]
fn giving_up_is_counted_once_for_each_event() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    metrics::with_local_recorder(&recorder, || {
        runtime.block_on(async {
            let world = World::with(&Faults::in_bucket(&refusing()));
            world
                .subscribe(json!({ "deadLetter": { "giveUpAfter": "PT5M" } }))
                .await;
            refuse(&world, &["a", "b"]).await;
            for _ in 0..3 {
                world.bury().await;
                world.clock.advance(Duration::from_mins(15));
            }
        });
    });
    let text = recorder.handle().render();
    let dropped: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("DroppedEventCount{"))
        .collect();
    let expected = r#"DroppedEventCount{topic="orders",subscription="billing",reason="DeadLetterStorageUnavailable"} 2"#;
    assert_eq!(dropped, [expected]);
}

/// A bucket that refuses shows as the age of the oldest letter, until that is written.
#[test]
fn refusing_bucket_shows_as_the_age_of_the_oldest_letter() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let shown = |name: &str| -> Vec<String> {
        let text = recorder.handle().render();
        text.lines()
            .filter_map(|line| line.strip_prefix(name))
            .map(|value| value.trim().to_owned())
            .collect()
    };
    let age = "OldestUnwrittenDeadLetterInSeconds ";
    let count = "DeadLetterWriteRefusedCount ";
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    metrics::with_local_recorder(&recorder, || {
        runtime.block_on(async {
            let bucket = refusing();
            let world = World::with(&Faults::in_bucket(&bucket));
            world.subscribe(json!({})).await;
            refuse(&world, &["a", "b"]).await;
            for tries in 1..=8_u64 {
                world.bury().await;
                let waited = (tries - 1) * 15 * 60;
                assert_eq!(
                    (shown(age), shown(count)),
                    (vec![waited.to_string()], vec![tries.to_string()])
                );
                world.clock.advance(Duration::from_mins(15));
            }
            bucket.switch(false);
            world.bury().await;
            assert_eq!(
                (shown(age), world.buried().await.len()),
                (vec!["0".to_owned()], 1)
            );
        });
    });
}

/// The object comes as long after the last attempt as the subscription says.
#[tokio::test]
async fn letter_object_comes_after_the_delay_of_its_subscription() {
    for (delay, wait) in [("PT0S", 0), ("PT5M", 300), ("PT15M", 900)] {
        let world = World::new();
        world
            .subscribe(json!({ "deadLetter": { "delay": delay } }))
            .await;
        world.endpoint.answer([Answer::Status(400)]);
        world.publish(&[event("a")], DAY).await;
        world.deliver_all().await;
        if wait > 0 {
            world.clock.advance(Duration::from_secs(wait - 1));
            assert_eq!(world.visible(QueueName::DeadLetters).await, 0, "{delay}");
            world.clock.advance(Duration::from_secs(1));
        }
        world.bury().await;
        assert_eq!(world.buried().await.len(), 1, "{delay}");
    }
}

/// A subscription that keeps no dead letters has its events dropped, whatever the reason.
#[tokio::test]
async fn subscription_without_dead_letters_drops_its_events() {
    for (status, after) in [(400, Duration::ZERO), (503, Duration::from_hours(2))] {
        let world = World::new();
        world
            .subscribe(json!({ "deadLetter": { "enabled": false } }))
            .await;
        world.endpoint.answer([Answer::Status(status)]);
        world.publish(&[event("a")], Duration::from_hours(1)).await;
        world.deliver_all().await;
        world.clock.advance(after);
        world.deliver_all().await;
        let counts = (
            world.visible(QueueName::DeadLetters).await,
            world.delayed(QueueName::DeadLetters).await,
        );
        assert_eq!(
            (counts, world.delayed(QueueName::Deliveries).await),
            ((0, 0), 0),
            "{status}"
        );
    }
}

#[tokio::test]
async fn a_message_that_cannot_be_read_is_kept_byte_for_byte() {
    let world = World::new();
    world.subscribe(json!({})).await;
    let foreign = Bytes::from_static("{\"not\": \"ours\", ü".as_bytes());
    world.send(QueueName::Deliveries, foreign.clone()).await;
    world.deliver().await;
    world.bury().await;
    let buried = world.buried().await;
    assert_eq!(buried.len(), 1);
    assert!(
        buried[0].0.starts_with("MALFORMED/2023/11/14/22/"),
        "{}",
        buried[0].0
    );
    assert_eq!(buried[0].1, foreign);
}

#[tokio::test]
async fn message_that_a_function_failed_on_is_shown_with_its_events() {
    let world = World::new();
    world.subscribe(json!({})).await;
    world.publish(&[event("a")], DAY).await;
    for _ in 0..50 {
        assert_eq!(world.receive(QueueName::Deliveries).await.len(), 1);
        world.clock.advance(Duration::from_mins(6));
    }
    assert_eq!(world.receive(QueueName::Deliveries).await.len(), 0);
    assert_eq!(world.bury_redriven().await.failures, []);
    let buried = world.buried().await;
    let events: Vec<serde_json::Value> = serde_json::from_slice(&buried[0].1).unwrap();
    assert_eq!(
        (&events[0]["id"], &events[0]["deadletterreason"]),
        (&json!("a"), &json!("HandlerFailed"))
    );
    assert_eq!(events[0]["lastdeliveryoutcome"], "Aborted");
    assert_eq!(world.visible(QueueName::Redrive).await, 0);
}

#[tokio::test]
async fn letters_without_time_to_be_written_come_again() {
    let world = World::new();
    world.subscribe(json!({})).await;
    refuse(&world, &["a", "b"]).await;
    assert_eq!(
        world
            .bury_within(Duration::from_secs(10))
            .await
            .failures
            .len(),
        2
    );
    assert_eq!(world.buried().await, []);
    world.clock.advance(Duration::from_mins(6));
    assert_eq!(world.bury().await.failures, []);
    assert_eq!(world.buried().await.len(), 1);
}
