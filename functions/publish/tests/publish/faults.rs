//! A fault at every effect: the answer that the producer gets, and what may be left behind.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use http::HeaderValue;
use posthaste_core::model::EventPayload;
use posthaste_core::stored::delivery::parse_delivery;
use posthaste_ports::{ErrorKind, ObjectStore, PutCondition};
use posthaste_publish::router;
use posthaste_testkit::faulty::{CallFault, EntryFault, FaultPlan, Faulty, at_every_effect};
use posthaste_testkit::recorded::PortOperation;
use serde_json::json;

use crate::refused::shown;
use crate::world::{
    Answer, BATCH, KEY, MINIMAL, STRUCTURED, World, event_of, request, send, subscriptions,
};

/// Publishes one event of this many bytes to twenty-five subscriptions, over ports that fail by
/// `plan`.
async fn publish(world: &World, plan: &FaultPlan, bytes: usize) -> Answer {
    publish_all(world, plan, &[event_of(bytes)]).await
}

async fn publish_all(world: &World, plan: &FaultPlan, events: &[String]) -> Answer {
    let queue = |queue| Faulty::new(queue, "deliveries", plan);
    let store = Faulty::new(world.store.clone(), "state", plan);
    let app = router(world.publish_over(queue, store).into());
    let body = format!("[{}]", events.join(","));
    send(app, request("/topics/orders/events", &[KEY, BATCH], body)).await
}

/// A topic with twenty-five subscriptions, which is three batches of messages.
async fn world() -> World {
    let names: Vec<String> = (0..25).map(|n| format!("s{n:02}")).collect();
    let all: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), json!({})))
        .collect();
    World::new(subscriptions(&all)).await
}

fn failing(operation: PortOperation, kind: ErrorKind) -> FaultPlan {
    FaultPlan::by(move |effect| {
        let is_write = effect.operation == operation && !effect.key.starts_with("topics/");
        is_write.then_some(CallFault::Before(kind))
    })
}

/// Every message that refers to a payload finds it.
fn assert_no_dangling_reference(world: &World) {
    for message in world.queue.messages() {
        for entry in parse_delivery(&message.body).unwrap().events {
            if let EventPayload::Stored { key, .. } = entry.payload {
                assert_eq!(world.store.objects_under(&key).len(), 1);
            }
        }
    }
}

/// A 200 means that every delivery is there, whichever call fails.
#[tokio::test]
async fn status_200_means_all_deliveries_exist_under_any_fault() {
    for bytes in [100, 900_000] {
        at_every_effect(async |plan, place| {
            let world = world().await;
            let answer = publish(&world, plan, bytes).await;
            assert_no_dangling_reference(&world);
            let mut received: Vec<_> = world
                .deliveries()
                .into_iter()
                .map(|d| d.subscription.to_string())
                .collect();
            received.sort();
            received.dedup();
            match answer.status {
                200 => assert_eq!(received.len(), 25, "{place}"),
                status => assert_eq!(status, 503, "{place}"),
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_queue_that_fails_is_a_503_that_says_what_a_retry_may_do() {
    let world = world().await;
    let answer = publish(
        &world,
        &failing(PortOperation::SendBatch, ErrorKind::Other),
        100,
    )
    .await;
    insta::assert_snapshot!(shown(&answer));
    world.assert_untouched();
}

#[tokio::test]
async fn part_of_a_fan_out_is_no_success() {
    let world = world().await;
    let entries: Vec<_> = (7..10)
        .map(|index| EntryFault {
            index,
            is_sent: false,
            kind: ErrorKind::Other,
        })
        .collect();
    let plan = FaultPlan::by(move |effect| {
        (effect.operation == PortOperation::SendBatch).then(|| CallFault::Entries(entries.clone()))
    });
    assert_eq!(publish(&world, &plan, 100).await.status, 503);
    assert_eq!(world.queue.messages().len(), 7 + 7 + 5);
}

#[tokio::test]
async fn a_producer_is_told_the_queue_s_own_time() {
    let kind = ErrorKind::Throttled {
        retry_after: Some(Duration::from_secs(7)),
    };
    let answer = publish(
        &world().await,
        &failing(PortOperation::SendBatch, kind),
        100,
    )
    .await;
    assert_eq!(
        (answer.status, &answer.headers["retry-after"]),
        (503, &HeaderValue::from(7))
    );
}

#[tokio::test]
async fn a_message_the_queue_does_not_take_is_a_fault_of_ours() {
    let answer = publish(
        &world().await,
        &failing(PortOperation::SendBatch, ErrorKind::Invalid),
        100,
    )
    .await;
    assert_eq!(
        (answer.status, answer.headers.get("retry-after")),
        (500, None)
    );
}

#[tokio::test]
async fn a_wave_that_fails_is_the_last() {
    let world = world().await;
    let plan = failing(PortOperation::SendBatch, ErrorKind::Other);
    // A hundred messages of 160 kB, of which 27 make a wave of 4 MiB and six a batch of 1 MiB.
    let events = vec![event_of(160_000); 4];
    assert_eq!(publish_all(&world, &plan, &events).await.status, 503);
    assert_eq!(plan.faults(), 5);
}

#[tokio::test]
async fn a_full_device_is_a_507() {
    for operation in [PortOperation::SendBatch, PortOperation::Put] {
        let world = world().await;
        let answer = publish(&world, &failing(operation, ErrorKind::Full), 900_000).await;
        assert_eq!(answer.status, 507);
        assert!(
            answer.body.contains("urn:posthaste:problem:storage-full"),
            "{}",
            answer.body
        );
        assert_eq!(world.queue.messages(), vec![]);
    }
}

#[tokio::test]
async fn a_payload_that_is_not_stored_is_not_referred_to() {
    let world = world().await;
    let answer = publish(
        &world,
        &failing(PortOperation::Put, ErrorKind::Denied),
        900_000,
    )
    .await;
    assert_eq!(answer.status, 503);
    world.assert_untouched();
}

/// Everything that can be wrong with a topic's record.
async fn broken_records(world: &World) -> Vec<Bytes> {
    let good = world
        .store
        .get("topics/orders.json")
        .await
        .unwrap()
        .unwrap()
        .bytes;
    let text = String::from_utf8(good.to_vec()).unwrap();
    let newer = text.replace("\"v\":1", "\"v\":3");
    assert_ne!(newer, text);
    vec![
        Bytes::new(),
        good.slice(..good.len() / 2),
        Bytes::from(newer),
        Bytes::from_static(b"{}"),
    ]
}

/// A broken record leads to 503, unless a good one was known: then that one stays in use.
#[tokio::test]
async fn broken_record_is_503_only_without_a_known_good_one() {
    for record in broken_records(&world().await).await {
        let world = world().await;
        let known = router(Arc::new(world.publish()));
        let post = async |app: &Router| {
            let request = request("/topics/orders/events", &[KEY, STRUCTURED], MINIMAL);
            send(app.clone(), request).await
        };
        assert_eq!(post(&known).await.status, 200);
        world
            .store
            .put("topics/orders.json", record.clone(), PutCondition::Always)
            .await
            .unwrap();
        assert_eq!(post(&known).await.status, 200, "{record:?}");
        let unknown = post(&router(Arc::new(world.publish()))).await;
        assert_eq!(
            (
                unknown.status,
                unknown.headers["retry-after"].to_str().unwrap()
            ),
            (503, "5"),
            "{record:?}"
        );
        assert_eq!(world.queue.messages().len(), 50);
    }
}
