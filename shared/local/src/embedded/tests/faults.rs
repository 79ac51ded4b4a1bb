//! A device that is full or broken for a while: nothing acknowledged is lost, nothing half is kept,
//! and the store continues to work.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use posthaste_ports::{
    ErrorKind, ObjectStore, PutCondition, QueueCounts, QueueName, QueueReceiver, QueueSender,
    RevalidatedObject,
};

use super::device::{Device, Fault};
use super::{ask, clock, drain, message, open, open_with, to};
use crate::{EmbeddedStore, LocalOptions};
use posthaste_testkit::ManualClock;

const DELIVERIES: QueueName = QueueName::Deliveries;

async fn send(local: &EmbeddedStore<ManualClock>, body: &str) -> Result<(), ErrorKind> {
    let answers = local
        .queue(DELIVERIES)
        .send_batch(vec![message(body)])
        .await
        .map_err(|error| error.kind)?;
    answers
        .into_iter()
        .try_for_each(|answer| answer.map(drop).map_err(|error| error.kind))
}

async fn send_until_it_works(local: &EmbeddedStore<ManualClock>, body: &str) {
    for _ in 0..100 {
        if send(local, body).await.is_ok() {
            return;
        }
    }
    panic!("the store did not recover");
}

#[tokio::test]
async fn a_full_device_refuses_and_then_goes_on() {
    // The device is full at each point of a commit's work.
    for after in 0..6 {
        let device = Device::default();
        let local = open(&device);
        send(&local, "before").await.unwrap();
        device.arm(Some(Fault::Writes {
            after,
            times: u32::MAX,
            kind: io::ErrorKind::StorageFull,
        }));
        let mut refused = Vec::new();
        for n in 0..3 {
            let body = format!("refused {n}{}", "x".repeat(20_000));
            if let Err(kind) = send(&local, &body).await {
                assert_eq!(kind, ErrorKind::Full, "write {after}, try {n}");
                refused.push(body);
            }
        }
        assert!(!refused.is_empty());
        device.arm(None);
        send_until_it_works(&local, "after").await;
        let bodies = drain(&local, DELIVERIES).await;
        assert!(refused.iter().all(|body| !bodies.contains(body)));
        assert_eq!([&bodies[0], &bodies[1]], ["after", "before"]);
        local.close().await;
        assert_eq!(drain(&open(&device), DELIVERIES).await, bodies);
    }
}

/// Replaces a message while the device fails, and once more when it does not.
async fn replace_through(fault: Fault) -> Result<(), ErrorKind> {
    let device = Device::default();
    let local = open(&device);
    send(&local, "before").await.unwrap();
    let queue = local.queue(DELIVERIES);
    let before = queue.receive(ask(1)).await.unwrap().remove(0);
    let successors = vec![to(DELIVERIES, "one"), to(QueueName::DeadLetters, "two")];
    let replace = || async {
        queue
            .replace(&before.receipt, successors.clone())
            .await
            .map_err(|error| error.kind)
    };
    device.arm(Some(fault));
    let first = replace().await;
    device.arm(None);
    send_until_it_works(&local, "after").await;
    let second = replace().await;
    // Exactly one of them took effect.
    assert_eq!(
        queue.counts().await.unwrap(),
        QueueCounts {
            visible: 2,
            delayed: 0,
            in_flight: 0
        }
    );
    local.close().await;
    let local = open(&device);
    assert_eq!(drain(&local, DELIVERIES).await, ["after", "one"]);
    assert_eq!(drain(&local, QueueName::DeadLetters).await, ["two"]);
    assert!(first.is_err() || second == Err(ErrorKind::NotFound));
    first.or(second)
}

#[tokio::test]
async fn a_replace_that_could_not_be_written_can_be_tried_again() {
    for times in [1, u32::MAX] {
        for kind in [io::ErrorKind::Other, io::ErrorKind::StorageFull] {
            assert_eq!(
                replace_through(Fault::Writes {
                    after: 0,
                    times,
                    kind
                })
                .await,
                Ok(()),
                "{times} {kind}"
            );
        }
    }
}

#[tokio::test]
async fn a_failed_sync_leaves_every_call_whole() {
    // Bytes that were written are read back, whether or not they would have survived: the first try
    // took effect.
    for times in [1, u32::MAX] {
        let fault = Fault::Syncs {
            after: 0,
            times,
            kind: io::ErrorKind::Other,
        };
        assert_eq!(
            replace_through(fault).await,
            Err(ErrorKind::NotFound),
            "{times}"
        );
    }
}

#[tokio::test]
async fn a_read_that_fails_after_a_sync_hides_no_commit() {
    // More reads than opening the file makes.
    for reads in 0..40 {
        let first = replace_through(Fault::SyncThenRead { reads }).await;
        assert_eq!(first, Err(ErrorKind::NotFound), "{reads}");
    }
}

#[tokio::test]
async fn an_object_that_took_effect_without_its_sync_has_changed() {
    const KEY: &str = "topics/a.json";
    for times in [1, u32::MAX] {
        let device = Device::default();
        let local = open(&device);
        let store = local.state_store();
        let put = |text: &'static str| {
            store.put(
                KEY,
                Bytes::from_static(text.as_bytes()),
                PutCondition::Always,
            )
        };
        put("before").await.unwrap();
        let before = store.get(KEY).await.unwrap().unwrap();
        // Now its version is known without the engine.
        let unchanged = store.get_if_changed(KEY, &before.etag).await.unwrap();
        assert!(
            matches!(unchanged, RevalidatedObject::Unchanged),
            "{unchanged:?}"
        );
        device.arm(Some(Fault::Syncs {
            after: 0,
            times,
            kind: io::ErrorKind::Other,
        }));
        assert!(put("after").await.is_err());
        device.arm(None);
        send_until_it_works(&local, "the engine is open").await;
        let found = store.get_if_changed(KEY, &before.etag).await.unwrap();
        let RevalidatedObject::Changed(object) = found else {
            panic!("{found:?} with {times} failures")
        };
        assert_eq!(object.bytes, "after");
    }
}

#[tokio::test]
async fn acknowledgements_outlast_a_failure() {
    for times in [1, u32::MAX] {
        let device = Device::default();
        let local = open(&device);
        send(&local, "first").await.unwrap();
        send(&local, "second").await.unwrap();
        let queue = local.queue(DELIVERIES);
        let received = queue.receive(ask(10)).await.unwrap();
        device.arm(Some(Fault::Writes {
            after: 0,
            times,
            kind: io::ErrorKind::Other,
        }));
        for message in &received {
            queue.acknowledge(&message.receipt).await.unwrap();
        }
        // The failure may have met only the acknowledgements, before the send came.
        let third = send(&local, "third").await;
        assert!(matches!(third, Ok(()) | Err(ErrorKind::Other)), "{third:?}");
        device.arm(None);
        send_until_it_works(&local, "fourth").await;
        local.close().await;
        let left = drain(&open(&device), DELIVERIES).await;
        assert_eq!(left.iter().any(|body| body == "third"), third.is_ok());
        assert!(
            left.iter().all(|body| body == "third" || body == "fourth"),
            "{left:?}"
        );
    }
}

#[tokio::test]
async fn the_reserve_is_kept_for_what_empties_the_queues() {
    let device = Device::default();
    let local = open(&device);
    let queue = local.queue(DELIVERIES);
    send(&local, "first").await.unwrap();
    send(&local, "second").await.unwrap();
    device.set_free_bytes(Some(1_000_000));
    assert_eq!(send(&local, "refused").await, Err(ErrorKind::Full));
    let received = queue.receive(ask(10)).await.unwrap();
    queue.acknowledge(&received[0].receipt).await.unwrap();
    queue
        .replace(
            &received[1].receipt,
            vec![to(QueueName::DeadLetters, "dead")],
        )
        .await
        .unwrap();
    local
        .state_store()
        .put("pressure.json", Bytes::from("full"), PutCondition::Always)
        .await
        .unwrap();
    assert_eq!(queue.counts().await.unwrap(), QueueCounts::default());
    device.set_free_bytes(None);
    send(&local, "third").await.unwrap();
    assert_eq!(drain(&local, DELIVERIES).await, ["third"]);
}

#[tokio::test]
async fn room_that_deleted_messages_left_in_the_file_counts_as_free() {
    let device = Device::default();
    let options = LocalOptions {
        disk_reserve_bytes: 4 << 20,
        ..LocalOptions::default()
    };
    let local = open_with(&device, &options, &clock());
    let queue = local.queue(DELIVERIES);
    let large = || message("x".repeat(1_000_000));
    for _ in 0..10 {
        queue
            .send_batch(vec![large()])
            .await
            .unwrap()
            .remove(0)
            .unwrap();
    }
    device.set_free_bytes(Some(0));
    assert_eq!(send(&local, "refused").await, Err(ErrorKind::Full));
    for message in queue.receive(ask(10)).await.unwrap() {
        queue.acknowledge(&message.receipt).await.unwrap();
    }
    send_until_it_works(&local, "after").await;
    assert_eq!(drain(&local, DELIVERIES).await, ["after"]);
}

#[tokio::test]
async fn a_receive_that_cannot_read_leaves_the_message() {
    let device = Device::default();
    let local = open(&device);
    send(&local, "there").await.unwrap();
    local.close().await;
    let local = open(&device);
    device.arm(Some(Fault::Writes {
        after: 0,
        times: u32::MAX,
        kind: io::ErrorKind::Other,
    }));
    assert_eq!(send(&local, "broken").await, Err(ErrorKind::Other));
    device.arm(None);
    send_until_it_works(&local, "again").await;
    let queue = local.queue(DELIVERIES);
    let received = queue.receive(ask(10)).await.unwrap();
    assert_eq!(
        received
            .iter()
            .map(|message| message.receive_count)
            .collect::<Vec<_>>(),
        [1, 1]
    );
    queue
        .change_visibility(&received[0].receipt, Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(
        queue.counts().await.unwrap(),
        QueueCounts {
            visible: 1,
            delayed: 0,
            in_flight: 1
        }
    );
}

/// A panic of the engine is an error of its commit alone, and the store continues to work.
#[tokio::test]
async fn engine_panic_fails_its_commit_and_the_store_continues() {
    let device = Device::default();
    let local = open(&device);
    send(&local, "before").await.unwrap();
    device.arm(Some(Fault::EnginePanic));
    let first = send(&local, "in the commit that panics").await;
    assert_eq!(first, Err(ErrorKind::Other));
    send(&local, "after").await.unwrap();
    let queue = local.queue(DELIVERIES);
    let received = queue.receive(ask(10)).await.unwrap();
    queue
        .replace(
            &received[0].receipt,
            vec![to(QueueName::DeadLetters, "dead")],
        )
        .await
        .unwrap();
    local.close().await;
    let left = drain(&open(&device), DELIVERIES).await;
    assert!(
        left.contains(&"after".to_owned()) && !left.contains(&"before".to_owned()),
        "{left:?}"
    );
}

/// A panic of the thread that writes is seen, and keeps no caller waiting.
#[tokio::test]
async fn commit_thread_panic_is_seen_and_blocks_no_caller() {
    let device = Device::default();
    let local = open(&device);
    send(&local, "before").await.unwrap();
    device.arm(Some(Fault::Panic));
    assert_eq!(
        send(&local, "in the commit that panics").await,
        Err(ErrorKind::Other)
    );
    local.wait_until_ended().await;
    assert_eq!(send(&local, "after").await, Err(ErrorKind::Other));
    local.close().await;
}
